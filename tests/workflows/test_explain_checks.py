"""A result that is to be explained is checked first: what is none is refused by name."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from graph.errors import BadInput
from tests.workflows.small_world import QUESTION
from workflows.answering import ask
from workflows.context import Context
from workflows.explaining import explain


@pytest.fixture
def context(settings: Callable[..., Context]) -> Context:
    return settings()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda result: result["passages"][0].pop("score"), r"passages\.0\.score is missing"),
        (lambda result: result["facts"][0].pop("kept"), r"facts\.0\.kept is missing"),
        (lambda result: result["seeds"]["entities"][0].pop("weight"), r"seeds\.entities\.0\.weight is missing"),
        (lambda result: result.update(models="x"), "models"),
        (lambda result: result.update(generation="3"), "generation has to be a whole number"),
        (lambda result: result.pop("question"), "lacks question"),
        (lambda result: result.update(passages=[]), "outside this workspace"),
    ],
)
def test_what_is_no_result_is_refused_by_name(context: Context, spoil: Callable[[Any], Any], reason: str) -> None:
    result = ask(QUESTION, context)
    spoil(result)
    with pytest.raises(BadInput, match=reason):
        explain(result, context)


def test_what_else_a_citation_holds_does_not_matter(context: Context) -> None:
    result = ask(QUESTION, context)
    more: Any = copy.deepcopy(result)
    more["citations"][0]["note"] = "mine"
    assert explain(more, context) == explain(result, context)


def test_a_result_that_was_stored_without_its_times_and_errors_is_explained(context: Context) -> None:
    result = ask(QUESTION, context)
    stored = {key: value for key, value in result.items() if key not in ("timings_ms", "errors")}
    assert explain(stored, context) == explain(result, context)
