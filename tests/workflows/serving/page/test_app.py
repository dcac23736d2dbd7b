"""The page's API over a real workspace: questions, conversations, filters, explanations, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any, cast

import pytest

from graph.errors import BadInput
from graph.relationships.record import RELATIONSHIPS_FILE
from tests.scripted_server import ScriptedServer
from tests.workflows.serving.page.site import KeyRack, Visitor, new_id, site_of, visitor
from tests.workflows.small_world import QUESTION, QUESTION_PASSAGES, well_behaved
from workflows.access.identity import Identity, Keyring
from workflows.answering import ask
from workflows.context import Context
from workflows.serving.page.site import Site

REWRITTEN = "Who founded the town on the shore of Lake Sund?"


def rewritten(question: str, *choices: str) -> str:
    """A rewriter's proper reply."""
    return json.dumps({"stands_alone": False, "question": question, "choices": choices})


@pytest.fixture
def model(chat_server: ScriptedServer) -> ScriptedServer:
    """A chat model that behaves well."""
    chat_server.script(well_behaved())
    return chat_server


def test_a_question_is_answered_as_events_and_then_kept(me: Visitor) -> None:
    conversation = new_id()
    events = me.ask(QUESTION, conversation)
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "begun"
    assert {"step", "token"} <= set(kinds)
    assert kinds[-1] == "ended"
    turn = events[-1]["turn"]
    assert (turn["state"], turn["kind"], turn["question"]) == ("answered", "evidence", QUESTION)
    assert turn["label"] == "Quotes from your documents (not checked by a model)"
    assert {source["title"] for source in turn["sources"]} <= {"Lake Sund", "Marn"}
    assert 'class="citation"' in turn["html"]
    assert me.get(f"conversations/{conversation}")["turns"] == [turn]


def test_details_mark_the_cited_characters_whatever_they_are(me: Visitor, world: Path) -> None:
    result = ask(QUESTION, Context(workspace=str(world)))
    assert me.answer(QUESTION)["text"] == result["answer"]
    assert set(QUESTION_PASSAGES) <= {hit["id"] for hit in result["passages"]}
    turn = me.answer("青石鎮以什麼聞名?")
    details = me.get(f"turns/{turn['id']}")
    assert {passage["number"] for passage in details["passages"] if passage["cited"]} == {
        source["number"] for source in turn["sources"]
    }
    for passage in details["passages"]:
        assert ("<mark>" in passage["html"]) == passage["cited"]


def test_a_question_that_leans_on_earlier_ones_is_completed_and_can_be_corrected(
    model: ScriptedServer, me: Visitor
) -> None:
    model.script({**well_behaved(), "rewriter": [rewritten(REWRITTEN)]})
    conversation = new_id()
    me.answer(QUESTION, conversation)
    turn = me.answer("And who founded it?", conversation)
    assert turn["understood"]["asked"] == "And who founded it?"
    assert turn["understood"]["question"] == REWRITTEN
    corrected = me.answer("Who founded Marn?", conversation, alone=True, replaces=turn["id"])
    assert corrected["understood"] is None
    kept = me.get(f"conversations/{conversation}")["turns"]
    assert [each["question"] for each in kept] == [QUESTION, "Who founded Marn?"]


def test_a_question_that_cannot_be_asked_is_refused(me: Visitor) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"question": ""}, "The question is empty"),
        ({"question": "x" * 10_001}, "10,001 characters"),
        ({"turn": "../etc"}, "turn is to be 8 to 64"),
        ({"settings": []}, "settings is to be an object"),
        ({"settings": {"model": "local:/etc/passwd"}}, "no setting model"),
        ({"settings": {"workspace": "/etc"}}, "'/etc'.* workspace|workspace '/etc'"),
        ({"replaces": "nothing-there"}, "There is no such conversation"),
        ({"follows": "nothing-there"}, "There is no such turn"),
    ]
    for body, message in cases:
        whole = {"conversation": new_id(), "turn": new_id(), "question": QUESTION, **body}
        reply = me.client.post("/page/api/turns", json=whole)
        assert reply.status_code in (400, 404), body
        assert re.search(message, reply.json()["error"]["message"])
        assert me.get("conversations") == {"conversations": []}, body


def test_conversations_are_found_by_their_titles_questions_and_answers(me: Visitor) -> None:
    towns, dams = new_id(), new_id()
    me.ask(QUESTION, towns)
    me.ask("Who built the Tarn Dam?", dams)
    me.client.patch(f"/page/api/conversations/{towns}", json={"title": "Städte"})

    def found(words: str) -> list[str]:
        return [each["id"] for each in me.get(f"conversations?words={words}")["conversations"]]

    assert found("STÄDTE") == found("lake founded") == found("orlo") == [towns]
    assert found("brandt tarn") == [dams]
    assert found("städte brandt") == found("%") == []


