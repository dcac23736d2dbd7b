"""A question goes on without the window that asked it: any window of its owner, at any worker, follows and stops it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.dictation import PATIENCE_S, Dictation, Held, wait_for_the_end
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.remembering import messages, related_world
from tests.workflows.serving.page.site import KeyRack, new_id, on_a_port, site_of
from tests.workflows.small_world import ANSWERED, QUESTION, well_behaved
from workflows.access.identity import LOCAL, Identity
from workflows.conversation.kept import UNDER_WAY_EACH
from workflows.serving.page import runs
from workflows.serving.page.site import Site
from workflows.serving.service import Service

FIRST, REST = "It was founded", " in 1203 [1]."


class Client:
    """A program that talks to a worker as a window of the page does."""

    def __init__(self, address: str, key: str = "") -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self.http = httpx.Client(base_url=f"{address}/page/api/", timeout=PATIENCE_S, headers=headers)

    def get(self, path: str) -> Any:
        return self.http.get(path).raise_for_status().json()

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(path, json=body)

    @contextmanager
    def asking(self, question: str = QUESTION, **more: Any) -> Iterator[Iterator[dict[str, Any]]]:
        """Ask; yield the events as they come, until the window is closed with the block."""
        body = {"conversation": new_id(), "turn": new_id(), "question": question, **more}
        with self.http.stream("POST", "turns", json=body) as reply:
            yield told_in(reply)

    @contextmanager
    def following(self, turn: str, first: int = 0) -> Iterator[Iterator[dict[str, Any]]]:
        with self.http.stream("GET", f"turns/{turn}/events?from={first}") as reply:
            yield told_in(reply)

    def follow(self, turn: str, first: int = 0) -> list[dict[str, Any]]:
        """Follow a turn to its end."""
        with self.following(turn, first) as told:
            return [*told]

    def leave(self, question: str = QUESTION, **more: Any) -> dict[str, Any]:
        """Ask, and close the window once the first words are there; return the turn as it began."""
        with self.asking(question, **more) as told:
            turn: dict[str, Any] = next(told)["turn"]
            until_words(told)
        return turn


def told_in(reply: httpx.Response) -> Iterator[dict[str, Any]]:
    assert reply.status_code == 200, reply.read()
    return (json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: "))


def until_words(told: Iterator[dict[str, Any]]) -> dict[str, Any]:
    return next(event for event in told if event["kind"] == "token")


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["text"] for event in events if event["kind"] == "token")


@pytest.fixture
def held(chat_server: ScriptedServer) -> Held:
    """The model's answer, whose last words come when the test says so."""
    pieces = Held(FIRST, REST)
    chat_server.script({**well_behaved(), "answerer": [Reply("", pieces=pieces), ANSWERED]})
    return pieces


@pytest.fixture
def dictation(chat_server: ScriptedServer) -> Dictation:
    """The model's answer, which goes on until nobody takes it any more."""
    pieces = Dictation()
    chat_server.script({**well_behaved(), "answerer": [Reply("", pieces=pieces), ANSWERED]})
    return pieces


@pytest.fixture
def workers(site: Site) -> Iterator[tuple[str, str]]:
    """The addresses of two workers of one site."""
    with on_a_port(site) as one, on_a_port(site) as other:
        yield one, other


def until(holds: Callable[[], Any]) -> Any:
    """Wait until something holds, and return it."""
    pause = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        if found := holds():
            return found
        pause.wait(0.05)
    raise AssertionError("It does not come to hold")


def is_closed(address: str) -> bool:
    """Whether a server takes no more connections."""
    try:
        httpx.get(f"{address}/health")
    except httpx.ConnectError:
        return True
    return False


@pytest.mark.parametrize("worker", [0, 1])
def test_any_window_at_any_worker_follows_a_run_from_where_it_was(
    held: Held, workers: tuple[str, str], worker: int
) -> None:
    turn = Client(workers[0]).leave()["id"]
    other = Client(workers[worker])
    with other.following(turn) as told:
        assert next(told)["turn"]["question"] == QUESTION
        first = until_words(told)
        assert first["text"] == FIRST
        held.go_on.set()
        rest = [*told]
    assert (text_of(rest), rest[-1]["kind"], rest[-1]["turn"]["text"]) == (REST, "ended", FIRST + REST)
    again = other.follow(turn, first["at"] + 1)
    assert (text_of(again), again[-1]["turn"]["text"]) == (REST, FIRST + REST)


