"""Twenty clients of OpenAI's API at once, each with a thread of its own, on a server of its own."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from benchmarks.load import served
from workflows.indexing import index_sources
from workflows.runtime.resources import OFFLINE
from workflows.settings.indexing import IndexingContext

CLIENTS, SECONDS = 20, 30
MAKERS = ("Nissan", "Toyota", "Honda", "Mazda", "Renault")
FOLLOW_UPS = ("And who founded it?", "Where is it based?")


class Tally:
    """The outcomes of all threads, by client; safe across threads."""

    def __init__(self) -> None:
        self.answered: Counter[int] = Counter()
        self.wrong: list[str] = []
        self._lock = threading.Lock()

    def add(self, client: int, maker: str, question: str, text: str, understood: str) -> None:
        with self._lock:
            self.answered[client] += 1
            others = [other for other in MAKERS if other != maker and other in understood]
            if "**Sources**" not in text or maker not in understood or others:
                self.wrong.append(f"{maker}: {question}: {text}")


def talk(port: int, number: int, tally: Tally, until: float) -> None:
    """Hold conversations about one maker, streamed by every other client."""
    maker, is_streaming = MAKERS[number % len(MAKERS)], bool(number % 2)
    client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=10, timeout=60)
    while time.monotonic() < until:
        thread: list[Any] = []
        for question in (f"When was {maker} founded?", *FOLLOW_UPS):
            thread.append({"role": "user", "content": question})
            text = answer(client, thread, is_streaming)
            thread.append({"role": "assistant", "content": text})
            leans = question in FOLLOW_UPS
            tally.add(
                number,
                maker,
                question,
                text,
                text.partition("*Understood as: ")[2].partition("*")[0] if leans else question,
            )


def answer(client: OpenAI, thread: list[Any], is_streaming: bool) -> str:
    if not is_streaming:
        return client.chat.completions.create(model="mara", messages=thread).choices[0].message.content or ""
    chunks = client.chat.completions.create(model="mara", messages=thread, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


@pytest.mark.slow
def test_twenty_clients_at_once_are_each_answered_what_they_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with as_file(files("workflows.sample").joinpath("corpus.jsonl")) as corpus:
        index_sources([corpus], tmp_path / "workspace", settings=IndexingContext(model=OFFLINE))
    tally = Tally()
    with served(tmp_path / "workspace", workers=1, at_once=CLIENTS) as (_, port), ThreadPoolExecutor(CLIENTS) as pool:
        until = time.monotonic() + SECONDS
        for talking in [pool.submit(talk, port, number, tally, until) for number in range(CLIENTS)]:
            talking.result()
    assert tally.wrong == []
    assert len(tally.answered) == CLIENTS
