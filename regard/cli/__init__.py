"""The command line: one file a verb, `main.py` where they meet. Data on stdout, all else on stderr."""