@pytest.mark.parametrize("worker", [0, 1])
def test_any_window_at_any_worker_stops_a_run(dictation: Dictation, workers: tuple[str, str], worker: int) -> None:
    turn = Client(workers[0]).leave()["id"]
    other = Client(workers[worker])
    with other.following(turn) as told:
        until_words(told)
        assert other.post(f"turns/{turn}/stop").status_code == 200
        ended = [*told][-1]["turn"]
    dictation.go_on.set()
    assert dictation.hung_up.wait(PATIENCE_S)
    wait_for_the_end()
    assert (ended["state"], ended["text"][:2]) == ("stopped", "It")
    assert other.follow(turn)[-1]["turn"] == ended


def test_several_conversations_are_answered_at_once_and_each_has_one_question(
    chat_server: ScriptedServer, workers: tuple[str, str]
) -> None:
    answers = [Held(FIRST, f" in {year} [1].") for year in (1203, 1204)]
    chat_server.script({**well_behaved(), "answerer": [*(Reply("", pieces=each) for each in answers), ANSWERED]})
    me, conversation = Client(workers[0]), new_id()
    turns = [me.leave(conversation=conversation)["id"], me.leave()["id"]]
    refused = me.post("turns", conversation=conversation, turn=new_id(), question="Who built the Tarn Dam?")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "UnderWay")
    assert "stop it" in refused.json()["error"]["message"]
    for each in answers[::-1]:
        each.go_on.set()
    ended = [me.follow(turn)[-1]["turn"]["text"] for turn in turns]
    assert ended == [FIRST + " in 1203 [1].", FIRST + " in 1204 [1]."]
    with me.asking("Who built the Tarn Dam?", conversation=conversation) as told:
        assert [*told][-1]["turn"]["number"] == 2


def test_somebody_has_so_many_under_way_and_is_told_so(
    dictation: Dictation, chat_server: ScriptedServer, workers: tuple[str, str]
) -> None:
    chat_server.script({**well_behaved(), "answerer": [Reply("", pieces=dictation)]})
    me, other = (Client(address) for address in workers)
    with ExitStack() as windows:
        for _ in range(UNDER_WAY_EACH):
            next(windows.enter_context(me.asking()))
        refused = other.post("turns", conversation=new_id(), turn=new_id(), question=QUESTION)
        assert refused.status_code == 409
        assert f"{UNDER_WAY_EACH} of your questions are being answered" in refused.json()["error"]["message"]
    assert len(me.get("conversations")["conversations"]) == UNDER_WAY_EACH
    dictation.go_on.set()


def test_a_run_ends_with_its_conversation(dictation: Dictation, workers: tuple[str, str]) -> None:
    me, other = (Client(address) for address in workers)
    conversation = new_id()
    turn = me.leave(conversation=conversation)["id"]
    with me.following(turn) as told:
        until_words(told)
        assert other.http.delete(f"conversations/{conversation}").status_code == 200
        assert [*told][-1] == {"kind": "gone"}
    dictation.go_on.set()
    assert dictation.hung_up.wait(PATIENCE_S)
    assert me.http.get(f"turns/{turn}/events").status_code == 404


def test_who_leaves_while_waiting_for_a_place_is_answered_nevertheless(held: Held, site: Site) -> None:
    service = Service(at_once=1)
    with on_a_port(site, service) as address:
        me, waiting = Client(address), new_id()
        first = me.leave()["id"]
        body = {"conversation": waiting, "turn": new_id(), "question": QUESTION}
        with pytest.raises(httpx.ReadTimeout):
            me.http.post("turns", json=body, timeout=0.5)
        held.go_on.set()
        me.follow(first)
        until(lambda: me.http.get(f"turns/{body['turn']}").status_code == 200)
        assert me.follow(body["turn"])[-1]["turn"]["text"] == ANSWERED


def test_a_server_that_ends_says_of_its_runs_that_they_were_cut(dictation: Dictation, site: Site) -> None:
    with on_a_port(site) as address:
        turn = Client(address).leave()["id"]
    dictation.go_on.set()
    with on_a_port(site) as address:
        me = Client(address)
        (conversation,) = me.get("conversations")["conversations"]
        (cut,) = me.get(f"conversations/{conversation['id']}")["turns"]
        assert (cut["id"], cut["state"], cut["text"][:2], conversation["running"]) == (turn, "cut", "It", False)
        with me.asking(conversation=conversation["id"], replaces=turn) as told:
            assert [*told][-1]["turn"]["text"] == ANSWERED


