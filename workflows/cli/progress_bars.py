"""Progress bars of a run on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from workflows.output.printable import VisibleConsole

_SPEED_OVER_S = 60.0


class RateColumn(ProgressColumn):
    """Items a second, as of late."""

    def render(self, task: Task) -> Text:
        """Return the rate; nothing before there is one."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "", style="progress.data.speed")


@contextmanager
def progress_bars(console: Console | None = None, *, silent: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a progress function that draws a bar for each stage on a terminal; elsewhere, and if silent, nothing."""
    console = console or VisibleConsole(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(
        *columns, console=console, disable=silent or not console.is_terminal, speed_estimate_period=_SPEED_OVER_S
    ) as progress:
        bars: dict[str, TaskID] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(escape(stage), total=total)
            progress.update(bars[stage], completed=done, total=total)

        yield advance
