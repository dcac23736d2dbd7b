"""`mara history` and `mara history forget`, and the conversations that `mara ask` and `mara chat` hold by name."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import HashEmbedder
from tests.workflows.command_line import Mara
from tests.workflows.remembering import copy_of, messages, related_world, views
from workflows.runtime.resources import close_indexes

FOUNDED, BUILT = "When was Marn founded?", "Who built the Tarn Dam?"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return related_world(tmp_path_factory.mktemp("history-at-the-command-line"))


@pytest.fixture
def root(world: Path, tmp_path: Path, embedder: HashEmbedder) -> Iterator[Path]:
    yield copy_of(world, tmp_path)
    close_indexes()


@pytest.fixture
def asked(mara: Mara, root: Path) -> Path:
    """A workspace in which Ada asked in a conversation."""
    assert mara("ask", FOUNDED, "-w", root, "--conversation", "marn", "--user", "ada", "--json").json["recorded"]
    return root


def test_a_chat_is_resumed_by_its_name(mara: Mara, asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = f"{BUILT}\n/new other\n{BUILT}\n/new\n{BUILT}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    done = mara("chat", "-w", asked, "--conversation", "marn", "--user", "ada", "--json")
    recorded = [json.loads(line)["recorded"] for line in done.out.splitlines()]
    assert [each["conversation"] for each in recorded] == ["marn", "other", ""]
    assert [message.content for message in messages(asked, "marn")][::2] == [FOUNDED, BUILT]
    assert len(messages(asked, "other")) == 2


def test_history_names_a_user_without_a_conversation(mara: Mara, root: Path) -> None:
    assert "Nothing is kept" in mara("history", "-w", root).out
    mara("ask", FOUNDED, "-w", root, "--user", "ada")
    assert "Users: ada" in mara("history", "-w", root).out
    assert mara("history", "-w", root, "--json").json["users"] == ["ada"]


def test_history_lists_conversations_and_shows_one(mara: Mara, asked: Path) -> None:
    listed = mara("history", "-w", asked).out
    assert all(word in listed for word in ("marn", "ada", FOUNDED))
    (only,) = mara("history", "-w", asked, "--json").json["conversations"]
    assert (only["id"], only["owner"], only["messages"]) == ("marn", "ada", 2)
    assert (
        f"> {FOUNDED}\nQuotes from your documents (not checked by a model):\n"
        in mara("history", "marn", "-w", asked).out
    )
    assert mara("history", "other", "-w", asked).code == 2
    of_ada = mara("history", "-w", asked, "--user", "ada", "--json").json
    assert {view["document"] for view in of_ada["views"]} == {view.document for view in views(asked, "ada")}
    assert mara("history", "-w", asked, "--user", "ben", "--json").json["conversations"] == []
    assert "Nothing is kept" in mara("history", "-w", asked, "--user", "ben").out
    assert mara("history", "marn", "--user", "ada", "-w", asked).code == 2


def test_questions_outside_of_conversations_are_told_from_their_answers(mara: Mara, root: Path) -> None:
    answer = mara("ask", FOUNDED, "-w", root, "--user", "ada", "--json").json["answer"]
    shown = mara("history", "-w", root, "--user", "ada").out
    assert f"> {FOUNDED}" in shown
    assert f"Quotes from your documents (not checked by a model):\n\n{answer.splitlines()[0][:30]}" in shown
    assert shown.count("> ") == 1


def test_history_is_exported_outside_of_the_workspace(mara: Mara, asked: Path, tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    mara("history", "-w", asked, "--export", path)
    (conversation,) = json.loads(path.read_text(encoding="utf-8"))["conversations"]
    assert conversation["messages"][0]["content"] == FOUNDED
    assert mara("history", "-w", asked, "--export", asked / "history.json").code == 2
    assert mara("history", "-w", asked, "--export", tmp_path / "history.txt").code == 2


def test_forgetting_asks_first(mara: Mara, asked: Path) -> None:
    refused = mara("history", "forget", "ada", "-w", asked)
    assert (refused.code, "--yes" in refused.err, len(messages(asked, "marn"))) == (2, True, 2)
    done = mara("history", "forget", "ada", "-w", asked, "--yes")
    assert done.out.startswith("Erased: 1 conversation, 2 messages")
    assert messages(asked, "marn") == []
    assert "nothing was kept" in mara("history", "forget", "ada", "-w", asked, "--yes").out
    assert mara("history", "forget", "ada", "-w", asked, "--yes", "--json").json["messages"] == 0


def test_nothing_is_erased_where_no_name_is_given(mara: Mara, asked: Path) -> None:
    for name in ("", " "):
        assert mara("history", "forget", name, "-w", asked, "--yes").code == 2
    assert len(messages(asked, "marn")) == 2
