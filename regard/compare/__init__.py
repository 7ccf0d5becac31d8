"""Side by side: what layers cost on this machine, and what each member of the family learns in equal time."""
