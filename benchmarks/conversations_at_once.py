"""Conversations side by side on one page server: errors, answers that hold what is another conversation's, and times.

    mara demo -w .mara-demo
    python -m benchmarks.conversations_at_once -w .mara-demo [--at-once 20] [--seconds 300] [--alone 30]

A server of its own, `mara serve`, is asked over HTTP without a model. Each conversation is about one car maker and asks
it the same three questions over and over, two of which lean on the first: the completed question has to name its own
maker and no other. First, one conversation alone asks ``--alone`` questions: the time to the first piece of the answer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.load import served

MAKERS = ("Nissan", "Toyota", "Honda", "Mazda", "Renault")
QUESTIONS = ("When was {} founded?", "And who founded it?", "Where is it based?")


@dataclass
class Told:
    """The outcomes of the questions of all conversations."""

    answered: int = 0
    errors: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    first_ms: list[float] = field(default_factory=list)
    whole_ms: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, maker: str, question: str, turn: dict[str, Any], first_ms: float, whole_ms: float) -> None:
        """Count a turn that ended."""
        with self._lock:
            self.answered += 1
            self.first_ms.append(first_ms)
            self.whole_ms.append(whole_ms)
            if not turn.get("html"):
                self.errors.append(f"{maker}: {question}: {turn.get('error')}")
            whole = (turn.get("understood") or {}).get("question", question)
            if maker not in whole or any(other in whole for other in MAKERS if other != maker):
                self.leaks.append(f"{maker}: {question} was understood as {whole}")


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-w", "--workspace", type=Path, required=True)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--alone", type=int, default=30)
    options = parser.parse_args()
    with served(options.workspace, workers=1) as (_, port):
        place = f"127.0.0.1:{port}"
        _talk(place, "Nissan", Told(), rounds=1)
        alone = Told()
        _talk(place, "Nissan", alone, rounds=-(-options.alone // len(QUESTIONS)))
        together = Told()
        until = time.monotonic() + options.seconds
        with ThreadPoolExecutor(options.at_once) as pool:
            talks = [
                pool.submit(_talk, place, MAKERS[number % len(MAKERS)], together, until=until)
                for number in range(options.at_once)
            ]
            for talk in talks:
                talk.result()
    print("| | turns | errors | leaks | first piece p50 / p95, ms | whole answer p50 / p95, ms |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, told in (("alone", alone), (f"{options.at_once} at once, {options.seconds:g} s", together)):
        first, whole = _spread(told.first_ms), _spread(told.whole_ms)
        print(f"| {name} | {told.answered} | {len(told.errors)} | {len(told.leaks)} | {first} | {whole} |")
        print(*(f"\n{line}" for line in (told.errors + told.leaks)[:20]), sep="", end="")
    sys.exit(bool(together.errors or together.leaks))


def _talk(place: str, maker: str, told: Told, rounds: int = 10**9, until: float = float("inf")) -> None:
    """Ask the questions of a maker in conversations of three turns."""
    for _ in range(rounds):
        conversation = uuid.uuid4().hex
        for question in (text.format(maker) for text in QUESTIONS):
            if time.monotonic() > until:
                return
            try:
                told.add(maker, question, *_ask(place, conversation, question))
            except (OSError, ValueError, StopIteration) as fault:
                told.errors.append(f"{maker}: {question}: {fault!r}")


def _ask(place: str, conversation: str, question: str) -> tuple[dict[str, Any], float, float]:
    """Ask a question; return its turn, and the milliseconds to the first piece of the answer and to its end."""
    body = json.dumps(
        {"conversation": conversation, "turn": uuid.uuid4().hex, "question": question, "settings": {"workspace": ""}}
    )
    start = time.perf_counter()
    connection = HTTPConnection(place, timeout=120)
    connection.request("POST", "/page/api/turns", body, {"Content-Type": "application/json"})
    first_ms = 0.0
    turn: dict[str, Any] = {}
    for event in _events(connection):
        if event["kind"] == "token" and not first_ms:
            first_ms = (time.perf_counter() - start) * 1000
        if event["kind"] == "ended":
            turn = event["turn"]
    connection.close()
    whole_ms = (time.perf_counter() - start) * 1000
    return turn, first_ms or whole_ms, whole_ms


def _events(connection: HTTPConnection) -> Iterator[dict[str, Any]]:
    response = connection.getresponse()
    if response.status != 200:
        raise OSError(f"{response.status}: {response.read(500)!r}")
    for line in response:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def _spread(times: list[float]) -> str:
    if len(times) < 2:
        return "-"
    return f"{statistics.median(times):.0f} / {statistics.quantiles(times, n=20)[-1]:.0f}"


if __name__ == "__main__":
    main()