def test_a_server_that_drains_lets_its_runs_end(held: Held, site: Site) -> None:
    service = Service()
    with on_a_port(site, service) as address:
        turn = Client(address).leave()["id"]
        service.drain(PATIENCE_S)

        def go_on_once_it_is_closed() -> None:
            until(lambda: is_closed(address))
            held.go_on.set()

        finishing = threading.Thread(target=go_on_once_it_is_closed)
        finishing.start()
    finishing.join(PATIENCE_S)
    assert site.conversations.turn(LOCAL.owner, turn).state == "answered"


def test_nobody_else_follows_stops_or_lists_a_run(
    dictation: Dictation, hashing: None, world: Path, tmp_path: Path
) -> None:
    narrow = Identity("anna", {"source": "corpus.jsonl"})
    rack = KeyRack(anna=Identity("anna"), ben=Identity("ben"), narrow=narrow)
    with on_a_port(site_of(world, tmp_path, keyring=lambda: rack)) as address:
        anna = Client(address, "anna")
        turn = anna.leave()["id"]
        for key in ("ben", "narrow"):
            other = Client(address, key)
            assert other.http.get(f"turns/{turn}/events").status_code == 404
            assert other.post(f"turns/{turn}/stop").status_code == 404
            assert other.get("conversations") == {"conversations": []}
        assert httpx.get(f"{address}/page/api/turns/{turn}/events").status_code == 401
        assert httpx.post(f"{address}/page/api/turns/{turn}/stop", json={}).status_code == 401
        assert anna.get("conversations")["conversations"][0]["running"]
        anna.post(f"turns/{turn}/stop")
    dictation.go_on.set()


def test_a_position_that_is_none_is_refused(held: Held, workers: tuple[str, str]) -> None:
    me = Client(workers[0])
    turn = me.leave()["id"]
    for first in ("-1", "one", "1e3", "٣", "9" * 20):
        assert me.http.get(f"turns/{turn}/events", params={"from": first}).status_code == 400, first
    held.go_on.set()
    me.follow(turn)


def test_a_deleted_conversation_leaves_nothing_in_the_history(
    held: Held, hashing: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, conversation = related_world(tmp_path), new_id()
    with on_a_port(Site(root, keeps_history=lambda: True)) as address:
        me = Client(address)
        monkeypatch.setattr(runs, "PULSE_S", 1.0)  # The run ends and is written before it knows.
        me.leave(conversation=conversation)
        assert me.http.delete(f"conversations/{conversation}").status_code == 200
        held.go_on.set()
        wait_for_the_end()
        until(lambda: not messages(root, conversation))
        assert me.get("conversations") == {"conversations": []}
    assert messages(root, conversation) == []


def test_a_turn_that_is_asked_again_at_once_leaves_the_history_of_those_before_it(
    chat_server: ScriptedServer, hashing: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, conversation, held = related_world(tmp_path), new_id(), Held(FIRST, REST)
    chat_server.script({**well_behaved(), "answerer": [ANSWERED, Reply("", pieces=held), ANSWERED]})
    with on_a_port(Site(root, keeps_history=lambda: True)) as address:
        me = Client(address)
        with me.asking(conversation=conversation) as told:
            assert [*told][-1]["turn"]["state"] == "answered"
        turn = me.leave("Who built the Tarn Dam?", conversation=conversation, alone=True)["id"]
        with me.following(turn) as told:
            until_words(told)
            monkeypatch.setattr(runs, "PULSE_S", 1.0)  # The run has no time to hear that it was stopped.
            me.post(f"turns/{turn}/stop")
            with me.asking(QUESTION, conversation=conversation, replaces=turn, alone=True) as again:
                assert [*again][-1]["turn"]["number"] == 2
            assert [*told][-1]["kind"] in ("gone", "ended")
        held.go_on.set()
        wait_for_the_end()
        assert len(me.get(f"conversations/{conversation}")["turns"]) == 2
    assert len(messages(root, conversation)) == 4
