"""On a terminal `mara ask` shows which node runs and the answer as it is written; then the result and what it took."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from rich.console import Console

from tests.dictation import Held
from tests.scripted_server import Fault, Reply, ScriptedServer
from tests.terminal import MARA, Session, on_a_terminal
from tests.workflows.command_line import Mara
from tests.workflows.small_world import QUESTION, well_behaved, write_corpus
from workflows.cli.live_answer import LiveAnswer
from workflows.indexing import index_sources
from workflows.streaming import NodeStarted, Progress, Token

ANSWER = "It was founded in 1203 [1]."
TOLD = {"prompt_tokens": 1_155, "completion_tokens": 70, "total_tokens": 1_225}

Terminal = Callable[..., AbstractContextManager[Session]]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small world, indexed with the embedded model, which a process of its own opens."""
    folder = tmp_path_factory.mktemp("small")
    corpus, triples = write_corpus(folder)
    index_sources([corpus], folder / "workspace", triples)
    return folder / "workspace"


@pytest.fixture
def terminal(small: Path, environment: Callable[[], Mapping[str, str]]) -> Terminal:
    """Ask on a terminal."""

    def ask(*arguments: str, **size: int) -> AbstractContextManager[Session]:
        return on_a_terminal(*MARA, "ask", *arguments, "--workspace", small, environment=environment(), **size)

    return ask


def test_the_node_that_runs_is_shown_then_the_answer_as_it_is_written_then_the_result(
    terminal: Terminal, chat_server: ScriptedServer
) -> None:
    words = Held("It was ", "founded", " in 1203 [1].")
    chat_server.script(well_behaved() | {"answerer": [Reply(pieces=words, usage=TOLD)]})
    with terminal(QUESTION) as session:
        session.wait_for(lambda screen: screen.text.startswith("It was founded\nwrite answer … "))
        words.go_on.set()
        assert session.end() == 0
    seen = "\n".join(session.screen.seen)
    assert "encode question … " in seen
    assert session.screen.text.startswith(f"{ANSWER}\n\n")
    assert " … " not in session.screen.text.partition("\n\n")[0]
    assert "write answer" not in session.screen.text
    assert session.screen.text.count(ANSWER) == 1
    assert "3 model calls · 1,157 + " in session.screen.text.splitlines()[-1]


@pytest.mark.parametrize("writes", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["answer", "before it"])
def test_ctrl_c_stops_at_once_and_leaves_the_terminal_as_it_was(
    terminal: Terminal, chat_server: ScriptedServer, writes: bool
) -> None:
    role, reply = ("answerer", Reply(pieces=Held("It was", " so."))) if writes else ("manager", Reply(fault=Fault.HANG))
    chat_server.script(well_behaved() | {role: [reply]})
    with terminal(QUESTION) as session:
        session.wait_for("It was\nwrite answer … " if writes else "weigh relations … ")
        session.interrupt()
        assert session.end() == 130
        assert session.signals()
    assert session.screen.cursor_is_shown
    assert session.screen.text.replace("^C", "").strip() == "Stopped."


def test_without_a_terminal_the_answer_is_plain_and_the_line_stands_beside_it(mara: Mara, workspace: Path) -> None:
    done = mara("ask", "Who was born in Karv?", "--workspace", workspace, "--model", "offline")
    head, _, evidence, *_ = done.out.splitlines()
    assert head == "Quotes from your documents (not checked by a model):"
    assert "Ida Brandt" in evidence
    assert "\x1b" not in done.out + done.err
    assert re.fullmatch(r"no model · [0-9.]+ s\n", done.err)


def test_the_line_tells_the_cost_at_the_users_prices_and_so_does_the_result(
    mara: Mara, workspace: Path, chat_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat_server.script([Reply("Ida Brandt [1].", usage=TOLD)])
    monkeypatch.setenv("MARA_PRICES", "2,10")
    asked = ("ask", "Who was born in Karv?", "--workspace", workspace, "--model", "m", "--mode", "dense")
    assert re.fullmatch(r"1 model call · 1,155 \+ 70 tokens · [0-9.]+ s · cost 0.00301\n", mara(*asked).err)
    counted = mara(*asked, "--json")
    assert counted.json["usage"] == {
        **{"calls": 1, "prompt_tokens": 1_155, "completion_tokens": 70, "unknown": 0},
        "cost": 0.00301,
    }
    assert counted.json["timings_ms"]["total"] > counted.json["timings_ms"]["write_answer"]
    assert counted.err == ""


class TestLiveAnswer:
    def shown(self, *events: NodeStarted | Progress | Token, width: int = 60, height: int = 10) -> list[str]:
        """The lines on the screen 3.2 seconds after these events, which came at once."""
        now = [0.0]
        live = LiveAnswer(clock=lambda: now[0])
        for event in events:
            live.tell(event)
        now[0] = 3.2
        output = io.StringIO()
        Console(file=output, width=width, height=height).print(live)
        return [line.rstrip() for line in output.getvalue().splitlines()]

    def test_it_says_what_runs_and_for_how_long(self) -> None:
        assert self.shown() == ["open workspace … 3.2 s"]
        assert self.shown(NodeStarted("filter_facts", 1)) == ["filter facts … 3.2 s"]
        begun = (NodeStarted("filter_facts", 1), NodeStarted("weigh_relations", 1))
        assert self.shown(*begun) == ["filter facts, weigh relations … 3.2 s"]
        for how in ("finished", "malformed", "fallback"):
            assert self.shown(*begun, Progress("filter_facts", how, {})) == ["weigh relations … 3.2 s"]

    def test_a_draft_stays_while_its_claims_are_checked_and_goes_when_it_is_written_anew(self) -> None:
        written = (
            NodeStarted("write_answer", 1),
            Token("So it "),
            Token("is."),
            Progress("write_answer", "finished", {}),
        )
        checked = (NodeStarted("check_claims", 1), Progress("judge_claims", "started", {}))
        assert self.shown(*written, *checked) == ["So it is.", "judge claims … 3.2 s"]
        assert self.shown(*written, NodeStarted("write_answer", 2)) == ["write answer … 3.2 s"]
        assert self.shown(*written, *checked, Token("Not so."))[0] == "Not so."
