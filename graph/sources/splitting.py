"""Splitting documents into passages that the embedding model can read whole, each with its place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from graph.schema import MetadataValue, Passage, stable_id
from graph.sources.loaders.document import Document, Heading
from graph.text import is_unspaced, token_spans, tokens

CHUNK_TOKENS, CHUNK_OVERLAP = 220, 40
"""Approximate length of a chunk and of its overlap with the next, in tokens of the embedding model."""

MAX_REFERENCES = 100
"""Web pages that a document may refer to; the first in the order of its text."""

LONGEST_REFERENCE = 1_000
"""Characters of an address that is kept."""

_TENTHS_PER_WORD, _TENTHS_PER_CHARACTER = 13, 10
_SECTION_CHARACTERS = 300
_SEPARATORS = ["\n\n", "\n", ". ", "。", "। ", " ", ""]


def split_document(
    document: Document, chunk_tokens: int = CHUNK_TOKENS, chunk_overlap: int = CHUNK_OVERLAP
) -> list[Passage]:
    """Split a document into passages.

    Each keeps its place beside the document's own metadata: ``document`` id, ``chunk`` number from 0, number of
    ``chunks``, and ``start`` and ``end``, between which it stands in the document's text. Where there are such,
    also the ``section`` that it begins in ("Intro > Methods"), the ``page`` that it begins on, counted from 1, with
    ``page_end`` if it ends on another, and ``references``: addresses of the web pages that it links to, with spaces
    between.

    Args:
        document: one without text gives no passage.
        chunk_tokens: length of a passage with its title, in tokens, about.
        chunk_overlap: what two neighbours share at most, in tokens, about.
    """
    limit = max(chunk_overlap + 1, chunk_tokens - estimate_tokens(document.title))
    spans = list(_spans(document.text, limit, chunk_overlap))
    key = stable_id("document", document.source, document.text)
    sections, references = _Sections(document), _references(document, spans)
    passages = []
    for number, (start, end) in enumerate(spans):
        place: dict[str, MetadataValue] = {
            "document": key,
            "chunk": number,
            "chunks": len(spans),
            "start": start,
            "end": end,
            **sections.at(start),
            **_pages(document.pages, start, end),
        }
        if references[number]:
            place["references"] = " ".join(references[number])
        text = document.text[start:end]
        name = stable_id("passage", document.source, f"{document.title}\n{text}")
        passages.append(Passage(name, document.title, text, document.source, {**document.metadata, **place}))
    return passages


def _spans(text: str, limit: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each chunk."""
    if not text.strip():
        return
    if estimate_tokens(text) <= limit:
        start = len(text) - len(text.lstrip())
        yield start, start + len(text.strip())
        return
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(
        chunk_size=10 * limit,
        chunk_overlap=10 * overlap,
        length_function=_length_of_piece,
        separators=_SEPARATORS,
        keep_separator="end",
    )
    start, end = -1, 0
    for chunk in splitter.split_text(text):
        # The splitter's own offsets hold for lengths in characters alone; where a text repeats itself, a chunk
        # stands at more than one place, and the one that shares no more with its neighbour than allowed is its own.
        start = _find(text, chunk, max(start + 1, _earliest(text, start, end, overlap)))
        end = start + len(chunk)
        yield start, end


def _find(text: str, chunk: str, likely: int) -> int:
    """Return where a chunk stands: at its first place from the likely one on, or its last one before that."""
    place = text.find(chunk, likely)
    return place if place >= 0 else text.rindex(chunk)


def _earliest(text: str, start: int, end: int, overlap: int) -> int:
    """Return where a chunk may begin that shares at most ``overlap`` tokens with the one from ``start`` to ``end``."""
    if start < 0:
        return 0
    left, place = 10 * overlap, end
    for token, begin, _ in reversed(token_spans(text[start:end])):
        left -= _tenths(token)
        if left < 0:
            break
        place = start + begin
    return place


class _Sections:
    """The path of headings over each place of a document; a heading that is the title is no section."""

    def __init__(self, document: Document) -> None:
        self._starts = [heading.offset for heading in document.headings]
        self._paths: list[str] = []
        above: list[Heading] = []
        for number, heading in enumerate(document.headings):
            while above and above[-1].level >= heading.level:
                above.pop()
            if number or heading.text != document.title:
                above.append(heading)
            self._paths.append(_shortened(" > ".join(each.text for each in above[-6:])))

    def at(self, place: int) -> dict[str, MetadataValue]:
        index = bisect_right(self._starts, place) - 1
        return {"section": self._paths[index]} if index >= 0 and self._paths[index] else {}


def _shortened(path: str) -> str:
    return path if len(path) <= _SECTION_CHARACTERS else path[: _SECTION_CHARACTERS - 1] + "…"


def _pages(starts: Sequence[int], start: int, end: int) -> dict[str, MetadataValue]:
    if not starts:
        return {}
    first, last = bisect_right(starts, start), bisect_right(starts, end - 1)
    return {"page": first} if first == last else {"page": first, "page_end": last}


def _references(document: Document, spans: Sequence[tuple[int, int]]) -> list[list[str]]:
    """Return the web pages that each chunk links to; a link between two chunks belongs to the next."""
    short = dict.fromkeys(url for _, url in document.links if len(url) <= LONGEST_REFERENCE)
    kept = {*islice(short, MAX_REFERENCES)}
    urls: list[dict[str, None]] = [{} for _ in spans]
    ends = [end for _, end in spans]
    for offset, url in document.links:
        if url in kept and spans:
            first = min(bisect_right(ends, offset), len(spans) - 1)
            holders = [first]
            while holders[-1] + 1 < len(spans) and spans[holders[-1] + 1][0] <= offset:
                holders.append(holders[-1] + 1)
            for holder in holders:
                urls[holder][url] = None
    return [list(each) for each in urls]


def estimate_tokens(text: str) -> int:
    """Estimate a text's tokens for the embedding model: 1.3 a word, 1 a character of unspaced scripts."""
    return round(_tenths_of_tokens(text) / 10)


def _length_of_piece(text: str) -> int:
    """Return tenths of tokens, at least one: the splitter takes the square of the pieces that one chunk can hold."""
    return _tenths_of_tokens(text) or len(text[:1])


def _tenths_of_tokens(text: str) -> int:
    return sum(map(_tenths, tokens(text)))


def _tenths(token: str) -> int:
    return _TENTHS_PER_CHARACTER if is_unspaced(token) else _TENTHS_PER_WORD
