"""Replies that are broken in every way that comes to mind: each ends in a reply or in a documented error, and soon."""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from agents.chat.model import ChatModel
from agents.chat.replies import ThinkFilter
from graph.errors import MalformedReply, ModelUnavailable
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS
from tests.agents.chat.test_model_envelope import body, event
from tests.agents.chat.test_model_streaming import streamed
from tests.chatting import TEXT, Verdict, ask_object, messages, model_on
from tests.parsing import FRAGMENTS, REPLIES
from tests.scripted_server import Reply, ScriptedServer

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")]

COUNT = 20_000
ENVELOPES_IN = 5
"""One reply in so many goes over HTTP."""

MOST_S = 5.0
"""Processor time that one reply may take."""

MOST_GROWTH = 32 * 2**20
"""Bytes that the second half may hold at once beyond the first."""

FACTORS = {
    "entity_entity": {relation.value: 0.5 for relation in ENTITY_RELATIONS},
    "entity_passage": {relation.value: 0.5 for relation in PASSAGE_RELATIONS},
    "passage_weight": 0.05,
}
ASSESSMENT = {
    "structure": "single",
    "components": [{"text": "Where?", "coverage": "fully", "claims": [1, 2]}],
    "claims": [
        {"number": 1, "supported_by": [1], "relevant": True},
        {"number": 2, "supported_by": [], "relevant": True},
    ],
    "follow_ups": [{"component": 1, "question": "When?"}],
}
EXTRACTION = {
    "entities": ["Anna Berg", "Moor"],
    "triples": [
        {"subject": "Anna Berg", "predicate": "born in", "object": "Moor", "relation": "SPATIAL", "confidence": 0.9}
    ],
}
AGENTS = (
    ("answerer", "Anna Berg was born in Moor [1]. She died\n\n- in Graz [1]."),
    ("final predictor", "It was in Moor [1], in 1933 [1]."),
    ("predictor", "She was born in 1933."),
    ("judge", "<think>Is it?</think>Yes 0.9"),
    ("manager", f"```json\n{json.dumps(FACTORS)}\n```"),
    ("fact filter", json.dumps({"facts": [1]})),
    ("claim judge", json.dumps(ASSESSMENT)),
    ("extractor", json.dumps(EXTRACTION)),
)
"""Each agent with a reply that it takes."""
ODD: Sequence[Any] = (
    *(None, True, -1, 0.5, 2**70, -(2**70), 10**400, float("nan"), float("inf"), "", "x", "1", "\ud800", "\x00"),
    *([], {}, [[]], [None], {"a": {}}, ["x"] * 2_000, "x" * 50_000, {str(number): number for number in range(2_000)}),
)


class Mutations:
    """Breaks texts, values and bytes; the same seed breaks them in the same ways."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, text: str) -> str:
        for _ in range(self.random.randint(1, 3)):
            kinds = (self._insert, self._cut, self._twice, self._deep)
            text = self.random.choice(kinds)(text)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with something else in the place of one of its parts."""
        if isinstance(value, dict) and value and self.random.random() < 0.85:
            key = self.random.choice(list(value))
            if self.random.random() < 0.1:
                return {other: part for other, part in value.items() if other != key}
            return value | {key: self.value(value[key])}
        if isinstance(value, list) and value and self.random.random() < 0.85:
            place = self.random.randrange(len(value))
            return [*value[:place], self.value(value[place]), *value[place + 1 :]]
        return self.random.choice(ODD)

    def data(self, data: bytes) -> bytes:
        """Bytes of which some are missing, said twice or zero."""
        start, end = sorted(self.random.choices(range(len(data) + 1), k=2))
        kinds = (
            data[:start],
            data[:end] + data[start:],
            data[:start] + data[end:],
            data[:start] + bytes(4) + data[end:],
        )
        return self.random.choice(kinds)

    def _insert(self, text: str) -> str:
        place = self.random.randint(0, len(text))
        odd: str = self.random.choice((*FRAGMENTS, "\x00", "\ud800", "\x1b[2J", "9" * 5_000, "1e999", "NaN"))
        return text[:place] + odd + text[place:]

    def _cut(self, text: str) -> str:
        return text[: self.random.randint(0, len(text))]

    def _twice(self, text: str) -> str:
        start, end = sorted(self.random.choices(range(len(text) + 1), k=2))
        return text[:end] + text[start:]

    def _deep(self, text: str) -> str:
        """Something nested or repeated, seldom so often that it costs much."""
        place = self.random.randint(0, len(text))
        run = "".join(self.random.choices(FRAGMENTS, k=2))
        opens, closes = self.random.choice((("[", "]"), ('{"a":', "}"), ("<think>", "</think>"), (run, "")))
        depth = self.random.choices((10, 100, 1_000, 10_000), (60, 30, 8, 2))[0]
        return text[:place] + opens * depth + text[place:] + closes * self.random.choice((0, depth))


