"""The knowledge graph: its record, its search index, its snapshot and the walk over it."""