def test_a_conversation_is_exported_as_markdown_with_its_sources_dates_and_settings(me: Visitor) -> None:
    talk = new_id()
    turn = me.answer(QUESTION, talk, settings={"workflow": "ragenta", "where": {"source": "corpus.jsonl"}})
    text = me.get(f"conversations/{talk}/text")["text"]
    assert text.startswith(f"# {QUESTION}\n\n## {QUESTION}\n\n*20")
    assert " UTC · Thorough: checks each claim · source is corpus.jsonl*" in text
    assert turn["copied"] in text
    details = me.get(f"turns/{turn['id']}")
    assert details["claims"]
    assert text.endswith(" (corpus.jsonl)\n")
    assert me.client.get("/page/api/conversations/nothing-there/text").status_code == 404


def test_a_title_neither_rings_nor_turns_what_is_read(me: Visitor, tmp_path: Path) -> None:
    conversation = new_id()
    me.ask(QUESTION, conversation)
    address = f"/page/api/conversations/{conversation}"
    assert me.client.patch(address, json={"title": "To\x07wns\u202e\nof\u2028Ostra"}).status_code == 200
    assert me.get(f"conversations/{conversation}")["title"] == "Towns of Ostra"
    assert me.get("conversations")["conversations"][0]["title"] == "Towns of Ostra"
    assert me.client.patch(address, json={"title": "\x07\u202e"}).status_code == 400
    with sqlite3.connect(tmp_path / "conversations" / RELATIONSHIPS_FILE) as file:
        assert file.execute("SELECT title FROM conversations").fetchall() == [("Towns of Ostra",)]
        file.execute("UPDATE conversations SET title = 'Old\x07\u202e'")
    file.close()
    assert me.get("conversations")["conversations"][0]["title"] == "Old"


def test_a_conversation_that_did_not_change_is_not_sent_again(me: Visitor) -> None:
    conversation = new_id()
    me.ask(QUESTION, conversation)
    version = me.get(f"conversations/{conversation}")["version"]
    assert me.get(f"conversations/{conversation}?version={version}") == {"unchanged": True}
    me.ask("Who built the Tarn Dam?", conversation)
    assert len(me.get(f"conversations/{conversation}?version={version}")["turns"]) == 2


def test_filters_are_the_sources_and_metadata_of_the_passages(me: Visitor) -> None:
    (source,) = me.get("filters")["keys"]
    assert (source["key"], source["values"], source["n_values"]) == ("source", ["corpus.jsonl"], 1)
    everything = me.answer(QUESTION, settings={"where": {"source": {"$eq": "corpus.jsonl"}}})
    nothing = me.answer(QUESTION, settings={"where": {"source": {"$ne": "corpus.jsonl"}}})
    assert everything["n_passages"] > 0
    assert nothing["n_passages"] == 0
    assert nothing["notes"]


def test_a_question_in_a_conversation_that_was_deleted_begins_no_other_one(me: Visitor) -> None:
    conversation = new_id()
    me.ask(QUESTION, conversation)
    (turn,) = me.get(f"conversations/{conversation}")["turns"]
    me.client.delete(f"/page/api/conversations/{conversation}")
    body = {"conversation": conversation, "turn": new_id(), "question": QUESTION}
    reply = me.client.post("/page/api/turns", json={**body, "follows": turn["id"]})
    assert (reply.status_code, reply.json()["error"]["kind"]) == (404, "NoConversation")
    assert me.get("conversations")["conversations"] == []
    assert me.client.post("/page/api/turns", json=body).status_code == 200


def test_an_explanation_is_a_page_that_may_only_run_its_own_scripts(me: Visitor) -> None:
    turn = me.answer(QUESTION)
    reply = me.client.post(f"/page/explanation/{turn['id']}", data={"key": ""})
    assert reply.status_code == 200
    assert "<title>Explanation of an answer</title>" in reply.text
    assert reply.headers["content-security-policy"] == "sandbox allow-scripts; frame-ancestors 'self'"


@pytest.mark.parametrize("workspaces", [("own",), ("own", "beside"), ("beside", "own")])
def test_the_own_workspace_is_opened_by_its_name_where_that_is_listed(
    hashing: None, tmp_path: Path, index: Any, workspaces: tuple[str, ...]
) -> None:
    own, beside = tmp_path / "all" / "own", tmp_path / "all" / "beside"
    index([{"id": "a", "title": "Velm", "text": "The Velm is a river."}], own)
    index([{"id": "b", "title": "Karv", "text": "Karv is a harbour town."}], beside)
    rack = KeyRack(key=Identity("anna", workspaces=workspaces))
    anna = Visitor(visitor(site_of(own, tmp_path, keyring=lambda: rack)).client, {"authorization": "Bearer key"})
    assert [each["name"] for each in anna.get("setup")["workspaces"]] == list(workspaces)
    for workspace in ("own", *workspaces):
        turn = anna.answer("What is Velm?", settings={"workspace": workspace})
        assert [source["title"] for source in turn["sources"]] == (["Velm"] if workspace == "own" else [])
    assert anna.get("filters?workspace=own")["keys"]
    assert bool(anna.answer("What is Velm?")["sources"]) == (workspaces[0] == "own")


