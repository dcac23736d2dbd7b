"""`mara serve --workers 2` as processes: one address, one set of figures, and nothing lost when something goes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from graph.storage.workspace import Workspace
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.serving.page.site import new_id
from tests.workflows.small_world import QUESTION, well_behaved

pytestmark = pytest.mark.slow

PATIENCE_S = 120.0
MARA = str(Path(sys.executable).with_name("mara"))


class Server:
    """A `mara serve` of several processes."""

    def __init__(self, process: subprocess.Popen[str], address: str, headers: Mapping[str, str]) -> None:
        self.process = process
        self.address = address
        self.headers = headers
        self.at_first = self.readiness()

    def ask(self, question: str = QUESTION) -> httpx.Response:
        """Ask over a connection of its own, which any worker may take."""
        return httpx.post(f"{self.address}/api/ask", json={"question": question}, timeout=PATIENCE_S)

    def figures(self) -> dict[tuple[str, ...], float]:
        families = text_string_to_metric_families(self._metrics())
        return {
            (each.name, *(each.labels[name] for name in sorted(each.labels))): each.value
            for family in families
            for each in family.samples
        }

    def _metrics(self) -> str:
        return httpx.get(f"{self.address}/metrics", timeout=PATIENCE_S, headers=self.headers).text

    def workers(self) -> list[int]:
        """The processes that serve: the others that Python starts with them end by themselves."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(child) for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds, looking again and again."""
        pause = threading.Event()
        for _ in range(int(PATIENCE_S / 0.1)):
            if holds():
                return
            pause.wait(0.1)
        raise AssertionError("It does not come to hold")

    def readiness(self) -> set[int]:
        """The states that many connections are told."""
        return {httpx.get(f"{self.address}/ready", timeout=PATIENCE_S).status_code for _ in range(20)}

    def generations(self) -> set[int]:
        """The generations that many connections are told."""
        return {httpx.get(f"{self.address}/ready", timeout=PATIENCE_S).json()["generation"] for _ in range(20)}

    def are_ready(self) -> bool:
        """Whether all workers are: each of many connections finds one that is."""
        return self.readiness() == {200} and self.figures()["mara_workers",] == 2


