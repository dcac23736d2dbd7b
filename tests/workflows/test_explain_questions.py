"""A question that can be asked can be explained, in every mode and however it was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.leaning import question_back
from agents.roles import Turn
from graph.retrieve.modes import Mode
from tests.workflows.explanations import PRPACK, check_it_adds_up
from tests.workflows.reading_world import read, talk
from tests.workflows.small_world import write_lines
from tests.workflows.tenants import CORPORA
from workflows.answering import ask
from workflows.context import make_context
from workflows.explaining import explain
from workflows.explanation.model import Explanation
from workflows.indexing import index_sources
from workflows.results import Result
from workflows.runtime.resources import close_indexes
from workflows.settings.enums import Workflow
from workflows.settings.indexing import IndexingContext

ALONE = "Who drained Lake Sund, and who paid for Project Zember?"
LEANING = "And who surveyed it?"
BEFORE = Turn("Where does Lake Sund lie?", "Lake Sund: Lake Sund lies near Marn. [1]", ("of-a-one",))
READINGS = ("Who surveyed Lake Sund?", "Who was born in Marn?")
ASKED_BACK = Turn("Who was it?", question_back(READINGS))

WAYS: Mapping[str, tuple[str, Sequence[Turn], dict[str, Any]]] = {
    "alone": (ALONE, (), {}),
    "completed": (LEANING, (BEFORE,), {}),
    "chosen": ("the second", (ASKED_BACK,), {}),
    "filtered": (READINGS[0], (), {"where": {"tenant": "a"}}),
    "completed and filtered": (LEANING, (BEFORE,), {"where": {"tenant": "a"}}),
    "by provenance": (ALONE, (), {"provenance": {"source": "b.jsonl"}}),
    "as of a date": (ALONE, (), {"as_of": "2023-06-01"}),
    "completed as of a date": (LEANING, (BEFORE,), {"as_of": "2023-06-01"}),
    "in its conversation": ("And who paid for it?", (), {"conversation_id": "of nobody", "conversation_share": 0.5}),
    "personal": (ALONE, (), {"user_id": "mia", "personalise": True}),
    "few passages": (LEANING, (BEFORE,), {"passage_seeds": 2, "passage_weight": 0.3}),
    "every passage": (LEANING, (BEFORE,), {"passage_seeds": 0, "seed_sharpness": 2.0}),
    "no passage": (ALONE, (), {"passage_weight": 0.0}),
    "no entity of a fact": (LEANING, (BEFORE,), {"entity_seeds": 0, "name_weight": 1.5}),
    "other damping": (LEANING, (BEFORE,), {"damping": 0.9, "least_damping": 0.1}),
    "the manager's passage weight": (LEANING, (BEFORE,), {"adaptive_passage_weight": True}),
    "without filter and manager": (LEANING, (BEFORE,), {"filter_facts": False, "weigh_relations": False}),
}
"""How a question is asked: its words, the turns before it, and its settings."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The passages of two tenants, those of the second a year younger; Mia read one, and somebody asked of it."""
    folder = tmp_path_factory.mktemp("asked")
    for tenant, date in (("a", "2023-01-01"), ("b", "2024-01-01")):
        corpus = folder / f"{tenant}.jsonl"
        write_lines(corpus, [{**row, "tenant": tenant} for row in CORPORA[tenant]])
        index_sources([corpus], folder / "workspace", settings=IndexingContext(dated=date))
    read(folder / "workspace", "mia", "of-b-two")
    talk(folder / "workspace", "of nobody", "Who led Project Zember?", cited=["of-b-two"])
    yield folder / "workspace"
    close_indexes()


def explained(root: Path, way: str, mode: Mode, workflow: Workflow) -> tuple[Result, Explanation]:
    """Ask in that way, and explain."""
    question, turns, changes = WAYS[way]
    settings = {"workspace": str(root), "model": "offline", "mode": mode, "remember": [], **changes}
    context = make_context(workflow, **settings)
    result = ask(question, context, turns)
    assert bool(result["understood"]) is (question not in (ALONE, READINGS[0]))
    return result, explain(result, context)


def check_masses(told: Explanation, result: Result) -> None:
    """Check that the masses of the passages that the run found itself are its scores, and that all masses add up."""
    masses = {node.ref: node.mass[-1] for node in told.nodes if node.mass}
    scores = {hit["id"]: hit.get("pagerank", hit["score"]) for hit in result["passages"] if "follow_up" not in hit}
    assert result["walk"]
    assert scores == pytest.approx({key: masses[key] for key in scores}, abs=result["walk"]["error"] + PRPACK)
    check_it_adds_up(told)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("way", WAYS)
def test_the_masses_of_an_explanation_are_the_scores_of_the_run(root: Path, way: str, mode: Mode) -> None:
    result, told = explained(root, way, mode, Workflow.MARA)
    assert told.question == result["question"]
    if mode.walks:
        check_masses(told, result)


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode.walks])
def test_they_are_in_workflow_ragenta_too(root: Path, mode: Mode) -> None:
    result, told = explained(root, "completed", mode, Workflow.RAGENTA)
    check_masses(told, result)
