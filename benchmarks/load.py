"""A server under more questions than it can answer: goodput, refusals, times and memory, slice by slice.

    python -m benchmarks.load --workspace .mara-demo [--rate 200] [--seconds 300] [--workers 2] [--publish]

Starts `mara serve` on a free port of 127.0.0.1 and asks it ``--rate`` questions a second, each at its time whether or
not those before it are answered. The questions are those of ``--questions`` (JSONL with ``question``), over and over;
vectors of questions that were asked lately are cached, as they would be for users who ask the same. With ``--publish``
a passage is added to a copy of the workspace halfway. Memory is PSS, which counts what processes share once; CPU is
that of the server's processes, in cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import numpy as np

MOST_RATE, MOST_SECONDS, MOST_CONNECTIONS = 1_000, 3_600, 512
_SLICE_S = 30
_GIVEN_UP_S = 60.0
_STARTS_WITHIN_S = 180.0
_TICKS = os.sysconf("SC_CLK_TCK")
_MARA = str(Path(sys.executable).with_name("mara"))


@dataclass
class Reply:
    """The outcome of a question: its status (0: none), the seconds it took, and the generation that answered."""

    at_s: float
    status: int
    seconds: float
    generation: int | None = None


@dataclass
class Load:
    """Asks at a steady rate over connections that are kept.

    Attributes:
        port: where the server listens.
        path: what is asked.
        bodies: what is sent, in turn.
        replies: what came of it.
        published_s: when a generation was published, in seconds since the beginning.
    """

    port: int
    path: str
    bodies: Sequence[bytes]
    replies: list[Reply] = field(default_factory=list)
    published_s: float | None = None
    _idle: deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=deque)
    _open: int = 0

    async def offer(self, rate: float, seconds: float) -> None:
        """Ask for some seconds, then wait for the last replies."""
        loop = asyncio.get_running_loop()
        begin, asked = loop.time(), []
        for number in range(int(rate * seconds)):
            due = begin + number / rate
            if (pause := due - loop.time()) > 0:
                await asyncio.sleep(pause)
            asked.append(loop.create_task(self._ask(number, due - begin)))
            if number % 1000 == 999:
                asked = [task for task in asked if not task.done()]
        if asked:
            await asyncio.wait(asked)
        for _, writer in self._idle:
            writer.close()

    async def _ask(self, number: int, at_s: float) -> None:
        start = time.perf_counter()
        try:
            status, body = await asyncio.wait_for(self._exchange(self.bodies[number % len(self.bodies)]), _GIVEN_UP_S)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            status, body = 0, b""
        generation = json.loads(body)["generation"] if status == 200 else None
        self.replies.append(Reply(at_s, status, time.perf_counter() - start, generation))

    async def _exchange(self, body: bytes) -> tuple[int, bytes]:
        reader, writer = await self._connection()
        try:
            writer.write(
                b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (self.path.encode(), len(body), body)
            )
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            reply = await reader.readexactly(length)
        except BaseException:
            self._open -= 1
            writer.close()
            raise
        self._idle.append((reader, writer))
        return int(head[9:12]), reply

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.popleft()
            if not reader.at_eof():
                return reader, writer
            self._open -= 1
            writer.close()
        if self._open >= MOST_CONNECTIONS:
            raise OSError(f"{MOST_CONNECTIONS} connections are open")
        self._open += 1
        try:
            return await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        except BaseException:
            self._open -= 1
            raise


@dataclass(frozen=True)
class Used:
    """The use of the server's processes: MiB of memory, and seconds of CPU so far."""

    memory_mib: float
    cpu_s: float

    @classmethod
    def by(cls, process: int) -> Used:
        """Return what a process and those that it started use."""
        family = [process, *_children_of(process)]
        return cls(sum(map(_pss_mib, family)), sum(map(_cpu_s, family)))


def main() -> None:
    """Offer the load, and print tables in Markdown."""
    options = _options()
    with (
        _workspace(options.workspace, copied=options.publish) as workspace,
        served(workspace, options.workers, options.at_once) as (process, port),
    ):
        load = Load(port, f"/api/{options.ask}", _bodies(options.questions))
        used = asyncio.run(_run(load, process.pid, workspace, options))
        if process.poll() is not None:
            raise SystemExit(f"The server ended with {process.returncode}")
    _print(load, used, options)


async def _run(load: Load, process: int, workspace: Path, options: argparse.Namespace) -> list[tuple[float, Used]]:
    used = [(0.0, Used.by(process))]
    begin = time.perf_counter()

    async def watch() -> None:
        while True:
            await asyncio.sleep(min(_SLICE_S, options.seconds / 4))
            used.append((time.perf_counter() - begin, await asyncio.to_thread(Used.by, process)))

    async def publish() -> None:
        await asyncio.sleep(options.seconds / 2)
        await asyncio.to_thread(_publish, workspace)
        load.published_s = time.perf_counter() - begin

    beside = [asyncio.create_task(watch()), *([asyncio.create_task(publish())] if options.publish else [])]
    await load.offer(options.rate, options.seconds)
    used.append((time.perf_counter() - begin, Used.by(process)))
    for task in beside[1:]:
        await task
    beside[0].cancel()
    return used


