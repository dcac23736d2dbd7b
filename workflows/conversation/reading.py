"""A conversation as a workflow takes it: the question that its messages end with, and the turns before.

Nothing here trusts a message: a client may send any, with whatever metadata, in place of those of the thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.leaning import chosen_reading
from agents.roles import Turn
from graph.errors import BadInput
from workflows.conversation.writing import EVIDENCE_ENDING, METADATA
from workflows.settings.enums import ResultKind
from workflows.settings.mara import QUESTION_LIMIT, TURNS_LIMIT

ANSWER_LIMIT = 10_000
"""Characters of an earlier answer that count."""


@dataclass(frozen=True, slots=True)
class NextQuestion:
    """A question of a conversation.

    Attributes:
        question: whole where a reading was chosen, else as the user wrote it.
        turns: those before it, the last one last; none before a chosen reading, which stands alone.
        notes: what of the messages does not count, and why.
    """

    question: str
    turns: tuple[Turn, ...]
    notes: tuple[str, ...]


def next_question(messages: Sequence[BaseMessage]) -> NextQuestion:
    """Return the question that a conversation ends with, and the turns before it.

    Raises:
        BadInput: it does not end with a question of the user, or that holds no text.
    """
    asked = _last_place(messages, HumanMessage)
    answered = _last_place(messages, AIMessage)
    if asked < 0 or answered > asked:
        raise BadInput("The conversation ends without a question", "Send a message of the user (type human) last")
    notes = [*_other_roles(messages[answered + 1 :])]
    question = _question_of(messages[asked], notes)
    choices = choices_of(messages[:asked])
    if (chosen := chosen_reading(question, choices)) is not None:
        return NextQuestion(chosen, (), tuple(notes))
    return NextQuestion(question, _turns(messages[:asked], notes), tuple(notes))


def choices_of(messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    """Return the readings that the last message asks the user to choose from; none where it asks nothing."""
    answer = next((each for each in reversed(messages) if isinstance(each, HumanMessage | AIMessage)), None)
    told = _told_by(answer) if isinstance(answer, AIMessage) else None
    return told.choices if told else ()


class _Source(BaseModel):
    passage_id: Annotated[str, Field(max_length=QUESTION_LIMIT)]


class _Understood(BaseModel):
    choices: Annotated[list[Annotated[str, Field(max_length=QUESTION_LIMIT)]], Field(max_length=100)]


class _Told(BaseModel):
    """What of an answer's metadata counts in the next turn."""

    model_config = ConfigDict(strict=True)

    question: Annotated[str, Field(min_length=1, max_length=QUESTION_LIMIT)]
    answer_kind: str
    sources: Annotated[list[_Source], Field(max_length=1_000)]
    understood: _Understood | None

    @property
    def choices(self) -> tuple[str, ...]:
        """The readings that the user is asked to choose from."""
        asks_back = self.answer_kind == ResultKind.CLARIFICATION and self.understood
        return tuple(self.understood.choices) if asks_back and self.understood else ()


def _told_by(answer: AIMessage) -> _Told | None:
    """Return what an answer tells; None where it tells nothing, or nothing that can be read."""
    try:
        return _Told.model_validate(answer.response_metadata.get(METADATA))
    except ValidationError:
        return None


def _turns(messages: Sequence[BaseMessage], notes: list[str]) -> tuple[Turn, ...]:
    """Return the turns that earlier messages make, and note what of them does not count."""
    pairs: list[tuple[HumanMessage, AIMessage | None]] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            pairs.append((message, None))
        elif isinstance(message, AIMessage) and pairs and text_of(message):
            pairs[-1] = (pairs[-1][0], message)
    dropped: Counter[str] = Counter()
    last = len(pairs) - 1
    turns = [_turn(asked, answer, place == last, dropped) for place, (asked, answer) in enumerate(pairs)]
    notes += [f"{reason}: {count}" for reason, count in dropped.items()]
    return tuple(turn for turn in turns if turn)[-TURNS_LIMIT:]


def _turn(asked: HumanMessage, answer: AIMessage | None, is_last: bool, dropped: Counter[str]) -> Turn | None:
    """Return a question with its answer; None where it does not count."""
    told = _told_by(answer) if answer else None
    if told and told.choices and not is_last:
        return None
    question = told.question if told else text_of(asked)
    if not question.strip() or len(question) > QUESTION_LIMIT:
        dropped[f"Earlier messages without text, or of more than {QUESTION_LIMIT:,} characters, do not count"] += 1
        return None
    if answer is None:
        return Turn(question)
    if told is None and METADATA in answer.response_metadata:
        dropped["Earlier answers whose sources cannot be read do not count"] += 1
        return Turn(question)
    text = text_of(answer).removesuffix(EVIDENCE_ENDING)
    if len(text) > ANSWER_LIMIT:
        dropped[f"Of earlier answers, the first {ANSWER_LIMIT:,} characters count"] += 1
    return Turn(question, text[:ANSWER_LIMIT], tuple(source.passage_id for source in told.sources) if told else ())


def text_of(message: BaseMessage) -> str:
    """Return the text of a message: its content, or its blocks of text, one a line."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(text for block in message.content if (text := _text_of_block(block)) is not None)


def _text_of_block(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def _question_of(message: BaseMessage, notes: list[str]) -> str:
    """Return the text of the question, and note what else the message holds. Raises BadInput where that is all."""
    blocks = [] if isinstance(message.content, str) else message.content
    unread = Counter(_kind_of(block) for block in blocks if _text_of_block(block) is None)
    others = ", ".join(f"{kind} ({count})" for kind, count in unread.items())
    text = text_of(message)
    if others and not text.strip():
        raise BadInput(f"The last message holds no text, but {others}", "Ask in words: only text is read")
    if others:
        notes.append(f"Only text is read; left out: {others}")
    return text


def _kind_of(block: Any) -> str:
    return str(block.get("type") or "unknown")[:50]


def _other_roles(messages: Sequence[BaseMessage]) -> list[str]:
    """Tell of the messages since the last answer that ask nothing: instructions come from the server alone."""
    others = Counter(message.type for message in messages if not isinstance(message, HumanMessage))
    told = ", ".join(f"{role[:50]} ({count})" for role, count in others.items())
    return [f"Messages of other roles do not count: {told}"] if told else []


def _last_place(messages: Sequence[BaseMessage], kind: type[BaseMessage]) -> int:
    return next((place for place in reversed(range(len(messages))) if isinstance(messages[place], kind)), -1)
