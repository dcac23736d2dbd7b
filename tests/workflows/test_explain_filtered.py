"""An explanation names nothing that a filter hides, and adds up in every mode and however it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.leaning import question_back
from agents.roles import Turn
from graph.errors import BadInput
from graph.retrieve.modes import Mode
from graph.schema import RelationType, entity_id
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace
from tests.workflows.explanations import PRPACK, check_it_adds_up, check_it_is_the_walk, explained
from tests.workflows.reading_world import read, talk
from tests.workflows.small_world import run, write_lines
from tests.workflows.tenants import CORPORA
from tests.workflows.workspaces import use_embedder
from workflows.answering import ask
from workflows.context import Context, make_context
from workflows.explaining import explain
from workflows.explanation.model import Explanation
from workflows.indexing import index_sources
from workflows.results import Result
from workflows.runtime.resources import close_indexes
from workflows.settings.enums import Workflow
from workflows.settings.indexing import IndexingContext

OPEN = {"owner": "open"}
PASSAGES = [
    passage_of("open-1", "Lake Sund", "Lake Sund lies near Marn.", owner="open"),
    passage_of("open-2", "Duke Orlo", "Duke Orlo was seen in Kesh.", owner="open"),
    passage_of("closed-1", "LAKE SUND", "LAKE SUND was drained by Project Ember.", owner="closed"),
    passage_of("closed-2", "Project Ember", "Project Ember was paid by DUKE ORLO.", owner="closed"),
]
TRIPLES: dict[str, list[TripleParts]] = {
    "open-1": [("Lake Sund", "lies near", "Marn", RelationType.SPATIAL)],
    "open-2": [("Duke Orlo", "seen in", "Kesh", RelationType.SPATIAL)],
    "closed-1": [
        ("LAKE SUND", "LIES NEAR", "MARN", RelationType.SPATIAL),
        ("LAKE SUND", "drained by", "Project Ember"),
        ("Lake Sund", "ruined by", "Duke Orlo", RelationType.CAUSALITY),
    ],
    "closed-2": [("Project Ember", "paid by", "DUKE ORLO")],
}
SECRETS = ("closed", "LAKE", "LIES", "MARN", "Ember", "ember", "drained", "ruined", "paid", "ORLO", "CAUSALITY")
QUESTION_OF_BOTH = "How is Lake Sund tied to Duke Orlo?"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        yield publish_workspace(tmp_path_factory.mktemp("owned") / "ws", PASSAGES, TRIPLES).root
    close_indexes()


def context_of(workspace: Path, where: Mapping[str, Any] = OPEN, **changes: Any) -> Context:
    settings: dict[str, Any] = {"where": where, "filter_facts": False, "passage_weight": 0.05, **changes}
    return Context(workspace=str(workspace), **settings)


def all_of(explanation: Explanation) -> str:
    """All that an explanation tells, but for the question, and for β, which names every relation type."""
    return json.dumps({**explanation.to_json(), "question": "", "beta": None}, ensure_ascii=False)


class TestFiltered:
    def test_nothing_that_it_hides_is_told(self, workspace: Path) -> None:
        for mode in [mode for mode in Mode if mode.walks]:
            result, explanation = explained(context_of(workspace, mode=mode), QUESTION_OF_BOTH, max_nodes=2000)
            hidden = [entity_id("Project Ember"), *SECRETS]
            assert [word for word in hidden if word in all_of(explanation)] == [], mode
            assert {node.ref for node in explanation.nodes if node.kind == "passage"} == {"open-1", "open-2"}, mode
            assert explanation.shown["of_nodes"] == explanation.shown["nodes"], mode
            if result["ranked_by"] == "walk":
                check_it_is_the_walk(explanation, result)

    def test_what_hidden_passages_carry_is_part_of_what_is_hidden(self, workspace: Path) -> None:
        explanation = explained(context_of(workspace), QUESTION_OF_BOTH, max_nodes=2000)[1]
        check_it_adds_up(explanation)
        assert max(node.hidden[-1] for node in explanation.nodes) > 0.005

    def test_a_path_over_a_hidden_edge_is_left_out(self, workspace: Path) -> None:
        for where, leads in (({}, True), (OPEN, False)):
            context = context_of(workspace, where)
            result = run(context, "What is Lake Sund?").result
            cites_orlo = {"number": 1, "passage_id": "open-2", "start": None, "end": None}
            explanation = explain({**result, "citations": [cites_orlo]}, context)
            refs = {node.id: node.ref for node in explanation.nodes}
            assert (entity_id("Lake Sund") in [refs[path.seed] for path in explanation.paths]) is leads

    def test_a_result_of_a_wider_filter_is_refused(self, workspace: Path) -> None:
        result = run(context_of(workspace, {}), QUESTION_OF_BOTH).result
        with pytest.raises(BadInput, match="outside this workspace or `where`"):
            explain(result, context_of(workspace))


ALONE = "Who drained Lake Sund, and who paid for Project Zember?"
LEANING = "And who surveyed it?"
BEFORE = Turn("Where does Lake Sund lie?", "Lake Sund: Lake Sund lies near Marn. [1]", ("of-a-one",))
READINGS = ("Who surveyed Lake Sund?", "Who was born in Marn?")
ASKED_BACK = Turn("Who was it?", question_back(READINGS))

WAYS: Mapping[str, tuple[str, Sequence[Turn], dict[str, Any]]] = {
    "alone": (ALONE, (), {}),
    "completed": (LEANING, (BEFORE,), {}),
    "chosen": ("the second", (ASKED_BACK,), {}),
    "completed and filtered": (LEANING, (BEFORE,), {"where": {"tenant": "a"}}),
    "by provenance": (ALONE, (), {"provenance": {"source": "b.jsonl"}}),
    "completed as of a date": (LEANING, (BEFORE,), {"as_of": "2023-06-01"}),
    "in its conversation": ("And who paid for it?", (), {"conversation_id": "of nobody", "conversation_share": 0.5}),
    "personal": (ALONE, (), {"user_id": "mia", "personalise": True}),
    "few passages": (LEANING, (BEFORE,), {"passage_seeds": 2, "passage_weight": 0.3}),
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


def explained_in(root: Path, way: str, mode: Mode, workflow: Workflow) -> tuple[Result, Explanation]:
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


def test_the_masses_of_an_explanation_are_the_scores_of_the_run(root: Path) -> None:
    other_modes = [mode for mode in Mode if mode.walks and mode is not Mode.MARA]
    ways = [(way, Mode.MARA) for way in WAYS]
    ways += [(way, mode) for way in ("alone", "completed and filtered") for mode in other_modes]
    for way, mode in ways:
        result, explanation = explained_in(root, way, mode, Workflow.MARA)
        assert explanation.question == result["question"], (way, mode)
        check_masses(explanation, result)
    for mode in Mode:
        result, explanation = explained_in(root, "completed", mode, Workflow.RAGENTA)
        if mode.walks:
            check_masses(explanation, result)
