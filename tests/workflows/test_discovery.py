"""Documents to read next, the provenance of a passage, and searching documents: within the settings' filter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from graph.errors import BadInput, NoAccess
from graph.relationships.cypher.copies import open_copy
from graph.relationships.cypher.queries import CONVERSATION_SEARCH
from graph.relationships.record import RelationshipRecord
from tests.builders import HashEmbedder
from tests.workflows.reading_world import reading_world, talk
from tests.workflows.tenants import CORPORA, MARKERS
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
from workflows.discovery import passage_provenance, related_documents, what_to_read
from workflows.document_search import search_documents
from workflows.for_agents import discovery_tool, provenance_tool
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

    def test_a_topic_is_about_what_it_names_or_near_to_what_the_nearest_passages_are_about(
        self, context: Callable[..., Context]
    ) -> None:
        for topic, because, words in (
            ("somewhere to swim", "near", "near to your topic: "),
            ("Lake Sund", "topic", "the topic is about "),
        ):
            documents = what_to_read(context(), topic, 10)["documents"]
            reasons = [reason for document in documents for reason in document["reasons"]]
            assert {reason["because"] for reason in reasons} == {because}
            assert all(reason["told"].startswith(words) for reason in reasons), topic

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
    def test_they_are_others_with_the_path_that_led_there(self, context: Callable[..., Context]) -> None:
        documents = related_documents(context(), "of-b-two", 10)
        assert (
            {"of-a-one", "of-b-one"} <= {each["document"] for each in documents} <= {"of-a-one", "of-a-two", "of-b-one"}
        )
        assert all(each["told"].startswith("this document explains ") for each in documents)

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

    def test_what_stood_in_the_past_alone_is_not_counted(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        use_embedder(monkeypatch, HashEmbedder())
        root, corpus = tmp_path / "workspace", tmp_path / "corpus.jsonl"
        for year, tenant in (("2001", "b"), ("2010", "a")):
            corpus.write_text("\n".join(map(json.dumps, CORPORA[tenant])), encoding="utf-8")
            index_sources([corpus], root, sync=True, settings=IndexingContext(dated=f"{year}-01-01", replace_all=True))
        past = Context(workspace=str(root), as_of="2005-01-01", user_id="rosa")
        assert read_beside(past, "of-b-two") == {"document": "of-b-two", "views": None, "related": []}
        assert not view_passage(past, "of-b-two", 9)
        with pytest.raises(BadInput, match="any more"):
            view_passage(Context(workspace=str(root), user_id="rosa"), "of-b-two", 9)

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
    def test_it_tells_document_source_place_vector_and_the_number_of_viewers(
        self, context: Callable[..., Context]
    ) -> None:
        provenance = passage_provenance(context(), "of-b-two")
        document = provenance["document"]
        assert (provenance["passage"], document["id"], document["version"]) == ("of-b-two", "of-b-two", 1)
        assert [source["name"] for source in provenance["sources"]] == ["corpus.jsonl"]
        assert provenance["position"]["chunk"] == 0
        assert provenance["vector"]["store"]["model"] == "hash"
        assert "Project Zember" in {concept["name"] for concept in provenance["concepts"]}
        assert [version["until"] for version in provenance["versions"]] == [None]
        assert provenance["viewers"] == 1
        assert "mia" not in json.dumps(provenance)

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

    def test_a_source_of_several_passages_names_those_that_are_seen(self, context: Callable[..., Context]) -> None:
        with pytest.raises(BadInput, match="has 2 passages") as several:
            passage_provenance(context(**OF_A), "corpus.jsonl")
        assert "of-a-one" in str(several.value)
        assert "of-b" not in str(several.value)

    def test_a_source_of_one_passage_stands_for_it(self, tmp_path: Path, context: Callable[..., Context]) -> None:
        (tmp_path / "leave.md").write_text("# Leave\n\nStaff of the Marn Works have 28 days of leave.\n")
        index_sources([tmp_path / "leave.md"], tmp_path / "own")
        provenance = passage_provenance(Context(workspace=str(tmp_path / "own")), "leave.md")
        assert provenance["sources"][0]["uri"] == "leave.md"

    def test_concepts_are_spelled_as_a_filter_shows_them(self, context: Callable[..., Context]) -> None:
        provenance = passage_provenance(context(**OF_A), "of-a-one")
        assert "lake sund" in {concept["name"] for concept in provenance["concepts"]}
        assert not [marker for marker in MARKERS["b"] if marker in json.dumps(provenance)]


class TestTools:
    def test_they_tell_reasons_and_json_and_what_a_model_gets_wrong(self, context: Callable[..., Context]) -> None:
        called = _call(discovery_tool(context()), topic="Olaf Amstel", k=1)
        (document,) = called.artifact
        assert called.content == f"{document['title']} ({document['document']}): {document['reasons'][0]['told']}"
        called = _call(provenance_tool(context()), passage_id="of-a-one")
        assert json.loads(called.content) == called.artifact
        assert "no passage of that id" in _call(provenance_tool(context()), passage_id="nope").content
        assert "Nothing tells" in _call(discovery_tool(context())).content
        with pytest.raises(ValidationError):
            _call(discovery_tool(context()), user_id="mia")


def _call(tool: BaseTool, **arguments: Any) -> Any:
    return tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments})


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


def test_without_a_conversation_documents_come_by_similarity(root: Path) -> None:
    similarities = [each["similarity"] for each in found(root).values()]
    assert similarities == sorted(similarities, reverse=True)
    assert counts(root)["Query"] == 0


def test_what_a_conversation_mentions_counts_by_three_tenths(root: Path) -> None:
    plain, aware = found(root), found(root, conversation_id="of nobody")
    assert any(each["concepts"] for each in aware.values())
    for key, each in aware.items():
        assert each["score"] == pytest.approx(0.7 * plain[key]["similarity"] + 0.3 * each["relevance"], abs=1e-5)


def test_what_a_filter_hides_is_not_found(root: Path) -> None:
    assert {key[:4] for key in found(root, where={"tenant": "a"})} == {"of-a"}


def test_a_conversation_of_somebody_else_is_refused(root: Path) -> None:
    with pytest.raises(NoAccess):
        found(root, conversation_id="of mia", user_id="tom")


def test_one_that_is_kept_can_be_asked_in_cypher(root: Path) -> None:
    documents = found(root, k=5, keep="founders", conversation_id="of nobody")
    assert counts(root)["SIMILARITY"] == len(documents) > 1
    with open_copy(root) as copy:
        rows = copy.query(CONVERSATION_SEARCH, {"query_id": "founders", "conversation_id": "of nobody"}).rows
    assert {row[0] for row in rows} == set(documents)


def test_one_of_a_user_is_not_kept_since_forgetting_would_not_find_it(root: Path) -> None:
    with pytest.raises(BadInput, match="belongs to no user"):
        found(root, keep="mine", user_id="mia")
    assert counts(root)["Query"] == 0
