"""Pictures drawn by matplotlib: whether it is installed, and what all of them share."""

from __future__ import annotations

from importlib.util import find_spec

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito's palette, yellow left out: it cannot be seen on white."""

DPI = 150


def can_plot() -> bool:
    """Tell whether matplotlib, the extra ``plots``, is installed."""
    return find_spec("matplotlib") is not None
