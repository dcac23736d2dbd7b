"""Replies that repeat what the model was told in place of answering: instructions, an example, why it was refused.

Words of the quoted material are never an echo: answers quote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agents.answers.citations import content_tokens, strip_citations
from agents.chat.material import QUOTED_MATERIAL
from graph.errors import MalformedReply
from graph.text import tokens

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

RUN = 6
"""Words in a row that are shared with the instructions by no accident."""

HELD = 0.5
"""The least share of an example's content words that material about the same things holds."""

BORROWED = 0.8
"""The share of an answer's content words that are the instructions', and not the material's, by no accident."""

_SEVERAL = 4
_VERDICTS = frozenset({"yes", "no"})
_TASK_WORDS = frozenset(
    tokens("answer answers question reply example examples material passage passages text title number numbers")
)
_EXAMPLES = "\n## Examples\n"
_REPLY = re.compile(r"^Reply:\n(.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```json\n(.*)\n```$", re.MULTILINE)
_LABEL = re.compile(r"^(.+)\n```json$", re.MULTILINE)

Words = tuple[str, ...]


def check_no_echo(said: object, messages: Sequence[BaseMessage]) -> None:
    """Check that a reply says something of its own.

    An echo is a reply that holds

    - six words in a row of the instructions, unless the material holds them too, or of an example, unless the material
      holds half of their content words;
    - or nothing but the reply of an example, with the same exception;
    - or why the last reply was refused, a label of the quoted material, or the beginning of its line;
    - or the words "quoted material", unless the material holds them.

    Args:
        said: a text, or an object whose texts count.
        messages: the system prompt, the quoted material, and the feedback where there is one.

    Raises:
        MalformedReply: the reply is an echo.
    """
    text = "\n".join(_texts(said))
    system, *others = (str(message.text) for message in messages)
    material = "\n".join(line for message in others[:1] for line in _quoted_texts(message))
    if _repeats_prompt(text, _read_prompt(system), material) or _repeats_request(text, others, material):
        raise MalformedReply("The reply repeats what it was told in place of answering")


def check_says_something(text: str, messages: Sequence[BaseMessage]) -> None:
    """Check that an answer says something beside the question, an example's reply, and words about the task.

    "The answer is: [1]" says nothing; nor does a text of which four words in five are the instructions' own and none
    is the material's. "Yes" and "no" say something. The messages are those of `check_no_echo`.

    Raises:
        MalformedReply: it says nothing.
    """
    system, material, *_ = (str(message.text) for message in messages)
    prompt = _read_prompt(system)
    known = content_tokens(" ".join(_quoted_texts(material)))
    rest = text
    for reply in prompt.replies:
        rest = rest if prompt.suits(reply, known) else rest.replace(reply, " ")
    rest = _spaced(rest).replace(_spaced(_question(material)), " ")
    words = content_tokens(rest) - _VERDICTS
    borrowed = words & prompt.vocabulary - known
    has_verdict = not _VERDICTS.isdisjoint(tokens(rest))
    says_nothing = not rest.strip() or (words and words <= _TASK_WORDS - known and not has_verdict)
    if says_nothing or (len(words) >= _SEVERAL and len(borrowed) >= BORROWED * len(words)):
        raise MalformedReply("The reply says nothing of its own: answer in words of the passages")


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A system prompt as replies are compared with it: runs of its rules and examples, and the examples' replies."""

    rules: frozenset[Words]
    examples: frozenset[Words]
    replies: frozenset[str]
    vocabulary: frozenset[str]

    def suits(self, example: str, known: frozenset[str]) -> bool:
        """Whether material with these content words is about what an example is about."""
        words = content_tokens(strip_citations(example)) - self.vocabulary
        return len(words & known) >= HELD * len(words)


@lru_cache(maxsize=64)
def _read_prompt(text: str) -> _Prompt:
    rules, _, examples = text.partition(_EXAMPLES)
    shown = "\n".join(text_shown for line in examples.splitlines() for text_shown in _texts(_json(line)))
    replies = frozenset("\n".join(_texts(_json(reply))) for reply in _REPLY.findall(examples))
    return _Prompt(frozenset(_runs(rules)), frozenset(_runs(shown)), replies, content_tokens(rules))


def _repeats_prompt(text: str, prompt: _Prompt, material: str) -> bool:
    words, known = content_tokens(material), frozenset(_runs(material))
    runs = [run for run in _runs(text) if run not in known]
    if any(run in prompt.rules for run in runs):
        return True
    copied = [text] if text in prompt.replies else []
    copied += [" ".join(span) for span in _joined(run for run in runs if run in prompt.examples)]
    return not all(prompt.suits(example, words) for example in copied)


def _repeats_request(text: str, others: Sequence[str], material: str) -> bool:
    """Whether a text holds a label or the beginning of the quoted line, or a line of the feedback."""
    phrases = [QUOTED_MATERIAL, *(label for message in others for label in _LABEL.findall(message))]
    for feedback in others[1:]:
        phrases += [*_FENCED.sub("", feedback).splitlines(), *_quoted_texts(feedback)]
    spoken, known = _spaced(text), _spaced(material)
    if any(phrase in spoken and phrase not in known for phrase in map(_spaced, filter(tokens, phrases))):
        return True
    openings = [line.partition(":")[0] for message in others for line in _FENCED.findall(message) if ":" in line]
    return any(opening in text and opening not in material for opening in openings)


def _runs(text: str) -> Iterator[Words]:
    words = tokens(strip_citations(text))
    return (tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1))


def _joined(runs: Iterable[Words]) -> Iterator[list[str]]:
    """The longest stretches of words that runs, in their order, make up together."""
    span: list[str] = []
    for run in runs:
        if span and span[1 - RUN :] == list(run[:-1]):
            span.append(run[-1])
        else:
            yield span
            span = list(run)
    yield span


def _spaced(text: str) -> str:
    """A text's words, each between two spaces, so that only whole ones are found."""
    return f" {' '.join(tokens(strip_citations(text)))} "


def _quoted_texts(message: str) -> Iterator[str]:
    for line in _FENCED.findall(message):
        yield from _texts(_json(line))


def _question(message: str) -> str:
    """The question that the quoted material of a message holds; empty where it holds none."""
    values = map(_json, _FENCED.findall(message))
    return next((str(value.get("question", "")) for value in values if isinstance(value, dict)), "")


def _texts(value: Any) -> Iterator[str]:
    """The texts of a value in order, without the keys and numbers of objects."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, BaseModel):
            left += [getattr(part, name) for name in reversed(type(part).model_fields)]
        elif is_dataclass(part):
            left += [getattr(part, field.name) for field in reversed(fields(part))]
        elif isinstance(part, dict | list | tuple):
            left += reversed(list(part.values()) if isinstance(part, dict) else part)


def _json(line: str) -> Any:
    """The value of a line of JSON; the line itself where it is none."""
    try:
        return json.loads(line)
    except ValueError:
        return line
