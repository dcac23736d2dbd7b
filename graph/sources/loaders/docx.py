"""Word documents, .docx: lxml reads their XML, whose elements are passed to `PageText` as those of a web page.

All text that the document shows is taken, text boxes, content controls, notes and tracked insertions included;
deletions are not.
"""

from __future__ import annotations

import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from string import hexdigits
from typing import Any, BinaryIO

from graph.errors import BadInput
from graph.sources.loaders.document import Document, TextBuilder, first_heading, needing, sane_title, unreadable
from graph.sources.loaders.files import MAX_TEXT_BYTES, open_file, readable_path
from graph.sources.loaders.html import normalised_address
from graph.sources.loaders.page_text import PageText
from graph.sources.loaders.table import are_names

MAX_PACKED_BYTES = 256 * 2**20
"""Size of a .docx."""

MAX_UNPACKED_BYTES = 256 * 2**20
"""Size of all its parts together; each part of XML that is read may have `MAX_TEXT_BYTES`."""

MAX_RATIO = 200
"""The greatest ratio of unpacked to packed size, over `FREE_BYTES`; Word's own files reach about 20."""

FREE_BYTES = 8 * 2**20
"""Size up to which no ratio is too large."""

MAX_DIRECTORY_BYTES = 2 * 2**20
"""Size of the list of its parts."""

_OLD_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_END, _END_SIZE, _COMMENT_BYTES = b"PK\x05\x06", 22, 65_535
_ZIP64_LOCATOR, _ZIP64_LOCATOR_SIZE = b"PK\x06\x07", 20
_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, OSError, RuntimeError, SyntaxError, ValueError)

_NAMESPACES = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "dc": "http://purl.org/dc/elements/1.1/",
}
_W = f"{{{_NAMESPACES['w']}}}"
_LINK_ID = f"{{{_NAMESPACES['r']}}}id"
# "Strict Open XML" has names of its own for the same vocabularies.
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_TRANSITIONAL = rb"http://schemas.openxmlformats.org/\1/2006/\2"
_PREFIXES = {space: prefix for prefix, space in _NAMESPACES.items()}

_PROPERTIES = frozenset({"w:pPr", "w:rPr", "w:tblPr", "w:tblPrEx", "w:trPr", "w:tcPr", "w:sdtPr", "w:sectPr"})
# Beside properties: deleted text, and the second version of elements that an older Word cannot show.
_SKIPPED = _PROPERTIES | {"w:del", "w:moveFrom", "mc:Fallback"}
_TEXTS = {"w:t": "", "m:t": "", "w:tab": " ", "w:noBreakHyphen": "-"}
_TAGS = {"w:tbl": "table", "w:tr": "tr", "w:tc": "td", "w:hyperlink": "a", "w:br": "br", "w:cr": "br"}
_OFF = frozenset({"0", "false", "off", "none"})
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_OUTLINE_LEVELS = "012345678"
_TITLE = 0
_FIRST_ROW = 0x0020


def load_docx(path: Path, source: str) -> Document:
    """Read a Word document.

    Its title is the one among its properties if that is a title, else its paragraph of style Title, else its first
    heading.

    Raises:
        BadInput: it cannot be read, is encrypted, holds no text, or unpacks to more than is sane.
        DependencyMissing: lxml is not installed.
    """
    where = readable_path(path)
    with open_file(path) as file:
        _check_kind(file, where)
        try:
            return _read(_open_package(file, where), where, source)
        except BadInput:
            raise
        except _FAULTS as fault:
            raise unreadable(where, "DOCX", fault) from fault


def _check_kind(file: BinaryIO, where: str) -> None:
    head = file.read(8)
    if head == _OLD_MAGIC:
        if _ENCRYPTED in file.read(2**20):
            raise BadInput(f"{where} is encrypted and needs a password", "Save it without one")
        raise unreadable(where, "DOCX", "it is a Word 97 document, .doc; save it as .docx")
    if not head.startswith(b"PK\x03\x04"):
        raise unreadable(where, "DOCX", "it does not begin like one")


def _open_package(file: BinaryIO, where: str) -> _Package:
    """Open a package whose list of parts is sane. Raises BadInput when it is not, before anything is unpacked."""
    size = file.seek(0, 2)
    _check_directory(file, size, where)
    archive = zipfile.ZipFile(file)
    parts = archive.infolist()
    unpacked = sum(part.file_size for part in parts)
    if unpacked > MAX_UNPACKED_BYTES or (unpacked > FREE_BYTES and unpacked > MAX_RATIO * size):
        raise BadInput(f"{where} unpacks to {unpacked:,} bytes from {size:,} (a zip bomb?)", "Leave it out")
    if any(part.flag_bits & 1 for part in parts):
        raise BadInput(f"{where} is encrypted and needs a password", "Save it without one")
    return _Package(archive, where)


