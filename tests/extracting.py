"""What the tests of extraction share: passages, replies about them, runs, and time that passes at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agents.chat.model import open_chat_model
from agents.chat.throttle import Clock, Throttle
from agents.extraction import ExtractionRun, Retries
from agents.extractor import ChatExtractor
from agents.roles import Feedback
from graph.schema import Extraction, Passage
from tests.scripted_server import ScriptedServer


class InstantClock(Clock):
    """Time that passes only by waiting, and then at once.

    Attributes:
        waits: how long each wait would have been.
    """

    def __init__(self) -> None:
        self.time = 0.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def wait(self, changed: threading.Condition, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds


def passages(count: int) -> list[Passage]:
    return [Passage(f"p{number}", f"Lake {number}", f"Lake {number} lies in Karv.") for number in range(count)]


PASSAGES = passages(4)
QUICK = Retries(first_wait_s=0.0)
TOKENS = {"prompt_tokens": 100, "completion_tokens": 10}


def reply_about(title: str) -> str:
    """What a model says of a passage of that title."""
    triple = {"subject": title, "predicate": "lies in", "object": "Karv", "relation": "SPATIAL", "confidence": 1.0}
    return json.dumps({"entities": [title, "Karv"], "triples": [triple]})


def material_of(body: Mapping[str, Any]) -> dict[str, str]:
    """The passage within a request."""
    material: dict[str, str] = json.loads(str(body["messages"][1]["content"]).splitlines()[2])
    return material


def proper_reply(body: Mapping[str, Any]) -> str:
    """A script: the proper reply to each request."""
    return reply_about(material_of(body)["title"])


def extractor_on(
    server: ScriptedServer, *, model: str = "scripted", temperature: float = 0.0, timeout_s: float = 5.0
) -> ChatExtractor:
    return ChatExtractor(
        open_chat_model(model, temperature, base_url=server.base_url, api_key=None, timeout_s=timeout_s)
    )


def titles_asked(server: ScriptedServer) -> list[str]:
    """The title of the passage of each request, in the order they came."""
    return [material_of(request.body)["title"] for request in server.requests_of("extractor")]


class FakeExtractor:
    """An extractor that does what a function says."""

    name = "fake"

    def __init__(self, act: Callable[[Passage], None] = lambda passage: None) -> None:
        self.act = act
        self.asked: list[str] = []
        self.feedback: list[Feedback | None] = []

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        self.asked.append(passage.id)
        self.feedback.append(feedback)
        self.act(passage)
        return Extraction((passage.title,), (), self.name)


@contextmanager
def run_on(server: ScriptedServer, **how: Any) -> Iterator[ExtractionRun]:
    """A run with quick retries, in time that passes at once."""
    extractor = extractor_on(server, timeout_s=how.pop("timeout_s", 5.0))
    throttle = how.pop("throttle", None) or Throttle(clock=InstantClock())
    with ExtractionRun(extractor, throttle=throttle, retries=how.pop("retries", QUICK), **how) as run:
        yield run


def raising(*errors: Exception | None) -> Callable[[Passage], None]:
    """Raise one error after another, and then none."""
    left = iter(errors)

    def act(passage: Passage) -> None:
        if error := next(left, None):
            raise error

    return act
