"""The names of nodes, and paths in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from graph.retrieve.selection import Selection
from tests.builders import passage_of, stored, typed_graph
from tests.walking import MENTION
from workflows.explanation.model import NodeNames, Step, path_in_words

A, B, P, Q = range(4)
GRAPH = replace(
    typed_graph(2, 2, [(A, P, MENTION, 1.0), (B, Q, MENTION, 1.0), (A, Q, MENTION, 1.0)]),
    entity_labels=("Nissan", "1933"),
    passages=stored((passage_of("p0", "Nissan\nMotor", ""), passage_of("p1", "", ""))),
)


def names(selection: Selection | None = None, numbers: Mapping[str, int] | None = None) -> NodeNames:
    visible = np.ones(4, dtype=bool) if selection is None else np.append(selection.entities, selection.passages)
    return NodeNames(GRAPH, selection, visible, numbers or {})


def step(relation: str, share: float, predicate: str = "", *, backwards: bool = False) -> Step:
    return Step("", "", "", predicate, relation, backwards, share)


def test_under_a_filter_nodes_are_counted_and_spelled_as_far_as_it_lets_be_seen() -> None:
    filtered = names(Selection.of(GRAPH, GRAPH.passages_of(["p1"])))
    assert filtered.key(Q) == "p0"
    assert filtered.label(A) == GRAPH.entity_names[A]
    assert filtered.label(B) == "1933"


def test_a_step_names_its_predicate_and_relation_with_the_share_of_what_walks_on() -> None:
    steps = [step("TEMPORAL", 0.6345, "founded\tin"), step("PRIMARY", 0.21)]
    words = path_in_words(names(numbers={"p0": 2}), [A, B, P], steps)
    assert words == "Nissan —founded in (TEMPORAL, 0.63)→ 1933 —PRIMARY (0.21)→ passage [2] Nissan Motor"
    words = path_in_words(names(), [B, A], [step("TEMPORAL", 1.0, "founded", backwards=True)])
    assert words == "1933 ←founded (TEMPORAL, 1)— Nissan", "against its fact the arrow is turned"
    for share, digits in ((0.0041234, "0.0041"), (3e-7, "3e-07")):
        assert path_in_words(names(), [A, P], [step("PRIMARY", share)]).startswith(f"Nissan —PRIMARY ({digits})→")


def test_without_a_step_the_question_leads_straight_to_its_passage() -> None:
    words = path_in_words(names(numbers={"p0": 1}), [P], [])
    assert words == "the question's words lead straight to passage [1] Nissan Motor"
