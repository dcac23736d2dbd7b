"""PDF: the text of each page, and where each begins."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from graph.errors import BadInput
from graph.sources.loaders.document import Document, needing, sane_title, unreadable
from graph.sources.loaders.files import open_file, plain_title, readable_path
from graph.text import is_unicode

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

MAX_PDF_BYTES = 512 * 2**20
"""Size of a PDF; it is read page by page."""

MAX_PAGES = 50_000
"""Pages of a PDF."""

MAX_CHARACTERS = 64 * 2**20
"""Characters that the pages of a PDF may hold together."""

BLANK_PAGES = "PDF pages without text"
"""The note that counts pages without text in documents that have some."""

BROKEN_PAGES = "PDF pages that could not be read"
"""The note that counts pages that the library failed on in documents that have others."""

_SAME_LINE = 1.0
"""Points that the baselines of one line may differ by."""

_MAGIC, _MAGIC_WITHIN = b"%PDF-", 1024
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), 127], " ") | {12: "\n", 13: "\n"}


def load_pdf(path: Path, source: str) -> Document:
    """Read a PDF.

    Its title is the one among its properties if that is a title, else a first line that stands alone. A page that
    cannot be read is counted, and the others are read.

    Raises:
        BadInput: it cannot be read, needs a password, or holds no text.
        DependencyMissing: pypdf is not installed.
    """
    where = readable_path(path)
    with open_file(path) as file:
        _check_kind(file, where)
        return _read(file, where, source)


def _check_kind(file: BinaryIO, where: str) -> None:
    if _MAGIC not in file.read(_MAGIC_WITHIN):
        raise unreadable(where, "PDF", "it does not begin like one")
    if file.seek(0, 2) > MAX_PDF_BYTES:
        raise BadInput(f"{where} is larger than {MAX_PDF_BYTES >> 20} MiB", "Split it")
    file.seek(0)


def _read(file: BinaryIO, where: str, source: str) -> Document:
    with needing("pypdf", where):
        from pypdf import PdfReader
    _quieten()
    # The library meets hostile bytes with errors of every kind, those of Python's own operators included.
    try:
        reader = PdfReader(file, strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise BadInput(f"{where} is encrypted and needs a password", "Save it without one")
        if len(reader.pages) > MAX_PAGES:
            raise BadInput(f"{where} has over {MAX_PAGES:,} pages", "Split it")
        pages, notes = _pages(reader.pages, where)
        named = _named_title(reader)
    except BadInput:
        raise
    except Exception as fault:
        raise unreadable(where, "PDF", fault) from fault
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
    length = 0
    for page in pages:
        try:
            text = _clean(_text(page))
        except Exception as error:
            fault, text = fault or error, ""
            notes[BROKEN_PAGES] += 1
        else:
            notes[BLANK_PAGES] += not text
        texts.append(text)
        length += len(text)
        if length > MAX_CHARACTERS:
            raise BadInput(f"{where} holds over {MAX_CHARACTERS >> 20} Mi characters", "Split it")
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
    """Return a page's text without control characters and broken Unicode, which fonts without a mapping give."""
    whole = text if is_unicode(text) else text.encode("utf-8", "replace").decode("utf-8")
    return whole.translate(_CONTROLS).strip()


def _named_title(reader: PdfReader) -> str:
    try:
        return sane_title(reader.metadata.title if reader.metadata else "")
    except Exception:
        return ""


def _quieten() -> None:
    """Keep the library's remarks on each flaw of a file off the terminal, where no program has asked for them."""
    logger = logging.getLogger("pypdf")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
