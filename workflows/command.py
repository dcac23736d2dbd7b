"""What every command does alike: report errors with an exit code, and write its result for people or programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NoReturn, ParamSpec

import typer
from rich.console import Console

from graph.errors import BadInput, MaraError
from graph.shortage import out_of_memory, shortage_behind
from workflows import render

P = ParamSpec("P")

STOPPED = 130
"""Exit code after Ctrl-C."""


_ASKING = ("ask", "walk", "mcp")
"""Commands that write nothing into a workspace."""
_KEPT = " What was committed is kept; run the same command to go on."


def _fail(error: MaraError, *, as_json: bool) -> NoReturn:
    if as_json:
        print(json.dumps(error_body(error), ensure_ascii=False))  # noqa: T201
    else:
        Console(stderr=True, emoji=False, highlight=False).print(render.error(error))
    raise typer.Exit(error.exit_code)


def error_body(error: MaraError) -> dict[str, Any]:
    """Return an error as ``--json`` writes it."""
    return {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}}


def reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turn the project's errors, and what the disk refuses, into a message and an exit code."""

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
            Console(stderr=True).print(f"Stopped.{kept}")
            raise typer.Exit(STOPPED) from None

    return guarded


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
        print(json.dumps(value, ensure_ascii=False, indent=2))  # noqa: T201
    else:
        terminal = sys.stdout is not None and sys.stdout.isatty()
        pretty(Console(soft_wrap=not terminal, emoji=False, highlight=False))
