"""Replies that repeat what the model was told in place of answering: instructions, an example, why it was refused.

What stands in the quoted material is never an echo: answers quote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agents.answers.citations import strip_citations
from agents.answers.span_locator import content_tokens
from graph.errors import MalformedReply
from graph.text import tokens

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

RUN = 6
"""Words in a row that are shared with the instructions by no accident."""

HELD = 0.5
"""The least share of an example's content words that material about the same things holds."""

_EXAMPLES = "\n## Examples\n"
_REPLY = re.compile(r"^Reply:\n(.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```json\n(.*)\n```$", re.MULTILINE)

Words = tuple[str, ...]


def check_no_echo(said: object, messages: Sequence[BaseMessage]) -> None:
    """Check that a reply says something of its own.

    It repeats what it was told where it holds six words in a row of the system prompt, unless the material holds them
    too, or, for those of an example, half of their content words; a whole example, unless likewise; any other line of
    the messages, the reason of a refusal included; or the beginning of the quoted line.

    Args:
        said: a text, or an object whose texts count.
        messages: the system prompt, the quoted material, and a feedback where there is one.

    Raises:
        MalformedReply: the reply is an echo.
    """
    text = "\n".join(_texts(said))
    prompt = _read_prompt(str(messages[0].text))
    told = [str(message.text) for message in messages[1:]]
    material = "\n".join(line for message in told[:1] for line in _quoted_texts(message))
    if _repeats(text, prompt, material) or _repeats_line(text, told, material):
        raise MalformedReply("The reply repeats what it was told in place of answering")


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A system prompt as replies are compared with it: its instructions, and the runs and replies of its examples."""

    instructions: str
    rules: frozenset[Words]
    examples: frozenset[Words]
    replies: frozenset[str]


@lru_cache(maxsize=64)
def _read_prompt(text: str) -> _Prompt:
    instructions, _, examples = text.partition(_EXAMPLES)
    shown = "\n".join(told for line in examples.splitlines() for told in _texts(_json(line)))
    replies = frozenset("\n".join(_texts(_json(reply))) for reply in _REPLY.findall(examples))
    return _Prompt(_spaced(instructions), frozenset(_runs(instructions)), frozenset(_runs(shown)), replies)


def _repeats(text: str, prompt: _Prompt, material: str) -> bool:
    """Whether a text repeats the system prompt."""
    held = content_tokens(material)
    if text in prompt.replies and _spaced(text) not in prompt.instructions and not _is_held(text, held):
        return True
    known = frozenset(_runs(material))
    return any(
        run in prompt.rules or (run in prompt.examples and not _is_held(" ".join(run), held))
        for run in _runs(text)
        if run not in known
    )


def _repeats_line(text: str, told: Sequence[str], material: str) -> bool:
    """Whether a text holds a line of the messages that is not the material's, or the beginning of the quoted line."""
    lines = [line for message in told for line in _FENCED.sub("", message).splitlines()]
    lines += [line for message in told[1:] for line in _quoted_texts(message)]
    spoken, known = _spaced(text), _spaced(material)
    phrases = {_spaced(line) for line in lines if tokens(line)}
    if any(phrase in spoken and phrase not in known for phrase in phrases):
        return True
    openings = {line.partition(":")[0] for message in told for line in _FENCED.findall(message) if ":" in line}
    return any(opening in text and opening not in material for opening in openings)


def _is_held(text: str, held: Set[str]) -> bool:
    words = content_tokens(strip_citations(text))
    return len(words & held) >= HELD * len(words)


def _runs(text: str) -> Iterator[Words]:
    words = tokens(strip_citations(text))
    return (tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1))


def _spaced(text: str) -> str:
    """A text's words, each between two spaces, so that only whole ones are found."""
    return f" {' '.join(tokens(strip_citations(text)))} "


def _quoted_texts(message: str) -> Iterator[str]:
    for line in _FENCED.findall(message):
        yield from _texts(_json(line))


def _texts(value: Any) -> Iterator[str]:
    """The texts of a value in order, without the keys and numbers of objects."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, BaseModel):
            left += [getattr(part, name) for name in reversed(type(part).model_fields)]
        elif isinstance(part, dict | list | tuple):
            left += reversed(list(part.values()) if isinstance(part, dict) else part)


def _json(line: str) -> Any:
    """The value of a line of JSON; the line itself where it is none."""
    try:
        return json.loads(line)
    except ValueError:
        return line
