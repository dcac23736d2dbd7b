"""A real ``langgraph dev``: started on a workspace in a folder of its own, driven through its SDK, and stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

ROOT = Path(__file__).parents[2]
START_ATTEMPTS, ATTEMPT_S = 300, 0.1
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LEVEL = re.compile(r"^\S+ \[(warning|error|critical)\s*\] (.*)")


class Case(NamedTuple):
    """A run to ask of the server."""

    given: dict[str, Any]
    context: Mapping[str, Any] = MappingProxyType({})
    assistant: str = "mara"


class Server:
    """A running server: its client, its log, and the folder whose files its clients may have indexed."""

    def __init__(self, port: int, log: Path, sources: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.client: SyncLangGraphClient = get_sync_client(url=self.url)
        self.log = log
        self.sources = sources

    def complaints(self) -> list[str]:
        """Return the warnings and errors of the log."""
        lines = (COLOUR.sub("", line) for line in self.log.read_text(encoding="utf-8").splitlines())
        return [found[2] for line in lines if (found := LEVEL.match(line))]

    def is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/ok", timeout=5) as reply:
                return json.load(reply)["ok"] is True
        except OSError:
            return False

    def run(self, case: Case, thread: str | None = None) -> dict[str, Any] | str:
        """Return a run's result, or the message it fails with; on a thread of its own unless one is given."""
        thread = thread or self.client.threads.create()["thread_id"]
        try:
            result = self.client.runs.wait(thread, case.assistant, input=case.given, context=dict(case.context))
        except Exception as failure:
            return str(failure)
        assert isinstance(result, dict)
        return result


@contextmanager
def dev_server(workspace: Path, folder: Path, **environment: str) -> Iterator[Server]:
    """Serve a workspace with the project's configuration; ``environment`` is added to that of the server."""
    configuration = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    (folder / "langgraph.json").write_text(json.dumps({**configuration, "dependencies": [str(ROOT)]}), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as output:
        process = subprocess.Popen(
            [
                *(str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"),
                *("--port", str(port), "--n-jobs-per-worker", "8"),
            ],
            cwd=folder,
            env={**_environment(workspace), "MARA_SOURCES": str(folder), **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield _started(process, Server(port, folder / "log", folder))
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _environment(workspace: Path) -> dict[str, str]:
    """The caller's environment without settings, keys or tracing, and without a look at the network."""
    private = ("OPENAI_", "MARA_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(private)},
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGSMITH_TRACING": "false",
        "MARA_WORKSPACE": str(workspace),
    }


def _started(process: subprocess.Popen[bytes], server: Server) -> Server:
    """Wait until the server answers, as long as it lives and attempts are left."""
    for _ in range(START_ATTEMPTS):
        if server.is_up():
            return server
        try:
            process.wait(ATTEMPT_S)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"The server is not up: {server.log.read_text(encoding='utf-8')}")
