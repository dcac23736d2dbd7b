"""What to read next, and where a passage comes from: within the settings' filter, in Python and for agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from graph.errors import BadInput, NoAccess
from tests.builders import HashEmbedder
from tests.workflows.reading_world import read, reading_world, talk
from tests.workflows.tenants import CORPORA, MARKERS
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
from workflows.discovery import passage_provenance, related_documents, what_to_read
from workflows.for_agents import discovery_tool, provenance_tool
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes
from workflows.serving.page.endpoints import LONGEST_VIEW_S, read_beside, view_passage
from workflows.settings.indexing import IndexingContext

OF_A = {"where": {"tenant": "a"}}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Mia read of Project Zember and asked of the Amstel Office; an answer to nobody cites Project Zember."""
    world = reading_world(tmp_path_factory.mktemp("reading"))
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        read(world, "mia", "of-b-two")
        talk(world, "of mia", "Who founded the Amstel Office?", "mia", ["of-a-two"])
        talk(world, "of nobody", "Who paid for Project Zember?", cited=["of-b-two"])
        yield world
    close_indexes()


@pytest.fixture
def context(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Context]:
    use_embedder(monkeypatch, HashEmbedder())
    return lambda **settings: Context(workspace=str(root), **settings)


def proposed(found: dict[str, Any]) -> list[str]:
    return [each["document"] for each in found["documents"]]


class TestWhatToRead:
    def test_a_topic_leads_to_documents_that_explain_what_is_related(self, context: Callable[..., Context]) -> None:
        found = what_to_read(context(), "Olaf Amstel", 10)
        assert "of-a-one" in proposed(found)
        told = [reason["told"] for each in found["documents"] for reason in each["reasons"]]
        assert any(each.startswith("the topic is about Olaf Amstel → ") for each in told)

    def test_what_a_user_viewed_is_not_proposed(self, context: Callable[..., Context]) -> None:
        everything = proposed(what_to_read(context(), "Project Zember", 10))
        unread = proposed(what_to_read(context(user_id="mia"), "Project Zember", 10))
        assert {"of-b-two", "of-a-two"} & set(everything)
        assert not {"of-b-two", "of-a-two"} & set(unread)

    def test_what_a_conversation_cites_is_not_proposed(self, context: Callable[..., Context]) -> None:
        found = what_to_read(context(conversation_id="of nobody"), k=10)
        assert proposed(found)
        assert "of-b-two" not in proposed(found)

    def test_a_topic_that_names_nothing_is_what_the_nearest_passages_are_about(
        self, context: Callable[..., Context]
    ) -> None:
        reasons = [each for found in _documents(context, "somewhere to swim") for each in found["reasons"]]
        assert {each["because"] for each in reasons} == {"near"}
        assert all(each["told"].startswith("near to your topic: ") for each in reasons)

    def test_only_of_what_a_topic_names_it_is_said_to_be_about(self, context: Callable[..., Context]) -> None:
        reasons = [each for found in _documents(context, "Lake Sund") for each in found["reasons"]]
        assert {each["because"] for each in reasons} == {"topic"}
        assert all(each["told"].startswith("the topic is about ") for each in reasons)

    def test_the_conversation_of_another_is_refused(self, context: Callable[..., Context]) -> None:
        with pytest.raises(NoAccess):
            what_to_read(context(conversation_id="of mia", user_id="tom"))

    def test_something_has_to_be_given(self, context: Callable[..., Context]) -> None:
        with pytest.raises(BadInput, match="Nothing tells"):
            what_to_read(context())

    @pytest.mark.parametrize("who", [{}, {"user_id": "mia"}, {"conversation_id": "of nobody"}])
    @pytest.mark.parametrize("topic", ["Lake Sund", "Marn", "Project Zember", "somewhere to swim"])
    def test_nothing_that_a_filter_hides_is_proposed_or_named(
        self, context: Callable[..., Context], who: dict[str, str], topic: str
    ) -> None:
        found = what_to_read(context(**OF_A, **who), topic, 10)
        assert set(proposed(found)) <= {"of-a-one", "of-a-two"}
        assert not [marker for marker in MARKERS["b"] if marker in json.dumps(found)]


def _documents(context: Callable[..., Context], topic: str) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = what_to_read(context(), topic, 10)["documents"]
    assert documents
    return documents


