"""Between the state and the graph: ids and plain values on one side, indices and objects on the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agents.answers.unlinked import addresses_of, unlinked
from agents.roles import Answer, NumberedPassage
from graph.construction.knowledge_graph import GraphFact
from graph.errors import BadInput
from graph.retrieve.modes import WalkSettings
from graph.retrieve.open_index import Index
from graph.retrieve.search import Ranking, Seeds, weigh_every_passage
from graph.retrieve.selection import Selection
from graph.schema import RelationFactors, entity_id
from graph.walk.sparse import SparseVector
from workflows.settings.enums import ResultKind
from workflows.states.records import (
    EntitySeed,
    ErrorRecord,
    FactHit,
    PassageCandidate,
    PassageHit,
    PassageSeed,
    SeedSet,
    error_of,
)
from workflows.states.shared import State, searched_words


def fact_hit(fact: GraphFact, score: float, *, kept: bool) -> FactHit:
    """Return a fact as it stands in the state."""
    return FactHit(
        id=fact.fact.id,
        subject=fact.fact.subject,
        predicate=fact.fact.predicate,
        object=fact.fact.object,
        relation=fact.fact.relation.value,
        score=score,
        kept=kept,
    )


def facts_of(hits: Sequence[FactHit], index: Index, selection: Selection | None) -> list[tuple[GraphFact, float]]:
    """Return the facts of the state with their scores, less what the graph does not know or the filter hides."""
    known = index.graph.facts.get if selection is None else selection.fact
    found = ((known(hit["id"]), hit["score"]) for hit in hits)
    return [(fact, score) for fact, score in found if fact]


def passage_hits(index: Index, ranking: Ranking) -> list[PassageHit]:
    """Return a ranking as it stands in the result, numbered from 1."""
    found = ((index.graph.passages[place], score) for place, score in ranking)
    return [
        PassageHit(
            number=number,
            id=passage.id,
            title=passage.title,
            text=passage.text,
            source=passage.source,
            metadata=dict(passage.metadata),
            score=score,
        )
        for number, (passage, score) in enumerate(found, start=1)
    ]


def kind_of(answer: Answer) -> ResultKind:
    """Return what a result with this answer says."""
    if answer.refused:
        return ResultKind.REFUSAL
    return ResultKind.EVIDENCE if answer.is_evidence else ResultKind.ANSWER


def answer_update(answer: Answer, passages: Sequence[NumberedPassage] = ()) -> dict[str, Any]:
    """Return an answer as it stands in the state, whoever wrote it: `unlinked`, but for sources of these passages."""
    addresses = addresses_of(passages)
    return {
        "answer": unlinked(answer.text, addresses),
        "plain_answer": unlinked(answer.plain_text, addresses),
        "refused": answer.refused,
        "answer_kind": kind_of(answer).value,
        "citations": [asdict(cited) for cited in answer.citations],
    }


def notes_of(answer: Answer, node: str) -> list[ErrorRecord]:
    """Return what a reader should know of an answer, as entries of ``errors`` of a node."""
    return [error_of(node, "Evidence", note, 1) for note in answer.notes]


def numbered(hits: Iterable[PassageHit]) -> list[NumberedPassage]:
    """Return passages of the state as an agent sees them."""
    return [NumberedPassage(hit["number"], hit["id"], hit["title"], hit["text"], hit["source"]) for hit in hits]


def passage_candidates(index: Index, ranking: Ranking) -> list[PassageCandidate]:
    """Return a ranking as the candidates for seeds."""
    return [PassageCandidate(id=index.graph.passage_ids[place], score=score) for place, score in ranking]


def ranking_of(index: Index, candidates: Sequence[PassageCandidate]) -> Ranking:
    """Return the candidates for seeds as a ranking, less what the graph does not know."""
    place = index.graph.passage_index
    return [(place[hit["id"]], hit["score"]) for hit in candidates if hit["id"] in place]


def seed_set(
    index: Index, entities: Mapping[int, float], passages: Mapping[int, float], selection: Selection | None
) -> SeedSet:
    """Return seeds as they stand in the state: entities heaviest first, passages in their order."""
    graph = index.graph
    labels = graph.entity_labels.__getitem__ if selection is None else selection.label
    return SeedSet(
        entities=[
            EntitySeed(id=entity_id(graph.entity_names[entity]), text=labels(entity), weight=weight)
            for entity, weight in sorted(entities.items(), key=lambda item: (-item[1], item[0]))
        ],
        passages=[PassageSeed(id=graph.passage_ids[place], weight=weight) for place, weight in passages.items()],
    )


def seeds_of(index: Index, state: State, settings: WalkSettings, selection: Selection | None) -> Seeds:
    """Return the state's seeds; where every passage is one, the state shows the first of them only.

    Raises:
        BadInput: a weight is none.
    """
    seeds, _ = seeds_named(index, state.get("seeds") or {})
    if settings.passage_seeds:
        return seeds
    weight = state.get("passage_weight") or 0.0
    return Seeds(seeds.entities, weigh_every_passage(index, searched_words(state), settings, weight, selection))


def seeds_named(index: Index, given: Mapping[str, Any]) -> tuple[Seeds, int]:
    """Return the seeds of a `SeedSet` that the graph knows, and how many they are.

    Raises:
        BadInput: a weight is none.
    """
    graph = index.graph
    entities = _weights(given.get("entities", []), graph.entity_index)
    held = _weights(given.get("passages", []), graph.passage_index)
    passages = SparseVector.of_mapping(len(graph.passages), dict(held))
    return Seeds(dict(entities), passages), len(entities) + len(held)


def beta_of(state: Mapping[str, Any]) -> RelationFactors | None:
    """Return a state's β. Raises BadInput when a share is none."""
    given = state.get("relation_factors")
    if not given:
        return None
    return RelationFactors(
        {name: _weight(share, "relation_factors") for name, share in given["entity_entity"].items()},
        {name: _weight(share, "relation_factors") for name, share in given["entity_passage"].items()},
    )


def _weights(seeds: Iterable[Mapping[str, Any]], place: Mapping[str, int]) -> list[tuple[int, float]]:
    """Return (index, weight) of the seeds that the graph knows."""
    found = ((place.get(seed["id"]), seed["weight"]) for seed in seeds)
    return [(at, _weight(weight, "seeds")) for at, weight in found if at is not None]


def _weight(value: object, where: str) -> float:
    """Return a weight that stands in the state, where a person may have edited it. Raises BadInput."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise BadInput(f"{where} holds {value!r}", "Give a number that is not negative")
    return float(value)
