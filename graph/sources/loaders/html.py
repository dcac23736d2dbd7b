"""Web pages, saved or bound as e-books: their main text, without menus and the like, their headings and links."""

from __future__ import annotations

import codecs
import posixpath
import re
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from graph.errors import BadInput
from graph.sources.loaders.document import Document, TextBuilder, first_heading, sane_title, short_spaced
from graph.sources.loaders.files import decode, read_bytes, readable_path
from graph.sources.loaders.table import MOST_COLUMNS_SPANNED, are_names, row_lines

_SURROUNDINGS = frozenset({"aside", "dialog", "footer", "form", "map", "nav", "search"})
_CONTROLS = frozenset({"button", "select", "textarea"})
_EMBEDDED = frozenset({"audio", "canvas", "embed", "iframe", "object", "svg", "video"})
_DROPPED = frozenset({"head", "noscript", "script", "style", "template"}) | _SURROUNDINGS | _CONTROLS | _EMBEDDED
_DROPPED_ROLES = frozenset({"banner", "complementary", "contentinfo", "navigation", "search"})
_MENU = re.compile(
    r"(?<![A-Za-z])(?<!no[-_])(?<!has[-_])(?<!with[-_])(?<!without[-_])"
    r"(?:nav|navbar|navigation|menu|sidebar|breadcrumbs?|footer)(?![A-Za-z])",
    re.IGNORECASE,
)
"""The names of menus; a name such as "no-sidebar" is of what stands beside one, or without."""

_SAVED_FROM = re.compile(r"\s*saved from url=\(\d+\)(\S+)|\s*Page saved with SingleFile\s+url:\s*(\S+)")
_DEFAULT_PORTS = {"http": 80, "https": 443}

_DECLARED = re.compile(
    rb"""<meta\b[^>]{0,1000}?\bcharset\s*=\s*["']?\s*([A-Za-z0-9_:.()-]{1,40})"""
    rb"""|\A\s*<\?xml\b[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z0-9_:.()-]{1,40})""",
    re.IGNORECASE,
)
_LOOKED_AT_BYTES = 4096
_SUPERSETS = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030"}

_HEADINGS = {f"h{level}": level for level in range(1, 10)}
"""Of web pages, which have six, and of Word, which has nine."""

_LINES = frozenset({"li", "dt", "dd", "option"})
_SECTIONS = frozenset({"article", "body", "footer", "header", "html", "main", "section"})
_GROUPS = frozenset({"dl", "fieldset", "figure", "hgroup", "menu", "ol", "ul", "details", "dir", "center"})
_BLOCKS = _SECTIONS | _GROUPS | _HEADINGS.keys() | {"address", "blockquote", "caption", "div", "figcaption", "hr"}
_BLOCKS |= {"legend", "p", "pre", "summary", "table", "thead", "tbody", "tr", "td", "th"}
_LONGEST_TERM = 60

TITLE, NAMED_COLUMNS = "title", "named-columns"
"""The classes of a title, and of tables whose first row names the columns if it reads like names."""


def load_html(path: Path, source: str, address: str = "") -> Document:
    """Read a saved web page.

    The document's source is the address given, else the one that the page names, else ``source``.

    Raises BadInput when it cannot be read, or shows no text without its scripts.
    """
    where = readable_path(path)
    markup = decode_page(read_bytes(path), where)
    document = parse_html(markup, where, source, address)
    if markup.strip() and not document.text:
        raise BadInput(f"{where} holds no text (written by scripts?)", "Save the page as the browser shows it")
    return document


def load_epub(path: Path, source: str) -> Document:
    """Read an e-book: its pages in the order of its spine, with its author and language as metadata.

    Raises BadInput when it cannot be read, or holds no text.
    """
    from lxml import etree

    where, builder = readable_path(path), TextBuilder()
    with zipfile.ZipFile(path) as book:
        root = etree.fromstring(book.read("META-INF/container.xml")).find(".//{*}rootfile").get("full-path")
        package = etree.fromstring(book.read(root))
        places = {item.get("id"): item.get("href") for item in package.iterfind(".//{*}manifest/{*}item")}
        for reference in package.iterfind(".//{*}spine/{*}itemref"):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(root), unquote(places[reference.get("idref")])))
            _Page(decode_page(book.read(name), where), where).read_into(builder)
    if not builder.text:
        raise BadInput(f"{where} holds no text", "Leave it out, or run its pictures through text recognition")
    named = ((key, package.findtext(f".//{{*}}metadata/{{*}}{key}", "")) for key in ("creator", "language"))
    title = sane_title(package.findtext(".//{*}metadata/{*}title")) or first_heading(builder.headings)
    return document_of(builder, title, source, metadata={key: " ".join(text.split()) for key, text in named if text})


