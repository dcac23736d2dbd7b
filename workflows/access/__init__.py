"""Access: the identity of a caller, the file of keys, tokens, and which sources a caller may name."""
