"""Checks of a workspace: what the record, the search index, the snapshot and the files say of each other."""
