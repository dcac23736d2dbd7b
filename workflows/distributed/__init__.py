"""Indexing on Ray Data: shards of passages are extracted and embedded by many workers, and committed by one process."""