def _check_directory(file: BinaryIO, size: int, where: str) -> None:
    if size > MAX_PACKED_BYTES:
        raise BadInput(f"{where} is larger than {MAX_PACKED_BYTES >> 20} MiB", "Split it")
    file.seek(max(0, size - _END_SIZE - _COMMENT_BYTES - _ZIP64_LOCATOR_SIZE))
    tail = file.read()
    place = tail.rfind(_END)
    if place < 0 or len(tail) < place + _END_SIZE:
        raise unreadable(where, "DOCX", "it is cut off, or no package at all")
    (length,) = struct.unpack_from("<L", tail, place + 12)
    if length > MAX_DIRECTORY_BYTES or _ZIP64_LOCATOR in tail[max(0, place - _ZIP64_LOCATOR_SIZE) : place]:
        raise BadInput(f"{where} lists more parts than a document has (a zip bomb?)", "Leave it out")


class _Package:
    """The parts of an open package, found by their relations."""

    def __init__(self, archive: zipfile.ZipFile, where: str) -> None:
        self._archive, self._where = archive, where
        self._sizes = {part.filename: part.file_size for part in archive.infolist()}

    def parse(self, part: str | None) -> Any:
        """Return the root of a part's XML; nothing where there is no such part.

        Raises:
            BadInput: it is too large, or declares a document type, which could multiply its text.
        """
        with needing("lxml", self._where):
            from lxml import etree
        if part not in self._sizes:
            return None
        if self._sizes[part] > MAX_TEXT_BYTES:
            raise BadInput(f"{self._where} holds over {MAX_TEXT_BYTES >> 20} MiB of XML in one part", "Split it")
        content = _STRICT.sub(_TRANSITIONAL, self._archive.read(part))
        root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True))
        if root.getroottree().docinfo.doctype:
            raise BadInput(
                f"{self._where} declares a document type, which no .docx does (an entity bomb?)", "Leave it out"
            )
        return root

    def related(self, part: str, kind: str) -> str | None:
        """Return the part that a part, or the package itself (""), uses as its ``styles``, ``footnotes`` and so on."""
        for relation in self._relations(part):
            if relation.get("Type", "").endswith(f"/{kind}") and not _is_external(relation):
                target = posixpath.join("/", posixpath.dirname(part), relation.get("Target", ""))
                name = posixpath.normpath(target).lstrip("/")
                if name in self._sizes:
                    return name
        return None

    def links(self, part: str) -> dict[str, str]:
        """Return the addresses that a part refers to, by the relation's id."""
        external = filter(_is_external, self._relations(part))
        return {relation.get("Id", ""): relation.get("Target", "") for relation in external}

    def _relations(self, part: str) -> list[Any]:
        folder, name = posixpath.split(part)
        root = self.parse(posixpath.join(folder, "_rels", f"{name}.rels"))
        return [] if root is None else list(root.iterchildren("*"))


def _is_external(relation: Any) -> bool:
    return bool(relation.get("TargetMode") == "External")


def _read(package: _Package, where: str, source: str) -> Document:
    main = package.related("", "officeDocument")
    if main is None:
        raise unreadable(where, "DOCX", "it holds no document")
    builder = TextBuilder()
    reader = _Reader(PageText(builder), package.parse(package.related(main, "styles")))
    for part in (main, package.related(main, "footnotes"), package.related(main, "endnotes")):
        if part is not None:
            reader.read(package.parse(part), package.links(part))
    reader.page.close()
    if not builder.text:
        raise BadInput(f"{where} holds no text", "Leave it out, or run its pictures through text recognition")
    core = package.parse(package.related("", "core-properties"))
    named = "" if core is None else core.findtext("dc:title", "", _NAMESPACES)
    title = sane_title(named) or reader.title or first_heading(builder.headings)
    found = ((offset, normalised_address(url)) for offset, url in builder.links)
    return Document(title, builder.text, source, headings=builder.headings, links=[link for link in found if link[1]])


