"""Answers without anything that is fetched or followed unseen: chat interfaces load every image that an answer names.

A hostile passage may make a model write what it read into an address. So no image is left, in Markdown or HTML, and no
link but to the source of a passage; a link's text stays. Code is no exception: interfaces disagree on where it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import IncrementalNewlineDecoder

from agents.answers.citations import CITATION
from agents.roles import NumberedPassage

_LONGEST = 2_000
"""Characters within which an image, link or tag has to end: else it is broken rather than read."""

_IN_LABEL = r"(?:\\.|[^\[\]\\]|\[(?:\\.|[^\[\]\\]){0,2000}+\]){0,2000}+"
_LABEL = rf"\[(?P<label>{_IN_LABEL})\]"
_IN_TARGET = r"(?:\\.|[^()\\]|\((?:\\.|[^()\\]){0,2000}+\)){0,2000}+"
_TARGET = rf"\((?P<target>{_IN_TARGET})\)"
_IMAGE = re.compile(rf"!{_LABEL}{_TARGET}", re.DOTALL)
_REFERENCE_IMAGE = re.compile(rf"!{_LABEL}(?:\[(?:\\.|[^\[\]\\]){{0,2000}}+\])?(?!\()", re.DOTALL)
_LINK = re.compile(rf"{_LABEL}{_TARGET}", re.DOTALL)
_IN_FRONT = r"[ \t>*+.\-0-9):~]"
_BARE_LINE = re.compile(f"{_IN_FRONT}*")
_STARTS_LINE = rf"^(?P<start>{_IN_FRONT}*)"
_DEFINITION = re.compile(
    rf"{_STARTS_LINE}{_LABEL}:[ \t]*\n?[ \t>]*(?P<target><[^<>\n]*>|[^\s<]\S*)"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$",
    re.MULTILINE,
)
_DEFINING = re.compile(rf"{_STARTS_LINE}(?P<defined>{_LABEL}):", re.MULTILINE | re.DOTALL)
_BROKEN_LINK = re.compile(rf"{_LINK.pattern}|\]\(", re.DOTALL)
_OPENS_TAG = re.compile(r"<(?=[a-z/!?])", re.IGNORECASE)
_AUTOLINK = re.compile(r"<([a-z][a-z0-9+.\-]{1,31}:[^\s<>]*|[^\s<>@]+@[^\s<>@]+)>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.{0,2000}?-->", re.DOTALL)
_ATTRIBUTE = r"[\s/]+(?P<name>[^\s\"'=<>/]+)(?:\s*=\s*(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"'=<>`]+))?"
_TAG = re.compile(rf"</?(?P<element>[a-z][\w:.\-]*)(?P<attributes>(?:{_ATTRIBUTE})*+)[\s/]*>", re.IGNORECASE)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_NO_TAG = re.compile(r"<(?P<element>[a-z][\w:.\-]*+)(?P<attributes>)[^>=]{0,2000}+>", re.IGNORECASE)
"""A type with its parameters, as in ``List<Map<String, int>>``, and what else has no attribute."""

_STYLING = re.compile(r"[(\\&<>]")
_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s<>\"\[\]`|]*|www\.[^\s<>\"\[\]`|]*", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]{0,30}://|www\.", re.IGNORECASE)
_LIKE_ADDRESS = re.compile(r"[/\\:#?&%]|\w\.\w")
_CITATION = re.compile(CITATION)
_OPEN = re.compile(
    rf"^{_IN_FRONT}{{1,100}}\Z|\[{_IN_LABEL}\Z|\]\({_IN_TARGET}\Z|<[a-z/!?][^<>]{{0,2000}}+\Z"
    rf"|^{_IN_FRONT}*\[{_IN_LABEL}\]:[ \t]*\n?[^\n]{{0,2000}}+\Z",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""The end of a text that is in the middle of a link, a tag or a definition."""

