"""Where a passage comes from: the document that it is part of, the source of that, and the pages that it links to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from graph.relationships.schema import Node, NodeType
from graph.schema import MAX_ID, Passage, stable_id
from graph.text import has_controls, is_unicode

CONTENT_TYPES = {
    ".txt": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".pdf": "application/pdf",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".jsonl": "application/jsonl",
    ".json": "application/json",
}
"""The MIME type of each kind of file that is read, by suffix."""

WEBSITE, FILE = "website", "file"
"""The types of sources."""

_SCHEMES = ("http", "https")
_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a passage.

    Attributes:
        document: id of the document.
        number: the passage's place in the document, from 0.
        path: the file or address that the document came from; its id where none is known.
        title: the document's, else the last part of its path.
        content_type: its MIME type; None where the kind of file is not known.
        references: addresses of the web pages that the passage links to.
    """

    document: str
    number: int
    path: str
    title: str
    content_type: str | None
    references: tuple[str, ...]


def origin_of(passage: Passage) -> Origin:
    """Return where a passage comes from, by its source and metadata."""
    document = _usable(str(passage.metadata.get("document") or passage.id))
    number = passage.metadata.get("chunk", 0)
    path = passage.source or document
    file = str(passage.metadata.get("file") or path)
    suffix = PurePosixPath(urlsplit(file).path if is_address(file) else file).suffix.lower()
    return Origin(
        document=document,
        number=number if isinstance(number, int) and number >= 0 else 0,
        path=path,
        title=passage.title or path.rstrip("/").rpartition("/")[2] or path,
        content_type=CONTENT_TYPES.get(suffix, "text/html" if is_address(path) else None),
        references=tuple(filter(is_address, str(passage.metadata.get("references", "")).split())),
    )


def _usable(document: str) -> str:
    """Return the id of a document, or a hash of it where no node could have it."""
    usable = document.strip() and not has_controls(document) and len(document) <= MAX_ID and is_unicode(document)
    return document if usable else stable_id("document", document)


def is_address(path: str) -> bool:
    """Tell the address of a web page from the path of a file."""
    return path.partition("://")[0].lower() in _SCHEMES and "://" in path


def source_id(uri: str) -> str:
    """Return the id of the source at an address or path: the first 16 digits of its SHA-256 (003)."""
    return hashlib.sha256(uri.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]


def source_node(uri: str) -> Node:
    """Return the source at an address or path: a website by its host, a file by its name."""
    if is_address(uri):
        name, kind = urlsplit(uri).hostname or uri, WEBSITE
    else:
        name, kind = PurePosixPath(uri).name or uri, FILE
    return Node(NodeType.SOURCE, source_id(uri), {"name": name, "type": kind, "uri": uri})


def source_nodes(uris: Iterable[str]) -> list[Node]:
    """Return the sources at some addresses and paths, each once."""
    return [source_node(uri) for uri in dict.fromkeys(uris)]
