"""Cue words and shapes as a user writes them, made into patterns that cost no more than their text is long."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from graph.text import is_unspaced

LONGEST_CUE = 60
"""Characters of a cue or a shape."""

_FEWEST_LETTERS_OF_STEM = 2
_MOST_STARS = 2
_LONGEST_STAR = 40
_BETWEEN_WORDS = r"[\s_-]+"
_LETTER = r"[^\W_]"
_NOT_BEHIND, _NOT_BEFORE = rf"(?<!{_LETTER})", rf"(?!{_LETTER})"
_SHAPE_SIGNS = {"#": r"[0-9]", "@": r"[A-Z]", "*": rf"{_LETTER}{{1,{_LONGEST_STAR}}}"}
_NEVER = re.compile(r"(?!)")


def cue_pattern(cue: str) -> str:
    """Return the fragment that finds a cue: whole words in any case; a word that ends in ``*`` is the start of one.

    Raises:
        ValueError: it has no letter or digit, is too long, or has a ``*`` elsewhere.
    """
    _check_length(cue)
    words = re.split(_BETWEEN_WORDS, unicodedata.normalize("NFC", cue).strip())
    if not any(letter.isalnum() for letter in cue):
        raise ValueError("it has no letter and no digit")
    before, after = _boundaries(words)
    return f"{before}{_BETWEEN_WORDS.join(map(_word_pattern, words))}{after}"


def shape_pattern(shape: str) -> str:
    """Return the fragment that finds a shape: ``#`` a digit, ``@`` a capital, ``*`` letters and digits, else itself.

    Raises:
        ValueError: it says nothing of its own, is too long, or has several ``*`` or two signs of which one is ``*`` in
            a row.
    """
    _check_length(shape)
    if not re.search(r"[^\W_]|[#@]", shape):
        raise ValueError("beside * it needs a letter, a digit, # or @")
    if shape.count("*") > _MOST_STARS or re.search(r"\*[\w#@*]|[#@*]\*", shape):
        raise ValueError(f"* stands {_MOST_STARS} times at most, and not beside another sign or before a letter")
    body = "".join(_SHAPE_SIGNS.get(sign) or (r"\s+" if sign.isspace() else re.escape(sign)) for sign in shape.strip())
    return f"{_NOT_BEHIND}{body}{_NOT_BEFORE}"


def any_cue(cues: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern that finds any of some cues, the longest first; of none, it finds nothing."""
    fragments = [cue_pattern(cue) for cue in sorted(cues, key=lambda cue: (-len(cue), cue))]
    return re.compile("|".join(fragments), re.IGNORECASE) if fragments else _NEVER


def any_shape(shapes: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern that finds any of some shapes, the longest first; of none, it finds nothing."""
    fragments = [shape_pattern(shape) for shape in sorted(shapes, key=lambda shape: (-len(shape), shape))]
    return re.compile("|".join(fragments)) if fragments else _NEVER


def _check_length(text: str) -> None:
    if len(text) > LONGEST_CUE:
        raise ValueError(f"it has {len(text)} characters, more than {LONGEST_CUE}")


def _word_pattern(word: str) -> str:
    stem = word.removesuffix("*")
    if "*" in stem:
        raise ValueError("* stands at the end of a word alone")
    if stem != word and len(stem) < _FEWEST_LETTERS_OF_STEM and not any(map(is_unspaced, stem)):
        raise ValueError(f"* needs {_FEWEST_LETTERS_OF_STEM} letters before it")
    return re.escape(stem) + (f"{_LETTER}*" if stem != word else "")


def _boundaries(words: list[str]) -> tuple[str, str]:
    """Return what stands before and behind a cue: nothing in a script that has no spaces between words."""
    first, last = words[0][:1], words[-1][-1:]
    return "" if is_unspaced(first) else _NOT_BEHIND, "" if is_unspaced(last) else _NOT_BEFORE