_PLAIN = re.compile(r"[^\W_]*?(?=(?:h|ht|htt|https?|ftp?|f|ww?w?)?\Z)", re.IGNORECASE)
"""The beginning of a word that is no part of an address."""

_SPACE = re.compile(r"\s")
_WORD = re.compile(r"[^\W\d_].*\s\Z")
"""A letter in the last line: what follows it no longer begins a line."""

_MAY_LINK = re.compile(r"[\[\]<]|//|www\.", re.IGNORECASE)
_MOST_NESTED = 20
_BEHIND = ")]}.,;:!?*_'\"~"
"""Characters that end a sentence or mark words rather than belong to an address."""

_LOADING = {
    *("a", "area", "audio", "base", "embed", "iframe", "image", "img", "link", "object", "picture", "script", "source"),
    *("style", "svg", "track", "video"),
}
"""Elements of HTML that load or link something."""

_ADDRESSING = {
    *("action", "archive", "attributionsrc", "background", "cite", "classid", "code", "codebase", "content", "data"),
    *("dynsrc", "formaction", "from", "href", "icon", "imagesrcset", "longdesc", "lowsrc", "manifest", "ping"),
    *("poster", "profile", "src", "srcdoc", "srcset", "style", "to", "usemap", "values", "xlink:href"),
}
"""Attributes of HTML that hold addresses, or styles that may; those of events begin with "on"."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses that an answer may name.

    Attributes:
        sources: of the passages' sources: links to them stay.
        written: those, and all that stand in the passages' words: where they are written out, they stay as they are.
    """

    sources: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()


NO_ADDRESSES = Addresses()


def addresses_of(passages: Iterable[NumberedPassage]) -> Addresses:
    """Return the addresses that an answer from these passages may name."""
    known = list(passages)
    sources = frozenset([passage.source for passage in known if passage.source])
    texts = [f"{passage.title}\n{passage.text}" for passage in known]
    return Addresses(sources, sources | addresses_in(texts).written)


def addresses_in(texts: Iterable[str]) -> Addresses:
    """Return the addresses that are written out in texts."""
    written = _ADDRESS.findall("\n".join(texts))
    return Addresses(written=frozenset([*written, *(address.rstrip(_BEHIND) for address in written)]))


def unlinked(text: str, addresses: Addresses = NO_ADDRESSES) -> str:
    """Return a text without images, and without links to other addresses than these: what stays loads nothing."""
    unlinking = Unlinking(addresses)
    return unlinking.feed(text) + unlinking.end()


