"""The overhead of serving an answer: LangGraph's own share, a server's cold start, and the imports.

    python -m benchmarks.serving --workspace .mara-demo [--rounds 5]

LangGraph's share is the time of a question in process less that of its nodes, which run one at a time for that; each
question is asked once before it counts. A cold start is from starting ``langgraph dev`` to the first answer, of a run
on a thread. An import is measured in a process of its own, less an empty process.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from langgraph_sdk import get_sync_client

from workflows.context import Context, Question
from workflows.mara import graph

ROOT = Path(__file__).parents[1]
MODULES = ("workflows.mara", "workflows.retrieval", "workflows.indexing", "workflows.streaming", "workflows.explaining")
_POLLS, _POLL_S = 600, 0.05


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", "-w", required=True, type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    workspace = options.workspace.resolve()
    print("| what | median | least | most | unit |\n|---|--:|--:|--:|---|")
    shares = own_shares(questions(), Context(workspace=str(workspace), model="offline"))
    low, high = np.percentile(shares, [5, 95])
    share = "LangGraph's share of a question (5th, 95th percentile)"
    print(f"| {share} | {median(shares):.1f} | {low:.1f} | {high:.1f} | ms |")
    _report("cold start of the server to its first answer", lambda: cold_start(workspace), options.rounds)
    empty = median(_import_seconds("sys") for _ in range(options.rounds))
    for module in MODULES:
        _report(f"import {module}", lambda name=module: _import_seconds(name) - empty, options.rounds)  # type: ignore[misc]


def own_shares(questions: list[str], context: Context) -> list[float]:
    """Return the milliseconds of each question that no node took."""
    for question in questions:
        _own_share(question, context)
    return [_own_share(question, context) for question in questions]


def cold_start(workspace: Path) -> float:
    """Return the seconds from starting the server to the first answer."""
    start = time.perf_counter()
    with served(workspace) as url:
        client = get_sync_client(url=url)
        thread = client.threads.create()["thread_id"]
        result: Any = client.runs.wait(thread, "mara", input={"question": questions()[0]})
        seconds = time.perf_counter() - start
    if not result["answer"]:
        raise SystemExit(f"The server did not answer: {result}")
    return seconds


def _report(name: str, measure: Callable[[], float], rounds: int) -> None:
    seconds = [measure() for _ in range(rounds)]
    print(f"| {name} | {median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} | s |", flush=True)


def questions() -> list[str]:
    """Return the questions of the sample."""
    lines = (files("workflows.sample") / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


def _own_share(question: str, context: Context) -> float:
    start = time.perf_counter()
    result = graph.invoke(Question(question=question), {"max_concurrency": 1}, context=context)
    return (time.perf_counter() - start) * 1000 - float(sum(result["timings_ms"].values()))


def _import_seconds(module: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], cwd=ROOT, check=True)
    return time.perf_counter() - start


@contextmanager
def served(workspace: Path, **environment: str) -> Iterator[str]:
    """Start ``langgraph dev`` in a folder of its own; yield its address once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "LANGSMITH_", "MARA_"))
    }
    with tempfile.TemporaryDirectory() as folder:
        configuration = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
        (Path(folder) / "langgraph.json").write_text(json.dumps({**configuration, "dependencies": [str(ROOT)]}))
        command = [str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"]
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=folder,
            env={**kept, "MARA_WORKSPACE": str(workspace), "LANGGRAPH_NO_VERSION_CHECK": "true", **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_until_open(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait_until_open(port: int) -> None:
    for _ in range(_POLLS):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=_POLL_S).close()
            return
        except OSError:
            time.sleep(_POLL_S)
    raise SystemExit("The server did not start")


if __name__ == "__main__":
    main()
