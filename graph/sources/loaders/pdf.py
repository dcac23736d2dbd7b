"""PDF: the text of each page, and where each begins."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graph.errors import BadInput
from graph.sources.loaders.document import Document, sane_title, short_spaced
from graph.sources.loaders.files import open_file, plain_title, readable_path

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

BLANK_PAGES = "PDF pages without text"
"""The note that counts pages without text in documents that have some."""

BROKEN_PAGES = "PDF pages that could not be read"
"""The note that counts pages that the library failed on in documents that have others."""

_SAME_LINE = 1.0
"""Points that the baselines of one line may differ by."""

_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), 127], " ") | {12: "\n", 13: "\n"}


def load_pdf(path: Path, source: str) -> Document:
    """Read a PDF.

    Its title is the one among its properties if that is a title, else a first line that stands alone. A page that
    cannot be read is counted, and the others are read.

    Raises BadInput when it needs a password, or holds no text.
    """
    from pypdf import PdfReader

    where = readable_path(path)
    with open_file(path) as file:
        reader = PdfReader(file, strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise BadInput(f"{where} is encrypted and needs a password", "Save it without one")
        pages, notes = _pages(reader.pages, where)
        named = _named_title(reader)
    starts, length = [], 0
    for page in pages:
        starts.append(length)
        length += len(page) + 2 if page else 0
    text = "\n\n".join(filter(None, pages))
    return Document(named or plain_title(text)[0], text, source, pages=starts, notes=notes)


def _pages(pages: Iterable[PageObject], where: str) -> tuple[list[str], Counter[str]]:
    """Return the text of each page, empty where there is none. Raises BadInput when no page holds text."""
    texts: list[str] = []
    notes: Counter[str] = Counter()
    fault: Exception | None = None
    for page in pages:
        try:
            text = _clean(_text(page))
        except Exception as error:
            fault, text = fault or error, ""
            notes[BROKEN_PAGES] += 1
        else:
            notes[BLANK_PAGES] += not text
        texts.append(text)
    if not any(texts):
        if fault is not None:
            raise fault
        raise BadInput(f"{where} holds no text (scanned?)", "Run it through text recognition first")
    return texts, +notes


def _text(page: PageObject) -> str:
    """Return a page's text; pieces of one baseline, as the cells of a row are, stand on one line."""
    pieces: list[str] = []
    last = math.nan

    def add(text: str, page_matrix: Sequence[float], text_matrix: Sequence[float], *_: object) -> None:
        nonlocal last
        if text.strip():
            baseline = _baseline(page_matrix, text_matrix)
            if abs(baseline - last) < _SAME_LINE and pieces[-1].endswith("\n"):
                pieces[-1] = f"{pieces[-1][:-1]} "
            last = baseline
        if text:
            pieces.append(text)

    page.extract_text(visitor_text=add)
    return "".join(pieces)


def _baseline(page_matrix: Sequence[float], text_matrix: Sequence[float]) -> float:
    """Return how far the line of a piece of text is from the origin, in points, whichever way it runs."""
    a, b, c, d, e, f = page_matrix
    right, up = text_matrix[0] * a + text_matrix[1] * c, text_matrix[0] * b + text_matrix[1] * d
    x, y = text_matrix[4] * a + text_matrix[5] * c + e, text_matrix[4] * b + text_matrix[5] * d + f
    return (right * y - up * x) / (math.hypot(right, up) or 1.0)


def _clean(text: str) -> str:
    """Return a page's text without control characters, which fonts without a mapping give."""
    return short_spaced(text.translate(_CONTROLS)).strip()


def _named_title(reader: PdfReader) -> str:
    try:
        return sane_title(reader.metadata.title if reader.metadata else "")
    except Exception:
        return ""
