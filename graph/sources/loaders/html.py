"""Saved web pages: their main text, without navigation and the like, their headings, address and links."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit, urlunsplit

from graph.errors import BadInput
from graph.sources.loaders.document import Document, TextBuilder, first_heading, needing, sane_title, unreadable
from graph.sources.loaders.files import decode, read_bytes, readable_path
from graph.sources.loaders.page_text import PageText

MAX_DEPTH = 1_000
"""The greatest depth of nested elements; browsers keep 512 levels, and closing tags cost time in the depth."""

_SURROUNDINGS = frozenset({"aside", "dialog", "footer", "form", "map", "nav", "search"})
_CONTROLS = frozenset({"button", "select", "textarea"})
_EMBEDDED = frozenset({"audio", "canvas", "embed", "iframe", "object", "svg", "video"})
_DROPPED = frozenset({"noscript", "script", "style", "template"}) | _SURROUNDINGS | _CONTROLS | _EMBEDDED
_DROPPED_ROLES = frozenset({"banner", "complementary", "contentinfo", "navigation", "search"})
_MENU = re.compile(
    r"(?<![A-Za-z])(?<!no[-_])(?<!has[-_])(?<!with[-_])(?<!without[-_])"
    r"(?:nav|navbar|navigation|menu|sidebar|breadcrumbs?|footer)(?![A-Za-z])",
    re.IGNORECASE,
)
"""The names of menus; a name such as "no-sidebar" is of what stands beside one, or without."""

_MAIN = re.compile(r"""<main\b|\brole\s*=\s*["']?main\b""", re.IGNORECASE)
_PIECE = 2**15
_SAVED_FROM = re.compile(r"\s*saved from url=\(\d+\)(\S+)|\s*Page saved with SingleFile\s+url:\s*(\S+)")
_DEFAULT_PORTS = {"http": 80, "https": 443}

_DECLARED = re.compile(
    rb"""<meta\b[^>]{0,1000}?\bcharset\s*=\s*["']?\s*([A-Za-z0-9_:.()-]{1,40})"""
    rb"""|\A\s*<\?xml\b[^>]{0,200}?\bencoding\s*=\s*["']([A-Za-z0-9_:.()-]{1,40})""",
    re.IGNORECASE,
)
_Target = TypeVar("_Target", "_Page", "_Menus")
_LOOKED_AT_BYTES = 4096
_OF_TEXT = re.compile(r"utf-?8|ascii|iso8859|cp\d|gb|hz|big5|shift_jis|euc_|iso2022|johab|koi8|mac|ptcp|tis|viscii")
_SUPERSETS = {"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030"}


def load_html(path: Path, source: str, address: str = "") -> Document:
    """Read a saved web page.

    The document's source is the address given, else the one that the page names, else ``source``.

    Raises:
        BadInput: it cannot be read, or shows no text without its scripts.
        DependencyMissing: lxml is not installed.
    """
    where = readable_path(path)
    markup = decode_page(read_bytes(path), where)
    document = parse_html(markup, where, source, address)
    if markup.strip() and not document.text:
        raise BadInput(f"{where} holds no text (written by scripts?)", "Save the page as the browser shows it")
    return document


def parse_html(markup: str, where: str, source: str, address: str = "") -> Document:
    """Return the document of a page's markup; see `load_html`.

    Where the page marks its main part, that is the text. Forms and menus are left out, unless nothing is left then:
    some sites wrap all of a page in one.
    """
    menus = _parse(markup, _Menus(where)).found if _MENU.search(markup) else set()
    attempts = [(_DROPPED, True, menus)] if _MAIN.search(markup) else []
    page = _Page(where, _DROPPED, False, menus)
    for attempt in [*attempts, (_DROPPED, False, menus), (_DROPPED - {"form"}, False, set[int]())]:
        page = _parse(markup, _Page(where, *attempt))
        if page.builder.text:
            break
    return page.document(source, address)


def decode_page(content: bytes, where: str) -> str:
    """Return a web page's text.

    Raises:
        BadInput: it is no text in the encoding that it declares, or declares one that is not known.
    """
    declared = _DECLARED.search(content[:_LOOKED_AT_BYTES])
    if declared is None:
        return decode(content, where)
    label = (declared[1] or declared[2]).decode("ascii")
    return decode(content, where, _codec(label, where))


def _codec(label: str, where: str) -> str:
    """Return the codec that browsers take for a label: a page cannot declare UTF-16 in ASCII, so that means UTF-8."""
    if label.lower().startswith(("utf-16", "utf-8", "utf8", "unicode")):
        return "utf-8-sig"
    try:
        name = codecs.lookup(label).name
    except LookupError:
        name = ""
    if not _OF_TEXT.match(name):
        raise BadInput(f"{where} declares the encoding {label!r}, which is not known", "Save the page in UTF-8")
    return _SUPERSETS.get(name, name)


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


def _parse(markup: str, page: _Target) -> _Target:
    with needing("lxml", page.where):
        from lxml import etree
    if not markup.strip():
        return page
    parser = etree.HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    try:
        # An error of ours is only raised at the end of a piece.
        for start in range(0, len(markup), _PIECE):
            parser.feed(markup[start : start + _PIECE].encode("utf-8", "replace"))
        parser.close()
    except BadInput:
        raise
    except (etree.LxmlError, ValueError, AssertionError) as fault:
        raise unreadable(page.where, "HTML", fault) from fault
    return page


