"""The common parts of the tests of explanations: to explain a run, and to check that its numbers add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.workflows.small_world import QUESTION, run
from workflows.context import Context
from workflows.explaining import explain
from workflows.explanation.model import Explanation

PRPACK = 1e-8
"""How far the reference engine may be off."""


def explained(context: Context, question: str = QUESTION, **how: Any) -> tuple[dict[str, Any], Explanation]:
    """Ask and explain; return the result, too."""
    result = run(context, question).result
    return result, explain(result, context, **how)


def check_it_adds_up(told: Explanation) -> None:
    """Check that every shown node's mass is what starts there and what comes in over shown and hidden edges."""
    for stop in range(len(told.stops)):
        for node in told.nodes:
            shown = sum(edge.forward[stop] for edge in told.edges if edge.target == node.id)
            shown += sum(edge.backward[stop] for edge in told.edges if edge.source == node.id)
            assert node.mass[stop] == pytest.approx(node.restart[stop] + shown + node.hidden[stop], abs=PRPACK)


def check_it_is_the_walk(told: Explanation, result: Mapping[str, Any]) -> None:
    """Check that the masses of the returned passages are what the run's walk gave them, within the walks' errors."""
    masses = {node.ref: node.mass[-1] for node in told.nodes}
    off = sum(abs(masses[hit["id"]] - hit.get("pagerank", hit["score"])) for hit in result["passages"])
    assert off <= result["walk"]["error"] + PRPACK