@contextmanager
def serving(workspace: Path, folder: Path, *options: str, headers: Mapping[str, str] | None = None) -> Iterator[Server]:
    command = [MARA, "serve", "-w", str(workspace), "--port", "0", "--workers", "2", *options]
    command += ["--conversations", str(folder / "conversations")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            assert process.stderr
            told = process.stderr.readline()
            assert " at http://" in told, told
            server = Server(process, told.partition(" at ")[2].partition("/ ")[0], headers or {})
            server.until(server.are_ready)
            yield server
        finally:
            is_interrupted = process.poll() is None
            if is_interrupted:
                process.send_signal(signal.SIGINT)
            code = process.wait(PATIENCE_S)
        assert code in ((130,) if is_interrupted else (0, -signal.SIGKILL)), "Ctrl-C ends all"


@pytest.fixture(scope="module")
def workspace(small_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(small_workspace, tmp_path_factory.mktemp("served") / "workspace"))


@pytest.fixture(scope="module")
def server(workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(workspace, tmp_path_factory.mktemp("page")) as server:
        yield server


def asked(figures: dict[tuple[str, ...], float]) -> float:
    return sum(value for (name, *_), value in figures.items() if name == "mara_questions_total")


def test_the_workers_answer_at_one_address_and_count_together(server: Server) -> None:
    before = server.figures()
    replies = [server.ask() for _ in range(12)]
    assert {reply.status_code for reply in replies} == {200}
    assert len({reply.json()["answer"] for reply in replies}) == 1
    after = server.figures()
    assert asked(after) - asked(before) == 12


def test_a_worker_that_is_killed_is_replaced_and_what_it_counted_stays(server: Server) -> None:
    before, workers = asked(server.figures()), server.workers()
    assert len(workers) == 2
    os.kill(workers[0], signal.SIGKILL)
    assert server.ask().status_code == 200
    server.until(lambda: len(set(server.workers()) - set(workers)) == 1 and server.are_ready())
    assert workers[1] in server.workers()
    assert asked(server.figures()) == before + 1
    assert server.process.stderr
    assert server.process.stderr.readline() == (f"Worker {workers[0]} ended (exit code -9): another takes its place\n")


def test_a_generation_published_under_questions_is_picked_up_and_none_of_them_fails(
    server: Server, workspace: Path, tmp_path: Path
) -> None:
    before = Workspace(workspace).current()
    document, replies, is_done = tmp_path / "quill.md", list[httpx.Response](), threading.Event()
    document.write_text("# Quill Lighthouse\n\nThe Quill Lighthouse was built by Odile Varga in 1871.\n")

    def ask_on() -> None:
        while not is_done.is_set():
            replies.append(server.ask("Who built the Quill Lighthouse?"))

    asking = threading.Thread(target=ask_on)
    asking.start()
    try:
        subprocess.run([MARA, "index", str(document), "-w", str(workspace)], check=True, capture_output=True)
        published = Workspace(workspace).current()
        server.until(lambda: server.generations() == {published})
    finally:
        is_done.set()
        asking.join(PATIENCE_S)
    assert {reply.status_code for reply in replies} == {200}
    assert {reply.json()["generation"] for reply in replies} == {before, published}
    assert "Odile Varga" in server.ask("Who built the Quill Lighthouse?").json()["answer"]


def test_more_questions_than_places_are_refused_and_sigterm_ends_all(small_workspace: Path, tmp_path: Path) -> None:
    with serving(small_workspace, tmp_path, "--at-once", "1") as server:
        with ThreadPoolExecutor(40) as pool:
            replies: list[Any] = list(pool.map(lambda _: server.ask(), range(60)))
        statuses = {reply.status_code for reply in replies}
        assert statuses == {200, 429}
        assert {reply.headers["retry-after"].isdigit() for reply in replies if reply.status_code == 429} == {True}
        assert server.figures()["mara_refused_total",] == sum(reply.status_code == 429 for reply in replies)
        workers = server.workers()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_S) == 0
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
        assert server.process.stderr
        assert server.process.stderr.readlines()[-1] == "Stopped.\n"


class TestTwentyConversations:
    """Twenty conversations of three visitors at once, with windows that come and go."""

    N_CONVERSATIONS, N_ROUNDS, N_PIECES = 20, 3, 12
    VISITORS = ("ada", "bea", "cem")

    @pytest.fixture
    def server(
        self, small_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat_server: ScriptedServer
    ) -> Iterator[Server]:
        keys = (
            f'[keys.{each}]\nsha256 = ["{sha256(each.encode()).hexdigest()}"]\nwhere = {{}}\nmay_watch = true\n'
            for each in self.VISITORS
        )
        (tmp_path / "keys.toml").write_text("\n".join(keys), encoding="utf-8")
        monkeypatch.setenv("MARA_AUTH", str(tmp_path / "keys.toml"))
        chat_server.script({**well_behaved(), "answerer": self.slowly})
        with serving(small_workspace, tmp_path, headers=self.headers(0)) as server:
            yield server

    def headers(self, number: int) -> dict[str, str]:
        return {"authorization": f"Bearer {self.VISITORS[number % len(self.VISITORS)]}"}

    def answer(self, name: str) -> str:
        return f"{name} says that it was founded in 1203 [1]."

    def slowly(self, body: Mapping[str, Any]) -> Reply:
        found = re.search(r"Round\d+of\d+", json.dumps(body))
        assert found
        text, pace = self.answer(found.group()), threading.Event()
        length = len(text) // self.N_PIECES + 1

        def pieces() -> Iterator[str]:
            for start in range(0, len(text), length):
                pace.wait(0.05)
                yield text[start : start + length]

        return Reply("", pieces=pieces())

    def test_lose_and_mix_up_nothing(self, server: Server) -> None:
        with ThreadPoolExecutor(self.N_CONVERSATIONS) as pool:
            told = list(pool.map(lambda number: self.talk(server, number), range(self.N_CONVERSATIONS)))
        for number, (conversation, texts) in enumerate(told):
            asked = [self.answer(f"Round{each}of{number}") for each in range(self.N_ROUNDS)]
            reply = httpx.get(f"{server.address}/page/api/conversations/{conversation}", headers=self.headers(number))
            kept = [(turn["state"], turn["text"]) for turn in reply.json()["turns"]]
            assert texts == asked
            assert kept == [("answered", text) for text in asked]

    def talk(self, server: Server, number: int) -> tuple[str, list[str]]:
        """Ask in a conversation, round after round; return what its windows were told, put together."""
        luck, conversation, texts = Random(number), new_id(), []
        for each in range(self.N_ROUNDS):
            turn, position, text, is_over = new_id(), 0, "", False
            question = f"{QUESTION} Round{each}of{number}"
            body: dict[str, Any] | None = {
                "conversation": conversation,
                "turn": turn,
                "question": question,
                "alone": True,
            }
            while not is_over:
                method, path = ("GET", f"turns/{turn}/events?from={position}") if body is None else ("POST", "turns")
                address, stays = f"{server.address}/page/api/{path}", luck.randrange(1, 6)
                with httpx.stream(
                    method, address, json=body, headers=self.headers(number), timeout=PATIENCE_S
                ) as reply:
                    assert reply.status_code == 200, reply.read()
                    body = None
                    for line in reply.iter_lines():
                        if not line.startswith("data: "):
                            continue
                        event = json.loads(line[6:])
                        position = event.get("at", position - 1) + 1
                        text = (
                            "" if event["kind"] == "void" else text + event.get("text", "") * (event["kind"] == "token")
                        )
                        is_over = event["kind"] == "ended"
                        stays -= 1
                        if is_over or not stays:
                            break
            texts.append(text)
        return conversation, texts
