"""What all pictures share: colours of relation types, labels, and files whose bytes are the same each time."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph.errors import BadInput, DependencyMissing
from graph.schema import RelationType
from workflows.evaluation.plots import DPI, can_plot
from workflows.explanation.palette import DASHED_WIDTH, RELATION_LOOKS
from workflows.visible import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = {".png": "png", ".svg": "svg"}

RELATION_COLOURS: Mapping[str, str] = {relation.value: look.colour for relation, look in RELATION_LOOKS.items()}

_MORE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
    "Unifont",
)
_SETTINGS: Mapping[str, Any] = {
    "svg.hashsalt": "mara",
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_NO_DATE: Mapping[str, Any] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
_MISSING_GLYPH = re.compile(r"Glyph \d+ .* missing from")


def line_style(relation: str, width: float) -> Any:
    """Return matplotlib's style of a line of that relation type and width, in points; it scales dashes by the width."""
    dash = RELATION_LOOKS[RelationType(relation)].dash
    return (0, tuple(length * max(1.0, width / DASHED_WIDTH) / width for length in dash)) if dash else "solid"


def picture_format(path: Path) -> str:
    """Return the format that a file's suffix names.

    Raises:
        BadInput: it is neither .png nor .svg, or no file can stand there.
        DependencyMissing: matplotlib is not installed.
    """
    if path.suffix.lower() not in FORMATS:
        raise BadInput(f"{path} is no picture that can be written", "Name a file that ends in .png or .svg")
    if path.is_dir() or not path.parent.is_dir():
        raise BadInput(f"{path} cannot be written", "Name a file in a folder that is there")
    if not can_plot():
        raise DependencyMissing("Pictures are drawn by matplotlib", "Install it with: pip install 'mara-rag[plots]'")
    return FORMATS[path.suffix.lower()]


def save_picture(path: Path, draw: Callable[[], Figure]) -> int:
    """Draw a figure and put it in place at once; the same figure gives the same bytes.

    Args:
        path: a file that ends in .png or .svg.
        draw: makes the figure; matplotlib's settings are this module's while it runs.

    Returns:
        How many different characters no installed font has: boxes in a PNG file. An SVG file holds texts as texts,
        for the fonts of who reads it.

    Raises:
        BadInput: the file's name ends otherwise.
        DependencyMissing: matplotlib is not installed.
        OSError: the disk refuses.
    """
    kind = picture_format(path)
    from matplotlib import rc_context

    settings: Any = {**_SETTINGS, "font.family": _fonts()}
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with warnings.catch_warnings(record=True) as caught, rc_context(settings):
            warnings.filterwarnings("always", message=_MISSING_GLYPH.pattern)
            draw().savefig(temporary, format=kind, dpi=DPI, metadata=_NO_DATE[kind])
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    missing = {str(each.message) for each in caught if _MISSING_GLYPH.match(str(each.message))}
    for each in caught:
        if str(each.message) not in missing:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return len(missing)


def _fonts() -> list[str]:
    """Return the families that a character is looked for in: matplotlib's own, and what is installed of large ones."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _MORE_FONTS if name in installed)]


def shortened(text: str, length: int) -> str:
    """Return a text on one line, without hidden characters, of at most that many characters."""
    shown = " ".join(visible(text).split())
    return shown if len(shown) <= length else f"{shown[: length - 1].rstrip()}…"
