"""The base of all commands: turns errors into messages and exit codes, prints results for people or programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, ParamSpec

import typer
from rich.console import Console

from graph.errors import BadInput, MaraError, WorkspaceLocked
from graph.out_of_resources import out_of_memory, shortage_behind
from graph.storage.workspace import Workspace, default_workspace
from workflows.cli import render
from workflows.runtime.printable import VisibleConsole, visible_json

P = ParamSpec("P")

STOPPED = 130
"""Exit code after Ctrl-C."""

REFUSED = 5
"""Exit code where some files were refused and everything else is done."""


_ASKING = ("ask", "chat", "walk", "mcp", "serve")
"""Commands that write nothing into a workspace."""
_KEPT = " What was committed is kept; run the same command to go on."


def _fail(error: MaraError, *, as_json: bool) -> NoReturn:
    if as_json:
        print(visible_json(error_body(error)))  # noqa: T201
    else:
        VisibleConsole(stderr=True, emoji=False, highlight=False).print(render.error(error))
    raise typer.Exit(error.exit_code)


def error_body(error: MaraError) -> dict[str, Any]:
    """Return an error as ``--json`` writes it."""
    return {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}}


def reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the project's errors and those of the disk into a message and an exit code."""

    @wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except MaraError as error:
            _fail(error, as_json=bool(kwargs.get("as_json")))
        except MemoryError:
            _fail(out_of_memory(), as_json=bool(kwargs.get("as_json")))
        except OSError as fault:
            if shortage := shortage_behind(fault):
                _fail(shortage, as_json=bool(kwargs.get("as_json")))
            place = f"{fault.filename}: " if fault.filename else ""
            refused = BadInput(
                f"{str(place)[:200]}{fault.strerror or fault}", "Check the path, its permissions and the disk"
            )
            _fail(refused, as_json=bool(kwargs.get("as_json")))
        except KeyboardInterrupt:
            kept = "" if command.__name__ in _ASKING else _KEPT
            VisibleConsole(stderr=True).print(f"Stopped.{kept}")
            raise typer.Exit(STOPPED) from None

    return guarded


def publish_interrupted(workspace: Path | None) -> None:
    """Publish what a killed command had committed, and say so on standard error.

    Commands that index, ask or serve begin with it. Other faults of the workspace are theirs to report.
    """
    from graph.publish.derive import is_behind, publish_committed

    place, behind = Workspace(workspace or default_workspace()), False
    with suppress(MaraError, OSError), place.open_record() as record:
        behind = is_behind(place, record)
    if not behind:
        return
    try:
        generation = publish_committed(place)
    except WorkspaceLocked:
        return
    except (MaraError, OSError, MemoryError) as fault:
        say(f"What an interrupted command committed cannot be published: {shortage_behind(fault) or fault}")
        return
    if generation is not None:
        say(f"Published what an interrupted command had committed, as generation {generation}")


def say(text: str) -> None:
    """Tell what was done beside what was asked for, on standard error."""
    VisibleConsole(stderr=True, emoji=False, highlight=False, markup=False, soft_wrap=True).print(text)


@contextmanager
def told_beside_the_result() -> Iterator[None]:
    """Report an error on standard error, whatever the format: the result stands on standard output already."""
    try:
        yield
    except MaraError as error:
        _fail(error, as_json=False)


def write(value: Any, pretty: Callable[[Console], None], *, as_json: bool) -> None:
    """Print a result: as JSON, or by a function that writes it on a console."""
    if as_json:
        print(visible_json(value, indent=2))  # noqa: T201
    else:
        terminal = sys.stdout is not None and sys.stdout.isatty()
        pretty(VisibleConsole(soft_wrap=not terminal, emoji=False, highlight=False))
