"""A conversation that is typed: what each line leads to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from graph.errors import BadInput, MaraError
from graph.storage.workspace import resolve_workspace, write_atomically
from workflows.cli import chat_views, render
from workflows.cli.command import error_body
from workflows.cli.live_answer import is_shown_live, shown_live
from workflows.conversation.session import Conversation, asks_back
from workflows.explain import explain
from workflows.output.printable import VisibleConsole, visible_json
from workflows.results import Result
from workflows.runs.output_files import check_output

if TYPE_CHECKING:
    from workflows.streaming import Event

COMMANDS: Mapping[str, tuple[str, str]] = {
    "/why": ("", "show how the passages of the last answer were found"),
    "/sources": ("[all]", "show the passages that it cites, or all that were found"),
    "/passage": ("NUMBER", "show a passage whole, the cited words marked"),
    "/meant": ("QUESTION", "ask this in place of the last question, which was misunderstood"),
    "/new": ("[NAME]", "start a new conversation; with a name, go on with that one of the history"),
    "/save": ("FILE", "write the conversation with its sources as Markdown; /save! overwrites"),
    "/help": ("", "show this list"),
    "/quit": ("", "leave, as Ctrl-D does"),
}
"""What each command takes, and what it does."""


class Chat:
    """A conversation that is typed: questions are answered, commands done."""

    def __init__(self, conversation: Conversation, console: Console) -> None:
        self._conversation = conversation
        self._console = console
        self._commands: Mapping[str, Callable[[str], None]] = {
            "/why": self._why,
            "/sources": self._sources,
            "/passage": self._passage,
            "/meant": self._meant,
            "/new": self._new,
            "/save": self._save,
            "/save!": self._overwrite,
            "/help": self._help,
        }

    def greet(self, n_passages: int) -> None:
        """Say what can be asked about."""
        context = self._conversation.context
        self._console.print(
            f"Ask about the {n_passages:,} passages of {render.escape(_workspace_name(context))}."
            " [dim]/help lists the commands, Ctrl-D leaves.[/]"
        )

    def hold(self, lines: Iterable[str]) -> int:
        """Take lines as a person types them; Ctrl-C stops what a line led to, and the conversation goes on.

        Returns:
            The exit code of the first error where nothing was answered, else 0.
        """
        codes: list[int] = []
        for line in map(str.strip, lines):
            if line == "/quit":
                break
            with suppress(KeyboardInterrupt):  # Ctrl-C again, while the first one still stops.
                self._take_until_stopped(line, codes)
        return codes[0] if codes and self._conversation.last is None else 0

    def _take_until_stopped(self, line: str, codes: list[int]) -> None:
        try:
            self._take(line)
        except MaraError as error:
            complain(error)
            codes.append(error.exit_code)
        except KeyboardInterrupt:
            self._console.print("Stopped.")
        if line:
            self._console.print()

    def follow(self, lines: Iterable[str]) -> int:
        """Take lines as a program writes them, and tell each; return the exit code of the first error, else 0."""
        code = 0
        for line in lines:
            self._console.print(f"> {line}", markup=False)
            try:
                if line == "/quit":
                    break
                self._take(line)
            except MaraError as error:
                complain(error)
                code = code or error.exit_code
            self._console.print()
        return code

    def _take(self, line: str) -> None:
        """Answer a question, or do a command."""
        if not line:
            return
        if not line.startswith("/"):
            self._answer(self._conversation.ask(line))
            return
        name, _, words = line.partition(" ")
        if name not in self._commands:
            raise BadInput(f"There is no command {name}", "/help lists them")
        self._commands[name](words.strip())

    def _answer(self, events: Generator[Event, None, None]) -> None:
        chat_views.answer(self._console, _result_of(events))

    def _why(self, words: str) -> None:
        result = self._last()
        if asks_back(result):
            chat_views.understanding(self._console, result)
        else:
            chat_views.why(self._console, result, explain(result, self._conversation.context))

    def _sources(self, words: str) -> None:
        if words not in ("", "all"):
            raise BadInput(f"/sources does not know {words!r}", "Type /sources, or /sources all")
        chat_views.sources(self._console, self._answered(), all_of_them=words == "all")

    def _passage(self, words: str) -> None:
        passages = {str(hit["number"]): hit for hit in self._answered()["passages"]}
        number = words.strip("[]")
        if number not in passages:
            raise BadInput(f"The last answer has no passage {words!r}", "/sources all lists those that it has")
        chat_views.passage(self._console, self._last(), passages[number])

    def _meant(self, words: str) -> None:
        if not words:
            raise BadInput("/meant lacks the question", "Type it whole: /meant When was Nissan founded?")
        self._answer(self._conversation.correct(words))

    def _new(self, words: str) -> None:
        self._conversation.start_over(words)
        told = f"In conversation {render.escape(words)}" if words else "A new conversation"
        self._console.print(f"[dim]{told}: nothing of the last one counts.[/]")

    def _save(self, words: str, *, overwrites: bool = False) -> None:
        path = _file_to_write(words)
        if path.exists() and not overwrites:
            raise BadInput(f"{path} exists", "Name another file, or overwrite it with /save!")
        self._last()
        _write(path, self._conversation.to_markdown())
        self._console.print(f"[dim]Saved in {render.escape(str(path))}[/]")

    def _overwrite(self, words: str) -> None:
        self._save(words, overwrites=True)

    def _help(self, words: str) -> None:
        for name, (takes, meaning) in COMMANDS.items():
            usage = render.escape(f"{f'{name} {takes}':16}")
            self._console.print(f"[bold]{usage}[/] {meaning}")

    def _last(self) -> Result:
        if self._conversation.last is None:
            raise BadInput("Nothing was answered yet", "Ask a question first")
        return self._conversation.last

    def _answered(self) -> Result:
        if asks_back(self._last()):
            raise BadInput("The question is open, and nothing was searched yet", "Type the number of what you mean")
        return self._last()


def answered_as_json(conversation: Conversation, lines: Iterable[str]) -> int:
    """Print each line's result, or its error; return the exit code of the first error, else 0."""
    code = 0
    for line in lines:
        name, _, words = line.partition(" ")
        try:
            if name == "/new":
                conversation.start_over(words.strip())
                continue
            if line.startswith("/") and name != "/meant":
                raise BadInput(f"There is no command {name} with --json", "Type /new, or /meant and a question")
            events = conversation.correct(words) if name == "/meant" else conversation.ask(line)
            told: Mapping[str, Any] = _result_of(events, silent=True)
        except MaraError as error:
            told, code = error_body(error), code or error.exit_code
        print(visible_json(told), flush=True)  # noqa: T201
    return code


def _result_of(events: Generator[Event, None, None], *, silent: bool = False) -> Result:
    """Return the result that the events end with; on a terminal, unless silent, show them as they come."""
    if not silent and is_shown_live():
        return shown_live(events)
    *_, last = events
    assert last.kind == "answered"
    return last.result


def complain(error: MaraError) -> None:
    """Print an error on standard error."""
    VisibleConsole(stderr=True, emoji=False, highlight=False).print(render.error(error))


def _workspace_name(context: Any) -> str:
    return str(resolve_workspace(context.workspace))


def _file_to_write(words: str) -> Path:
    if not words:
        raise BadInput("/save lacks the name of a file", "Type it: /save conversation.md")
    path = Path(words).expanduser()
    check_output(path, ".md")
    return path


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path.resolve(), text)
    except OSError as fault:
        raise BadInput(f"{path} cannot be written ({fault.strerror})", "Name another file") from fault
