"""Numbers of the relationship graph that hold unless a caller gives others."""

from __future__ import annotations

SOURCES, CHUNKS, CONCEPTS, RELATED = 3, 8, 12, 8
"""Sources, chunks, concepts and related documents around a document, at most."""

ROWS = 100
"""Rows of a query's result that are shown."""

TIMEOUT_S = 10.0
"""Seconds that a query may take."""
