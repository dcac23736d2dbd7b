"""How many of the names that the offline extractor finds are names, by names that were marked by hand.

    python -m benchmarks.names KIND SOURCE... [--draw WORD] [--drawn N] [--unmarked] [--triples FILE.jsonl]

KIND is that of the documents: encyclopedic, manuals or folders. The draw is the 200 names with the smallest hashes, so
that two extractors draw the same names as far as both find them; quantities are left out. The marks stand in
benchmarks/name_marks.tsv, a name a line. A name is right if it names a person, place, organisation, product, work,
event, date, code or defined term, and wrong if it is part of one, a word with a capital, or a phrase.

One person marked them. --draw makes another draw, of which fewer names have a mark.

--unmarked prints drawn names without a mark, with the text around them. --triples takes the names of another extraction
({id, entities}), and tells how many of those that stand with a capital in the text the extractor finds, too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.offline.entities import SpanKind, scan_entities
from agents.offline.extractor import OfflineExtractor
from benchmarks.extraction import names_of
from graph.schema import Extraction, Passage
from graph.sources.documents import read_documents
from graph.text import normalise_name

KINDS = ("encyclopedic", "manuals", "folders")
DRAWN = 200
MARKS = Path(__file__).with_name("name_marks.tsv")
_AROUND = 40


@dataclass(frozen=True, slots=True)
class Found:
    """A name as it is spelled first, and the passage that spells it so."""

    spelling: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class Precision:
    """The marks of a draw.

    Attributes:
        drawn: how many names were drawn.
        right, wrong: how many of these are marked so; the rest has no mark.
        lost: names marked right that are not found.
    """

    drawn: int
    right: int
    wrong: int
    lost: tuple[str, ...]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("sources", type=Path, nargs="+")
    parser.add_argument("--draw", default="", help="any word: another draw for each")
    parser.add_argument("--drawn", type=int, default=DRAWN, help="how many names to draw")
    parser.add_argument("--unmarked", action="store_true", help="print drawn names without a mark")
    parser.add_argument("--triples", type=Path, help="names of another extraction, to be found again")
    options = parser.parse_args()
    passages = list(read_documents(options.sources).passages.values())
    extractor = OfflineExtractor()
    extractions = {passage.id: extractor.extract(passage) for passage in passages}
    names = found_names(passages, extractions)
    marks = read_marks(MARKS)[options.kind]
    drawn = draw(f"{options.draw}{options.kind}", names, options.drawn)
    print(report(len(names), measure(drawn, names, marks)))
    if options.triples:
        again, total = found_again(passages, extractions, options.triples)
        print(f"names of {options.triples.name} in the text: {total}; found: {again} ({again / max(1, total):.3f})")
    if options.unmarked:
        for name in drawn:
            if name not in marks:
                print(f"{name}\t{_around(names[name])}")


def found_names(passages: Iterable[Passage], extractions: Mapping[str, Extraction]) -> dict[str, Found]:
    """Return the extracted entities by their normal forms, without quantities."""
    found: dict[str, Found] = {}
    for passage in passages:
        for name in extractions[passage.id].entities:
            if not is_quantity(name):
                found.setdefault(normalise_name(name), Found(name, passage))
    return found


def is_quantity(name: str) -> bool:
    """Tell whether a name is a number or a quantity, which is found but names nothing."""
    spans = scan_entities(name).spans
    return not any(map(str.isalpha, name)) or any(s.kind is SpanKind.QUANTITY and s.text == name for s in spans)


def read_marks(path: Path) -> dict[str, dict[str, bool]]:
    """Read {kind: {name: whether it is right}} of lines of kind, mark and name."""
    marks: dict[str, dict[str, bool]] = {kind: {} for kind in KINDS}
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, mark, name = line.split("\t")
        marks[kind][name] = mark == "right"
    return marks


def draw(salt: str, names: Iterable[str], n_drawn: int = DRAWN) -> list[str]:
    """Return the names with the smallest hashes: always the same, as far as they are found."""
    return sorted(names, key=lambda name: hashlib.blake2b(f"{salt}\0{name}".encode(), digest_size=8).digest())[:n_drawn]


def measure(drawn: Sequence[str], names: Mapping[str, Found], marks: Mapping[str, bool]) -> Precision:
    """Count the marks of drawn names, and the right names that are lost."""
    marked = [marks[name] for name in drawn if name in marks]
    right = sum(marked)
    lost = tuple(name for name, is_right in marks.items() if is_right and name not in names)
    return Precision(len(drawn), right, len(marked) - right, lost)


def report(n_names: int, precision: Precision) -> str:
    """Return the figures, a line each."""
    marked = precision.right + precision.wrong
    lines = [
        f"names: {n_names}; drawn: {precision.drawn}; marked: {marked}; right: {precision.right}; "
        f"precision: {precision.right / max(1, marked):.3f}",
        f"right names not found: {len(precision.lost)}: {', '.join(precision.lost)}",
    ]
    return "\n".join(lines)


def found_again(passages: Iterable[Passage], extractions: Mapping[str, Extraction], path: Path) -> tuple[int, int]:
    """Return how many names of another extraction are nodes of their passage, of how many that stand in its text."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    entities = {str(row["id"]): row["entities"] for row in rows}
    again = total = 0
    for passage in passages:
        own = names_of(passage, extractions[passage.id])
        names = {name for name in entities.get(passage.id, ()) if name[:1].isupper() and name in passage.content}
        total += len(names)
        again += sum(normalise_name(name) in own for name in names)
    return again, total


def _around(found: Found) -> str:
    text = found.passage.content
    at = max(0, text.find(found.spelling))
    return " ".join(text[max(0, at - _AROUND) : at + len(found.spelling) + _AROUND].split())


if __name__ == "__main__":
    main()
