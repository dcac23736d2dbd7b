"""The prompt of a conversation on a terminal: editing, history, completion of commands; prompt_toolkit does it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from graph.environment import environment

PROMPT = "> "


def typed_lines(commands: Mapping[str, str], history: History) -> Iterator[str]:
    """Yield what a person types until Ctrl-D; Ctrl-C clears the line. A paste of several lines is one of them.

    Args:
        commands: what is completed, with its meaning.
        history: earlier lines.
    """
    session: PromptSession[str] = PromptSession(PROMPT, history=history, completer=CommandCompleter(commands))
    # Nothing but a command is completed: below a question no room for a menu is left.
    session.complete_while_typing = Condition(lambda: session.default_buffer.text.startswith("/"))
    while True:
        try:
            yield session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def kept_history() -> History:
    """Return the history that is kept in the user's folder for such files, which no one else can read.

    Raises:
        OSError: it cannot be written.
    """
    path = history_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    return FileHistory(path)


def history_path() -> Path:
    """Return the file of the history: in ``XDG_STATE_HOME``, or ``~/.local/state`` where that names no folder."""
    folder = Path(environment().xdg_state_home)
    return (folder if folder.is_absolute() else Path("~/.local/state").expanduser()) / "mara" / "chat-history"


def passing_history() -> History:
    """Return a history that ends with the conversation."""
    return InMemoryHistory()


class CommandCompleter(Completer):
    """Completes the commands of a conversation, each with its meaning."""

    def __init__(self, commands: Mapping[str, str]) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the commands that begin as the line does."""
        begun = document.text_before_cursor
        for name, meaning in self._commands.items():
            if begun.startswith("/") and name.startswith(begun):
                yield Completion(name, start_position=-len(begun), display_meta=meaning)
