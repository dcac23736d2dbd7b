"""A stream that is left: what it still does, and what it does no more."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from agents.fact_filter import FactChoice
from graph.errors import TransportFault
from tests.chatting import ask_text, messages, model_on
from tests.dictation import PATIENCE_S, Dictation, every, screens, wait_for_the_end
from tests.scripted_server import Fault, Reply, ScriptedServer
from tests.workflows.small_world import ANSWERED, QUESTION, well_behaved
from workflows.context import Context
from workflows.streaming import NodeStarted, Token, aask_stream, ask_stream

MakeContext = Callable[..., Context]

pytestmark = pytest.mark.usefixtures("quick_retries")

LEFT = """
import sys
from workflows.context import Context
from workflows.streaming import ask_stream

events = ask_stream({question!r}, Context(workspace={workspace!r}))
for event in events:
    if event.kind == {kind!r}:
        print("left")
        sys.exit(0) if {leave!r} == "exit" else 1 / 0
"""


def test_a_stream_that_is_left_starts_no_further_node(chat_server: ScriptedServer, settings: MakeContext) -> None:
    dictation = Dictation()
    chat_server.script({**well_behaved(), "fact filter": [Reply(pieces=dictation)]})
    stream = ask_stream(QUESTION, settings())
    assert any(event == NodeStarted("filter_facts", 1) for event in stream)
    stream.close()
    dictation.go_on.set()
    wait_for_the_end()
    assert {request.role for request in chat_server.requests} <= {"fact filter", "manager"}


def test_a_run_goes_on_while_its_events_are_not_asked_for(chat_server: ScriptedServer, settings: MakeContext) -> None:
    answered = threading.Event()

    def reply(body: Mapping[str, Any]) -> str:
        answered.set()
        return ANSWERED

    chat_server.script({**well_behaved(), "answerer": reply})
    stream = ask_stream(QUESTION, settings())
    events = [next(stream)]
    assert answered.wait(PATIENCE_S)
    assert screens([*events, *stream]) == [ANSWERED]


@pytest.mark.slow
@pytest.mark.parametrize("leave", ["exit", "error"])
@pytest.mark.parametrize("kind", ["node_started", "token"])
def test_a_process_ends_although_a_stream_of_it_was_left_half_way(small_workspace: Path, kind: str, leave: str) -> None:
    program = LEFT.format(question=QUESTION, workspace=str(small_workspace), kind=kind, leave=leave)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "left\n"
    assert done.returncode == (0 if leave == "exit" else 1)
    assert ("ZeroDivisionError" in done.stderr) == (leave == "error")
    assert done.stderr.count("Traceback") == (leave == "error")


def test_a_stream_that_is_never_asked_for_anything_asks_for_nothing(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    ask_stream(QUESTION, settings()).close()
    wait_for_the_end()
    assert chat_server.requests == []


def test_a_model_that_is_writing_is_broken_off_when_the_stream_is_left(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    dictation = Dictation()
    chat_server.script({**well_behaved(), "answerer": [Reply(pieces=dictation)]})
    stream = ask_stream(QUESTION, settings())
    assert any(event == Token("It") for event in stream)
    stream.close()  # at once, although the model has fallen silent
    assert not dictation.hung_up.is_set()
    dictation.go_on.set()
    assert dictation.hung_up.wait(PATIENCE_S)
    wait_for_the_end()
    assert len(chat_server.requests_of("answerer")) == 1


def test_agents_that_write_side_by_side_are_both_broken_off(chat_server: ScriptedServer, settings: MakeContext) -> None:
    dictations = {"fact filter": Dictation(), "manager": Dictation()}
    chat_server.script({role: [Reply(pieces=dictation)] for role, dictation in dictations.items()})

    async def leave_when_both_write() -> None:
        task = asyncio.create_task(every(settings()))
        for dictation in dictations.values():
            await asyncio.to_thread(dictation.began.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave_when_both_write())
    for dictation in dictations.values():
        dictation.go_on.set()
    for dictation in dictations.values():
        assert dictation.hung_up.wait(PATIENCE_S)
    wait_for_the_end()
    assert sorted(request.role for request in chat_server.requests) == ["fact filter", "manager"]


def test_a_request_that_hangs_is_not_made_again_after_the_stream_was_left(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    asked = threading.Event()

    def hang(body: Mapping[str, Any]) -> Reply:
        asked.set()
        return Reply(fault=Fault.HANG)

    chat_server.script({**well_behaved(), "answerer": hang})

    async def leave_while_it_hangs() -> None:
        task = asyncio.create_task(every(settings()))
        await asyncio.to_thread(asked.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave_while_it_hangs())
    assert not chat_server.released.is_set()
    chat_server.released.set()
    wait_for_the_end()
    assert len(chat_server.requests_of("answerer")) == 1


@pytest.mark.parametrize("then", ["asks a model", "is to be tried again"])
def test_work_between_two_requests_is_the_last_of_a_stream_that_was_left(
    chat_server: ScriptedServer, settings: MakeContext, then: str
) -> None:
    chat_server.script(["Whatever."])
    began, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    class Slow:
        def choose(self, question: str, *asked: Any) -> FactChoice:
            calls.append(question)
            began.set()
            go_on.wait(PATIENCE_S)
            if then == "is to be tried again":
                raise TransportFault("The endpoint is busy")
            ask_text(model_on(chat_server), messages())
            return FactChoice(())

    async def leave_while_it_works() -> None:
        context = settings(model="offline", weigh_relations=False).with_agents(fact_filter=Slow())
        task = asyncio.create_task(every(context))
        await asyncio.to_thread(began.wait, PATIENCE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave_while_it_works())
    go_on.set()
    wait_for_the_end()
    assert calls == [QUESTION]
    assert chat_server.requests == []


def test_closing_the_async_twin_stops_the_run_without_waiting(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    dictation = Dictation()
    chat_server.script({**well_behaved(), "answerer": [Reply(pieces=dictation)]})

    async def leave_early() -> None:
        async with aclosing(aask_stream(QUESTION, settings())) as stream:
            async for event in stream:
                if isinstance(event, Token):
                    break

    asyncio.run(leave_early())
    assert not dictation.hung_up.is_set()
    dictation.go_on.set()
    assert dictation.hung_up.wait(PATIENCE_S)
    wait_for_the_end()
    assert len(chat_server.requests_of("answerer")) == 1
