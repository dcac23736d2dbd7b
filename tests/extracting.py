"""What the tests of extraction share: passages, what a model replies about them, and time that passes at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from agents.chat import open_chat_model
from agents.extractor import ChatExtractor
from agents.throttle import Clock
from graph.schema import Passage
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
