"""An answer and a conversation as text: what *Copy* takes along, and the file of a whole conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from workflows.output.markdown import plain

_LONGEST = 10_000
_FETCHED = re.compile(
    r"!(?=\[)|<(?=(?:img|picture|svg|video|audio|iframe|object|embed|link|script|style)\b)", re.IGNORECASE
)


def as_text(turn: Mapping[str, Any], escape: Callable[[str], str] = str) -> str:
    """Return an answer with its sources.

    Args:
        turn: as the page draws it.
        escape: applied to what comes from documents.
    """
    sources = [f"- [{each['mark']}] {escape(each['title'])} ({escape(each['source'])})" for each in turn["sources"]]
    return "\n".join([turn["told"], *([""] if sources else []), *sources])


def as_markdown(title: str, turns: Iterable[Mapping[str, Any]]) -> str:
    """Return a conversation as Markdown: questions, when and with what settings they were asked, answers, sources.

    The reader of the file fetches nothing that an answer names: an image is a link to it.

    Args:
        title: of the conversation.
        turns: those that are shown, as the page draws them.
    """
    parts = [f"# {_line(title)}"]
    for turn in turns:
        at = datetime.fromtimestamp(turn["at"], UTC).strftime("%Y-%m-%d %H:%M UTC")
        parts += [f"## {_line(turn['question'])}", f"*{' · '.join([at, *map(_line, turn['asked_with'])])}*"]
        if turn.get("understood"):
            parts.append(f"Understood as: {_line(turn['understood']['question'])}")
        if turn["state"] == "answered":
            parts.append(_FETCHED.sub(r"\\\g<0>", as_text(turn, _line)))
        else:
            parts += [turn["text"], f"*{_line(turn['error']) or 'This question has no whole answer.'}*"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(text: str) -> str:
    return plain(text, _LONGEST)
