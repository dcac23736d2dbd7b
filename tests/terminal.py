"""A terminal for a command: a pseudo-terminal, and a screen that shows what a person would see on it."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60.0
"""How long a test waits for what must happen, before it fails."""

MARA = (sys.executable, "-c", "from workflows.cli.app import main; main()")

_PART = re.compile(r"\x1b\[(?P<numbers>[?\d;]*)(?P<command>[A-Za-z])|(?P<character>.)", re.DOTALL)

_MODES = ("?1", "?7", "?12", "?2004")
"""Cursor keys, wrapping, blinking, and pastes that are told as such: nothing of it is seen."""


class Screen:
    """What a terminal of this width shows, as far as the codes of rich and prompt_toolkit go; it scrolls without end.

    Attributes:
        cursor_is_shown: whether the cursor was not left hidden.
        seen: all that stood on the screen at some time, the oldest first.
    """

    def __init__(self, width: int) -> None:
        self.cursor_is_shown = True
        self.seen: list[str] = []
        self._width = width
        self._lines = [""]
        self._row = self._column = 0

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._lines).rstrip()

    def feed(self, text: str) -> None:
        """Take in what a command writes."""
        for part in _PART.finditer(text):
            if part["command"]:
                self._obey(part["command"], part["numbers"])
            elif part["character"] == "\n":
                self._go_to(self._row + 1, self._column)
            elif part["character"] == "\r":
                self._column = 0
            elif part["character"] == "\b":
                self._column = max(0, self._column - 1)
            else:
                self._put(part["character"])
        if not self.seen or self.seen[-1] != self.text:
            self.seen.append(self.text)

    def _obey(self, command: str, numbers: str) -> None:
        if command == "A":
            self._go_to(self._row - int(numbers or 1), self._column)
        elif command in "CD":
            step = int(numbers or 1) * (1 if command == "C" else -1)
            self._column = max(0, self._column + step)
        elif command == "K":
            self._lines[self._row] = "" if numbers == "2" else self._lines[self._row][: self._column]
        elif command == "J":
            assert not numbers, "only what is below is erased"
            self._lines[self._row :] = [self._lines[self._row][: self._column]]
        elif numbers == "?25":
            self.cursor_is_shown = command == "h"
        elif numbers in _MODES:
            pass
        else:
            assert command == "m", f"the screen does not know {numbers}{command}"

    def _put(self, character: str) -> None:
        if self._column == self._width:
            self._go_to(self._row + 1, 0)
        line = self._lines[self._row].ljust(self._column)
        self._lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
        self._column += 1

    def _go_to(self, row: int, column: int) -> None:
        self._row, self._column = max(0, row), column
        self._lines += [""] * (self._row + 1 - len(self._lines))


class Session:
    """A command on a terminal.

    Attributes:
        screen: what it shows.
    """

    def __init__(self, process: subprocess.Popen[bytes], master: int, width: int) -> None:
        self.screen = Screen(width)
        self._process = process
        self._master = master
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""

    def wait_for(self, what: str | Callable[[Screen], bool]) -> None:
        """Read on until the screen shows a text, or is as wanted."""
        is_so = (lambda screen: what in screen.text) if isinstance(what, str) else what
        until = time.monotonic() + PATIENCE_S
        while not is_so(self.screen):
            assert self._read(until), f"never shown: {what}\n{self.screen.text}"

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.type("\x03")

    def end(self) -> int:
        """Read to the end and return the exit code."""
        until = time.monotonic() + PATIENCE_S
        while self._read(until):
            pass
        return self._process.wait(PATIENCE_S)

    def signals(self) -> bool:
        """Tell whether the terminal still echoes and turns Ctrl-C into a signal, as a shell expects."""
        modes = termios.tcgetattr(self._master)[3]
        return bool(modes & termios.ECHO and modes & termios.ISIG)

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, until - time.monotonic()))
        assert ready, f"nothing more is written\n{self.screen.text}"
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux, where the other end is closed
            return False
        text = self._rest + self._decoder.decode(data)
        unfinished = re.search(r"\x1b[^A-Za-z]*\Z", text)
        self._rest = unfinished[0] if unfinished else ""
        self.screen.feed(text.removesuffix(self._rest))
        return bool(data)


@contextmanager
def on_a_terminal(
    *command: str | Path, environment: Mapping[str, str], width: int = 80, height: int = 24
) -> Iterator[Session]:
    """Run a command on a terminal of its own, to the end of the block at most."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    modes = termios.tcgetattr(slave)
    modes[3] |= termios.NOFLSH  # else Ctrl-C also discards what was written and has not been read yet
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    process = subprocess.Popen(
        list(map(str, command)),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environment, "TERM": "xterm"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        yield Session(process, master, width)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        os.close(master)