def parse_html(markup: str, where: str, source: str, address: str = "") -> Document:
    """Return the document of a page's markup; see `load_html`.

    Where the page marks its main part, that is the text. Forms and menus are left out, unless nothing is left then:
    some sites wrap all of a page in one.
    """
    page, builder = _Page(markup, where), TextBuilder()
    page.read_into(builder)
    own = normalised_address(address) or page.address()
    titles = (first_heading(builder.headings, 1), *page.titles(), first_heading(builder.headings))
    return document_of(builder, next(filter(None, titles), ""), own or source, urljoin(own, page.base()))


def read_markup(markup: str, where: str, builder: TextBuilder) -> str:
    """Give all text of markup to a builder, and return that of the first element of class `TITLE`."""
    page = _Page(markup, where)
    page.read_into(builder)
    return page.text_of_class(TITLE)


def document_of(
    builder: TextBuilder, title: str, source: str, base: str = "", metadata: dict[str, str] | None = None
) -> Document:
    """Return the document of a text, whose links to other web pages are made whole by an address."""
    addresses = ((offset, normalised_address(url, base)) for offset, url in builder.links)
    links = [(offset, url) for offset, url in addresses if url and url != source]
    return Document(title, builder.text, source, metadata or {}, builder.headings, links=links)


def decode_page(content: bytes, where: str) -> str:
    """Return a web page's text.

    Raises:
        BadInput: it is no text in the encoding that it declares, or declares one that is not known.
    """
    declared = _DECLARED.search(content[:_LOOKED_AT_BYTES])
    if declared is None:
        return decode(content, where)
    label = (declared[1] or declared[2]).decode("ascii")
    try:
        # A page cannot declare UTF-16 in ASCII: browsers take it for UTF-8.
        name = "utf-8-sig" if label.lower().startswith(("utf", "unicode")) else codecs.lookup(label).name
        return decode(content, where, _SUPERSETS.get(name, name))
    except LookupError as fault:
        raise BadInput(f"{where} declares the encoding {label!r}, which is not known", "Save it in UTF-8") from fault


def normalised_address(url: str, base: str = "") -> str:
    """Return a web address as addresses are compared, or nothing where it is none.

    Scheme and host are in small letters, spaces are written as %20; the fragment, the user, and a port that goes
    without saying are dropped.
    """
    try:
        parts = urlsplit(urljoin(base, url.strip()))
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or not url.isprintable():
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    place = host if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
    return urlunsplit((parts.scheme, place, parts.path or "/", parts.query, "")).replace(" ", "%20")


