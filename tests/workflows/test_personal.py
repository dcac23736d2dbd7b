"""Runs that use the relationship graph: personal ranking, the concepts of a conversation, filters by provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, NoAccess
from graph.relationships.record import RELATIONSHIPS_FILE
from graph.retrieve.modes import Mode
from tests.builders import HashEmbedder
from tests.workflows.reading_world import reading_world
from tests.workflows.tenants import MARKERS
from tests.workflows.workspaces import use_embedder
from workflows import retrieval
from workflows.answering import ask
from workflows.context import Context, asking, make_context
from workflows.nodes.retrieval import RELATIONSHIPS_UNREAD
from workflows.runtime.resources import OpenRun
from workflows.runtime.visibility import within_filter
from workflows.settings.enums import Workflow

QUESTION = "What happened at the lake?"


@pytest.fixture
def root(readers: Path) -> Path:
    return readers


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    use_embedder(monkeypatch, HashEmbedder())


def found(root: Path, question: str = QUESTION, **settings: Any) -> Mapping[str, Any]:
    context = Context(workspace=str(root), model="offline", **settings)
    result: Mapping[str, Any] = retrieval.graph.invoke(asking(question), context=context)
    return result


def ids(result: Mapping[str, Any]) -> list[str]:
    return [hit["id"] for hit in result["passages"]]


class TestPersonalRanking:
    def test_a_user_without_history_gets_the_impersonal_ranking_and_so_does_who_did_not_ask_for_another(
        self, root: Path
    ) -> None:
        for mode in Mode:
            personal, plain = found(root, mode=mode, personalise=True, user_id="tom"), found(root, mode=mode)
            assert personal["passages"] == plain["passages"], mode
            assert personal["errors"] == plain["errors"], mode
        assert found(root, user_id="mia")["passages"] == found(root)["passages"]
        with pytest.raises(BadInput, match="needs a user"):
            found(root, personalise=True)

    def test_each_passage_that_moved_tells_from_where_and_why_in_every_mode_and_workflow(self, root: Path) -> None:
        for mode in Mode:
            plain = ids(found(root, mode=mode))
            hits = found(root, mode=mode, personalise=True, user_id="mia")["passages"]
            assert sorted(hit["id"] for hit in hits) == sorted(plain), mode
            for hit in hits:
                assert plain.index(hit["id"]) + 1 == hit.get("personal", {"before": hit["number"]})["before"], mode
            reasons = [reason for hit in hits for reason in hit.get("personal", {"reasons": []})["reasons"]]
            assert "you read Project Zember, which explains Project Zember" in {reason["told"] for reason in reasons}
            assert all(0 < reason["weight"] < 1 for reason in reasons), mode
        mia: dict[str, Any] = {"model": "offline", "personalise": True, "user_id": "mia", "remember": []}
        for workflow in Workflow:
            context = make_context(workflow, workspace=str(root), **mia)
            assert any("personal" in hit for hit in ask(QUESTION, context)["passages"]), workflow

    def test_reasons_name_nothing_that_a_filter_hides(self, root: Path) -> None:
        result = found(root, where={"tenant": "a"}, personalise=True, user_id="mia")
        assert any("personal" in hit for hit in result["passages"])
        assert not [marker for marker in MARKERS["b"] if marker in json.dumps(result)]

    def test_a_fork_with_another_filter_drops_the_reasons_that_it_hides(self, root: Path) -> None:
        hit = next(hit for hit in found(root)["passages"] if hit["id"] == "of-a-one")
        shown = {"told": "you asked about lake sund", "weight": 0.5, "concept": "", "document": "of-a-two"}
        hidden = {"told": "you read Project Zember, ...", "weight": 0.5, "concept": "", "document": "of-b-two"}
        state = {"passages": [{**hit, "personal": {"before": 2, "shift": 2.0, "reasons": [hidden, shown]}}]}
        run = OpenRun(Context(workspace=str(root), where={"tenant": "a"}))
        hits = within_filter(("passages",), state, run, dict)["passages"]
        assert hits[0]["personal"]["reasons"] == [shown]

    def test_a_graph_that_cannot_be_read_costs_no_answer_and_is_told(self, root: Path, tmp_path: Path) -> None:
        broken = reading_world(tmp_path)
        (broken / RELATIONSHIPS_FILE).write_bytes(b"no database" * 100)
        for suffix in ("-wal", "-shm"):
            (broken / f"{RELATIONSHIPS_FILE}{suffix}").unlink(missing_ok=True)
        result = found(broken, personalise=True, user_id="mia", conversation_share=0.3)
        assert ids(result) == ids(found(broken))
        assert RELATIONSHIPS_UNREAD in {error["kind"] for error in result["errors"]}


class TestConversationShare:
    def test_concepts_of_the_conversation_are_seeds_of_the_walk(self, root: Path) -> None:
        plain = found(root, conversation_id="of nobody")["seeds"]["entities"]
        mixed = found(root, conversation_id="of nobody", conversation_share=0.5)["seeds"]["entities"]
        assert "Project Zember" in {seed["text"] for seed in mixed} - {seed["text"] for seed in plain}
        total = sum(seed["weight"] for seed in plain)
        assert sum(seed["weight"] for seed in mixed) == pytest.approx(total or 0.5)

    def test_the_conversation_of_another_is_refused(self, root: Path) -> None:
        with pytest.raises(NoAccess):
            found(root, conversation_id="of mia", conversation_share=0.5, user_id="tom")

    def test_concepts_that_a_filter_hides_are_no_seeds(self, root: Path) -> None:
        share: dict[str, Any] = {"conversation_id": "of nobody", "conversation_share": 0.9, "where": {"tenant": "a"}}
        assert not [marker for marker in MARKERS["b"] if marker in json.dumps(found(root, **share))]


class TestProvenance:
    def test_only_passages_of_the_source_are_found_in_every_mode_and_workflow(self, root: Path) -> None:
        for mode in Mode:
            assert set(ids(found(root, mode=mode, provenance={"source": "of-a-one"}))) == {"of-a-one"}, mode
        for workflow in Workflow:
            context = make_context(workflow, workspace=str(root), model="offline", provenance={"source": "of-a-one"})
            assert {hit["id"] for hit in ask(QUESTION, context)["passages"]} <= {"of-a-one"}, workflow
        assert set(ids(found(root, provenance={"source": "corpus.jsonl"}))) == set(ids(found(root)))

    def test_only_what_was_cited_before_is_found(self, root: Path) -> None:
        before = {"cited_before": True}
        assert ids(found(root, provenance=before, conversation_id="of nobody")) == ["of-b-two"]
        assert ids(found(root, provenance=before, user_id="mia")) == ["of-a-two"]
        assert ids(found(root, provenance=before, user_id="tom")) == []
        with pytest.raises(NoAccess):
            found(root, provenance=before, conversation_id="of mia", user_id="tom")

    def test_it_narrows_the_filter_and_never_widens_it(self, root: Path) -> None:
        both = found(root, provenance={"source": "corpus.jsonl"}, where={"tenant": "a"})
        assert set(ids(both)) == {"of-a-one", "of-a-two"}
        assert ids(found(root, provenance={"source": "of-b-one"}, where={"tenant": "a"})) == []
        context = Context(workspace=str(root), model="offline", provenance={"source": "corpus.jsonl"})
        result = retrieval.graph.invoke(asking(QUESTION), context=context.within({"tenant": "a"}))
        assert set(ids(result)) == {"of-a-one", "of-a-two"}

    def test_what_is_no_condition_is_refused_and_so_is_any_without_a_relationship_graph(
        self, root: Path, tmp_path: Path
    ) -> None:
        unusable: list[tuple[dict[str, Any], str]] = [
            ({"newer_than": "soon"}, "no date"),
        ]
        for provenance, reason in unusable:
            with pytest.raises(BadInput, match=reason):
                make_context(workspace=str(root), provenance=provenance)
        bare = reading_world(tmp_path)
        for path in bare.glob(f"{RELATIONSHIPS_FILE}*"):
            path.unlink()
        with pytest.raises(BadInput, match="no relationship graph"):
            found(bare, provenance={"source": "corpus.jsonl"})
