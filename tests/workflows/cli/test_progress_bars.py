"""Progress bars: a stage each on a terminal, and not a byte anywhere else."""

from __future__ import annotations

import io

from rich.console import Console

from workflows.cli.command import progress_bars


def test_on_a_terminal_each_stage_shows_done_and_total() -> None:
    screen = io.StringIO()
    with progress_bars(Console(file=screen, force_terminal=True, width=100)) as progress:
        for done in range(0, 65, 16):
            progress("extract", done, 64)
        progress("commit", 0, 64)
    shown = screen.getvalue()
    assert "extract" in shown
    assert "64/64" in shown
    assert "commit" in shown