class _Page:
    """The tree of a page's elements: its main text and its names."""

    def __init__(self, markup: str, where: str) -> None:
        from lxml import etree

        parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_pis=True)
        root = etree.fromstring(short_spaced(markup).encode("utf-8", "replace"), parser) if markup.strip() else None
        if any("depth" in entry.message for entry in parser.error_log):
            raise BadInput(f"{where} has elements nested over 2,048 deep", "Correct the page, or leave it out")
        self._root = etree.Element("html") if root is None else root.getroottree().getroot()
        self._comments = [each.text or "" for each in self._root.itersiblings(etree.Comment, preceding=True)]
        self._comments += [each.text or "" for each in self._root.iter(etree.Comment)]
        etree.strip_tags(self._root, etree.Comment)

    def read_into(self, builder: TextBuilder) -> None:
        """Give the main text to a builder."""
        whole, before = [self._root], builder.length
        mains = [each for each in self._root.iter() if _is_main(each)]
        outermost = [each for each in mains if not any(map(_is_main, each.iterancestors()))]
        menus = {each for each in self._root.iter() if _is_menu(each)}
        for parts, dropped, left_out in (
            (outermost, _DROPPED, menus),
            (whole, _DROPPED, menus),
            (whole, _DROPPED - {"form"}, ()),
        ):
            for part in parts:
                _Blocks(builder, dropped, left_out).read(part)
            if builder.length > before:
                return

    def titles(self) -> list[str]:
        """Return what the page names as its title, if that is one."""
        return [sane_title("".join(each.itertext())) for each in self._root.xpath("//title[not(ancestor::svg)]")]

    def text_of_class(self, name: str) -> str:
        """Return the text of the first element of a class."""
        element = self._root.find(f".//*[@class='{name}']")
        return "" if element is None else " ".join("".join(element.itertext()).split())

    def base(self) -> str:
        """Return the address that the page's links are relative to; empty where it names none."""
        return next((str(each.get("href", "")) for each in self._root.iter("base")), "")

    def address(self) -> str:
        """Return the page's own address, as it names it; empty where it does not."""
        links = [
            each.get("href", "")
            for each in self._root.iter("link")
            if "canonical" in each.get("rel", "").lower().split()
        ]
        named = [
            each.get("content", "")
            for each in self._root.iter("meta")
            if "og:url" in (each.get("property", "").lower(), each.get("name", "").lower())
        ]
        saved = [match[1] or match[2] for match in map(_SAVED_FROM.match, self._comments) if match]
        return next(filter(None, map(normalised_address, (*links[:1], *named[:1], *saved[:1]))), "")


def _is_main(element: Any) -> bool:
    return bool(element.tag == "main" or element.get("role") == "main")


def _is_menu(element: Any) -> bool:
    """Tell whether an element is named like a menu and holds links for the most part."""
    if not _MENU.search(f"{element.get('id', '')} {element.get('class', '')}"):
        return False
    linked = sum(_letters(link) for link in element.iter("a"))
    return 2 * linked > _letters(element)


def _letters(element: Any) -> int:
    return len("".join("".join(element.itertext()).split()))


class _Line:
    """Text as a browser shows it: white space collapsed, line breaks kept."""

    def __init__(self) -> None:
        self.links: list[tuple[int, str]] = []
        self.length = 0
        self._parts: list[str] = []
        self._space = False

    def add(self, text: str) -> None:
        words = " ".join(text.split())
        if words and self._parts and self._parts[-1] != "\n" and (self._space or text[0].isspace()):
            self.add_verbatim(" ")
        if words:
            self.add_verbatim(words)
        self._space = bool(text) and (text[-1].isspace() or (self._space and not words))

    def add_verbatim(self, text: str) -> None:
        self._parts.append(text)
        self.length += len(text)
        self._space = False

    @property
    def text(self) -> str:
        return "".join(self._parts)


