"""A conversation that is typed: what each line leads to, and what it shows on a terminal."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from graph.errors import BadInput, MaraError
from graph.storage.workspace import resolve_workspace
from graph.text import counted
from workflows.cli import render
from workflows.cli.command import complain, error_body
from workflows.cli.live_answer import is_shown_live, shown_live, spent
from workflows.cli.render import escape
from workflows.conversation.session import Conversation, asks_back
from workflows.explaining import explain
from workflows.explanation.why import spoken
from workflows.output.printable import visible_json
from workflows.results import Result
from workflows.runs.run_folder import check_output, write_output

if TYPE_CHECKING:
    from workflows.explanation.model import Explanation
    from workflows.streaming import Event


COMMANDS: Mapping[str, tuple[str, str]] = {
    "/why": ("", "tell why the last answer is what it is, and how its passages were found"),
    "/sources": ("[all]", "show the passages that it cites, or all that were found"),
    "/passage": ("NUMBER", "show a passage whole, the cited words marked"),
    "/meant": ("QUESTION", "ask this in place of the last question, which was misunderstood"),
    "/new": ("[NAME]", "start a new conversation; with a name, go on with that one of the history"),
    "/save": ("FILE", "write the conversation with its sources as Markdown"),
    "/help": ("", "show this list"),
    "/quit": ("", "leave, as Ctrl-D does"),
}
"""The argument of each command, and its purpose."""


class Chat:
    """A conversation that is typed: questions are answered, commands done."""

    def __init__(self, conversation: Conversation, console: Console) -> None:
        self._conversation = conversation
        self._console = console

    def greet(self, n_passages: int) -> None:
        """Say what can be asked about."""
        workspace = escape(str(resolve_workspace(self._conversation.context.workspace)))
        self._console.print(
            f"Ask about the {n_passages:,} passages of {workspace}. [dim]/help lists the commands, Ctrl-D leaves.[/]"
        )

    def hold(self, lines: Iterable[str]) -> None:
        """Take lines as a person types them; Ctrl-C stops what a line led to, and the conversation goes on."""
        for line in map(str.strip, lines):
            if line == "/quit":
                return
            with suppress(KeyboardInterrupt):  # Ctrl-C again, while the first one still stops.
                try:
                    self._done(line)
                except KeyboardInterrupt:
                    self._console.print("Stopped.")

    def follow(self, lines: Iterable[str]) -> int:
        """Take lines as a program writes them, and show each; return the exit code of the first error, else 0."""
        code = 0
        for line in lines:
            self._console.print(f"> {line}", markup=False)
            if line == "/quit":
                break
            failed = self._done(line)
            code = code or failed
        return code

    def _done(self, line: str) -> int:
        """Do what a line says; print its error, and return the exit code."""
        code = 0
        try:
            self._take(line)
        except MaraError as error:
            complain(error)
            code = error.exit_code
        if line:
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
        if name not in COMMANDS:
            raise BadInput(f"There is no command {name}", "/help lists them")
        getattr(self, f"_{name[1:]}")(words.strip())

    def _answer(self, events: Generator[Event, None, None]) -> None:
        show_answer(self._console, _result_of(events))

    def _why(self, words: str) -> None:
        result = self._last()
        if asks_back(result):
            show_understanding(self._console, result)
        else:
            show_why(self._console, result, explain(result, self._conversation.context))

    def _sources(self, words: str) -> None:
        if words not in ("", "all"):
            raise BadInput(f"/sources does not know {words!r}", "Type /sources, or /sources all")
        show_sources(self._console, self._answered(), all_of_them=words == "all")

    def _passage(self, words: str) -> None:
        passages = {str(hit["number"]): hit for hit in self._answered()["passages"]}
        number = words.strip("[]")
        if number not in passages:
            raise BadInput(f"The last answer has no passage {words!r}", "/sources all lists those that it has")
        show_passage(self._console, self._last(), passages[number])

    def _meant(self, words: str) -> None:
        if not words:
            raise BadInput("/meant lacks the question", "Type it whole: /meant When was Nissan founded?")
        self._answer(self._conversation.correct(words))

    def _new(self, words: str) -> None:
        self._conversation.start_over(words)
        label = f"In conversation {escape(words)}" if words else "A new conversation"
        self._console.print(f"[dim]{label}: nothing of the last one counts.[/]")

    def _save(self, words: str) -> None:
        if not words:
            raise BadInput("/save lacks the name of a file", "Type it: /save conversation.md")
        path = Path(words).expanduser()
        check_output(path, ".md")
        if path.exists():
            raise BadInput(f"{path} exists", "Name another file")
        self._last()
        write_output(path, self._conversation.to_markdown())
        self._console.print(f"[dim]Saved in {escape(str(path))}[/]")

    def _help(self, words: str) -> None:
        for name, (takes, meaning) in COMMANDS.items():
            usage = escape(f"{f'{name} {takes}':16}")
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
            body: Mapping[str, Any] = _result_of(events, silent=True)
        except MaraError as error:
            body, code = error_body(error), code or error.exit_code
        print(visible_json(body), flush=True)  # noqa: T201
    return code


def _result_of(events: Generator[Event, None, None], *, silent: bool = False) -> Result:
    """Return the result that the events end with; on a terminal, unless silent, show them as they come."""
    if not silent and is_shown_live():
        return shown_live(events)
    *_, last = events
    assert last.kind == "answered"
    return last.result


def show_answer(console: Console, result: Result) -> None:
    """Print an answer over the list of the passages that it cites, or the choices where it asks back."""
    render.understood(console, result)
    if asks_back(result):
        _choices(console, result)
        return
    console.print(render.marked(console, render.headed(result)))
    for hit in _cited_hits(result):
        console.print(f"  {render.heading(hit, result['citations'])}")
    render.checked(console, result)
    for message in render.notes(render.untold(result)):
        render.warn(console, message)
    render.aside(console, spent(result))


def _choices(console: Console, result: Result) -> None:
    console.print("What do you mean? Type its number, or ask something else.", style="bold")
    understood = result["understood"]
    for number, choice in enumerate(understood["choices"] if understood else (), start=1):
        console.print(f"  [bold]{number}[/] {escape(choice)}")


def show_sources(console: Console, result: Result, *, all_of_them: bool) -> None:
    """Print the passages that an answer cites, or all that were found."""
    shown = result["passages"] if all_of_them else _cited_hits(result)
    render.passages(console, shown, result["citations"])
    if left := len(result["passages"]) - len(shown):
        render.aside(console, f"{counted(left, 'passage')} found beside: /sources all shows them")


def show_passage(console: Console, result: Mapping[str, Any], hit: Mapping[str, Any]) -> None:
    """Print a passage whole, the words that the answer cites marked as the key sentence of an answer is."""
    cited = [mark for mark in result["citations"] if mark["number"] == hit["number"] and mark["start"] is not None]
    text, position = "", 0
    for start, end in sorted((mark["start"], mark["end"]) for mark in cited):
        if start >= position:
            text += f"{hit['text'][position:start]}**{hit['text'][start:end]}**"
            position = end
    console.print(render.heading(hit, result["citations"], verbose=True))
    console.print(render.marked(console, text + hit["text"][position:]))


def show_understanding(console: Console, result: Result) -> None:
    """Print what a question that leans on earlier turns was understood as, and why that was needed."""
    if understood := result["understood"]:
        render.understood(console, result)
        render.aside(console, f"because {understood['because']} ({understood['by']})")


def show_why(console: Console, result: Result, explanation: Explanation) -> None:
    """Print why in sentences, what steered the ranking, and how the walk came to the cited passages."""
    show_understanding(console, result)
    for sentence in explanation.why:
        console.print(escape(spoken(sentence)))
    _ways(console, explanation)
    render.walked(console, result)
    render.judged(console, result)


def _ways(console: Console, explanation: Explanation) -> None:
    """Print the best paths of the walk to the cited passages, or to the best one where nothing is cited."""
    nodes = {node.id: node for node in explanation.nodes}
    for key in dict.fromkeys(path.passage for path in explanation.paths):
        node = nodes[key]
        number = f"[{node.number}] " if node.number else ""
        console.print(f"[bold]{escape(number + node.label)}[/]: {node.mass[-1]:.1%} of the walk's mass")
        for path in explanation.paths:
            if path.passage == key:
                console.print(f"  {path.mass:.1%} {escape(path.words)}")


def _cited_hits(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    cited = {mark["number"] for mark in result["citations"]}
    return [hit for hit in result["passages"] if hit["number"] in cited]
