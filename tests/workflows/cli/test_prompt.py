"""The prompt of a conversation: lines are edited, and commands completed."""

from __future__ import annotations

from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from workflows.cli.chat import typed_lines

COMMANDS = {"/sources": "show the passages", "/save": "write a file", "/why": "explain"}

CTRL_C, CTRL_D, LEFT, ENTER = "\x03", "\x04", "\x1b[D", "\r"


def typed(keys: str) -> list[str]:
    """The lines that these keys make on a terminal."""
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        return list(typed_lines(COMMANDS))


def test_lines_are_edited_pasted_cleared_and_sent() -> None:
    cases = {
        f"When{ENTER}Wo{LEFT}h{ENTER}{CTRL_D}never{ENTER}": ["When", "Who"],
        f"When was{CTRL_C}Who{ENTER}{CTRL_C}{CTRL_D}": ["Who"],
        f"\x1b[200~When was it\r\nfounded?\nAnd where?\x1b[201~{ENTER}{CTRL_D}": ["When was it\nfounded?\nAnd where?"],
    }
    for keys, lines in cases.items():
        assert typed(keys) == lines, keys
