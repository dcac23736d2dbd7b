"""Errors of the command line: one message with what to do, in words or as JSON, and an exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import HOLD_LOCK, Child
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.command_line import Mara


def test_bad_input_is_told_in_json_and_exits_with_2(mara: Mara) -> None:
    cases: list[tuple[list[str], str, str]] = [
        (["ask", ""], "BadInput", "empty"),
        (["ask", "q" * 100_000], "BadInput", "100,000 characters"),
        (["ask", "x", "--top-k", "0"], "BadInput", "--top-k: Input should be greater than or equal to 1"),
        (["ask", "x", "--set", "n=1"], "BadInput", "--set n is not known"),
        (["ask", "x", "--set", "engine=fast"], "BadInput", "--set walk.engine: Input should be"),
        (["ask", "x", "--where", "tenant"], "BadInput", "'tenant' is no condition"),
        (["ask", "x", "--where", "t=a", "--where", "t=b"], "BadInput", "two values"),
        (["ask", "x", "--workspace", "/nonexistent/w"], "WorkspaceMissing", "no workspace"),
        (["doctor", "--reembed", "--workspace", "/nonexistent/w"], "WorkspaceMissing", "no workspace"),
        (["graph", "export", "--format", "matrices"], "BadInput", "no folder to write"),
        (
            ["graph", "export", "--format", "matrices", "/tmp/x", "--workspace", "/nonexistent/w"],
            "WorkspaceMissing",
            "no workspace",
        ),
        (["index", "/nonexistent/documents"], "BadInput", "does not exist"),
        (
            ["eval", "x", "--out", "o", "--model", "m" * 300],
            "BadInput",
            "--model: String should have at most 256",
        ),
        (["index", "x", "--field", "text"], "BadInput", "text"),
        (["index", "x", "--set", "price_in=1"], "BadInput", "one price"),
        (["index", "x", "--metadata", "nothing"], "BadInput", "nothing"),
        (["remove"], "BadInput", "nothing is named"),
        (["ask", "x", "--user", ""], "BadInput", "'--user': it is empty"),
        (["ask", "x", "--set", "provenance.source="], "BadInput", "--set provenance.source is empty"),
        (["ask", "x", "--set", "alpha"], "BadInput", "--set takes NAME=VALUE, not 'alpha'"),
        (["ask", "x", "--set", "alhpa=1"], "BadInput", "--set alhpa is not known"),
        (["ask", "x", "--set", "remember=[x"], "BadInput", "'[x' is no JSON"),
        (["eval", "compare", "a", "b", "-w", "w"], "BadInput", "opens no workspace"),
        (["serve", "mcp"], "BadInput", "no result to print as JSON"),
        (["correct", "fact", "a | b | c"], "BadInput", "what is to be done with the fact"),
        (["correct", "split", "a", "b", "--in", "c"], "BadInput", "kept apart everywhere"),
        (["graph", "documents"], "BadInput", "no text to search for"),
        (["graph", "documents", "--next", "--keep", "mine"], "BadInput", "not kept"),
        (["doctor", "--repair", "--reembed"], "BadInput", "what is to be done"),
        (
            ["graph", "documents", "--next", "--user", "ada", "--conversation", ""],
            "BadInput",
            "'--conversation': it is empty",
        ),
    ]
    for arguments, kind, says in cases:
        failed = mara(*arguments, "--json")
        assert failed.code == 2, arguments
        assert failed.json["error"]["kind"] == kind
        assert says.casefold() in failed.json["error"]["message"].casefold()
        assert failed.json["error"]["hint"], arguments


def test_a_question_without_quotes_is_asked_whole(mara: Mara, workspace: Path) -> None:
    asked = mara("ask", "Where", "is", "Karv?", "-w", workspace, "--json")
    assert asked.json["question"] == "Where is Karv?"


def test_an_option_that_cannot_be_read_is_named(mara: Mara) -> None:
    cases: list[tuple[tuple[str, str], str]] = [
        (("--mode", "maraa"), "Invalid value for '--mode': Value error, 'maraa' is not one of 'mara', "),
        (("--workflow", "maraa"), "Invalid value for '--workflow': Value error, 'maraa' is not one of 'mara', "),
        (("--top-k", "many"), "Invalid value for '--top-k': Input should be a valid integer"),
        (("--workspace", ""), "Invalid value for '--workspace' / '-w': the name is empty"),
    ]
    for option, says in cases:
        assert mara("ask", "x", *option, "--json").json["error"]["message"].startswith(says)


def test_without_json_the_message_goes_to_standard_error_and_names_no_class(mara: Mara) -> None:
    failed = mara("ask", "x", "--workspace", "/nonexistent/w")
    assert (failed.code, failed.out) == (2, "")
    assert failed.err.startswith("Error: There is no workspace at /nonexistent/w.\n")
    assert "mara index" in failed.err


def test_another_embedding_model_is_refused_and_reembed_takes_it_up(
    mara: Mara, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mara("index", corpus, "-w", tmp_path / "w")
    with ScriptedServer([""]) as server:
        monkeypatch.setenv("MARA_EMBEDDING_MODEL", "other-model")
        monkeypatch.setenv("MARA_EMBEDDING_BASE_URL", server.base_url)
        failed = mara("ask", "Where is Karv?", "-w", tmp_path / "w", "--json")
        assert (failed.code, failed.json["error"]["kind"]) == (2, "EmbeddingMismatch")
        assert "mara doctor --reembed" in failed.json["error"]["hint"]
        done = mara("doctor", "--reembed", "-w", tmp_path / "w", "--json").json
        assert (done["from"], done["to"]) == ("all-MiniLM-L6-v2", "openai:other-model")
        answered = mara("ask", "Where is Karv?", "-w", tmp_path / "w", "--model", "offline", "--json")
        assert answered.json["models"]["embedding"] == "openai:other-model"


def test_a_refusing_chat_endpoint_exits_with_3(mara: Mara, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[tuple[int, str]] = [(401, "ModelUnavailable"), (404, "ModelUnavailable")]
    for status, kind in cases:
        with ScriptedServer([Reply("no", status=status)]) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            failed = mara("ask", "Where is Karv?", "-w", workspace, "--json")
        assert (failed.code, failed.json["error"]["kind"]) == (3, kind)


def test_two_commands_on_one_workspace_do_not_write_at_once(mara: Mara, corpus: Path, tmp_path: Path) -> None:
    mara("index", corpus, "-w", tmp_path / "w")
    with Child(HOLD_LOCK, tmp_path / "w") as writer:
        assert writer.hear() == "locked"
        failed = mara("index", corpus, "-w", tmp_path / "w", "--json")
        asked = mara("ask", "Where is Karv?", "-w", tmp_path / "w", "--json")
        assert (failed.code, failed.json["error"]["kind"]) == (4, "WorkspaceLocked")
        assert str(writer.process.pid) in failed.json["error"]["message"]
    assert asked.code == 0, "reading goes on while another process writes"
