"""Corrections of the graph by its user: what they say, and what they make of a passage."""