class TestRelatedDocuments:
    def test_they_are_others_with_the_path_that_led_there(self, context: Callable[..., Context]) -> None:
        found = related_documents(context(), "of-b-two", 10)
        assert {"of-a-one", "of-b-one"} <= {each["document"] for each in found} <= {"of-a-one", "of-a-two", "of-b-one"}
        assert all(each["told"].startswith("this document explains ") for each in found)

    @pytest.mark.parametrize("document", ["of-a-one", "of-b-one", "of-b-two"])
    def test_nothing_that_a_filter_hides_is_named(self, context: Callable[..., Context], document: str) -> None:
        found = related_documents(context(**OF_A), document, 10)
        assert {each["document"] for each in found} <= {"of-a-one", "of-a-two"}
        assert not [marker for marker in MARKERS["b"] if marker in json.dumps(found)]
        assert bool(found) == document.startswith("of-a")

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
            found = related_documents(Context(workspace=str(root), as_of=as_of), "of-b-two", 10)
            assert as_of != "2005-01-01" or not [marker for marker in MARKERS["a"] if marker in json.dumps(found)]
            return {each["document"] for each in found}

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
        with pytest.raises(BadInput, match="Nobody"):
            view_passage(context(), "of-a-one", 1)
        with pytest.raises(BadInput) as hidden:
            view_passage(context(**OF_A, user_id="tom"), "of-b-two", 1)
        with pytest.raises(BadInput) as unknown:
            view_passage(context(**OF_A, user_id="tom"), "unknown", 1)
        assert str(hidden.value) == str(unknown.value)
        with pytest.raises(BadInput, match="-1 seconds"):
            view_passage(context(user_id="tom"), "of-a-one", -1)


class TestProvenance:
    def test_it_tells_document_source_place_and_vector(self, context: Callable[..., Context]) -> None:
        found = passage_provenance(context(), "of-b-two")
        assert (found["passage"], found["document"]["id"], found["document"]["version"]) == ("of-b-two", "of-b-two", 1)
        assert [source["name"] for source in found["sources"]] == ["corpus.jsonl"]
        assert found["position"]["chunk"] == 0
        assert found["vector"]["store"]["model"] == "hash"
        assert "Project Zember" in {concept["name"] for concept in found["concepts"]}
        assert [version["until"] for version in found["versions"]] == [None]
        json.dumps(found)

    def test_viewers_are_a_number(self, context: Callable[..., Context]) -> None:
        found = passage_provenance(context(), "of-b-two")
        assert found["viewers"] == 1
        assert "mia" not in json.dumps(found)

    def test_citations_are_those_of_the_users_own_conversations(self, context: Callable[..., Context]) -> None:
        def cited(**who: str) -> list[str]:
            return [each["conversation"] for each in passage_provenance(context(**who), "of-a-two")["cited_in"]]

        assert cited(user_id="mia") == ["of mia"]
        assert cited(user_id="tom") == cited() == []

    def test_a_conversation_of_nobody_is_open_but_not_on_a_server(self, context: Callable[..., Context]) -> None:
        mine = context(user_id="tom")
        assert [each["number"] for each in passage_provenance(mine, "of-b-two")["cited_in"]] == [1]
        assert passage_provenance(mine.within({}), "of-b-two")["cited_in"] == []

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
        found = passage_provenance(Context(workspace=str(tmp_path / "own")), "leave.md")
        assert found["sources"][0]["uri"] == "leave.md"

    def test_concepts_are_spelled_as_a_filter_shows_them(self, context: Callable[..., Context]) -> None:
        found = passage_provenance(context(**OF_A), "of-a-one")
        assert "lake sund" in {concept["name"] for concept in found["concepts"]}
        assert not [marker for marker in MARKERS["b"] if marker in json.dumps(found)]


class TestTools:
    def test_discovery_proposes_with_a_reason(self, context: Callable[..., Context]) -> None:
        called = _call(discovery_tool(context()), topic="Olaf Amstel", k=1)
        (document,) = called.artifact
        assert called.content == f"{document['title']} ({document['document']}): {document['reasons'][0]['told']}"

    def test_provenance_tells_as_json(self, context: Callable[..., Context]) -> None:
        called = _call(provenance_tool(context()), passage_id="of-a-one")
        assert json.loads(called.content) == called.artifact

    def test_what_a_model_gets_wrong_is_told_to_it(self, context: Callable[..., Context]) -> None:
        assert "no passage of that id" in _call(provenance_tool(context()), passage_id="nope").content
        assert "Nothing tells" in _call(discovery_tool(context())).content
        with pytest.raises(ValidationError):
            _call(discovery_tool(context()), user_id="mia")


def _call(tool: BaseTool, **arguments: Any) -> Any:
    return tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments})