@dataclass(frozen=True)
class Endpoint:
    """A server, and the client that asks it all the time: a client takes longer to make than a request."""

    server: ScriptedServer
    model: ChatModel


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.0)
    with ScriptedServer() as server:
        yield Endpoint(server, model_on(server))


def say(mutations: Mutations) -> None:
    """A mutated text, said to an agent and shown piece by piece."""
    agent, reply = mutations.random.choice(AGENTS)
    text = mutations.text(reply)
    spoken = ThinkFilter(thinks_first=mutations.random.random() < 0.2)
    step = mutations.random.choice((1, 7, 1_000)) if len(text) < 5_000 else 1_000
    for start in range(0, len(text), step):
        spoken.feed(text[start : start + step])
    REPLIES[agent](text)


def send_whole(mutations: Mutations, endpoint: Endpoint) -> None:
    """A reply whose envelope is mutated, over HTTP."""
    (whole, done) = body(choice={"logprobs": {"content": [{"token": "a", "logprob": -1.0}]}}).events or ()
    envelope = json.loads(whole.removeprefix(b"data: "))
    data = json.dumps(mutations.value(envelope)).encode()
    if mutations.random.random() < 0.3:
        data = mutations.data(data)
    status = mutations.random.choice((200, 200, 200, 200, 400, 429, 500))
    retry = mutations.random.choice(("", "9" * 400, "-1", "Fri, 31 Dec 2100", "NaN"))
    headers = {"Retry-After": retry} if retry else {}
    events = [b"data: " + data + b"\n\n", done]
    endpoint.server.script(
        [Reply(events=events, headers=headers) if status == 200 else Reply(body=data, headers=headers, status=status)]
    )
    model = endpoint.model
    if mutations.random.random() < 0.5:
        model.ask(messages(), top_logprobs=5).text()
    else:
        ask_object(model, messages(), Verdict)


def send_stream(mutations: Mutations, endpoint: Endpoint) -> None:
    """A reply in mutated events, over HTTP."""
    start, end = event({"role": "assistant", "content": TEXT}), event({}, "stop")
    events = [start, *(event({"content": mutations.text("and [1] so")[:3_000]}) for _ in range(3)), end]
    place = mutations.random.randrange(len(events))
    broken = json.dumps(mutations.value(json.loads(events[place][6:])))
    events[place] = b"data: " + broken.encode() + b"\n\n"
    if mutations.random.random() < 0.5:
        place = mutations.random.randrange(len(events))
        events[place] = mutations.data(events[place])
    endpoint.server.script([Reply(events=[*events, b"data: [DONE]\n\n"][: mutations.random.randint(0, 9)])])
    streamed(endpoint.model, as_object=mutations.random.random() < 0.5)


def break_one(seed: int, endpoint: Endpoint) -> None:
    """One mutated reply; the seed tells which."""
    mutations = Mutations(seed)
    with suppress(MalformedReply, ModelUnavailable):
        if seed % ENVELOPES_IN:
            say(mutations)
        else:
            mutations.random.choice((send_whole, send_stream))(mutations, endpoint)


def most_memory() -> int:
    """The most bytes that this process has held at once so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def test_no_mutated_reply_raises_lingers_or_stays_in_memory(soak_share: float, endpoint: Endpoint) -> None:
    count = int(COUNT * soak_share)
    slowest, held = (0.0, -1), 0
    for seed in range(count):
        if seed == count // 2:
            held = most_memory()
        start = time.process_time()
        try:
            break_one(seed, endpoint)
        except Exception as fault:
            raise AssertionError(f"reply {seed} ended in {type(fault).__name__}") from fault
        slowest = max(slowest, (time.process_time() - start, seed))
    growth = most_memory() - held
    assert slowest[0] < MOST_S, f"reply {slowest[1]} took {slowest[0]:.1f} s of processor time"
    assert growth < MOST_GROWTH, f"{growth:,} bytes more in the second half"
