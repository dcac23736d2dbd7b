"""Explanations of an answer's walk, as data and as a page."""
