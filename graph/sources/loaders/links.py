"""Lists of web pages: rows of an address and the page that was fetched from it. Fetching is the user's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from graph.errors import BadInput
from graph.sources.loaders import kinds, load, readable_hint
from graph.sources.loaders.corpus import json_rows
from graph.sources.loaders.document import Document, Loaded, Refused, short_spaced
from graph.sources.loaders.fields import FieldMap
from graph.sources.loaders.files import readable_path
from graph.sources.loaders.html import load_html, normalised_address, parse_html
from graph.sources.loaders.table import table_rows
from graph.text import is_unicode

_CONTENTS = ("text", "html", "path")
_ROW = "Give {url, title?, and one of text, html, path}; the address begins with http or https"


def load_links(path: Path, source: str) -> Loaded:
    """Read a list of web pages: rows of {url, title?, and one of text, html, path}.

    ``path`` names a file beside the list or in a folder below it. A row that cannot be read is refused by its
    address, and the others are read. Each page's source is its address.

    Args:
        path: the list.
        source: unused, as each page has one of its own.

    Raises:
        BadInput: the list itself cannot be read.
    """
    loaded = Loaded()
    rows = json_rows(path) if path.suffix.lower() == ".jsonl" else islice(table_rows(path, loaded.notes), 1, None)
    for where, row in rows:
        try:
            loaded.documents.append(_page(row, where, path.parent, loaded.pages_used))
        except BadInput as fault:
            loaded.refused.append(Refused(where, str(fault)))
    return loaded


def _page(row: Any, where: str, folder: Path, used: set[Path]) -> Document:
    """Return the page of a row; the file that it is read from, if it is, counts as used."""
    fields = row if isinstance(row, Mapping) else {}
    url, title = fields.get("url"), fields.get("title") or ""
    contents = {key: fields[key] for key in _CONTENTS if fields.get(key) not in (None, "")}
    address = normalised_address(url) if isinstance(url, str) else ""
    texts = [title, *contents.values()]
    if not address or len(contents) != 1 or not all(isinstance(text, str) and is_unicode(text) for text in texts):
        raise BadInput(f"{where}: no web address with its page", _ROW)
    here = f"{where}: {address}"
    ((kind, content),) = contents.items()
    if kind == "path":
        file = _file_of(content, here, folder)
        document = _read_page(file, content, here, address)
        used.add(file)
    else:
        document = (
            Document("", short_spaced(content), address)
            if kind == "text"
            else parse_html(content, here, address, address)
        )
    if not document.text.strip():
        raise BadInput(f"{here} holds no text", "Save the page as the browser shows it")
    return replace(document, title=" ".join(title.split()) or document.title)


def _read_page(file: Path, name: str, where: str, address: str) -> Document:
    kind = kinds().get(file.suffix.lower())
    is_page = file.suffix.lower() in (".html", ".htm")
    document = load_html(file, address, address) if is_page else None
    if document is None and kind is not None and not kind.has_rows:
        loaded = load(file, address, FieldMap())
        document = loaded if isinstance(loaded, Document) else None
    if document is None:
        raise BadInput(f"{where}: {name!r} is of a kind that is not read here", readable_hint())
    return replace(document, source=address, metadata={**document.metadata, "file": readable_path(Path(name))})


def _file_of(name: str, where: str, folder: Path) -> Path:
    """Return the file that a list names, which must lie in the list's folder, links resolved, and without ``..``."""
    parts = (*PurePosixPath(name).parts, *PureWindowsPath(name).parts)
    absolute = PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or PureWindowsPath(name).root
    if ".." in parts or absolute or not name.isprintable():
        raise BadInput(f"{where}: the path {name!r} leads out of the list's folder", "Put the page beside the list")
    try:
        page = (folder / name).resolve(strict=True)
        home = folder.resolve(strict=True)
    except (OSError, RuntimeError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "a link that leads to itself"
        raise BadInput(f"{where}: {name!r} cannot be read ({reason})", "Put the page beside the list") from fault
    if not page.is_relative_to(home):
        raise BadInput(f"{where}: the path {name!r} leads out of the list's folder", "Put the page beside the list")
    return page
