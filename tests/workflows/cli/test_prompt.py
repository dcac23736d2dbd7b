"""The prompt of a conversation: lines are edited, kept for the next time, and commands completed."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import History
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from workflows.cli.prompt import kept_history, typed_lines

COMMANDS = {"/sources": "show the passages", "/save": "write a file", "/why": "explain"}

CTRL_C, CTRL_D, UP, LEFT, ENTER = "\x03", "\x04", "\x1b[A", "\x1b[D", "\r"


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def typed(keys: str, history: History | None = None) -> list[str]:
    """The lines that these keys make on a terminal."""
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        pipe.send_text(keys)
        return list(typed_lines(COMMANDS, history))


def test_lines_are_edited_pasted_cleared_and_sent() -> None:
    cases = {
        f"When{ENTER}Wo{LEFT}h{ENTER}{CTRL_D}never{ENTER}": ["When", "Who"],
        f"When was{CTRL_C}Who{ENTER}{CTRL_C}{CTRL_D}": ["Who"],
        f"\x1b[200~When was it\r\nfounded?\nAnd where?\x1b[201~{ENTER}{CTRL_D}": ["When was it\nfounded?\nAnd where?"],
    }
    for keys, lines in cases.items():
        assert typed(keys) == lines, keys


def test_the_last_lines_come_back_in_the_next_conversation() -> None:
    typed(f"When was Marn founded?{ENTER}/why{ENTER}{CTRL_D}", kept_history())
    assert typed(f"{UP}{UP} And who?{ENTER}{CTRL_D}", kept_history()) == ["When was Marn founded? And who?"]


def test_the_history_lies_in_the_users_own_folder_and_only_the_user_reads_it(state_home: Path) -> None:
    typed(f"When?{ENTER}{CTRL_D}")
    assert not state_home.exists(), "a history that passes writes nothing"
    typed(f"When?{ENTER}{CTRL_D}", kept_history())
    path = state_home / "mara" / "chat-history"
    assert "When?" in path.read_text(encoding="utf-8")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
