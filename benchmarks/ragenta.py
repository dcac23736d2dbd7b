"""How long workflow ragenta's predictors and judges take side by side, with a model that is slow to reply.

    python -m benchmarks.ragenta --workspace .mara-demo [--rounds 5] [--passages 20] [--reply-ms 200]

The model is the tests' scripted server, in a process of its own. What is told is the time there from the first
predictor's request to the last judge's reply, of a question asked through each way that there is; each way is asked
once before it counts. The least possible is shown beside: so many replies, one after the other, as the passages need
that are judged at once.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from langgraph_sdk import get_sync_client

from agents.roles import REFUSAL
from benchmarks.serving import questions, served
from graph.environment import set_variables
from tests.scripted_server import Reply, ScriptedServer, role_of
from workflows.context import asking
from workflows.ragenta import MAX_CONCURRENCY, graph
from workflows.settings.ragenta import RagentaContext
from workflows.streaming import ask_stream

Moment = tuple[str, float, float]
"""An agent's role, and when its request came and its reply went, in seconds."""

JUDGED = 0.6931471805599453
"""Log-probabilities of the judge's reply: two to one for Yes."""


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", "-w", required=True, type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passages", type=int, default=20)
    parser.add_argument("--reply-ms", type=float, default=200)
    options = parser.parse_args()
    workspace, passages = options.workspace.resolve(), options.passages
    with slow_model(options.reply_ms / 1000) as (base_url, moments):
        set_variables({"OPENAI_BASE_URL": base_url})
        context = RagentaContext(workspace=str(workspace), top_k=passages, check_claims=False)
        least = math.ceil(passages / MAX_CONCURRENCY) * 2 * options.reply_ms / 1000
        print(
            f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; no less than {least:.2f} s is possible.\n"
        )
        print("| through | median | least | most | unit |\n|---|--:|--:|--:|---|")
        with served(workspace, OPENAI_BASE_URL=base_url) as url:
            for name, ask in ways(context, url).items():
                _report(name, ask, moments, passages, options.rounds)


def ways(context: RagentaContext, url: str) -> dict[str, Callable[[], object]]:
    """Return the ways to ask the sample's first question."""
    question = questions()[0]
    client = get_sync_client(url=url)
    settings = context.model_dump(include={"top_k", "check_claims"})

    def serve() -> object:
        thread = client.threads.create()["thread_id"]
        return client.runs.wait(thread, "ragenta", input={"question": question}, context=settings)

    return {
        "`invoke`": lambda: graph.invoke(asking(question), context=context),
        "`ainvoke`": lambda: asyncio.run(graph.ainvoke(asking(question), context=context)),
        "`ask_stream`": lambda: list(ask_stream(question, context)),
        "`langgraph dev`": serve,
    }


def stage(moments: list[Moment], passages: int) -> float:
    """Return the seconds from the first predictor's request to the last judge's reply."""
    predicted = [begun for role, begun, _ in moments if role == "predictor"]
    judged = [ended for role, _, ended in moments if role == "judge"]
    if (len(predicted), len(judged)) != (passages, passages):
        raise SystemExit(f"{len(predicted)} passages were predicted and {len(judged)} judged, not {passages}")
    return max(judged) - min(predicted)


@contextmanager
def slow_model(reply_s: float) -> Iterator[tuple[str, Callable[[], list[Moment]]]]:
    """Start a scripted server in a process of its own; yield its address, and what tells of its latest requests."""
    apart = multiprocessing.get_context("spawn")
    here, there = apart.Pipe()
    process = apart.Process(target=_serve, args=(there, reply_s), daemon=True)
    process.start()

    def moments() -> list[Moment]:
        here.send("tell")
        told: list[Moment] = here.recv()
        return told

    try:
        yield here.recv(), moments
    finally:
        here.send("end")
        process.join()


def _serve(asked: Connection, reply_s: float) -> None:
    """Reply after a while; tell of the requests since the last time that one asked, until it is over."""
    moments: list[Moment] = []
    yes = Reply.spelt(("Yes", {"Yes": -JUDGED / 2, "No": -JUDGED * 3 / 2}), (" 0.7", {" 0.7": -0.1}))
    replies: dict[str, str | Reply] = {"predictor": "It may be so.", "judge": yes, "final predictor": REFUSAL}

    def reply(body: Mapping[str, Any]) -> str | Reply:
        role, begun = role_of(body), time.perf_counter()
        time.sleep(reply_s)
        moments.append((role, begun, time.perf_counter()))
        return replies[role]

    with ScriptedServer(reply) as server:
        asked.send(server.base_url)
        while asked.recv() == "tell":
            asked.send([moments.pop() for _ in range(len(moments))])


def _report(
    name: str, ask: Callable[[], object], moments: Callable[[], list[Moment]], passages: int, rounds: int
) -> None:
    ask()
    moments()
    seconds = []
    for _ in range(rounds):
        ask()
        seconds.append(stage(moments(), passages))
    print(f"| {name} | {median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} | s |", flush=True)


if __name__ == "__main__":
    main()
