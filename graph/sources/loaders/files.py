"""Reading files as text: opened only if plain, within limits, decoded strictly; and plain text documents."""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from graph.errors import BadInput
from graph.sources.loaders.document import Document, short_spaced
from graph.text import without_controls

MAX_TEXT_BYTES = 64 * 2**20
"""Size of a file that is read whole."""

MAX_LINE_BYTES = 8 * 2**20
"""Size of a line of a file that is read line by line."""

_HEADING_LIMIT = 100
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def readable_path(path: Path) -> str:
    """Return a path as text of one line, with a mark for control characters and for bytes that are not UTF-8."""
    return without_controls(os.fsencode(path.as_posix()).decode("utf-8", "replace"))


def open_file(path: Path) -> BinaryIO:
    """Open a plain file; a pipe is never waited for.

    Raises:
        BadInput: it cannot be opened, or is no plain file.
    """
    try:
        handle = os.open(path, _OPEN_FLAGS)
    except (OSError, ValueError) as fault:
        raise unopened(path, fault) from fault
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadInput(f"{readable_path(path)} is not a plain file", "Name a file or a folder")
    return os.fdopen(handle, "rb")


def unopened(path: Path, fault: Exception) -> BadInput:
    """Return the error of a file that the system does not give."""
    reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else fault
    return BadInput(f"{readable_path(path)} cannot be read ({reason})", "Check the file and its permissions")


def read_bytes(path: Path, limit: int | None = MAX_TEXT_BYTES) -> bytes:
    """Return a file's bytes. Raises BadInput when it cannot be read or is larger than the limit (None: any size)."""
    with open_file(path) as file:
        try:
            content = file.read() if limit is None else file.read(limit + 1)
        except OSError as fault:
            raise unopened(path, fault) from fault
    if limit is not None and len(content) > limit:
        raise BadInput(
            f"{readable_path(path)} is larger than {_mebibytes(limit)}, the most that is read whole",
            "Split it, or give a corpus as .jsonl, which is read line by line",
        )
    return content


def decode(content: bytes, where: str, encoding: str = "utf-8-sig") -> str:
    """Return bytes as text with newlines for line ends: UTF-8, or the encoding of a byte order mark.

    Args:
        content: the bytes of a whole file.
        where: the file, for the error.
        encoding: of content without a byte order mark.

    Raises:
        BadInput: they are no text in that encoding.
    """
    return (
        _decoded(content, where, "utf-16" if content.startswith(_MARKS) else encoding)
        .replace("\r\n", "\n")
        .replace("\r", "\n")
    )


def _decoded(content: bytes, where: str, encoding: str, position: int = 0) -> str:
    """Return bytes that begin at a position of a file as text. Raises BadInput where they are none."""
    if b"\x00" in content and encoding != "utf-16":
        raise _binary(where)
    try:
        text = content.decode(encoding)
    except UnicodeError as fault:
        place = f" (byte {position + fault.start})" if isinstance(fault, UnicodeDecodeError) else ""
        name = "UTF-8" if encoding == "utf-8-sig" else encoding.upper()
        raise BadInput(f"{where} is not {name} text{place}", "Convert it, for example with iconv -t UTF-8") from fault
    if "\x00" in text:
        raise _binary(where)
    return text


def read_text(path: Path, limit: int | None = None) -> str:
    """Return a file's text.

    Raises:
        BadInput: it cannot be opened, is larger than the limit in bytes, or is no text in UTF-8 (or in UTF-16
            with a byte order mark).
    """
    return decode(read_bytes(path, limit), readable_path(path))


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line with its end) of a file of any size, split at newlines alone.

    Raises:
        BadInput: the file cannot be read, is no text, or has a line over `MAX_LINE_BYTES`.
    """
    where = readable_path(path)
    with open_file(path) as file:
        try:
            head = file.read(4)
            if head.startswith(_MARKS):
                yield from enumerate(re.findall(r"[^\n]*\n|[^\n]+", read_text(path, MAX_TEXT_BYTES)), start=1)
                return
            position = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
            file.seek(position)
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise BadInput(
                        f"{where}, line {number} is longer than {_mebibytes(MAX_LINE_BYTES)}", "Give one passage a line"
                    )
                yield number, _decoded(line, f"{where}, line {number}", "utf-8", position)
                position += len(line)
        except OSError as fault:
            raise unopened(path, fault) from fault


def _binary(where: str) -> BadInput:
    return BadInput(f"{where} holds NUL bytes: it is no text", "Give it the suffix of what it is, or leave it out")


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:.3g} MiB"


def parse_json(text: str, where: str, hint: str) -> Any:
    """Return the value of a JSON text. Raises BadInput with that place and hint when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise BadInput(f"{where}: not valid JSON ({fault})", hint) from fault


def load_text(path: Path, source: str) -> Document:
    """Read a plain text document. Raises BadInput as `read_text` does."""
    title, text = plain_title(short_spaced(read_text(path, MAX_TEXT_BYTES)))
    return Document(title, text, source)


def plain_title(text: str) -> tuple[str, str]:
    """Return a first line that stands alone and reads like a heading as the title, and the rest as text."""
    first, _, rest = text.lstrip().partition("\n")
    line, after, _ = rest.partition("\n")
    if (
        after
        and not line.strip()
        and 0 < len(first.strip()) <= _HEADING_LIMIT
        and first.strip()[-1] not in ".!?:;,。！？"
    ):
        return first.strip(), rest
    return "", text
