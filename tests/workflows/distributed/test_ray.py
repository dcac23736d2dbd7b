"""Indexing on a real Ray of this machine: the record of one process, whatever is killed meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from importlib import import_module
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from benchmarks.ray_indexing import descendants, dump, processes_of, words_of
from tests.extracting import proper_reply, titles_asked
from tests.scripted_server import ScriptedServer
from tests.workflows.small_world import write_lines
from workflows.indexing import index_sources
from workflows.settings.indexing import IndexingContext

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed: `make scale`"),
]

MARA = [sys.executable, "-c", "import sys; from workflows.cli.app import main; sys.exit(main())"]
LONGEST_S = 400.0
N = 150
ANSWERED = 12
"""Requests that are answered between two kills."""
IN_FLIGHT = 8
"""The requests at once of a run, which a kill may cost."""


class HeldServer(ScriptedServer):
    """A model that answers the first requests and lets the next ones wait, until it is told to go on."""

    def __init__(self) -> None:
        self.arrived = threading.Semaphore(0)
        self._left = 0
        self._free = threading.Event()
        self._counting = threading.Lock()
        super().__init__({"extractor": self._reply})

    def hold_after(self, count: int) -> None:
        self._free.set()
        with self._counting:
            self._left, self._free, self.arrived = count, threading.Event(), threading.Semaphore(0)

    def go_on(self) -> None:
        with self._counting:
            self._left = 10**9
        self._free.set()

    def _reply(self, body: Mapping[str, Any]) -> str:
        with self._counting:
            self._left -= 1
            held, free = self._left < 0, self._free
        if held:
            self.arrived.release()
            free.wait()
        return proper_reply(body)


@pytest.fixture
def server() -> Iterator[HeldServer]:
    held = HeldServer()
    with held:
        yield held
        held.go_on()


@pytest.fixture
def lakes(tmp_path: Path) -> Path:
    path = tmp_path / "lakes.jsonl"
    write_lines(path, [{"id": f"p{n}", "title": f"Lake {n}", "text": f"Lake {n} lies in Karv."} for n in range(N)])
    return path


def test_a_ray_of_the_run_listens_on_loopback_alone_and_does_nothing_without_its_token(
    tmp_path: Path,
    server: HeldServer,
    monkeypatch: pytest.MonkeyPatch,
    start: Callable[[Path], subprocess.Popen[bytes]],
) -> None:
    monkeypatch.setenv("MARA_EXTRACTION_URLS", server.base_url)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    server.hold_after(ANSWERED)
    run = start(tmp_path / "w")
    wait_for_a_held_request(server, run)
    sockets = listening([run.pid, *descendants(run.pid)])
    for address, port, words in sockets:
        assert address.is_loopback, f"{words} listens on {address}"
        is_monitor = "monitor.py" in words
        assert is_monitor or not is_told("/metrics", port), words
        codes = {code_without_a_token(method, port) for method in METHODS}
        assert codes <= {"UNAUTHENTICATED", "UNIMPLEMENTED", "UNAVAILABLE"}, words
        assert is_monitor or "RuntimeEnvAgent" in words or "UNAUTHENTICATED" in codes, words
    for server_of_ray in ("gcs_server", "raylet/raylet", "distributed.coordinator", "ray::MapWorker"):
        assert any(server_of_ray in words for _, _, words in sockets)


METHODS = (
    "NodeInfoGcsService/GetAllNodeInfo",
    "NodeManagerService/GetNodeStats",
    "ObjectManagerService/Pull",
    "CoreWorkerService/PushTask",
)
"""What the servers of Ray do for those that have the token: one method of each service."""


def listening(pids: Iterable[int]) -> list[tuple[IPv4Address | IPv6Address, int, str]]:
    """Return address, port and command line of each socket on which processes listen."""
    owners = {}
    for pid in pids:
        with suppress(OSError):
            for held in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    owners[os.readlink(held)] = words_of(pid)
    found = []
    for protocol, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in Path(f"/proc/net/{protocol}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and (words := owners.get(f"socket:[{fields[9]}]")):
                host, port = fields[1].split(":")
                numbers = bytes.fromhex(host)
                address = ip_address(b"".join(numbers[at : at + 4][::-1] for at in range(0, len(numbers), 4)))
                found.append((getattr(address, "ipv4_mapped", None) or address, int(port, 16), words))
    return found


def is_told(path: str, port: int) -> bool:
    """Tell whether a port answers a GET of anybody."""
    connection = HTTPConnection("127.0.0.1", port, timeout=LONGEST_S)
    with suppress(HTTPException, OSError):
        connection.request("GET", path)
        return connection.getresponse().status == 200
    return False


def code_without_a_token(method: str, port: int) -> str:
    """Return the name of the status that a call has without a token."""
    grpc = import_module("grpc")
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            channel.unary_unary(f"/ray.rpc.{method}")(b"", timeout=LONGEST_S)
        except grpc.RpcError as error:
            return str(error.code().name)
    return "OK"


def test_whatever_is_killed_the_record_is_the_same_and_nothing_is_asked_again(
    lakes: Path,
    tmp_path: Path,
    server: HeldServer,
    monkeypatch: pytest.MonkeyPatch,
    start: Callable[[Path], subprocess.Popen[bytes]],
    place: Path,
) -> None:
    monkeypatch.setenv("MARA_EXTRACTION_URLS", f"{server.base_url}, {server.base_url}/")
    killed = tmp_path / "killed"
    server.hold_after(ANSWERED)
    run = start(killed)
    for kind in ("worker", "coordinator", "Ray", "command"):
        wait_for_a_held_request(server, run)
        for pid in processes_of(run.pid, kind):
            os.kill(pid, signal.SIGKILL)
        if kind != "worker":
            run.wait(LONGEST_S)
            assert_all_end(server)
            assert_nothing_is_left(place)
            run = start(killed)
        server.hold_after(ANSWERED)
    wait_for_a_held_request(server, run)
    run.send_signal(signal.SIGINT)
    server.go_on()
    assert run.wait(LONGEST_S) == 130
    assert_all_end(server)
    assert_nothing_is_left(place)
    run = start(killed)
    assert run.wait(LONGEST_S) == 0
    asked = Counter(titles_asked(server))
    assert len(asked) == N
    assert asked.total() <= N + 5 * IN_FLIGHT, "what was on its way when something was killed, and no more"
    whole = tmp_path / "whole"
    index_sources([lakes], whole, settings=IndexingContext(model="scripted"))
    rows, other = dump(killed), dump(whole)
    assert {**rows, "meta": []} == {**other, "meta": []}
    assert not (killed / "shards").exists()


@pytest.fixture
def place() -> Iterator[Path]:
    """The folder for temporary files of commands: its path is short, as those of Ray's sockets have to be."""
    folder = Path(mkdtemp(prefix="r", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start(lakes: Path, place: Path) -> Iterator[Callable[[Path], subprocess.Popen[bytes]]]:
    """Starts the command on a workspace; what still runs at the end is killed, and its Ray ends with it."""
    started: list[subprocess.Popen[bytes]] = []

    def start(root: Path) -> subprocess.Popen[bytes]:
        arguments = [
            "index",
            str(lakes),
            "-w",
            str(root),
            "--set",
            "engine=ray",
            "--set",
            "workers=2",
            "--model",
            "scripted",
        ]
        environment = {**os.environ, "TMPDIR": str(place)}
        process = subprocess.Popen(
            [*MARA, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def wait_for_a_held_request(server: HeldServer, run: subprocess.Popen[bytes]) -> None:
    assert server.arrived.acquire(timeout=LONGEST_S)
    assert run.poll() is None


def assert_all_end(server: HeldServer) -> None:
    """Wait until no process that may ask the server is left, whoever started it and whether that still lives."""
    ended = threading.Event()
    for _ in range(600):
        if not (left := [*asking(server)]):
            return
        ended.wait(0.1)
    pytest.fail(f"left behind: {[words_of(pid)[:80] for pid in left]}")


def assert_nothing_is_left(place: Path) -> None:
    """Wait until a folder holds no folder; onnxruntime keeps a file of its own there."""
    ended = threading.Event()
    for _ in range(600):
        if not [each for each in place.iterdir() if each.is_dir()]:
            return
        ended.wait(0.1)
    pytest.fail("a folder of Ray is left")


def asking(server: HeldServer) -> Iterator[int]:
    """Yield the processes that were started with the server's address."""
    told = f"MARA_EXTRACTION_URLS={server.base_url}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if told in (entry / "environ").read_bytes():
                    yield int(entry.name)