class Unlinking:
    """`unlinked` of a text that comes in pieces: what it returns of them, put together, is what is left of the whole.

    It holds back what may become an address, an image, a link or a tag.
    """

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._held = ""
        self._begins_line = True
        self._line_ends = IncrementalNewlineDecoder(None, translate=True)

    def feed(self, piece: str) -> str:
        """Take the next piece; return what is settled by now and was not returned before."""
        settled: list[str] = []
        done, searched = 0, len(self._held)
        self._held += self._line_ends.decode(piece)
        for space in _SPACE.finditer(self._held, searched):
            part = self._held[done : space.end()]
            if not _MAY_LINK.search(part) and (not self._begins_line or _WORD.search(part)):
                settled.append(part)
                self._begins_line = part.endswith("\n")
            elif len(part) > _LONGEST or not _OPEN.search(part if self._begins_line else f"|{part}"):
                settled.append(self._settled(part))
            else:
                continue
            done = space.end()
        self._held = self._held[done:]
        if plain := _PLAIN.match(self._held):
            settled.append(self._settled(plain[0]))
            self._held = self._held[plain.end() :]
        return "".join(settled)

    def end(self) -> str:
        """Return the rest, since no piece comes any more."""
        rest, self._held = self._held + self._line_ends.decode("", final=True), ""
        return self._settled(rest)

    def _settled(self, part: str) -> str:
        """Return what is left of a part that ends outside of everything."""
        start = "" if self._begins_line else "|"
        left = f"{start}{part}"
        if _MAY_LINK.search(part):
            for _ in range(_MOST_NESTED):
                before, left = left, self._reduced(left)
                if left == before:
                    break
            left = self._broken(left)
        self._begins_line = _BARE_LINE.fullmatch(left.rpartition("\n")[2]) is not None
        return left.removeprefix(start)

    def _reduced(self, text: str) -> str:
        """Return a text without the innermost images, links, tags and addresses that are not to stay."""
        text = _COMMENT.sub("", _AUTOLINK.sub(r"\1", text))
        text = _TAG.sub(lambda tag: tag[0] if _is_harmless(tag) else "", text)
        text = _REFERENCE_IMAGE.sub(_image, _IMAGE.sub(_image, text))
        text = _DEFINITION.sub(self._definition, _LINK.sub(self._link, text))
        return _ADDRESS.sub(self._address, text)

    def _broken(self, text: str) -> str:
        """Return a text with a space in whatever could still be an image, a link or a tag that is not to stay.

        However it came about: spaces alone are put in, so that nothing new comes of it.
        """
        text = _BROKEN_LINK.sub(self._broken_link, text.replace("![", "! ["))
        text = _OPENS_TAG.sub(_broken_tag, text)
        return _DEFINING.sub(r"\g<start>\g<defined> :", text)

    def _link(self, link: re.Match[str]) -> str:
        if self._is_of_a_source(link) or not _leads_on(link):
            return link[0]
        return f"[{link['label']}]" if _is_citation(link) else link["label"]

    def _definition(self, definition: re.Match[str]) -> str:
        if self._is_of_a_source(definition) or not _LIKE_ADDRESS.search(definition["target"]):
            return definition[0]
        return definition["start"]

    def _address(self, match: re.Match[str]) -> str:
        """An address that the passages hold as it is; any other without what makes a link of it."""
        address = match[0]
        behind = min(len(address) - len(address.rstrip(_BEHIND)), _MOST_NESTED)
        if any(address[: len(address) - cut] in self._addresses.written for cut in range(behind + 1)):
            return address
        for _ in range(_MOST_NESTED):
            if not _SCHEME.search(address):
                return address
            address = _SCHEME.sub("", address)
        return ""

    def _broken_link(self, link: re.Match[str]) -> str:
        if link[0] != "](" and self._is_of_a_source(link):
            return f"[{_apart(link['label'])}]({link['target']})"
        return _apart(link[0])

    def _is_of_a_source(self, link: re.Match[str]) -> bool:
        return link["target"].removeprefix("<").removesuffix(">") in self._addresses.sources


def _image(image: re.Match[str]) -> str:
    """Nothing, in place of an image; a citation behind an exclamation mark stays."""
    return image[0] if _is_citation(image) and not _leads_on(image) else ""


def _is_citation(link: re.Match[str]) -> bool:
    return _CITATION.fullmatch(f"[{link['label']}]") is not None


def _leads_on(link: re.Match[str]) -> bool:
    """Tell whether what looks like a link has an address, rather than being brackets side by side."""
    target = (link.groupdict().get("target") or "").strip()
    return bool(_LIKE_ADDRESS.search(target)) and not (_is_citation(link) and " " in target)


def _apart(text: str) -> str:
    return text.replace("](", "] (")


def _broken_tag(match: re.Match[str]) -> str:
    tag = _TAG.match(match.string, match.start()) or _NO_TAG.match(match.string, match.start())
    return "<" if tag and _is_harmless(tag) else "< "


def _is_harmless(tag: re.Match[str]) -> bool:
    """Tell whether a tag of HTML or XML neither loads nor links anything."""
    return tag["element"].lower() not in _LOADING and not any(
        (name := attribute["name"].lower()) in _ADDRESSING
        or name.startswith("on")
        or _STYLING.search(attribute["value"] or "")
        for attribute in _ATTRIBUTES.finditer(tag["attributes"])
    )
