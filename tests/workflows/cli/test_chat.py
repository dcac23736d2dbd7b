"""`mara chat`: questions that lean on earlier ones, commands, and Ctrl-C that stops an answer alone."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.dictation import Held
from tests.scripted_server import Fault, Reply, ScriptedServer
from tests.terminal import MARA, Session, on_a_terminal
from tests.workflows.command_line import Mara, Outcome
from tests.workflows.conversing import BIRTH, BIRTHS, FOUNDER, FOUNDER_OF_MARN, well_behaved
from tests.workflows.small_world import ORDERS, QUESTION, write_lines
from workflows.cli.chat_commands import COMMANDS
from workflows.indexing import index_sources

Piped = Callable[..., Outcome]

FOUNDED = "When was Marn founded?"


@pytest.fixture
def piped(mara: Mara, monkeypatch: pytest.MonkeyPatch, small_workspace: Path) -> Piped:
    """Give the command these lines, and no terminal."""

    def run(lines: str | bytes, *options: str | Path, workspace: Path = small_workspace) -> Outcome:
        data = lines if isinstance(lines, bytes) else lines.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        return mara("chat", "--workspace", workspace, *options)

    return run


def answers(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.out.splitlines()]


class TestPiped:
    def test_a_question_leans_on_the_one_before_and_what_was_understood_is_told(
        self, piped: Piped, chat_server: ScriptedServer
    ) -> None:
        chat_server.script(well_behaved(answerer=["In 1203 [1].", "Duke Orlo [1]."]))
        done = piped(f"{FOUNDED}\n\n{FOUNDER}\n")
        first, second = done.out.split(f"> {FOUNDER}\n")
        assert first.startswith(f"> {FOUNDED}\nIn 1203 [1].\n  [1] Marn · corpus.jsonl\n")
        assert second.startswith(f"Understood as: {FOUNDER_OF_MARN}\n\nDuke Orlo [1].\n")
        assert (done.code, done.err) == (0, "")
        assert "\x1b" not in done.out

    def test_a_question_that_asks_back_is_settled_by_a_number(self, piped: Piped, chat_server: ScriptedServer) -> None:
        chat_server.script(well_behaved(answerer=["In 1203 [1].", "In Lisk [1]."]))
        done = piped(f"{FOUNDED}\n{BIRTH}\n2\n/sources\n")
        assert f"  1 {BIRTHS[0]}\n  2 {BIRTHS[1]}\n" in done.out
        assert "In Lisk [1].\n" in done.out.partition("> 2\n")[2]
        assert len(chat_server.requests_of("rewriter")) == 1

    def test_an_error_is_told_and_the_conversation_goes_on_to_its_exit_code(self, piped: Piped) -> None:
        done = piped(f"/nonsense\n{FOUNDED}\n/passage 99\n", "--model", "offline")
        assert "Error: There is no command /nonsense.\n/help lists them" in done.err
        assert "no passage '99'" in done.err
        assert "founded in 1203" in done.out
        assert done.code == 2

    def test_with_json_each_line_gives_one_result(self, piped: Piped, chat_server: ScriptedServer) -> None:
        chat_server.script(well_behaved(answerer=["In 1203 [1]."]))
        done = piped(f"{FOUNDED}\n{FOUNDER}\n/meant {BIRTHS[1]}\n/why\n/new\n{FOUNDER}\n", "--json")
        first, second, meant, refused, fresh = answers(done)
        assert first["answer"] == "In 1203 [1]."
        assert (second["question"], second["understood"]["asked"]) == (FOUNDER_OF_MARN, FOUNDER)
        assert (meant["question"], meant["understood"]) == (BIRTHS[1], None)
        assert refused["error"]["message"] == "There is no command /why with --json"
        assert (fresh["question"], fresh["understood"]) == (FOUNDER, None)
        assert (done.code, done.err) == (2, "")

    def test_bytes_that_are_no_text_are_an_error_of_their_line_and_nothing_to_ask_is_none(self, piped: Piped) -> None:
        done = piped(b"Who \xff?\nWho founded Marn?\n", "--json", "--model", "offline")
        broken, answered = answers(done)
        assert "broken Unicode" in broken["error"]["message"]
        assert "Duke Orlo" in answered["answer"]
        assert piped("") == (0, "", "")
        assert piped("\n  \n", "--json") == (0, "", "")


class TestCommands:
    def test_help_lists_each_of_them_and_quitting_leaves_the_rest_unread(self, piped: Piped) -> None:
        out = piped(f"/help\n/quit\n{FOUNDED}\n").out
        assert all(name in out and meaning in out for name, (_, meaning) in COMMANDS.items())
        assert out.endswith("> /quit\n")

    def test_why_tells_facts_weights_and_the_ways_to_each_cited_passage(
        self, piped: Piped, chat_server: ScriptedServer
    ) -> None:
        chat_server.script(well_behaved(answerer=["In 1203 [1].", "Duke Orlo [1]."]))
        output = piped(f"{FOUNDED}\n{FOUNDER}\n/why\n").out.partition("> /why\n")[2]
        assert f"Understood as: {FOUNDER_OF_MARN}\n\nbecause it begins with “And” (gpt-6-luna)\n" in output
        assert "\nThe search began at “Marn”, which the question names" in output
        assert "cites 1 passage; its sentences were not checked one by one.\n[1] Marn: " in output
        assert "ranked by walk (matrix)" in output
        assert "facts: Marn " in output
        assert "β: TEMPORAL 0.60" in output
        assert "→ passage [1] Marn" in output

    def test_sources_are_the_cited_passages_or_all(self, piped: Piped, chat_server: ScriptedServer) -> None:
        chat_server.script(well_behaved())
        cited, _, everything = (
            piped(f"{FOUNDED}\n/sources\n/sources all\n/sources none\n", "--top-k", "3")
            .out.partition("> /sources\n")[2]
            .partition("> /sources all\n")
        )
        assert "● [1] Marn · corpus.jsonl\n" in cited
        assert "[2]" not in cited
        assert "2 passages found beside: /sources all shows them" in cited
        assert all(f"[{number}]" in everything for number in (1, 2, 3))

    def test_a_passage_is_shown_whole_with_the_cited_words_marked(
        self, piped: Piped, chat_server: ScriptedServer
    ) -> None:
        chat_server.script(well_behaved())
        output = piped(f"{FOUNDED}\n/passage 1\n/passage [2]\n").out.partition("> /passage 1\n")[2]
        first, _, second = output.partition("> /passage [2]\n")
        assert first.startswith("[1] Marn · marn · corpus.jsonl\n")
        assert "Marn is a town in Ostra. **It was founded in 1203 by Duke Orlo.**\n" in first
        assert second.startswith("[2] ")
        assert "**" not in second

    def test_what_was_meant_is_asked_in_place_of_the_last_question(
        self, piped: Piped, chat_server: ScriptedServer, tmp_path: Path
    ) -> None:
        chat_server.script(well_behaved(answerer=["In 1203 [1].", "Duke Orlo [1].", "In Lisk [1]."]))
        saved = tmp_path / "talk.md"
        done = piped(f"{FOUNDED}\n{FOUNDER}\n/meant {BIRTHS[1]}\n/save {saved}\n/meant\n")
        assert "In Lisk [1]." in done.out
        assert "/meant lacks the question" in done.err
        headings = [line for line in saved.read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
        assert headings == [f"## {FOUNDED}", f"## {BIRTHS[1]}"]

    def test_a_new_conversation_knows_nothing_of_the_last(self, piped: Piped, chat_server: ScriptedServer) -> None:
        chat_server.script(well_behaved())
        done = piped(f"{FOUNDED}\n/new\n/sources\n{FOUNDER}\n")
        assert "Nothing was answered yet" in done.err
        assert "Understood as" not in done.out
        assert chat_server.requests_of("rewriter") == []


class TestSaving:
    def test_a_file_that_exists_is_not_overwritten(self, piped: Piped, tmp_path: Path) -> None:
        saved = tmp_path / "talk.md"
        saved.write_text("Mine.", encoding="utf-8")
        done = piped(f"{FOUNDED}\n/save {saved}\n", "--model", "offline")
        assert "exists" in done.err
        assert saved.read_text(encoding="utf-8") == "Mine."

    def test_no_name_that_cannot_be_and_nothing_in_a_workspace_is_written(
        self, piped: Piped, tmp_path: Path, small_workspace: Path
    ) -> None:
        for name in ("", str(tmp_path / "talk.txt"), str(tmp_path / "none/talk.md")):
            assert piped(f"{FOUNDED}\n/save {name}\n", "--model", "offline").code == 2, name
        assert not list(tmp_path.iterdir())
        done = piped(f"{FOUNDED}\n/save {small_workspace / 'talk.md'}\n", "--model", "offline")
        assert "lies in a workspace" in " ".join(done.err.split())
        assert not (small_workspace / "talk.md").exists()


STEERING = "\x1b[2J\x1b]0;owned\x07\x9b1m\u202e\u200b"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A passage that steers terminals and speaks markup, in text, title and source."""
    folder = tmp_path_factory.mktemp("hostile")
    text = f"Marn is a town.{STEERING} It was founded in 1203. [bold]{STEERING}[/] {ORDERS}"
    write_lines(folder / "corpus.jsonl", [{"id": "m", "title": f"[red]Marn{STEERING}[/]", "text": text}])
    index_sources([folder / "corpus.jsonl"], folder / "workspace")
    return folder / "workspace"


