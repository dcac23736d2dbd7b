"""Corrections of the graph by its user: what they say, how they apply, and what they change."""