class _Blocks:
    """Gives the elements below one to a builder: paragraphs, list items, rows of tables, headings, links."""

    def __init__(
        self, builder: TextBuilder, dropped: Collection[str] = _DROPPED, left_out: Collection[Any] = ()
    ) -> None:
        self._builder, self._dropped, self._left_out = builder, dropped, left_out
        self._line = _Line()
        self._level = self._verbatim = self._term = 0
        self._gap, self._sign = "\n\n", ""

    def read(self, root: Any) -> None:
        """Give all of an element."""
        from lxml import etree

        left, walk = None, etree.iterwalk(root, events=("start", "end"))
        for event, element in walk:
            if event == "start":
                if self._is_dropped(element):
                    left = element
                elif element.tag == "table" and not _is_layout(element):
                    self._end_block("\n\n")
                    self._give_rows(element)
                    left = element
                else:
                    self._start(element)
                    self._add(element.text)
                if left is element:
                    walk.skip_subtree()
            else:
                if left is element:
                    left = None
                else:
                    self._end(element)
                self._add(element.tail if element is not root else None)
        self._end_block("\n\n")

    def _is_dropped(self, element: Any) -> bool:
        """Tell whether an element is no part of the main text; the header of an article is."""
        if element.get("hidden", "until-found") != "until-found" or element.get("role") in _DROPPED_ROLES:
            return True
        if element.tag == "header":
            return not any(each.tag == "article" or _is_main(each) for each in element.iterancestors())
        return element.tag in self._dropped or element in self._left_out

    def _add(self, text: str | None) -> None:
        if text and self._verbatim:
            self._line.add_verbatim(text.replace("\r\n", "\n"))
        elif text:
            self._line.add(text)

    def _start(self, element: Any) -> None:
        tag = element.tag
        if tag == "br":
            self._line.add_verbatim("\n")
        elif tag == "a" and element.get("href"):
            self._line.links.append((self._line.length, element.get("href")))
        elif tag in _LINES:
            self._flush()
            self._sign = "- " if tag == "li" else ""
        elif tag in _BLOCKS:
            self._end_block("\n\n")
            self._level = _HEADINGS.get(tag, self._level)
            self._verbatim += tag == "pre"

    def _end(self, element: Any) -> None:
        tag = element.tag
        if tag == "dt" and _is_explained(element, self._line.text.strip()):
            self._line.add_verbatim(": ")
            self._term = self._line.length
        elif tag in _LINES:
            self._flush()
            self._sign = ""
        elif tag in _BLOCKS:
            self._end_block("\n\n")
            self._level = 0 if tag in _HEADINGS else self._level
            self._verbatim -= tag == "pre"

    def _end_block(self, gap: str) -> None:
        self._flush()
        self._gap = gap

    def _flush(self) -> None:
        """Give the open line to the builder, unless it is a term that what explains it is still to follow."""
        line = self._line
        if self._term and line.length == self._term:
            return
        self._line, self._term = _Line(), 0
        if not line.text.strip() and not line.links:
            return
        lead = self._sign if line.text.strip() and not self._level else ""
        text = lead + (line.text.lstrip() if lead else line.text)
        moved = len(text) - len(line.text)
        self._builder.add(text, self._gap, self._level, [(max(0, at + moved), url) for at, url in line.links])
        if line.text.strip():
            self._gap, self._sign = "\n", ""

    def _give_rows(self, table: Any) -> None:
        """Give a table's caption, and its rows, each with the names of its columns."""
        for caption in table.iter("caption"):
            _Blocks(self._builder).read(caption)
        rows = [row for row in map(_Row, table.iter("tr")) if any(row.cells)]
        if not rows:
            return
        first, gap = rows[0], "\n\n"
        is_bold = len(first.cells) > 1 and first.is_bold and not any(row.is_bold for row in rows[1:])
        is_named = table.get("class") == NAMED_COLUMNS and len(first.cells) > 2 and are_names(first.cells)
        has_header = first.is_header or is_bold or is_named or table.find("thead") is not None
        for row, line in zip(rows, row_lines([row.cells for row in rows], has_header), strict=True):
            self._builder.add(line, gap, links=[(0, url) for url in row.links])
            gap = "\n" if line else gap


def _is_explained(term: Any, text: str) -> bool:
    """Tell whether a term stands before what explains it, and may stand before a colon.

    The parser puts a term into the one before it where that is not closed.
    """
    outer = term.getparent()
    following = outer.getnext() if term.getnext() is None and outer.tag == "dt" else term.getnext()
    is_term = 0 < len(text) <= _LONGEST_TERM and text[-1] not in ".:;!?" and "\n" not in text
    return is_term and following is not None and following.tag == "dd"


class _Row:
    """A row of a table: its cells, each on one line, and its links."""

    def __init__(self, row: Any) -> None:
        self.cells: list[str] = []
        self.links: list[str] = []
        cells = row.xpath("./td|./th")
        for cell in cells:
            builder = TextBuilder()
            _Blocks(builder).read(cell)
            self.cells += [" ".join(builder.text.split()), *[""] * (_columns_spanned(cell.get("colspan", "")) - 1)]
            self.links += [url for _, url in builder.links]
        names, filled = sum(cell.tag == "th" for cell in cells), sum(map(bool, self.cells))
        self.is_header = names > 1 and names >= filled
        self.is_bold = all(_letters(cell) == sum(map(_letters, cell.iter("b", "strong"))) for cell in cells)


def _is_layout(table: Any) -> bool:
    """Tell whether a table lays the page out: a cell holds a table or a heading, or it has no rows."""
    inner: Sequence[Any] = [*table.iter("table", *_HEADINGS)][1:]
    return bool(inner) or table.find(".//tr") is None


def _columns_spanned(span: str) -> int:
    """Return how many columns a cell takes."""
    text = span.strip()
    columns = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 1
    return columns if 0 < columns <= MOST_COLUMNS_SPANNED else 1