def test_nothing_that_a_document_a_model_or_a_person_says_steers_the_terminal(
    piped: Piped, hostile: Path, chat_server: ScriptedServer, tmp_path: Path
) -> None:
    reading = {"stands_alone": False, "question": f"Who founded [red]{STEERING}?", "choices": []}
    answer = f"In 1203{STEERING} [green]now[/] [1]."
    chat_server.script(well_behaved(answerer=[answer], rewriter=[json.dumps(reading)]))
    typed = (
        f"When was{STEERING} [blue]Marn[/] founded?\n{FOUNDER}\n/why\n/sources all\n/passage 1\n/nothing{STEERING}\n"
    )
    done = piped(f"{typed}/save {tmp_path / 'talk.md'}\n", workspace=hostile)
    for said in (done.out, done.err, (tmp_path / "talk.md").read_text(encoding="utf-8")):
        assert not set(said) & {"\x1b", "\x07", "\x9b", "\u202e", "\u200b"}
    for markup in ("[blue]Marn[/]", "[red]", "[green]now[/]", "[bold]"):
        assert markup in done.out


Terminal = Callable[..., AbstractContextManager[Session]]


@pytest.fixture
def terminal(small_workspace: Path, environment: Callable[[], Mapping[str, str]]) -> Terminal:
    """Talk on a terminal."""

    def chat(*options: str) -> AbstractContextManager[Session]:
        # Where the terminal does not tell the cursor's place, nothing waits for it.
        shell = {**environment(), "PROMPT_TOOLKIT_NO_CPR": "1"}
        return on_a_terminal(*MARA, "chat", "--workspace", small_workspace, *options, environment=shell)

    return chat


