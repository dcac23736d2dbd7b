"""The prompt of a conversation on a terminal: editing, history, completion of commands; prompt_toolkit does it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History

from graph.environment import environment


def typed_lines(commands: Mapping[str, str], history: History | None = None) -> Iterator[str]:
    """Yield what a person types until Ctrl-D; Ctrl-C clears the line. A paste of several lines is one of them.

    Args:
        commands: what is completed, with its meaning.
        history: earlier lines; without one, those of this conversation.
    """
    completer = WordCompleter([*commands], meta_dict={**commands}, sentence=True)
    session: PromptSession[str] = PromptSession("> ", history=history, completer=completer)
    # Nothing but a command is completed: below a question no room for a menu is left.
    session.complete_while_typing = Condition(lambda: session.default_buffer.text.startswith("/"))
    while True:
        try:
            yield session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def kept_history() -> FileHistory:
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
