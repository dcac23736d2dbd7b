"""The base of all commands: turns errors into messages and exit codes, prints results and progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, TaskID
from typer.core import TyperGroup

from graph.environment import refresh_environment, set_variables
from graph.errors import BadInput, MaraError, WorkspaceLocked, out_of_memory, shortage_behind
from workflows.cli import render
from workflows.output.printable import VisibleConsole, visible_json

STOPPED = 130
"""Exit code after Ctrl-C."""

REFUSED = 5
"""Exit code where some files were refused and everything else is done."""


_ASKING = ("ask", "chat", "mcp", "serve_page")
"""Commands that write nothing into a workspace."""
_KEPT = " What was committed is kept; run the same command to go on."


def _fail(error: MaraError, *, as_json: bool) -> NoReturn:
    if as_json:
        print(visible_json(error_body(error)))  # noqa: T201
    else:
        complain(error)
    raise typer.Exit(error.exit_code)


def complain(error: MaraError) -> None:
    """Print an error on standard error."""
    VisibleConsole(stderr=True, emoji=False, highlight=False).print(render.error(error))


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The options that every command takes, before its name or behind it.

    Attributes:
        workspace: the folder; None where none is named.
        as_json: whether the result is printed as JSON.
    """

    workspace: Path | None = None
    as_json: bool = False


def everywhere(context: typer.Context) -> Everywhere:
    """Return the options of a command line that every command takes."""
    options = context.find_root().obj
    return options if isinstance(options, Everywhere) else Everywhere()


def named(fault: MaraError | MemoryError | OSError) -> MaraError:
    """Return a fault of the machine as one of the project's errors."""
    if isinstance(fault, MaraError):
        return fault
    if isinstance(fault, MemoryError):
        return out_of_memory()
    place = f"{fault.filename}: "[:200] if fault.filename else ""
    refused = BadInput(f"{place}{fault.strerror or fault}", "Check the path, its permissions and the disk")
    return shortage_behind(fault) or refused


def error_body(error: MaraError) -> dict[str, Any]:
    """Return an error as ``--json`` writes it."""
    return {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}}


def publish_interrupted(root: Path) -> None:
    """Publish what a killed command had committed, and say so on standard error.

    Commands that index, ask or serve begin with it. Other faults of the workspace are theirs to report.
    """
    from graph.publish.derive import is_behind, publish_committed
    from graph.storage.workspace import Workspace

    workspace, behind = Workspace(root), False
    with suppress(MaraError, OSError), workspace.open_record() as record:
        behind = is_behind(workspace, record)
    if not behind:
        return
    try:
        generation = publish_committed(workspace)
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


def somebody_answers() -> bool:
    """Tell whether a question can be put on the terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def write(value: Any, pretty: Callable[[Console], None], *, as_json: bool) -> None:
    """Print a result: as JSON, or by a function that writes it on a console."""
    if as_json:
        print(visible_json(value, indent=2))  # noqa: T201
    else:
        terminal = sys.stdout is not None and sys.stdout.isatty()
        pretty(VisibleConsole(soft_wrap=not terminal, emoji=False, highlight=False))


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of a command.

    Attributes:
        value: what ``--json`` prints.
        show: writes the value on a console, for people; or what is written, as markup.
        code: exit code.
    """

    value: Any
    show: Callable[[Console, Any], None] | str
    code: int = 0

    def on(self, console: Console) -> None:
        """Write the result on a console."""
        if isinstance(self.show, str):
            console.print(self.show)
        else:
            self.show(console, self.value)


class DefaultGroup(TyperGroup):
    """Commands of which one runs where none is named: `mara history ada` is `mara history show ada`."""

    default: ClassVar[str]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command in front of arguments that name none."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def default_group(name: str, help_text: str) -> typer.Typer:
    """Return a group of commands that runs the one of this name where none is named; ``help_text`` is its help."""
    return typer.Typer(
        cls=type("_Group", (DefaultGroup,), {"default": name}),
        help=f"{help_text} Without a command: {name}.",
        epilog=f"Without a command, the options are those that `{name} --help` shows.",
    )


class Group:
    """A group of options, which a command takes as one parameter: it is made of them by name."""


def command(function: Callable[..., Shown | None]) -> Callable[..., None]:
    """Make a command of a function: its errors are reported, and what it returns is printed, with ``--json`` as JSON.

    Errors of the project and of the disk become a message and an exit code; so does Ctrl-C.

    A parameter whose type is a `Group` stands for its options. The parameters ``workspace`` and ``as_json`` are options
    of every command (`Everywhere`); where the command line names no workspace, it is the parameter's default, or the
    default workspace. A command that has neither refuses them.
    """
    own = signature(function, eval_str=True)
    kinds = {name: parameter.annotation for name, parameter in own.parameters.items()}
    groups = {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Group)}
    grouped = {name: signature(group, eval_str=True).parameters for name, group in groups.items()}
    options: dict[str, Parameter] = {}
    for name, option in own.parameters.items():
        options |= grouped.get(name, {name: option})
    workspace = options.pop("workspace", None)
    has_json = options.pop("as_json", None) is not None or own.return_annotation is not None

    def run(asked: Everywhere, values: dict[str, Any]) -> None:
        if asked.workspace and workspace is None:
            raise BadInput("This command opens no workspace", "Leave --workspace out")
        if asked.as_json and not has_json:
            raise BadInput("This command has no result to print as JSON", "Leave --json out")
        values |= {"as_json": asked.as_json, "workspace": _workspace(asked, workspace)}
        made = {name: group(**{option: values[option] for option in grouped[name]}) for name, group in groups.items()}
        shown = function(**{name: made[name] if name in made else values[name] for name in own.parameters})
        if shown is not None:
            write(shown.value, shown.on, as_json=asked.as_json)
            if shown.code:
                raise typer.Exit(shown.code)

    @wraps(function)
    def guarded(ctx: typer.Context, **values: Any) -> None:
        set_variables({"LANGSERVE_GRAPHS": None})
        asked = everywhere(ctx)
        try:
            refresh_environment()
            run(asked, values)
        except (MaraError, MemoryError, OSError) as fault:
            _fail(named(fault), as_json=asked.as_json)
        except KeyboardInterrupt:
            kept = "" if function.__name__ in _ASKING else _KEPT
            VisibleConsole(stderr=True).print(f"Stopped.{kept}")
            raise typer.Exit(STOPPED) from None

    options["ctx"] = Parameter("ctx", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    keywords = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in options.values()]
    vars(guarded)["__signature__"] = own.replace(parameters=keywords, return_annotation=None)
    return guarded


def _workspace(asked: Everywhere, parameter: Parameter | None) -> Path | None:
    if asked.workspace or parameter is None:
        return asked.workspace
    if parameter.default is not Parameter.empty:
        return Path(parameter.default)
    from graph.storage.workspace import default_workspace

    return default_workspace()


@contextmanager
def progress_bars(
    console: Console | None = None, *, silent: bool = False, transient: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a progress function that draws a bar for each stage on a terminal; elsewhere, and if silent, nothing.

    Transient bars go when the work is done.
    """
    console = console or VisibleConsole(stderr=True)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    disable = silent or not console.is_terminal
    with Progress(*columns, console=console, disable=disable, transient=transient) as progress:
        bars: dict[str, TaskID] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(escape(stage), total=total)
            progress.update(bars[stage], completed=done, total=total)

        yield advance
