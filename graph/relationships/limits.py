"""Numbers of the relationship graph that hold unless a caller gives others."""

from __future__ import annotations

ROWS = 100
"""Rows of a query's result that are shown."""

TIMEOUT_S = 10.0
"""Seconds that a query may take."""