def _print(load: Load, used: list[tuple[float, Used]], options: argparse.Namespace) -> None:
    replies = load.replies
    times = [reply.seconds * 1000 for reply in replies if reply.status == 200]
    refusals = [reply.seconds * 1000 for reply in replies if reply.status == 429]
    print("| slice | offered | answered | a second | refused (429) | failed | p50 | p95 | p99 | generations |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    for begin in range(0, options.seconds, _SLICE_S):
        end = min(begin + _SLICE_S, options.seconds)
        within = [reply for reply in replies if begin <= reply.at_s < end]
        print(_row(f"{begin} to {end} s", within, end - begin))
    print(_row("**all**", replies, options.seconds))
    print(f"\nAnswers: p50 {_at(times, 50)}, p95 {_at(times, 95)}, p99 {_at(times, 99)}, longest {_at(times, 100)}.")
    print(f"Refusals: p50 {_at(refusals, 50)}, p99 {_at(refusals, 99)}.")
    if load.published_s is not None:
        print(f"Published after {load.published_s:.1f} s; {_picked_up(load, load.published_s)}.")
    failures = Counter(reply.status for reply in replies if reply.status not in (200, 429))
    print(f"Failed, by status (0: no reply): {dict(failures) or 'none'}.\n")
    print("| after | memory (PSS) | CPU since the line above |\n|---|--:|--:|")
    for number, (at_s, now) in enumerate(used):
        before_s, before = used[number - 1] if number else (at_s, now)
        cores = (now.cpu_s - before.cpu_s) / (at_s - before_s) if number else 0.0
        print(f"| {at_s:.0f} s | {now.memory_mib:.0f} MiB | {cores:.2f} cores |")


def _picked_up(load: Load, published_s: float) -> str:
    """Return when the first question was asked that a new generation answered, and the last that the old one did."""
    answered = [reply for reply in load.replies if reply.generation is not None]
    newest = max(reply.generation or 0 for reply in answered)
    asked = [reply.at_s for reply in answered if reply.generation == newest]
    old = [reply.at_s for reply in answered if reply.generation != newest]
    if not old:
        return "no answer came from it: the load had ended by then"
    first, last = min(asked) - published_s, max(old) - published_s
    return f"the first answer from it was asked {first:+.1f} s from then, the last from before {last:+.1f} s"


def _row(name: str, replies: Sequence[Reply], seconds: float) -> str:
    statuses = Counter(reply.status for reply in replies)
    times = [reply.seconds * 1000 for reply in replies if reply.status == 200]
    failed = len(replies) - statuses[200] - statuses[429]
    generations = Counter(reply.generation for reply in replies if reply.status == 200)
    served = ", ".join(f"{number}: {count}" for number, count in sorted(generations.items(), key=str))
    cells = [name, len(replies), statuses[200], f"{statuses[200] / seconds:.1f}", statuses[429], failed]
    return f"| {' | '.join(map(str, [*cells, *(_at(times, share) for share in (50, 95, 99)), served]))} |"


def _at(times: Sequence[float], percent: float) -> str:
    return f"{np.percentile(times, percent):.1f} ms" if times else "none"


@contextmanager
def _workspace(given: Path, *, copied: bool) -> Iterator[Path]:
    """Yield the workspace, or a copy of it that may be written."""
    if not copied:
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copytree(given, Path(folder) / "workspace"))


@contextmanager
def served(workspace: Path, workers: int, at_once: int | None = None) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Serve a workspace; yields the process and its port once each worker is likely to be warm."""
    command = [_MARA, "serve", "-w", str(workspace), "--port", "0"]
    command += ["--workers", str(workers), *(["--at-once", str(at_once)] if at_once else [])]
    with tempfile.TemporaryDirectory() as folder:
        command += ["--conversations", str(Path(folder) / "conversations")]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr
            told = process.stderr.readline()
            if "127.0.0.1:" not in told:
                raise SystemExit(f"The server did not start: {told}{process.stderr.read()}")
            port = int(told.partition("127.0.0.1:")[2].partition("/")[0])
            asyncio.run(_ready(port, workers))
            yield process, port
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


async def _ready(port: int, workers: int) -> None:
    """Wait until every worker says that it is ready: each connection may reach another one."""
    until, in_a_row = time.perf_counter() + _STARTS_WITHIN_S, 0
    while in_a_row < 20 * workers:
        if time.perf_counter() > until:
            raise SystemExit("The server does not become ready")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        status = (await reader.read())[9:12]
        writer.close()
        in_a_row = in_a_row + 1 if status == b"200" else 0
        await asyncio.sleep(0.05)


def _publish(workspace: Path) -> None:
    """Add a passage to a workspace, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        document = Path(folder) / "added.md"
        document.write_text("# The Quill Lighthouse\n\nThe Quill Lighthouse was built by Odile Varga in 1871.\n")
        command = [_MARA, "index", str(document), "-w", str(workspace)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"Nothing was published: {done.stderr}")


def _bodies(path: Path | None) -> list[bytes]:
    lines = path.read_text() if path else files("workflows.sample").joinpath("questions.jsonl").read_text()
    return [json.dumps({"question": json.loads(line)["question"]}).encode() for line in lines.splitlines()]


def _children_of(process: int) -> list[int]:
    told = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [each for child in map(int, told) for each in (child, *_children_of(child))]


def _pss_mib(process: int) -> float:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspace", "-w", required=True, type=Path)
    parser.add_argument("--questions", type=Path, help="JSONL with a question a line (default: those of the sample)")
    parser.add_argument("--ask", choices=("ask", "retrieve"), default="ask", help="what is asked of the API")
    parser.add_argument("--rate", type=float, default=200.0, help="questions a second")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--at-once", type=int, help="questions at work in a worker")
    parser.add_argument("--publish", action="store_true", help="add a passage to a copy of the workspace halfway")
    options = parser.parse_args()
    if not (0 < options.rate <= MOST_RATE and 0 < options.seconds <= MOST_SECONDS):
        parser.error(f"at most {MOST_RATE} questions a second for {MOST_SECONDS} seconds")
    return options


if __name__ == "__main__":
    main()
