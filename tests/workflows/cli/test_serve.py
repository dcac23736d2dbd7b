"""The command `mara serve`: it says where it listens, ends cleanly, and opens itself to nobody unasked."""

from __future__ import annotations

import builtins
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.workflows.command_line import Mara

ADDRESS = re.compile(r"http://\S+/")
HEAD = b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"


@contextmanager
def served(workspace: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Run the command until it is ready; yield its process, its address, and the line that tells it."""
    arguments = ["serve", "-w", str(workspace), "--port", "0", *options]
    with subprocess.Popen(
        [str(Path(sys.executable).with_name("mara")), *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LANGSMITH_TRACING": "false"},
    ) as process:
        assert process.stderr
        try:
            line = process.stderr.readline()
            match = ADDRESS.search(line)
            assert match, line + process.stderr.read()
            pause = threading.Event()
            while httpx.get(f"{match[0]}ready").status_code != 200:  # A process can end by a signal while it opens.
                pause.wait(0.05)
            yield process, match[0], line
        finally:
            process.kill()


def connected(address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", httpx.URL(address).port or 0))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("workers", [(), pytest.param(("--workers", "2"), marks=pytest.mark.slow)], ids=["one", "two"])
def test_it_says_where_it_serves_what_and_stops_when_told_to(
    workspace: Path, workers: tuple[str, ...], number: signal.Signals, code: int
) -> None:
    with served(workspace, *workers) as (process, address, line):
        assert line == f"Serving {workspace} at {address} (API of OpenAI: {address}v1; Ctrl-C to stop)\n"
        assert httpx.get(address, follow_redirects=True).text.startswith("<!DOCTYPE html>")
        assert httpx.get(f"{address}page/api/setup").json()["workspaces"][0]["name"] == ""
        assert httpx.get(f"{address}v1/models").json()["data"]
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (code, "", "Stopped.\n")


@pytest.mark.slow
def test_a_request_that_is_not_finished_does_not_keep_it_and_is_no_failure(workspace: Path) -> None:
    for times in [1, 2]:
        with served(workspace) as (process, address, _), connected(address) as connection:
            connection.sendall(HEAD + b"{")
            httpx.get(f"{address}health")
            for _ in range(times):
                process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, "Stopped.\n"), times


def test_places_that_cannot_be_served_are_told_at_once(mara: Mara, workspace: Path, tmp_path: Path) -> None:
    open_to_all = "can be reached from other machines without a key. Name a file of keys in MARA_AUTH"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = [
            (tmp_path / "nothing", "--port=0", "There is no workspace"),
            *((workspace, f"--host={host}", f"{host} {open_to_all}") for host in ("0.0.0.0", "192.168.7.7", "::")),
            (workspace, f"--port={port}", f"cannot listen at 127.0.0.1:{port}: Address already in use"),
        ]
        for root, option, says in cases:
            outcome = mara("serve", "-w", root, option)
            assert (outcome.code, outcome.out) == (2, ""), says
            assert says in " ".join(outcome.err.split())


def test_an_address_of_another_machine_is_told(mara: Mara, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = workspace.parent / "keys.toml"
    keys.write_text(mara("serve", "key", "anna", "--everything", "--json").json["lines"], encoding="utf-8")
    monkeypatch.setenv("MARA_AUTH", str(keys))
    message = " ".join(mara("serve", "-w", workspace, "--host", "192.0.2.7").err.split())
    assert "The page cannot listen at 192.0.2.7:8700: Cannot assign requested address" in message


def test_without_its_packages_it_says_what_to_install(
    mara: Mara, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without_uvicorn(name: str, *rest: Any) -> Any:
        if name == "uvicorn":
            raise ImportError("No module named 'uvicorn'")
        return real(name, *rest)

    # Imported by an earlier test, it would not ask for uvicorn again.
    monkeypatch.delitem(sys.modules, "workflows.serving.page.workers", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_uvicorn)
    outcome = mara("serve", "-w", workspace)
    assert outcome.code == 2
    assert "pip install 'mara-rag[serve]'" in " ".join(outcome.err.split())
