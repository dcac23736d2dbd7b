"""The command ``mara chat``: a conversation on a terminal, or one question a line over a pipe."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import typer

from workflows.cli.command import command
from workflows.cli.options import Asking, WorkflowOption, asking_settings
from workflows.output.printable import VisibleConsole
from workflows.settings.enums import Workflow


@command
def chat(
    *,
    workspace: Path,
    workflow: WorkflowOption = Workflow.MARA,
    asked: Asking,
    as_json: bool,
) -> None:
    """Talk with the documents of a workspace: a question may lean on earlier ones."""
    from workflows.answering import graph_of
    from workflows.cli.chat_commands import COMMANDS, Chat, answered_as_json
    from workflows.conversation.session import Conversation, turns_of_history
    from workflows.runtime.resources import open_workspace_index, selection_of

    context = asking_settings(workspace, workflow=workflow, **vars(asked))
    index = open_workspace_index(context)
    selection = selection_of(context, index)
    conversation = Conversation(context, turns_of_history(context))
    console = VisibleConsole(soft_wrap=sys.stdout is None or not sys.stdout.isatty(), emoji=False, highlight=False)
    talk, code = Chat(conversation, console), 0
    if as_json:
        code = answered_as_json(conversation, _piped_lines())
    elif not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        code = talk.follow(_piped_lines())
    else:
        graph_of(context.workflow)
        index.encode("Is everything there?")  # The first answer need not wait for the models to be loaded.
        talk.greet(len(index.graph.passages) if selection is None else int(selection.passages.sum()))
        talk.hold(typed_lines({name: meaning for name, (_, meaning) in COMMANDS.items()}))
    if code:
        raise typer.Exit(code)


def typed_lines(commands: Mapping[str, str]) -> Iterator[str]:
    """Yield what a person types until Ctrl-D; Ctrl-C clears the line. A paste of several lines is one of them.

    Args:
        commands: what is completed, with its meaning.
    """
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.filters import Condition

    completer = WordCompleter([*commands], meta_dict={**commands}, sentence=True)
    session: PromptSession[str] = PromptSession("> ", completer=completer)
    # Nothing but a command is completed: below a question no room for a menu is left.
    session.complete_while_typing = Condition(lambda: session.default_buffer.text.startswith("/"))
    while True:
        try:
            yield session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return


def _piped_lines() -> Iterator[str]:
    """Yield the lines of standard input that say something; what is no UTF-8 is left for the question's own check."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")
    for line in sys.stdin or ():
        if line.strip():
            yield line.strip()