def test_no_other_folder_is_a_workspace_that_can_be_named(world: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(world, tmp_path / "all" / "own"))
    shutil.copytree(world, own.parent / "beside")
    (own.parent / "empty").mkdir()
    site = Site(own)
    assert site.place_of("beside") == str(own.parent / "beside")
    for name in ("..", ".", "/", "../beside", "beside/", "own/../beside", "own/", "empty", "a\0b"):
        with pytest.raises(BadInput, match="There is no workspace"):
            site.place_of(name)
    assert site.place_of("own") == site.place_of("") == str(own)


@pytest.fixture
def tenants(hashing: None, tmp_path: Path, index: Any) -> tuple[Visitor, Visitor]:
    """Ada and Bea, on one page, with conversations of their own."""
    root = tmp_path / "shared"
    index([{"id": "a", "title": "Velm", "text": "The Velm is a river in Ostra."}], root)
    keys = KeyRack(
        **{
            "key-of-ada": Identity("ada", workspaces=("",)),
            "key-of-bea": Identity("bea", {"tenant": "b"}, workspaces=("",), may_index=True),
        }
    )
    client = visitor(site_of(root, tmp_path, keyring=lambda: cast(Keyring, keys), uploads=tmp_path / "uploads")).client
    ada, bea = ({"authorization": f"Bearer key-of-{name}"} for name in ("ada", "bea"))
    return Visitor(client, ada), Visitor(client, bea)


def test_without_a_key_nothing_is_told(tenants: tuple[Visitor, Visitor]) -> None:
    client = tenants[0].client
    for path in ("setup", "filters", "conversations", "conversations/12345678", "turns/12345678"):
        reply = client.get(f"/page/api/{path}")
        assert (reply.status_code, set(reply.json())) == (401, {"error"})
    assert client.post("/page/explanation/12345678", data={"key": "guessed"}).status_code == 401
    assert client.put("/page/api/documents/a.md", content=b"a").status_code == 401
    assert client.get("/page/").status_code == 200  # The page itself, which asks for the key.


def test_conversations_belong_to_who_asked(tenants: tuple[Visitor, Visitor]) -> None:
    ada, bea = tenants
    conversation = new_id()
    turn = ada.answer("What is the Velm?", conversation)
    assert bea.get("conversations") == {"conversations": []}
    for path in (f"conversations/{conversation}", f"turns/{turn['id']}"):
        assert bea.client.get(f"/page/api/{path}", headers=bea.headers).status_code == 404
    form = {"key": "key-of-bea"}
    assert bea.client.post(f"/page/explanation/{turn['id']}", data=form).status_code == 404
    assert ada.client.post(f"/page/explanation/{turn['id']}", data={"key": "key-of-ada"}).status_code == 200


def test_only_who_may_index_adds_documents_whichever_way_the_key_comes(tenants: tuple[Visitor, Visitor]) -> None:
    client = tenants[0].client
    assert client.get("/page/api/setup", headers={"x-api-key": "key-of-ada"}).json()["name"] == "ada"
    both = {"x-api-key": "key-of-ada", "authorization": "Bearer key-of-bea"}
    assert client.get("/page/api/setup", headers=both).json()["name"] == "bea"
    reasons = ("ada may not index documents", "bea may not add documents, since a filter hides passages")
    for who, headers, reason in zip(tenants, ({"x-api-key": "key-of-ada"}, both), reasons, strict=True):
        assert who.get("setup")["uploads"] is None
        reply = client.put("/page/api/documents/a.md", content=b"a", headers=headers)
        assert reply.status_code == 403
        assert reason in reply.json()["error"]["message"]
        assert "--uploads" not in reply.text


def test_a_body_that_is_no_object_of_json_is_refused(me: Visitor) -> None:
    cases: list[tuple[bytes, str]] = [
        (b'{"question": "Who?"}', "text/plain"),
        (b"{", "application/json"),
        (b'"' + b"x" * 2**20 + b'"', "application/json"),
    ]
    for body, kind in cases:
        reply = me.client.post("/page/api/turns", content=body, headers={"content-type": kind})
        assert reply.status_code == 400, body
