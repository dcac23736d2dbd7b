"""An own relation type's effect on rankings: made-up makers and their suppliers, with and without the type SUPPLIES.

Each maker's passage names four companies, each of which has a passage of its own that reads like the others; questions
ask of the supplier. Printed is where its passage stands, over all questions, and how often it is first of the four.

    python -m benchmarks.own_types
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from workflows.context import Context, Question
from workflows.indexing import index_sources
from workflows.retrieval import graph as retrieval
from workflows.runtime.resources import close_indexes
from workflows.settings.indexing import IndexingContext

TYPES = """
[relations.SUPPLIES]
meaning = "one company delivers goods, parts or fuel to the other"
cues = ["suppl*", "deliver* to"]
"""
MAKERS = {
    "Halden Pumps": ("Orrin Foundry", "Vestra Holding", "Nordlys Insurance", "Brage Haulage"),
    "Tern Works": ("Marlow Rubber", "Sund Capital", "Ribe Mutual", "Karv Freight"),
    "Kestrel Line": ("North Bunker", "Falk Brothers", "Skagen Assurance", "Thisted Towage"),
    "Aldous Mills": ("Lindqvist Steel", "Morsoe Trust", "Odin Cover", "Fanoe Logistics"),
    "Bellis Dairy": ("Jorn Glass", "Agger Partners", "Tyra Life", "Hobro Transport"),
    "Corvin Boats": ("Ryd Timber", "Hals Group", "Vidar Guarantee", "Samsoe Carriers"),
}
"""Each maker's supplier, owner, insurer and haulier."""

TOWNS = [
    *("Esbjerg", "Odense", "Horsens", "Kolding", "Vejle", "Randers", "Viborg", "Ringsted", "Holstebro", "Skive"),
    *("Svendborg", "Herning", "Silkeborg", "Grenaa", "Lemvig", "Struer", "Nyborg", "Middelfart", "Faaborg", "Assens"),
    *("Korsoer", "Naestved", "Slagelse", "Kalundborg"),
]
SAYS_SUPPLIES = ("{0} supplies parts to {1}.", "{0} delivers materials to {1}.", "{1} is supplied by {0}.")
QUESTIONS = ("How many employees has the company that supplies {0}?", "In which town is the supplier of {0}?")
WALKS: Mapping[str, Mapping[str, Any]] = {
    "mode mara": {},
    "mode mara-matrix": {"mode": "mara-matrix"},
    "preset seed": {"preset": "seed"},
}


def rows() -> Iterator[dict[str, str]]:
    """Yield the passages."""
    towns = iter(TOWNS)
    for number, (maker, others) in enumerate(MAKERS.items()):
        supplier, owner, insurer, haulier = others
        supplies = SAYS_SUPPLIES[number % len(SAYS_SUPPLIES)].format(supplier, maker)
        text = (
            f"{maker} was bought by {owner}. {insurer} insures {maker}. {supplies} {haulier} carries goods of {maker}."
        )
        yield {"id": maker, "title": maker, "text": text}
        for place, company in enumerate((owner, insurer, supplier, haulier)):
            employees = 40 + 7 * (4 * number + place)
            text = f"{company} is a company in {next(towns)}. It has {employees} employees."
            yield {"id": company, "title": company, "text": text}


def places(root: Path, settings: Mapping[str, Any]) -> list[tuple[int, bool]]:
    """Return of each question the rank of the supplier's passage, and whether it is first of the four companies'."""
    found = []
    for maker, others in MAKERS.items():
        for question in QUESTIONS:
            context = Context(workspace=str(root), model="offline", top_k=30, **settings)
            result: Any = retrieval.invoke(Question(question=question.format(maker)), context=context)
            ids = [hit["id"] for hit in result["passages"]]
            companies = [key for key in ids if key in others]
            found.append((ids.index(others[0]) + 1, companies[0] == others[0]))
    return found


def main() -> None:
    """Index the passages with the type and without, and print the ranks."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows())), encoding="utf-8")
        (folder / "types.toml").write_text(TYPES, encoding="utf-8")
        for name, types in (("without", ""), ("with", str(folder / "types.toml"))):
            settings = IndexingContext(model="offline", types=types)
            index_sources([folder / "corpus.jsonl"], folder / name, settings=settings)
        for walk, changes in WALKS.items():
            for name in ("without", "with"):
                found = places(folder / name, changes)
                mean, first = sum(rank for rank, _ in found) / len(found), sum(is_first for _, is_first in found)
                print(f"{walk}, {name} SUPPLIES: mean rank {mean:.2f}, first of four in {first} of {len(found)}")
        close_indexes()


if __name__ == "__main__":
    main()
