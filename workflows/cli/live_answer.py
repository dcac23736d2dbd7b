"""A question asked from a terminal: which node runs and the answer as it is written, then what it took."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from workflows.context import Context
from workflows.output.printable import VisibleConsole, visible
from workflows.results import TOTAL, Result
from workflows.states.records import UsageRecord

if TYPE_CHECKING:
    from workflows.streaming import Event

_REFRESHES_PER_SECOND = 8
_OPEN, _JUDGE = "open workspace", "judge passages"
_ASKED_AGAIN = ("malformed", "slow", "over")
_ENDS = ("finished", "fallback", *_ASKED_AGAIN)
_WRITING = ("write_answer", "quote_passages")
_LINING_UP = ("line_up_passages", "merge_passages")
_JUDGING = ("predict_answer", "skip_prediction", "score_passage")
_JUDGED = ("score_passage", "leave_unjudged")
_TOLD_BY_ITS_NODES = "check_claims"
"""A subgraph: its own nodes tell when they start and end."""


def ask_live(question: str, context: Context, *, silent: bool = False) -> Result:
    """Answer a question as `workflows.ask` does; on a terminal, unless silent, show what happens meanwhile."""
    if silent or not is_shown_live():
        from workflows.answering import ask

        return ask(question, context)
    from workflows.streaming import ask_stream

    return shown_live(ask_stream(question, context))


def is_shown_live() -> bool:
    """Tell whether an answer is shown while it is written: both outputs are a terminal that can take it back."""
    on_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
    return on_terminal and not _console().is_dumb_terminal


def shown_live(events: Generator[Event, None, None]) -> Result:
    """Return the result that the events end with, showing them as they come."""
    live_answer = LiveAnswer()
    live = Live(live_answer, console=_console(), transient=True, refresh_per_second=_REFRESHES_PER_SECOND)
    with closing(events), _one_interrupt(), live:
        event = next(events)
        while event.kind != "answered":
            live_answer.tell(event)
            event = next(events)
    return event.result


@contextmanager
def _one_interrupt() -> Iterator[None]:
    """Let one interrupt end the block; another that comes meanwhile is raised once it has ended, and left no draft."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came = 0

    def take(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came == 1:
            before(number, frame)

    signal.signal(signal.SIGINT, take)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came > 1:
            raise KeyboardInterrupt


def _console() -> Console:
    return VisibleConsole(stderr=True, emoji=False, highlight=False)


class LiveAnswer:
    """The end of the answer so far, as much as the terminal has room for, over a line of the nodes that run.

    The text that it shows is always a draft: it goes when the answer is whole, and an attempt goes when another begins.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answer = ""
        self._begins_anew = True
        self._nodes: dict[str, float] = {}
        self._inner_nodes: dict[str, float] = {}
        self._to_judge = self._judged = 0
        self._status, self._since = _OPEN, clock()

    def tell(self, event: Event) -> None:
        """Take in an event of `workflows.streaming`."""
        if event.kind == "token":
            self._answer = event.text if self._begins_anew else self._answer + event.text
            self._begins_anew = False
        elif event.kind == "node_started":
            self._start(event.node, event.attempt)
        elif event.kind == "progress" and event.event in _ENDS:
            self._end(event.node, event.event, event.details)
        elif event.kind == "progress" and event.event == "started" and event.node not in _JUDGING:
            self._inner_nodes.setdefault(_words(event.node), self._clock())
        self._tell_status()

    def _start(self, node: str, attempt: int) -> None:
        self._begins_anew = True
        if node in _WRITING:
            self._answer = ""
        self._inner_nodes.clear()
        self._to_judge = 0
        self._drop(node)
        if node != _TOLD_BY_ITS_NODES:
            self._nodes[_words(node) + (f", attempt {attempt}" if attempt > 1 else "")] = self._clock()

    def _end(self, node: str, how: str, details: Mapping[str, Any]) -> None:
        self._drop(node)
        if node in _LINING_UP:
            self._judged, self._to_judge = 0, details.get("to_judge", 0)
            self._inner_nodes.clear()
        elif node in _JUDGED and how not in _ASKED_AGAIN:
            self._judged += 1

    def _drop(self, node: str) -> None:
        name = _words(node)
        self._inner_nodes.pop(name, None)
        self._nodes = {label: since for label, since in self._nodes.items() if label.partition(",")[0] != name}

    def _tell_status(self) -> None:
        """Say what runs and since when; between two nodes, what ran last."""
        running = {**self._nodes, **self._inner_nodes}
        if self._judged < self._to_judge:
            if not self._status.startswith(_JUDGE):
                self._since = self._clock()
            self._status = f"{_JUDGE}: {self._judged} of {self._to_judge}"
        elif running:
            self._status, self._since = ", ".join(running), min(running.values())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the answer's last lines and the status."""
        room = max(1, options.size.height - 2)
        if self._answer:
            yield from Text(visible(self._answer)).wrap(console, options.max_width)[-room:]
        status = f"{self._status} … {self._clock() - self._since:.1f} s"
        yield Text(status, style="dim", no_wrap=True, overflow="ellipsis")


def _words(node: str) -> str:
    return node.replace("_", " ")


def spent(result: Result) -> str:
    """Return what an answer took: calls of a chat model, tokens in and out, seconds and, with prices, cost."""
    usage, seconds = result["usage"], result["timings_ms"][TOTAL] / 1000
    took = f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    calls = usage["calls"]
    if not calls:
        return f"{'no model' if result['models']['chat'] == 'offline' else 'no model call'} · {took}"
    parts = [_calls(calls), _tokens(usage), took]
    if "cost" in usage:
        parts.append("cost unknown" if usage["cost"] is None else f"cost {usage['cost']:.4g}")
    return " · ".join(parts)


def _tokens(usage: UsageRecord) -> str:
    if usage["unknown"] == usage["calls"]:
        return "tokens not told by the server"
    tokens = f"{usage['prompt_tokens']:,} + {usage['completion_tokens']:,} tokens"
    return f"{tokens} and those of {_calls(usage['unknown'])} without a count" if usage["unknown"] else tokens


def _calls(count: int) -> str:
    return f"{count:,} model call{'' if count == 1 else 's'}"
