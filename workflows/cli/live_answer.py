"""A question asked from a terminal: which node runs and the answer as it is written, then what it took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from graph.text import counted
from workflows.context import Context
from workflows.output.printable import VisibleConsole, visible
from workflows.results import TOTAL, Result
from workflows.states.records import UsageRecord

if TYPE_CHECKING:
    from workflows.streaming import Event

_REFRESHES_PER_SECOND = 8
_WRITING = ("write_answer", "quote_passages")
_SUBGRAPH = "check_claims"
"""Its own nodes tell when they start and end."""


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
    with closing(events), live:
        event = next(events)
        while event.kind != "answered":
            live_answer.tell(event)
            event = next(events)
    return event.result


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
        self._running: dict[str, float] = {}
        self._status, self._since = "open workspace", clock()

    def tell(self, event: Event) -> None:
        """Take in an event of `workflows.streaming`."""
        if event.kind == "token":
            self._answer = event.text if self._begins_anew else self._answer + event.text
            self._begins_anew = False
        elif event.kind == "node_started" or (event.kind == "progress" and event.event == "started"):
            if event.kind == "node_started":
                self._begins_anew = True
                self._answer = "" if event.node in _WRITING else self._answer
            if event.node != _SUBGRAPH:
                self._running.setdefault(event.node, self._clock())
        elif event.kind == "progress":
            self._running.pop(event.node, None)
        if self._running:  # between two nodes, the last one is told on
            self._status, self._since = ", ".join(self._running).replace("_", " "), min(self._running.values())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the answer's last lines and the status."""
        room = max(1, options.size.height - 2)
        if self._answer:
            yield from Text(visible(self._answer)).wrap(console, options.max_width)[-room:]
        status = f"{self._status} … {self._clock() - self._since:.1f} s"
        yield Text(status, style="dim", no_wrap=True, overflow="ellipsis")


def spent(result: Result) -> str:
    """Return what an answer took: calls of a chat model, tokens in and out, seconds and, with prices, cost."""
    usage, seconds = result["usage"], result["timings_ms"][TOTAL] / 1000
    took = f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    if not usage["calls"]:
        return f"{'no model' if result['models']['chat'] == 'offline' else 'no model call'} · {took}"
    parts = [counted(usage["calls"], "model call"), _tokens(usage), took]
    if "cost" in usage:
        parts.append("cost unknown" if usage["cost"] is None else f"cost {usage['cost']:.4g}")
    return " · ".join(parts)


def _tokens(usage: UsageRecord) -> str:
    if usage["unknown"] == usage["calls"]:
        return "tokens not told by the server"
    tokens = f"{usage['prompt_tokens']:,} + {usage['completion_tokens']:,} tokens"
    return f"{tokens} and those of {usage['unknown']:,} calls without a count" if usage["unknown"] else tokens
