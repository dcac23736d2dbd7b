"""A relation type is added in one table; what it needs beside that is named here where it is missing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agents.manager import OfflineManager
from graph.construction.edges import EDGE_KINDS
from graph.explain.matrices import matrices_of
from graph.relations import DEFINITIONS, ENTITY_RELATIONS, PASSAGE_RELATIONS, RELATIONS, RelationType
from graph.schema import RelationFactors
from graph.taxonomy import CUES, QUESTION_CUES
from graph.walk.strengths import TUNED_RELATIONS
from prompts import load_prompt


def places_without(relation: RelationType) -> Iterator[str]:
    """Name each place that a relation type is to stand in and does not."""
    if relation not in RELATIONS:
        yield "graph.relations.RELATIONS"
    if relation not in {kind.relation for kind in EDGE_KINDS}:
        yield "graph.construction.edges.EDGE_KINDS"
    if relation not in TUNED_RELATIONS:
        yield "graph.walk.strengths.TUNED_RELATIONS"
    if not any(relation in relations for relations in matrices_of().values()):
        yield "graph.explain.matrices.matrices_of"
    if relation in ENTITY_RELATIONS:
        yield from _facts_places_without(relation)
    if relation in (*ENTITY_RELATIONS, *PASSAGE_RELATIONS):
        if relation not in DEFINITIONS:
            yield "graph.relations.DEFINITIONS"
        replies = re.findall(r"^\{\"entity_entity\".*$", load_prompt("manager").template, re.MULTILINE)
        for number, reply in enumerate(map(json.loads, replies), start=1):
            if relation not in {**reply["entity_entity"], **reply["entity_passage"]}:
                yield f"prompts/manager.md: reply {number} of the examples"


def _facts_places_without(relation: RelationType) -> Iterator[str]:
    if relation not in CUES:
        yield "graph.taxonomy.CUES: the words of a statement that tell it"
    if relation not in QUESTION_CUES:
        yield "graph.taxonomy.QUESTION_CUES: the words of a question that ask for it"
    if not RELATIONS[relation].question:
        yield "graph.relations.RELATIONS: a question that asks for it"
    elif relation in QUESTION_CUES and _heaviest(RELATIONS[relation].question) != relation:
        yield "graph.taxonomy.QUESTION_CUES: a cue that finds its own question"
    if f"for {relation}" not in " ".join(load_prompt("manager").template.split()):
        yield "prompts/manager.md: the questions that ask for it"
    if f'"relation": "{relation}"' not in load_prompt("extractor").template:
        yield "prompts/extractor.md: an example"


def _heaviest(question: str) -> str:
    shares = OfflineManager().weigh(question, None).factors.entity_entity
    return max(shares, key=lambda relation: shares[relation])


def test_a_relation_type_stands_wherever_it_is_needed() -> None:
    for relation in RelationType:
        assert list(places_without(relation)) == []


def test_nothing_but_relation_types_stands_there() -> None:
    assert list(RELATIONS) == list(RelationType)
    assert set(CUES) == set(QUESTION_CUES) == set(ENTITY_RELATIONS)
    assert set(DEFINITIONS) == {*ENTITY_RELATIONS, *PASSAGE_RELATIONS}
    uniform = RelationFactors.uniform()
    assert [*uniform.entity_entity, *uniform.entity_passage] == [*ENTITY_RELATIONS, *PASSAGE_RELATIONS]
