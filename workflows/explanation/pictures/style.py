"""The style of all pictures: colours of relation types, labels, and files whose bytes are the same each time."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graph.errors import BadInput, DependencyMissing
from workflows.explanation.palette import DASHED_WIDTH, Look
from workflows.output.plotting import DPI, can_plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = {".png": "png", ".svg": "svg"}

_FONT = "DejaVu Sans"
_PREFERRED_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Droid Sans Fallback")
_LAST_FONTS = ("Arial Unicode MS", "Unifont")
_SETTINGS: Mapping[str, Any] = {
    "svg.hashsalt": "mara",
    "svg.fonttype": "none",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_NO_DATE: Mapping[str, Any] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
_MISSING_GLYPH = re.compile(r"Glyph (\d+) .* missing from")


def line_style(look: Look, width: float) -> Any:
    """Return matplotlib's style of a line of that look and width, in points; it scales dashes by the width."""
    dash = look.dash
    return (0, tuple(length * max(1.0, width / DASHED_WIDTH) / width for length in dash)) if dash else "solid"


def line_look(look: Look, width: float) -> dict[str, Any]:
    """Return how matplotlib is to draw a line of that look and width."""
    return {"color": look.colour, "linestyle": line_style(look, width), "linewidth": width}


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

    temporary = path.with_name(f".{path.name}.{os.getpid()}")

    def save(families: list[str]) -> tuple[set[int], list[warnings.WarningMessage]]:
        settings: Any = {**_SETTINGS, "font.family": families}
        with warnings.catch_warnings(record=True) as caught, rc_context(settings), _any_weight_of_a_font_will_do():
            warnings.filterwarnings("always", message=_MISSING_GLYPH.pattern)
            draw().savefig(temporary, format=kind, dpi=DPI, metadata=_NO_DATE[kind])
        found = [(_MISSING_GLYPH.match(str(each.message)), each) for each in caught]
        return {int(glyph[1]) for glyph, _ in found if glyph}, [each for glyph, each in found if not glyph]

    try:
        missing, others = save([_FONT])
        more = _families_with(missing) if missing else []
        if more:
            missing, others = save([_FONT, *more])
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    for each in others:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return len(missing)


@contextmanager
def _any_weight_of_a_font_will_do() -> Iterator[None]:
    """Let matplotlib not tell on standard error that a family has no bold font, or no regular one."""
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _families_with(characters: set[int]) -> list[str]:
    """Return installed families that have these characters, as many as it takes; what is left nobody has.

    Fonts are looked for on the disk: matplotlib keeps a list of them from its first use, and misses newer ones. Its own
    ones do not count: some have other signs in place of letters, one a box for each character.
    """
    from matplotlib.font_manager import findSystemFonts, fontManager

    listed = {font.fname for font in fontManager.ttflist}
    fonts = [(_rank_of(family), path, has) for family, path, has in _fonts_with(characters, findSystemFonts())]
    families: dict[str, None] = {}
    left = set(characters)
    for (_, family), path, has in sorted(fonts, key=lambda font: font[:2]):
        if has & left or family in families:
            families[family] = None
            left -= has
            if path not in listed:
                fontManager.addfont(path)
    return list(families)


def _fonts_with(characters: set[int], paths: Iterable[str]) -> Iterator[tuple[str, str, set[int]]]:
    """Yield family, path and characters of each font that can be drawn with and has any of these characters."""
    from matplotlib.font_manager import get_font

    for path in paths:
        with suppress(OSError, RuntimeError):
            font = get_font(path)
            has = {character for character in characters if font.scalable and font.get_char_index(character)}
            if has:
                yield font.family_name, path, has


def _rank_of(family: str) -> tuple[int, str]:
    if family in _PREFERRED_FONTS:
        return _PREFERRED_FONTS.index(family), family
    return len(_PREFERRED_FONTS) + (family in _LAST_FONTS), family
