"""Names that may be one, with what speaks for it."""
