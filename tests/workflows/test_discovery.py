"""Documents to read next, the provenance of a passage, and searching documents: within the settings' filter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, NoAccess
from graph.relationships.record import RelationshipRecord
from tests.builders import HashEmbedder
from tests.workflows.reading_world import reading_world, talk
from tests.workflows.tenants import CORPORA, MARKERS
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
from workflows.discovery import passage_provenance, related_documents, search_documents, what_to_read
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes
from workflows.serving.page.endpoints import LONGEST_VIEW_S, read_beside, view_passage
from workflows.settings.indexing import IndexingContext

OF_A = {"where": {"tenant": "a"}}


@pytest.fixture
def context(readers: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Context]:
    use_embedder(monkeypatch, HashEmbedder())
    return lambda **settings: Context(workspace=str(readers), **settings)


def proposed(proposal: dict[str, Any]) -> list[str]:
    return [each["document"] for each in proposal["documents"]]


class TestWhatToRead:
    def test_a_topic_leads_to_documents_that_explain_what_is_related(self, context: Callable[..., Context]) -> None:
        proposal = what_to_read(context(), "Olaf Amstel", 10)
        assert "of-a-one" in proposed(proposal)
        reasons = [reason["told"] for each in proposal["documents"] for reason in each["reasons"]]
        assert any(each.startswith("the topic is about Olaf Amstel → ") for each in reasons)

    def test_what_a_user_viewed_or_a_conversation_cites_is_not_proposed(self, context: Callable[..., Context]) -> None:
        everything = proposed(what_to_read(context(), "Project Zember", 10))
        unread = proposed(what_to_read(context(user_id="mia"), "Project Zember", 10))
        uncited = proposed(what_to_read(context(conversation_id="of nobody"), k=10))
        assert {"of-b-two", "of-a-two"} & set(everything)
        assert not {"of-b-two", "of-a-two"} & set(unread)
        assert uncited
        assert "of-b-two" not in uncited

    def test_the_conversation_of_another_is_refused_and_so_is_nothing_at_all(
        self, context: Callable[..., Context]
    ) -> None:
        with pytest.raises(NoAccess):
            what_to_read(context(conversation_id="of mia", user_id="tom"))
        with pytest.raises(BadInput, match="Nothing tells"):
            what_to_read(context())

    def test_nothing_that_a_filter_hides_is_proposed_or_named(self, context: Callable[..., Context]) -> None:
        for who in ({}, {"user_id": "mia"}, {"conversation_id": "of nobody"}):
            for topic in ("Lake Sund", "Marn", "Project Zember", "somewhere to swim"):
                proposal = what_to_read(context(**OF_A, **who), topic, 10)
                assert set(proposed(proposal)) <= {"of-a-one", "of-a-two"}, who
                assert not [marker for marker in MARKERS["b"] if marker in json.dumps(proposal)], who


class TestRelatedDocuments:
    def test_nothing_that_a_filter_hides_is_named(self, context: Callable[..., Context]) -> None:
        for document in ("of-a-one", "of-b-one", "of-b-two"):
            documents = related_documents(context(**OF_A), document, 10)
            assert {each["document"] for each in documents} <= {"of-a-one", "of-a-two"}, document
            assert not [marker for marker in MARKERS["b"] if marker in json.dumps(documents)], document
            assert bool(documents) == document.startswith("of-a")

    def test_as_of_a_date_nothing_is_proposed_that_did_not_stand_then(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        use_embedder(monkeypatch, HashEmbedder())
        root = tmp_path / "workspace"
        for year, tenant in (("2001", "b"), ("2010", "a")):
            corpus = tmp_path / f"{tenant}.jsonl"
            corpus.write_text("\n".join(map(json.dumps, CORPORA[tenant])), encoding="utf-8")
            index_sources([corpus], root, settings=IndexingContext(dated=f"{year}-01-01"))

        def related(as_of: str = "") -> set[str]:
            documents = related_documents(Context(workspace=str(root), as_of=as_of), "of-b-two", 10)
            assert as_of != "2005-01-01" or not [marker for marker in MARKERS["a"] if marker in json.dumps(documents)]
            return {each["document"] for each in documents}

        assert related() == related("2015-01-01") > related("2005-01-01") == {"of-b-one"}


class TestReading:
    def test_a_view_counts_at_most_an_hour(self, context: Callable[..., Context]) -> None:
        assert read_beside(context(user_id="rosa"), "of-a-one")["views"] is None
        assert view_passage(context(user_id="rosa"), "of-a-one", 9 * LONGEST_VIEW_S)
        views = read_beside(context(user_id="rosa"), "of-a-one")["views"]
        assert (views["count"], views["seconds"]) == (1, LONGEST_VIEW_S)
        assert read_beside(context(user_id="tom"), "of-a-one")["views"] is None

    def test_it_needs_a_user_and_a_passage_that_is_seen(self, context: Callable[..., Context]) -> None:
        with pytest.raises(BadInput, match="The reader is not known"):
            view_passage(context(), "of-a-one", 1)
        with pytest.raises(BadInput) as hidden:
            view_passage(context(**OF_A, user_id="tom"), "of-b-two", 1)
        with pytest.raises(BadInput) as unknown:
            view_passage(context(**OF_A, user_id="tom"), "unknown", 1)
        assert str(hidden.value) == str(unknown.value)
        with pytest.raises(BadInput, match="-1 seconds"):
            view_passage(context(user_id="tom"), "of-a-one", -1)


class TestProvenance:
    def test_citations_are_those_of_the_users_own_conversations_and_off_a_server_of_those_of_no_user(
        self, context: Callable[..., Context]
    ) -> None:
        def cited(passage: str, asking: Context) -> list[str]:
            return [each["conversation"] for each in passage_provenance(asking, passage)["cited_in"]]

        assert cited("of-a-two", context(user_id="mia")) == ["of mia"]
        assert cited("of-a-two", context(user_id="tom")) == cited("of-a-two", context()) == []
        assert cited("of-b-two", context(user_id="tom")) == ["of nobody"]
        assert cited("of-b-two", context(user_id="tom").within({})) == []

    def test_a_hidden_passage_is_as_unknown_as_any_other(self, context: Callable[..., Context]) -> None:
        with pytest.raises(BadInput) as hidden:
            passage_provenance(context(**OF_A), "of-b-two")
        with pytest.raises(BadInput) as unknown:
            passage_provenance(context(), "' OR 1=1 --")
        assert str(hidden.value) == str(unknown.value)

    def test_concepts_are_spelled_as_a_filter_shows_them(self, context: Callable[..., Context]) -> None:
        provenance = passage_provenance(context(**OF_A), "of-a-one")
        assert "lake sund" in {concept["name"] for concept in provenance["concepts"]}
        assert not [marker for marker in MARKERS["b"] if marker in json.dumps(provenance)]


TEXT = "Who founded the Amstel Office?"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    use_embedder(monkeypatch, HashEmbedder())
    world = reading_world(tmp_path)
    talk(world, "of mia", TEXT, "mia", ["of-a-two"])
    talk(world, "of nobody", "Who paid for Project Zember?", cited=["of-b-two"])
    yield world
    close_indexes()


def found(root: Path, k: int = 20, keep: str = "", **settings: Any) -> dict[str, dict[str, Any]]:
    documents = search_documents(Context(workspace=str(root), **settings), TEXT, k, keep)["documents"]
    return {each["id"]: each for each in documents}


def counts(root: Path) -> dict[str, int]:
    with RelationshipRecord.of(root) as record:
        return record.counts()


def test_what_a_conversation_mentions_counts_by_three_tenths(root: Path) -> None:
    plain, aware = found(root), found(root, conversation_id="of nobody")
    assert any(each["concepts"] for each in aware.values())
    for key, each in aware.items():
        assert each["score"] == pytest.approx(0.7 * plain[key]["similarity"] + 0.3 * each["relevance"], abs=1e-5)


def test_a_conversation_of_somebody_else_is_refused(root: Path) -> None:
    with pytest.raises(NoAccess):
        found(root, conversation_id="of mia", user_id="tom")


def test_one_of_a_user_is_not_kept_since_forgetting_would_not_find_it(root: Path) -> None:
    with pytest.raises(BadInput, match="belongs to no user"):
        found(root, keep="mine", user_id="mia")
    assert counts(root)["Query"] == 0
