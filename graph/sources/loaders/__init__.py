"""Loaders: one file a format; each turns a file into a document or into passages, or says why it cannot.

A package adds a kind of file by an entry point of the group ``mara.loaders``. Its name is the suffix, as in ``.odt``;
its value is a function that takes the file's path and its source and returns a `Document` or a `Loaded`.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType

from graph.errors import BadInput, DependencyMissing, MaraError
from graph.sources.loaders.document import Document, Loaded, file_title
from graph.sources.loaders.fields import FieldMap
from graph.sources.loaders.files import readable_path
from graph.text import is_unicode

GROUP = "mara.loaders"
"""The group of the entry points of loaders."""

_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    Attributes:
        content_type: its MIME type; None where it is not known.
        loader: the function that reads it.
        is_plain: whether it is text, which is read in this process; all else is read in a child process.
        has_rows: whether it holds rows, so that the loader takes a `FieldMap`, too.
    """

    content_type: str | None
    loader: EntryPoint
    is_plain: bool = False
    has_rows: bool = False


def _own(content_type: str, place: str, *, is_plain: bool = False, has_rows: bool = False) -> Kind:
    return Kind(content_type, EntryPoint("", f"graph.sources.loaders.{place}", GROUP), is_plain, has_rows)


_OFFICE = "application/vnd.openxmlformats-officedocument"
_OWN = {
    ".txt": _own("text/plain", "files:load_text", is_plain=True),
    ".md": _own("text/markdown", "markdown:load_markdown", is_plain=True),
    ".markdown": _own("text/markdown", "markdown:load_markdown", is_plain=True),
    ".ipynb": _own("application/x-ipynb+json", "markdown:load_notebook", is_plain=True),
    ".html": _own("text/html", "html:load_html"),
    ".htm": _own("text/html", "html:load_html"),
    ".epub": _own("application/epub+zip", "html:load_epub"),
    ".pdf": _own("application/pdf", "pdf:load_pdf"),
    ".docx": _own(f"{_OFFICE}.wordprocessingml.document", "office:load_docx"),
    ".pptx": _own(f"{_OFFICE}.presentationml.presentation", "office:load_pptx"),
    ".xlsx": _own(f"{_OFFICE}.spreadsheetml.sheet", "table:load_workbook", has_rows=True),
    ".eml": _own("message/rfc822", "mail:load_mail"),
    ".csv": _own("text/csv", "table:load_table", is_plain=True, has_rows=True),
    ".tsv": _own("text/tab-separated-values", "table:load_table", is_plain=True, has_rows=True),
    ".jsonl": _own("application/jsonl", "corpus:load_json_lines", is_plain=True, has_rows=True),
    ".json": _own("application/json", "corpus:load_json", is_plain=True, has_rows=True),
}


@cache
def kinds() -> Mapping[str, Kind]:
    """Return the kinds of files that are read, by their suffixes in small letters."""
    added = {
        each.name.lower(): Kind(mimetypes.guess_type(f"file{each.name}")[0], each) for each in entry_points(group=GROUP)
    }
    return MappingProxyType({**_OWN, **added})


def content_type_of(suffix: str) -> str | None:
    """Return the MIME type of a kind of file; None where it is not known."""
    kind = kinds().get(suffix)
    return kind.content_type if kind else None


def readable_hint() -> str:
    """Return the hint for files of other kinds."""
    return f"Readable: {', '.join(sorted(kinds()))}"


def load_file(path: Path, source: str, fields: FieldMap) -> Loaded:
    """Return what a file holds; a document has a title by now, and its file among its metadata.

    Raises:
        BadInput: it cannot be read.
        DependencyMissing: a package that its loader needs is not installed.
    """
    loaded = load(path, source, fields)
    if isinstance(loaded, Loaded):
        return loaded
    title = loaded.title or file_title(path)
    return Loaded([replace(loaded, title=title, metadata={**loaded.metadata, "file": source})])


def load(path: Path, source: str, fields: FieldMap) -> Document | Loaded:
    """Return what the loader of a file returns, as it can be stored. Raises as `load_file` does.

    Libraries meet hostile bytes with errors of every kind, those of Python's own operators included.
    """
    kind, where = kinds()[path.suffix.lower()], readable_path(path)
    try:
        loader = kind.loader.load()
        loaded: Document | Loaded = loader(path, source, fields) if kind.has_rows else loader(path, source)
    except MaraError:
        raise
    except ModuleNotFoundError as fault:
        raise DependencyMissing(
            f"{where} cannot be read without {fault.name}", "Install it with: pip install 'mara-rag[documents]'"
        ) from fault
    except Exception as fault:
        reason = " ".join(str(fault).split())[:_LONGEST_REASON] or type(fault).__name__
        raise BadInput(
            f"{where} cannot be read as {path.suffix[1:].upper()} ({reason})",
            "Correct it and save it again, or leave it out",
        ) from fault
    if isinstance(loaded, Document):
        return _storable(loaded)
    return replace(loaded, documents=[*map(_storable, loaded.documents)])


def _storable(document: Document) -> Document:
    """Return a document with marks in place of broken Unicode, and spaces of NUL characters."""
    if is_unicode(document.text) and "\x00" not in document.text:
        return document
    return replace(document, text=document.text.encode("utf-8", "replace").decode().replace("\x00", " "))
