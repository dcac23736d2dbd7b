"""HTML of the page, read."""

from __future__ import annotations

from html.parser import HTMLParser


class Reader(HTMLParser):
    """The tags of a text with their attributes, its words, and those of them that are marked."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = self.marked = ""
        self._is_marked = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._is_marked = self._is_marked or tag == "mark"

    def handle_endtag(self, tag: str) -> None:
        self._is_marked = self._is_marked and tag != "mark"

    def handle_data(self, data: str) -> None:
        self.words += data
        self.marked += data if self._is_marked else ""

    @property
    def cited(self) -> list[str | None]:
        return [attributes["data-number"] for tag, attributes in self.tags if tag == "button"]
