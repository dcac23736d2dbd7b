"""Replies that repeat what the model was told in place of answering: instructions, an example, why it was refused.

Words of the quoted material are never an echo: answers quote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agents.answers.citations import content_tokens, strip_citations
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

    An echo is a reply that holds six words in a row of the instructions, of an example, or of why the last reply was
    refused, which the material does not hold; or nothing but the reply of an example. What is an example's may be said
    where the material holds half of its content words.

    Args:
        said: a text, or an object whose texts count.
        messages: the system prompt, the quoted material, and the feedback where there is one.

    Raises:
        MalformedReply: the reply is an echo.
    """
    text = "\n".join(_texts(said))
    system, quoted, *feedback = (str(message.text) for message in messages)
    rules, examples, vocabulary = _read_prompt(system)
    material = "\n".join(part for line in _FENCED.findall(quoted) for part in _texts(_json(line)))
    words, known = content_tokens(material) | vocabulary, frozenset(_runs(material))
    runs = frozenset(_runs(text)) - known
    copied = [" ".join(run) for run in runs & examples]
    copied += [text] if text in _replies_of_examples(system) else []
    is_told = not runs.isdisjoint(rules.union(*map(_runs, feedback)))
    if is_told or not all(_suits(example, words) for example in copied):
        raise MalformedReply("The reply repeats what it was told in place of answering")


@lru_cache(maxsize=64)
def _read_prompt(system: str) -> tuple[frozenset[Words], frozenset[Words], frozenset[str]]:
    """The runs of a system prompt's rules, those of its examples, and the rules' content words."""
    rules, _, examples = system.partition(_EXAMPLES)
    shown = "\n".join(text for line in examples.splitlines() for text in _texts(_json(line)))
    return frozenset(_runs(rules)), frozenset(_runs(shown)), content_tokens(rules)


def _replies_of_examples(system: str) -> list[str]:
    return ["\n".join(_texts(_json(reply))) for reply in _REPLY.findall(system)]


def _suits(example: str, known: frozenset[str]) -> bool:
    """Whether material and rules with these content words are about what an example is about."""
    words = content_tokens(strip_citations(example))
    return len(words & known) >= HELD * len(words)


def _runs(text: str) -> Iterator[Words]:
    words = tokens(strip_citations(text))
    return (tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1))


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