class _Menus:
    """Takes the parser's events, and finds the elements that are named like menus and hold links for the most part.

    Attributes:
        found: their numbers, in the order in which elements begin, from 1.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.found: set[int] = set()
        self._number = self._depth = self._links = 0
        self._text = [0, 0]
        self._open: list[tuple[int, int, list[int]]] = []

    def start(self, tag: str, attributes: Mapping[str, Any]) -> None:
        self._number += 1
        self._depth += 1
        _check_depth(self._depth, self.where)
        self._links += tag == "a"
        if _MENU.search(f"{attributes.get('id', '')} {attributes.get('class', '')}"):
            self._open.append((self._number, self._depth, [*self._text]))

    def data(self, text: str) -> None:
        self._text[self._links > 0] += len("".join(text.split()))

    def end(self, tag: str) -> None:
        if self._open and self._open[-1][1] == self._depth:
            number, _, before = self._open.pop()
            plain, linked = (now - then for now, then in zip(self._text, before, strict=True))
            if linked > plain:
                self.found.add(number)
        self._links -= tag == "a"
        self._depth -= 1

    def close(self) -> None:
        pass


def _check_depth(depth: int, where: str) -> None:
    if depth > MAX_DEPTH:
        raise BadInput(f"{where} has elements nested over {MAX_DEPTH:,} deep", "Correct the page, or leave it out")


class _Page:
    """Takes the parser's events: drops elements, keeps the page's names, and passes the text on."""

    def __init__(self, where: str, dropped: frozenset[str], main_only: bool, menus: Set[int]) -> None:
        self.where = where
        self.builder = TextBuilder()
        self._text = PageText(self.builder)
        self._dropped, self._main_only, self._menus = dropped, main_only, menus
        self._number = self._depth = self._skipped_at = self._main_at = self._articles = 0
        self._title: list[str] | None = None
        self._titles: list[str] = []
        self._base = ""
        self._named: dict[str, str] = {}

    def start(self, tag: str, attributes: Mapping[str, Any]) -> None:
        self._number += 1
        self._depth += 1
        _check_depth(self._depth, self.where)
        if self._skipped_at:
            return
        if self._is_dropped(tag, attributes):
            self._skipped_at = self._depth
        elif tag == "title":
            self._title = []
        elif tag in ("link", "meta", "base"):
            self._name(tag, attributes)
        else:
            self._articles += tag == "article"
            if not self._main_at and _is_main(tag, attributes):
                self._main_at = self._depth
            if self._is_taken():
                self._text.start(tag, attributes)

    def end(self, tag: str) -> None:
        depth, self._depth = self._depth, self._depth - 1
        if self._skipped_at:
            if depth == self._skipped_at:
                self._skipped_at = 0
        elif tag == "title":
            self._titles.append("".join(self._title or ()))
            self._title = None
        else:
            self._articles -= tag == "article"
            if self._is_taken():
                self._text.end(tag)
            if depth == self._main_at:
                self._main_at = 0

    def data(self, text: str) -> None:
        if self._skipped_at:
            return
        if self._title is not None:
            self._title.append(text)
        elif self._is_taken():
            self._text.data(text)

    def comment(self, text: str) -> None:
        if found := _SAVED_FROM.match(text):
            self._named.setdefault("saved", found[1] or found[2])

    def close(self) -> None:
        self._text.close()

    def document(self, source: str, address: str) -> Document:
        """Return the document of the page."""
        own = normalised_address(address) or self._address()
        base = urljoin(own, self._base)
        found = ((offset, normalised_address(url, base)) for offset, url in self.builder.links)
        links = [(offset, url) for offset, url in found if url and url != own]
        headings = self.builder.headings
        titles = (first_heading(headings, 1), *map(sane_title, self._titles), first_heading(headings))
        title = next(filter(None, titles), "")
        return Document(title, self.builder.text, own or source, headings=headings, links=links)

    def _address(self) -> str:
        named = (normalised_address(self._named.get(name, "")) for name in ("canonical", "og:url", "saved"))
        return next(filter(None, named), "")

    def _is_taken(self) -> bool:
        return not self._main_only or self._main_at > 0

    def _is_dropped(self, tag: str, attributes: Mapping[str, Any]) -> bool:
        """Tell whether an element is no part of the main text; the header of an article is."""
        hidden = "hidden" in attributes and attributes["hidden"] != "until-found"
        bare = tag in self._dropped or (tag == "header" and not self._articles and not self._main_at)
        return bare or hidden or attributes.get("role") in _DROPPED_ROLES or self._number in self._menus

    def _name(self, tag: str, attributes: Mapping[str, Any]) -> None:
        if tag == "base":
            self._base = self._base or str(attributes.get("href", ""))
        elif tag == "link" and "canonical" in str(attributes.get("rel", "")).lower().split():
            self._named.setdefault("canonical", str(attributes.get("href", "")))
        elif tag == "meta" and str(attributes.get("property", attributes.get("name", ""))).lower() == "og:url":
            self._named.setdefault("og:url", str(attributes.get("content", "")))


def _is_main(tag: str, attributes: Mapping[str, Any]) -> bool:
    return tag == "main" or attributes.get("role") == "main"