class _Reader:
    """Passes the elements of a document and of its notes to a page.

    Attributes:
        page: takes them as elements of a web page.
        title: the text of the first paragraph of style Title.
    """

    def __init__(self, page: PageText, styles: Any) -> None:
        self.page, self.title = page, ""
        named = {} if styles is None else {each.get(f"{_W}styleId", ""): each for each in styles.iterfind(f"{_W}style")}
        styled = {key: each for key, each in named.items() if each.get(f"{_W}type", "paragraph") == "paragraph"}
        self._levels = _inherited(styled, _level_of_style)
        self._lists = _inherited(styled, _is_list)
        self._links: Mapping[str, str] = {}
        self._boxes: list[Any] = []
        self._cells = 0

    def read(self, root: Any, links: Mapping[str, str]) -> None:
        """Pass on all of a part, whose links have those addresses by their ids."""
        self._links = links
        self._walk(root)

    def _walk(self, parent: Any) -> None:
        for element in parent.iterchildren("*"):
            name = _name(element)
            if name in _SKIPPED:
                continue
            if name == "w:p":
                self._emit_paragraph(element)
            elif name == "w:txbxContent":
                self._boxes.append(element)
            elif name in _TEXTS:
                self.page.data(_TEXTS[name] or element.text or "")
            elif name in _TAGS:
                self._emit(_TAGS[name], element)
            else:
                self._walk(element)

    def _emit(self, tag: str, element: Any) -> None:
        link, columns = self._links.get(element.get(_LINK_ID)), _value(element, "w:tcPr/w:gridSpan")
        self.page.start(tag, {"href": link, "colspan": columns})
        if tag == "table" and _has_header(element):
            self.page.start("thead", {})
        self._cells += tag == "td"
        self._walk(element)
        self._cells -= tag == "td"
        self.page.end(tag)

    def _emit_paragraph(self, element: Any) -> None:
        """Pass on a paragraph as a heading, an item of a list or plain text, and then the text boxes that it holds."""
        style = _value(element, "w:pPr/w:pStyle") or ""
        styled = self._levels.get(style)
        if styled == _TITLE and not self.title and not self._cells:
            self.title = " ".join(_text(element).split())
        level = _outline_level(_value(element, "w:pPr/w:outlineLvl")) or styled
        numbered = element.find("w:pPr/w:numPr", _NAMESPACES)
        is_item = self._lists.get(style) if numbered is None else _value(numbered, "w:numId") != "0"
        tag = f"h{level}" if level and not self._cells else "li" if is_item else "p"
        outer, self._boxes = self._boxes, []
        self._emit(tag, element)
        for box in self._boxes:
            self._walk(box)
        self._boxes = outer


def _name(element: Any) -> str:
    """Return an element's name as ``w:p``; those of other vocabularies have no prefix."""
    space, _, local = element.tag.rpartition("}")
    prefix = _PREFIXES.get(space[1:])
    return f"{prefix}:{local}" if prefix else local


def _value(element: Any, path: str) -> str | None:
    """Return the ``w:val`` of the element at that path, empty where it has none; None where there is no element."""
    found = element.find(path, _NAMESPACES)
    return None if found is None else str(found.get(f"{_W}val", ""))


def _is_on(element: Any, path: str) -> bool:
    value = _value(element, path)
    return value is not None and value not in _OFF


def _text(element: Any) -> str:
    return "".join(element.itertext(f"{_W}t"))


def _inherited(styles: Mapping[str, Any], own: Callable[[Any], int | None]) -> dict[str, int | None]:
    """Return each style's own value, else that of the styles that it is based on."""
    known: dict[str, int | None] = {}
    for key in styles:
        chain = []
        while key in styles and key not in known:
            known[key] = own(styles[key])
            chain.append(key)
            if known[key] is None:
                key = _value(styles[key], "w:basedOn") or ""
        known.update(dict.fromkeys(chain, known.get(key)))
    return known


def _level_of_style(style: Any) -> int | None:
    """Return the level of headings that a style says by its outline or by Word's own name for it."""
    name = _value(style, "w:name") or ""
    if outline := _outline_level(_value(style, "w:pPr/w:outlineLvl")):
        return outline
    if named := _HEADING.fullmatch(name):
        return int(named[1])
    return _TITLE if name.lower() == "title" else None


def _is_list(style: Any) -> int | None:
    return None if style.find("w:pPr/w:numPr", _NAMESPACES) is None else 1


def _outline_level(value: str | None) -> int | None:
    """Return the level of headings, from 1, of an outline's; None for that of plain text."""
    return int(value) + 1 if value and value in _OUTLINE_LEVELS and len(value) == 1 else None


def _has_header(table: Any) -> bool:
    """Tell whether a table's first row is marked as the header, or it alone is in bold type.

    Of three columns or more, the row that the table's style sets apart is one, too, if it reads like names.
    """
    rows = list(islice((row for row in table.iterfind(f"{_W}tr") if _text(row).strip()), 2))
    if not rows:
        return False
    cells = [" ".join(_text(cell).split()) for cell in rows[0].iterfind(f"{_W}tc")]
    is_marked = _is_on(rows[0], "w:trPr/w:tblHeader")
    is_bold = len(cells) > 1 and _is_bold(rows[0]) and not any(map(_is_bold, rows[1:]))
    return is_marked or is_bold or (len(cells) > 2 and are_names(cells) and _sets_first_row_apart(table))


def _is_bold(row: Any) -> bool:
    runs = (run for run in row.iter(f"{_W}r") if _text(run).strip())
    return all(_is_on(run, "w:rPr/w:b") for run in runs)


def _sets_first_row_apart(table: Any) -> bool:
    """Tell whether a table's style does so, by the attribute of that name or by the older mask."""
    look = table.find("w:tblPr/w:tblLook", _NAMESPACES)
    if look is None:
        return False
    if look.get(f"{_W}firstRow") is not None:
        return look.get(f"{_W}firstRow") in ("1", "true", "on")
    mask = look.get(f"{_W}val", "")
    return len(mask) == 4 and all(digit in hexdigits for digit in mask) and bool(int(mask, 16) & _FIRST_ROW)
