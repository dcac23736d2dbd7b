"""The reasons of an answer in sentences: the names that the search began at, the path in words, and the writer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.explanations import explained
from workflows.context import Context
from workflows.explanation.model import Explanation
from workflows.explanation.why import spoken, why

Explained = tuple[dict[str, Any], Explanation]


@pytest.fixture(scope="module")
def quoting(small_workspace: Path) -> Explained:
    """A result that quotes its passages, and its explanation."""
    return explained(Context(workspace=str(small_workspace)))


def sentences(result: dict[str, Any], explanation: Explanation | None = None) -> list[str]:
    return [spoken(sentence) for sentence in why(result, explanation)]


def test_three_sentences_give_the_start_the_path_in_words_and_the_writer(quoting: Explained) -> None:
    result, explanation = quoting
    start, path, writer = sentences(result, explanation)
    assert [spoken(sentence) for sentence in explanation.why] == [start, path, writer]
    assert start.startswith("The search began at “Lake Sund”, which the question names")
    assert start.endswith("the closest fact is “Lake Sund — has on its shore the town of — Marn”.")
    assert path == (
        "From there the path leads on: “Lake Sund” — has on its shore the town of — “Marn”; the passage “Marn” is about"
        " “Marn” and says “Marn is a town in Ostra. It was founded in 1203 by Duke Orlo”; it also cites “Lake Sund”."
    )
    assert writer == "The answer quotes its passages word for word; no model wrote or checked it."
    assert sentences(result) == [start, writer], "without an explanation the path is left out"
    pieces = [piece for sentence in explanation.why for piece in sentence]
    assert {piece.text for piece in pieces if piece.kind == "name"} >= {"Lake Sund", "Marn"}
    assert [piece.text for piece in pieces if piece.kind == "quote"] == [
        "Marn is a town in Ostra. It was founded in 1203 by Duke Orlo"
    ]


def test_a_fact_stands_in_its_own_direction_also_where_the_path_goes_against_it(quoting: Explained) -> None:
    result, explanation = quoting
    against = next(path for path in explanation.paths if any(step.reversed for step in path.steps))
    labels = {node.id: node.label for node in explanation.nodes}
    step = next(step for step in against.steps if step.reversed)
    path = sentences(result, replace(explanation, paths=(against,)))[1]
    assert f"“{labels[step.to]}” — {step.predicate} — “{labels[step.from_node]}”" in path


def test_hidden_signs_and_long_names_of_documents_do_not_get_into_a_sentence(quoting: Explained) -> None:
    entities = [{"id": "e", "text": "\u202e" + "x" * 500, "weight": 1.0}]
    start = sentences({**quoting[0], "seeds": {"entities": entities, "passages": []}})[0]
    assert "\u202e" not in start
    assert len(start) < 300


def test_checked_claims_and_judged_passages_are_counted(quoting: Explained) -> None:
    supported, removed = (
        {"verdict": verdict, "kept": verdict == "supported"} for verdict in ("supported", "unsupported")
    )
    result = {
        **quoting[0],
        "answer_kind": "answer",
        "models": {**quoting[0]["models"], "chat": "lark-2"},
        "claims": [supported, supported, removed],
        "claims_checked_by": "model",
        "judgements": [{"question": quoting[0]["question"]}] * 5 + [{"question": "another"}],
    }
    assert sentences(result)[-1] == (
        "The model lark-2 wrote the answer, of 5 passages that were judged, and cites 2 passages; of its 3 claims,"
        " checked by the model, 2 are supported, and 1 left out."
    )


def test_quotes_say_whether_a_model_was_asked_and_a_refusal_says_why(quoting: Explained) -> None:
    result = quoting[0]
    cases = [(0, "no model wrote or checked it."), (2, "the model that was asked gave none that could be used.")]
    for calls, words in cases:
        quotes = {**result, "answer_kind": "evidence", "usage": {**result["usage"], "calls": calls}}
        assert sentences(quotes)[-1] == f"The answer quotes its passages word for word; {words}"
    note = {"node": "write_answer", "kind": "Evidence", "message": "Nothing holds a date.", "attempt": 1, "raw": ""}
    refusal = {**result, "answer_kind": "refusal", "citations": [], "errors": [note]}
    assert sentences(refusal)[-1] == "Nothing was answered: Nothing holds a date."


def test_without_a_walk_the_sentence_names_the_likeness(settings: Callable[..., Context]) -> None:
    likenesses = {"dense": "their meaning", "sparse": "their words", "hybrid": "their words and their meaning"}
    for mode, likeness in likenesses.items():
        start, path, _ = sentences(*explained(settings(mode=mode)))
        assert start == f"The passages were found by the likeness of {likeness} to the question."
        assert path == "It cites “Marn” and “Lake Sund”."