def at_the_prompt(screen: Any) -> bool:
    return bool(screen.text.splitlines()[-1:] == [">"])


class TestOnATerminal:
    @pytest.mark.parametrize("presses", [1, pytest.param(2, marks=pytest.mark.slow)], ids=["once", "twice"])
    def test_ctrl_c_stops_the_answer_and_the_conversation_goes_on_without_it(
        self, terminal: Terminal, chat_server: ScriptedServer, presses: int
    ) -> None:
        words = Held("It was", " so.")
        chat_server.script(well_behaved(answerer=[Reply(pieces=words), "Duke Orlo [1]."]))
        with terminal() as session:
            session.wait_for(at_the_prompt)
            session.type(f"{QUESTION}\r")
            session.wait_for("It was\nwrite answer … ")
            for _ in range(presses):
                session.interrupt()
            session.wait_for(at_the_prompt)
            assert "Stopped." in session.screen.text or presses > 1
            words.go_on.set()
            session.type(f"{FOUNDER}\r")
            session.wait_for(lambda screen: "Duke Orlo [1]." in screen.text and at_the_prompt(screen))
            session.type("/quit\r")
            assert session.end() == 0
            assert session.signals()
        assert session.screen.cursor_is_shown
        assert "It was" not in session.screen.text.replace(QUESTION, "")
        assert chat_server.requests_of("rewriter") == []

    @pytest.mark.slow
    def test_leaving_does_not_wait_for_a_request_that_was_stopped(
        self, terminal: Terminal, chat_server: ScriptedServer
    ) -> None:
        chat_server.script(well_behaved(manager=[Reply(fault=Fault.HANG)]))
        with terminal() as session:
            session.wait_for(at_the_prompt)
            session.type(f"{QUESTION}\r")
            session.wait_for("weigh relations … ")
            session.interrupt()
            session.wait_for(lambda screen: "Stopped." in screen.text and at_the_prompt(screen))
            session.type("/quit\r")
            assert session.end() == 0
            assert session.signals()
