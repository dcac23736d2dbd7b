"""The gold passages that the walk leaves out of the first five, by what connects them with the others of a question.

    python -m benchmarks.missed QUESTIONS.jsonl --workspace DIR [--set NAME=VALUE ...]

Questions are JSONL of {question, gold_ids}; those with two gold passages or more count. A missed passage has a name in
common with another gold passage (the rarest counts), or one that an edge joins with another's, or none.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from graph.construction.knowledge_graph import KnowledgeGraph
from workflows.context import Context, Question, make_context
from workflows.retrieval import graph as retrieval
from workflows.runtime.resources import open_workspace_index

DEPTH = 5
"""A passage below that place is missed."""

FEW = 8
"""Passages up to which a name is rare; one that more hold is a hub."""

_RANKED = 50


class Cause(StrEnum):
    """What connects a missed passage with the others of its question."""

    OUTRANKED = f"a name that {FEW} passages or fewer hold: reached and outranked"
    HUB = f"only names that more than {FEW} passages hold: hubs"
    OTHER_FORM = "no name, but an edge between two: another form, or another step"
    APART = "no name: a description, or a name that was not read"


class Place(StrEnum):
    """Where a missed passage stands."""

    NEAR = f"{DEPTH + 1} to 10"
    FAR = f"11 to {_RANKED}"
    BELOW = "below"


def main() -> None:
    """Ask, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--workspace", "-w", required=True)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting; repeatable")
    options = parser.parse_args()
    settings = dict(each.split("=", 1) for each in options.set)
    context = make_context(workspace=options.workspace, top_k=_RANKED, **settings)
    rows = [json.loads(line) for line in options.questions.read_text(encoding="utf-8").splitlines() if line]
    print(report([(row["question"], row["gold_ids"]) for row in rows], context))


def report(questions: Sequence[tuple[str, Sequence[str]]], context: Context) -> str:
    """Return how many gold passages each cause leaves out, by where they stand, as a Markdown table."""
    graph, counts, asked, gold = open_workspace_index(context).graph, Counter[tuple[Cause, Place]](), 0, 0
    for question, gold_ids in questions:
        if len(gold_ids) < 2:
            continue
        hits = retrieval.invoke(Question(question=question), context=context)["passages"]
        places = {hit["id"]: hit["number"] for hit in hits}
        missed = [key for key in gold_ids if places.get(key, _RANKED + 1) > DEPTH]
        asked, gold = asked + bool(missed), gold + len(gold_ids)
        for key in missed:
            others = [graph.passage_index[other] for other in gold_ids if other != key]
            counts[cause_of(graph, graph.passage_index[key], others), _place(places.get(key))] += 1
    lines = [f"| {sum(counts.values())} of {gold} missed, in {asked} questions | {' | '.join(Place)} | together |"]
    lines.append("|---|" + "--:|" * (len(Place) + 1))
    for cause in Cause:
        cells = [counts[cause, place] for place in Place]
        lines.append(f"| {cause} | {' | '.join(map(str, cells))} | {sum(cells)} |")
    return "\n".join(lines)


def cause_of(graph: KnowledgeGraph, missed: int, others: Sequence[int]) -> Cause:
    """Return what connects a missed passage with others, all given by their places in the graph."""
    names = set(graph.entities_in(missed).tolist())
    theirs = {name for other in others for name in graph.entities_in(other).tolist()}
    if common := names & theirs:
        rarest = min(len(set(graph.passages_with(name).tolist())) for name in common)
        return Cause.OUTRANKED if rarest <= FEW else Cause.HUB
    beside = {end for name in theirs for end in _neighbours(graph, name)}
    return Cause.APART if names.isdisjoint(beside) else Cause.OTHER_FORM


def _neighbours(graph: KnowledgeGraph, entity: int) -> list[int]:
    """Return the nodes that an edge joins with an entity."""
    ends: list[int] = []
    for arcs in (graph.typed.forward, graph.typed.backward):
        ends += arcs.node[arcs.starts.item(entity) : arcs.starts.item(entity + 1)].tolist()
    return ends


def _place(number: int | None) -> Place:
    if number is None:
        return Place.BELOW
    return Place.NEAR if number <= 10 else Place.FAR


if __name__ == "__main__":
    main()
