"""Between the state and the graph: ids and plain values on one side, indices and objects on the other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.answers.unlinked import addresses_of, unlinked
from agents.roles import Answer, NumberedPassage
from graph.construction.knowledge_graph import GraphFact
from graph.errors import BadInput
from graph.retrieve.modes import WalkSettings
from graph.retrieve.open_index import Index
from graph.retrieve.search import Ranking, Start, trusting
from graph.retrieve.selection import Selection
from graph.schema import RelationFactors, entity_id
from graph.walk.pagerank import Walk
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
    return [(fact, hit["score"]) for hit in hits if (fact := known(hit["id"]))]


def passage_hits(index: Index, ranking: Ranking) -> list[PassageHit]:
    """Return a ranking as it stands in the result, numbered from 1."""
    passages, hits = index.graph.passages, []
    for number, (place, score) in enumerate(ranking, start=1):
        passage = passages[place]
        hits.append(
            PassageHit(
                number=number,
                id=passage.id,
                title=passage.title,
                text=passage.text,
                source=passage.source,
                metadata=dict(passage.metadata),
                score=score,
            )
        )
    return hits


def tell_pagerank(hits: Sequence[PassageHit], walk: Walk, index: Index) -> None:
    """Add to passages what a walk gave them."""
    nodes = [index.graph.n_entities + index.graph.passage_index[hit["id"]] for hit in hits]
    for hit, pagerank in zip(hits, walk.reached.at(nodes), strict=True):
        hit["pagerank"] = pagerank


def hits_of(index: Index, passages: Iterable[NumberedPassage]) -> list[PassageHit]:
    """Return passages that an agent read beside those ranked as they stand in the result, with its numbers."""
    place = index.graph.passage_index
    return [{**passage_hits(index, [(place[each.id], 0.0)])[0], "number": each.number} for each in passages]


def kind_of(answer: Answer) -> ResultKind:
    """Return what a result with this answer says."""
    if answer.refused:
        return ResultKind.REFUSAL
    return ResultKind.EVIDENCE if answer.is_evidence else ResultKind.ANSWER


def answer_update(answer: Answer, passages: Sequence[NumberedPassage] = ()) -> dict[str, Any]:
    """Return an answer as it stands in the state, by any writer: `unlinked`, but for sources of these passages."""
    addresses = addresses_of(passages)
    return {
        "answer": unlinked(answer.text, addresses),
        "plain_answer": unlinked(answer.plain_text, addresses),
        "refused": answer.refused,
        "answer_kind": kind_of(answer).value,
        "cut": answer.cut_at is not None,
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
    index: Index, entities: Mapping[int, float], passages: Iterable[tuple[int, float]], selection: Selection | None
) -> SeedSet:
    """Return seeds as they stand in the state: entities heaviest first, passages in their order."""
    graph = index.graph
    labels = graph.entity_labels.__getitem__ if selection is None else selection.label
    return SeedSet(
        entities=[
            EntitySeed(id=entity_id(graph.entity_names[entity]), text=labels(entity), weight=weight)
            for entity, weight in sorted(sorted(entities.items()), key=itemgetter(1), reverse=True)
        ],
        passages=[PassageSeed(id=graph.passage_ids[place], weight=weight) for place, weight in passages],
    )


def start_of(index: Index, state: State, settings: WalkSettings, selection: Selection | None) -> tuple[Start, int]:
    """Return where a state's walk starts, and how many of its seeds the graph does not know or the filter hides.

    Its settings are those of a walk that trusts its entity seeds as far as they weigh, see `trusting`. Where every
    passage is a seed, the state shows the first of them only.

    Raises:
        BadInput: a weight is none.
    """
    entities, passages, unknown = seeds_named(index, state.get("seeds") or {}, selection)
    passage_seeds = passages if settings.passage_seeds else None
    weight = state.get("passage_weight") or 0.0
    settings = trusting(entities.values(), settings)
    return Start(settings, entities, passage_seeds, searched_words(state), weight, selection), unknown


def seeds_named(
    index: Index, seeds: Mapping[str, Any], selection: Selection | None
) -> tuple[dict[int, float], dict[int, float], int]:
    """Return the entities and passages of a `SeedSet`, with their weights, and how many others it names.

    Others are those that the graph does not know or the filter hides.

    Raises:
        BadInput: a weight is none.
    """
    graph = index.graph
    shown = (None, None) if selection is None else (selection.entities, selection.passages)
    entities, strange = _weights(seeds.get("entities", ()), graph.entity_index, shown[0])
    passages, others = _weights(seeds.get("passages", ()), graph.passage_index, shown[1])
    return entities, passages, strange + others


def beta_of(state: Mapping[str, Any]) -> RelationFactors | None:
    """Return a state's β. Raises BadInput when a share is none."""
    factors = state.get("relation_factors")
    if not factors:
        return None
    between, linking = factors["entity_entity"], factors["entity_passage"]
    _check_weights(between.values(), "relation_factors")
    _check_weights(linking.values(), "relation_factors")
    return RelationFactors(dict(between), dict(linking))


def _weights(
    seeds: Iterable[Mapping[str, Any]], place: Mapping[str, int], shown: NDArray[np.bool_] | None
) -> tuple[dict[int, float], int]:
    """Return {index: weight} of the seeds that the graph knows and a filter shows, and how many others there are."""
    weights: dict[int, float] = {}
    unknown = 0
    for seed in seeds:
        at = place.get(seed["id"])
        if at is None or not (shown is None or shown[at]):
            unknown += 1
        else:
            weights[at] = seed["weight"]
    _check_weights(weights.values(), "seeds")
    return weights, unknown


def _check_weights(weights: Iterable[object], where: str) -> None:
    """Raise BadInput where a weight of the state, which a person may have edited, is none."""
    for weight in weights:
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise BadInput(f"{where} holds {weight!r}", "Give a number that is not negative")
