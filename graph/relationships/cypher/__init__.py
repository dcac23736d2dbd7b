"""The relationship graph in Cypher: an embedded copy, and a server over Bolt."""
