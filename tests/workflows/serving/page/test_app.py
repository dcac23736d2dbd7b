"""The page's API over a real workspace: questions, conversations, filters, explanations, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, cast

import pytest

from graph.errors import BadInput
from graph.relationships.record import RELATIONSHIPS_FILE
from graph.retrieve.modes import Mode
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.serving.page.site import KeyRack, Visitor, new_id, site_of, visitor
from tests.workflows.small_world import ANSWERED, QUESTION, QUESTION_PASSAGES, well_behaved
from workflows.access.identity import Identity, Keyring
from workflows.answering import ask
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes
from workflows.serving.page.site import Workspaces
from workflows.settings.indexing import IndexingContext

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


def test_without_evidence_the_reason_is_told(me: Visitor) -> None:
    turn = me.answer("Who founded Zorblax?")
    assert turn["kind"] == "refusal"
    assert turn["text"].startswith("Not found in the documents. The passages found do not mention Zorblax.")
    assert 'class="citation" data-number="1"' in turn["html"]
    german = me.answer("Wer hat Zorblax gegründet?")
    assert german["text"].startswith("In den Dokumenten nicht gefunden. Die gefundenen Stellen erwähnen Zorblax nicht.")
    outside = me.answer(QUESTION, settings={"where": {"source": "nowhere.md"}})
    assert r"No passage meets the conditions of \`where\`" in outside["text"]
    assert outside["text"].endswith("A filter is set: a wider one may find more.")


def test_the_tokens_put_together_are_the_answer(model: ScriptedServer, me: Visitor) -> None:
    events = me.ask(QUESTION)
    text = ""
    for event in events:
        text = "" if event["kind"] == "void" else text + event.get("text", "") * (event["kind"] == "token")
    assert text == ANSWERED
    assert events[-1]["turn"]["took"].endswith("3 model calls")


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
    assert details["facts"]
    assert details["seeds"]
    assert details["beta"]["entity_entity"]


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


def test_a_question_that_could_mean_several_things_is_answered_with_a_question(
    model: ScriptedServer, me: Visitor
) -> None:
    choices = ("When was Ada Brandt born?", "When was Duke Orlo born?")
    model.script({**well_behaved(), "rewriter": [rewritten(choices[0], *choices)]})
    conversation = new_id()
    me.answer(QUESTION, conversation)
    turn = me.answer("When was he born?", conversation)
    assert (turn["kind"], turn["asked_back"]) == ("clarification", True)
    assert turn["understood"]["choices"] == list(choices)
    chosen = me.answer(choices[1], conversation, alone=True)
    assert chosen["understood"] is None
    assert [each["number"] for each in me.get(f"conversations/{conversation}")["turns"]] == [1, 2, 3]


def test_an_endpoint_that_fails_is_told_in_the_turn(chat_server: ScriptedServer, me: Visitor) -> None:
    chat_server.script([Reply("wrong key", status=401)])
    conversation = new_id()
    turn = me.answer(QUESTION, conversation)
    assert turn["state"] == "failed"
    assert "401" in turn["error"] or "refused" in turn["error"]
    assert me.get(f"conversations/{conversation}")["turns"] == [turn]


def test_a_question_that_cannot_be_asked_is_refused(me: Visitor) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"question": ""}, "The question is empty"),
        ({"question": "x" * 10_001}, "10,001 characters"),
        ({"question": ["Who?"]}, "question is to be a text"),
        ({"turn": "../etc"}, "turn is to be 8 to 64"),
        ({"settings": []}, "settings is to be an object"),
        ({"settings": {"model": "local:/etc/passwd"}}, "no setting model"),
        ({"settings": {"mode": "best"}}, "mode"),
        ({"settings": {"workspace": "/etc"}}, "'/etc'.* workspace|workspace '/etc'"),
        ({"settings": {"workspace": ".."}}, r"'\.\.'.* workspace|workspace '\.\.'"),
        ({"settings": {"where": {"year": {"$near": 3}}}}, r"\$near"),
        ({"replaces": "nothing-there"}, "There is no such conversation"),
        ({"follows": "nothing-there"}, "There is no such turn"),
    ]
    for body, message in cases:
        whole = {"conversation": new_id(), "turn": new_id(), "question": QUESTION, **body}
        reply = me.client.post("/page/api/turns", json=whole)
        assert reply.status_code in (400, 404), body
        assert re.search(message, reply.json()["error"]["message"])
        assert me.get("conversations") == {"conversations": []}, body


def test_conversations_are_listed_renamed_and_deleted(me: Visitor) -> None:
    first, second = new_id(), new_id()
    me.ask(QUESTION, first)
    me.ask("Who built the Tarn Dam?", second)
    assert [each["id"] for each in me.get("conversations")["conversations"]] == [second, first]
    assert me.client.patch(f"/page/api/conversations/{first}", json={"title": "Towns"}).status_code == 200
    assert me.get(f"conversations/{first}")["title"] == "Towns"
    assert me.client.delete(f"/page/api/conversations/{second}").status_code == 200
    assert [each["id"] for each in me.get("conversations")["conversations"]] == [first]
    assert me.client.get(f"/page/api/conversations/{second}").status_code == 404


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
    assert (details["about"]["Workflow"], bool(details["claims"])) == ("ragenta", True)
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


def test_filters_leave_out_the_numbers_by_which_passages_are_found_in_their_document(
    hashing: None, tmp_path: Path
) -> None:
    document = tmp_path / "velm.md"
    document.write_text("---\nyear: 2026\n---\n# Velm\n\n" + "The Velm is a river. " * 500, encoding="utf-8")
    index_sources([document], tmp_path / "own")
    assert ask(QUESTION, Context(workspace=str(tmp_path / "own")))["passages"][0]["metadata"].keys() >= {"chunk", "end"}
    keys = [each["key"] for each in visitor(site_of(tmp_path / "own", tmp_path)).get("filters")["keys"]]
    assert keys == ["source", "file", "year"]


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


def test_the_setup_names_what_may_be_chosen(me: Visitor) -> None:
    told = me.get("setup")
    assert told["workspaces"][0] == {"name": "", "title": "workspace"}
    assert (told["chat_model"], told["uploads"]) == ("offline", None)
    assert told["workflows"] == [["mara", "Quick"], ["ragenta", "Thorough: checks each claim"]]
    assert [name for name, _ in told["modes"]] == [*Mode]


def test_workspaces_beside_the_own_one_can_be_asked(hashing: None, world: Path, tmp_path: Path, index: Any) -> None:
    own, beside = tmp_path / "all" / "own", tmp_path / "all" / "beside"
    index([{"id": "a", "title": "Velm", "text": "The Velm is a river."}], own)
    index([{"id": "b", "title": "Karv", "text": "Karv is a harbour town."}], beside)
    (tmp_path / "all" / "empty").mkdir()
    me = visitor(site_of(own, tmp_path))
    assert [each["title"] for each in me.get("setup")["workspaces"]] == ["own", "beside"]
    turn = me.answer("What is Karv?", settings={"workspace": "beside"})
    assert [source["title"] for source in turn["sources"]] == ["Karv"]


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
    workspaces = Workspaces(own)
    assert workspaces.place_of("beside") == str(own.parent / "beside")
    for name in ("..", ".", "/", "../beside", "beside/", "own/../beside", "own/", "empty", "a\0b"):
        with pytest.raises(BadInput, match="There is no workspace"):
            workspaces.place_of(name)
    assert workspaces.place_of("own") == workspaces.place_of("") == str(own)


def test_a_question_as_of_a_day_is_answered_from_what_stood_then(hashing: None, world: Path, tmp_path: Path) -> None:
    paper, root = tmp_path / "prices.csv", tmp_path / "shop"
    for date, price in (("2023", 40), ("2024", 45)):
        paper.write_text(f"id,title,text\nlamp,Lamp,The Torvik lamp costs {price} euros.\n", encoding="utf-8")
        index_sources([paper], root, settings=IndexingContext(dated=date, model="offline"))
    turn = visitor(site_of(root, tmp_path)).answer("What does the lamp cost?", settings={"as_of": "2023-06-15"})
    assert "40 euros" in turn["text"]
    assert turn["asked_with"] == ["As of 2023-06-15"]
    assert turn["sources"][0]["source"] == "prices.csv (superseded on 2024-01-01)"


# ---- Who may see what


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


# ---- Requests that are none of the page's


def test_a_body_that_is_no_object_of_json_is_refused(me: Visitor) -> None:
    cases: list[tuple[bytes, str]] = [
        (b"question=Who", "application/x-www-form-urlencoded"),
        (b'{"question": "Who?"}', "text/plain"),
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b'"' + b"x" * 2**20 + b'"', "application/json"),
    ]
    for body, kind in cases:
        reply = me.client.post("/page/api/turns", content=body, headers={"content-type": kind})
        assert reply.status_code == 400, body


def test_there_are_no_other_files(me: Visitor) -> None:
    for path in ("nothing.js", "..%2Fapp.py", "%2Fetc%2Fpasswd", "__init__.py"):
        assert me.client.get(f"/page/static/{path}").status_code == 404
    assert me.client.get("/").headers["content-type"].startswith("text/html")


def test_unknown_addresses_and_methods_are_told_in_json(me: Visitor) -> None:
    for path, kind in (
        ("/api/nothing", "kind"),
        ("/page/api/nothing", "kind"),
        ("/page/v1/x", "type"),
        ("/v1/x", "type"),
    ):
        reply = me.client.get(path)
        assert (reply.status_code, kind in reply.json()["error"]) == (404, True), path
        assert reply.json()["error"]["message"] == f"GET {path} is no address of this server"
    assert me.client.get("/api/ask").status_code == 405
    assert me.client.get("/api/ask").json()["error"]["kind"] == "NoAddress"


# ---- The sample


@pytest.mark.slow
def test_three_turns_over_the_sample_end_right_without_a_model(tmp_path: Path) -> None:
    with as_file(files("workflows.sample").joinpath("corpus.jsonl")) as corpus:
        index_sources([corpus], tmp_path / "sample", settings=IndexingContext(model="offline"))
    me, conversation = visitor(site_of(tmp_path / "sample", tmp_path)), new_id()
    first = me.answer("When was Nissan founded?", conversation)
    second = me.answer("And who founded it?", conversation)
    third = me.answer("Where was he born?", conversation)
    close_indexes()
    assert "1933" in first["text"]
    assert (second["understood"]["question"], "Aikawa" in second["text"]) == ("Who founded Nissan?", True)
    assert third["understood"]["question"] == "Where was Yoshisuke Aikawa born?"
    assert "Yamaguchi" in third["text"]
