"""How good an output is: what a score is, and a file for each that is counted here."""
