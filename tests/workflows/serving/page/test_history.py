"""The page's conversations in the history: only where the operator says so, each under the visitor's name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.relationships.record import RELATIONSHIPS_FILE
from tests.builders import HashEmbedder
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.remembering import copy_of, messages, related_world, views
from tests.workflows.serving.page import site
from tests.workflows.serving.page.site import Visitor, new_id
from tests.workflows.small_world import ANSWERED, well_behaved
from workflows.access.identity import Identity
from workflows.admin.history import forget_user
from workflows.runtime.resources import close_indexes

FOUNDED, BUILT = "When was Marn founded?", "Who built the Tarn Dam?"


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return related_world(tmp_path_factory.mktemp("page-history"))


@pytest.fixture
def root(related: Path, tmp_path: Path, embedder: HashEmbedder) -> Iterator[Path]:
    yield copy_of(related, tmp_path)
    close_indexes()


def visitors(root: Path, *, keeps_history: bool = True) -> dict[str, Visitor]:
    """Return two visitors with a key each of one page."""
    history = {"keeps_history": lambda: keeps_history}
    return site.visitors(root, None, history, anna=Identity("anna"), ben=Identity("ben"))


def test_each_turn_is_written_under_its_user_s_own_name_and_only_where_the_operator_says_so(root: Path) -> None:
    talk = new_id()
    visitors(root, keeps_history=False)["anna"].answer(FOUNDED, talk)
    assert messages(root, talk) == []
    known = visitors(root)
    for name, each in known.items():
        talk = new_id()
        each.answer(FOUNDED, talk)
        assert [message.user for message in messages(root, talk)] == [name, ""]
        assert views(root, name)
    anna = known["anna"]
    body = {"conversation": new_id(), "turn": new_id(), "question": FOUNDED, "settings": {"user_id": "ben"}}
    assert anna.client.post("/page/api/turns", json=body, headers=anna.headers).status_code == 400


def test_a_conversation_that_is_deleted_is_gone_from_the_history(root: Path) -> None:
    known = visitors(root)
    talk = new_id()
    known["anna"].answer(FOUNDED, talk)
    path = f"/page/api/conversations/{talk}"
    assert known["ben"].client.delete(path, headers=known["ben"].headers).status_code == 404
    assert len(messages(root, talk)) == 2
    assert known["anna"].client.delete(path, headers=known["anna"].headers).status_code == 200
    assert messages(root, talk) == []


def test_a_user_who_is_forgotten_is_gone_from_the_page_too(root: Path) -> None:
    known = visitors(root)
    talks = {name: new_id() for name in known}
    for name, each in known.items():
        each.answer(BUILT if name == "ben" else FOUNDED, talks[name])
    done = forget_user(root, "anna")
    assert (done["conversations"], done["page_conversations"]) == (1, 1)
    assert known["anna"].get("conversations")["conversations"] == []
    assert len(known["ben"].get("conversations")["conversations"]) == 1
    content = b"".join(path.read_bytes() for path in root.glob(f"{RELATIONSHIPS_FILE}*"))
    assert FOUNDED.encode() not in content
    assert BUILT.encode() in content


def test_the_history_holds_the_version_that_was_answered_last(root: Path, chat_server: ScriptedServer) -> None:
    chat_server.script({**well_behaved(), "answerer": [ANSWERED, Reply("wrong key", status=401), ANSWERED]})
    anna, talk = visitors(root)["anna"], new_id()
    first = anna.answer(FOUNDED, talk)
    failed = anna.answer("When, by the way?", talk, replaces=first["id"])
    assert failed["state"] == "failed"
    assert [message.content for message in messages(root, talk)][::2] == [FOUNDED]
    anna.answer(BUILT, talk, replaces=failed["id"])
    assert [message.content for message in messages(root, talk)][::2] == [BUILT]
