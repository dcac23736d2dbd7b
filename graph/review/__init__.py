"""Names that may be one, and names that may be two, with what speaks for it."""
