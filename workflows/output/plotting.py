"""Pictures drawn by matplotlib: whether it is installed, and what all of them share."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito's palette, yellow left out: it cannot be seen on white."""

DPI = 150


def can_plot() -> bool:
    """Tell whether matplotlib, the extra ``plots``, is installed."""
    return find_spec("matplotlib") is not None


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of so many inches, which no window and no global state belongs to."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
