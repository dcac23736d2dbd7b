"""The messages of a conversation: written as answers with their sources, read as a question and the turns before.

Nothing that reads trusts a message: a client may send any, with whatever metadata, in place of those of the thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypedDict  # pydantic, and so the schemas, takes no other before Python 3.12

from agents.leaning import chosen_reading
from agents.roles import Turn
from graph.errors import BadInput
from workflows.output.markdown import code, plain
from workflows.output.quoted import pages_of, section_of
from workflows.results import (
    Result,
    cited_passages,
    in_words,
    label_of,
    notes_of,
    refusal_text,
    remarks_on,
    words_of,
)
from workflows.settings.enums import ResultKind
from workflows.settings.mara import QUESTION_LIMIT, TURNS_LIMIT
from workflows.states.records import CitationMark, PassageHit, Understood, UsageRecord
from workflows.wording import WORDS, without_words

METADATA = "mara"
"""The key of an answer's ``response_metadata`` that holds its `AnswerMetadata`."""

EXCERPT_LIMIT = 300
"""Characters of a source's excerpt, of its title, and of a note."""

_SOURCES = [f"**{words.sources}**" for words in WORDS.values()]
"""The lines over the list of an answer's sources."""

_SOURCE = re.compile(r"- \[\d+\] .*")

ANSWER_LIMIT = 10_000
"""Characters of an earlier answer that count."""


class SourceRecord(TypedDict):
    """A passage that an answer cites by its number; ``excerpt`` is what it quotes or says, ``start`` and ``end`` where.

    Where the words of the answer were not found, ``start`` and ``end`` are null and the excerpt is the beginning.
    """

    number: int
    passage_id: str
    title: str
    source: str
    excerpt: str
    start: int | None
    end: int | None


class AnswerMetadata(TypedDict):
    """The data that the message of an answer carries beside its text: small, since a thread keeps it for every turn.

    ``question`` is the question as it was understood, ``understood`` how it was completed (null where it stood alone);
    ``coverage`` is empty where no claims were checked. ``notes`` tell what was retried, dropped or defaulted.
    """

    question: str
    understood: Understood | None
    workflow: str
    mode: str
    answer_kind: str
    coverage: str
    sources: list[SourceRecord]
    generation: int | None
    models: dict[str, Any]
    usage: UsageRecord
    notes: list[str]


def answer_message(text: str, result: Result, message_id: str) -> AIMessage:
    """Return the message of an answer, of its `answer_text`, under the id that it was streamed under."""
    metadata = {METADATA: answer_metadata(result)}
    return AIMessage(text, id=message_id, response_metadata=metadata, usage_metadata=_usage(result))


def answer_text(result: Result, *, lists_sources: bool = True) -> str:
    """Return the text of a reply, what is remarked on it, and the list of its sources if wanted."""
    parts = [reply_text(result), *remarks_on(result), sources_list(result) if lists_sources else ""]
    return "\n\n".join(filter(None, parts))


def reply_text(result: Result) -> str:
    """Return the text of an answer, and that it is evidence where it is, or how to reply where it asks back.

    The label of evidence ends it: its kind is known once its words are said. A refusal is told in plain words.
    """
    if result["answer_kind"] == ResultKind.REFUSAL:
        return refusal_text(result)
    understood = result["understood"]
    choices = understood["choices"] if understood else []
    how = f"\n\nReply with a number from 1 to {len(choices)}, or in your own words." if choices else ""
    label = label_of(result)
    return f"{spoken(result)}\n\n*{label}*" if label else f"{spoken(result)}{how}"


def spoken(result: Result) -> str:
    """Return the words of an answer alone, as people read them."""
    return in_words(result["answer"], result["answer_kind"])


def sources_list(result: Result) -> str:
    """Return the list of the passages that an answer cites, as Markdown; empty where it cites none.

    Chat interfaces show neither an answer's metadata nor fields that they do not know.
    """
    cited = {hit["number"]: hit for _, hit in cited_passages(result)}
    listed = [f"- [{number}] {_named(hit, result['citations'])}" for number, hit in cited.items()]
    return "\n\n".join([f"**{words_of(result).sources}**", "\n".join(listed)]) if listed else ""


def without_sources(text: str) -> str:
    """Return the text of an answer without the list of its sources at the end."""
    *answer, heading, listed = ["", "", *text.split("\n\n")]
    if heading not in _SOURCES or not all(map(_SOURCE.fullmatch, listed.splitlines())):
        return text
    return "\n\n".join(answer[2:])


def _named(hit: PassageHit, citations: Sequence[CitationMark]) -> str:
    """Return the title of a source, and the place of its cited words."""
    source = code(hit["source"], EXCERPT_LIMIT) if hit["source"] else ""
    parts = (plain(hit["title"]), source, plain(section_of(hit, citations)), pages_of(hit))
    return " · ".join(filter(None, parts)) or code(hit["id"])


def answer_metadata(result: Result) -> AnswerMetadata:
    """Return what an answer tells beside its text."""
    return AnswerMetadata(
        question=result["question"],
        understood=result["understood"],
        workflow=result["workflow"],
        mode=result["mode"],
        answer_kind=result["answer_kind"],
        coverage=result.get("coverage") or "",
        sources=[_source(mark, hit) for mark, hit in cited_passages(result)],
        generation=result["generation"],
        models=dict(result["models"]),
        usage=result["usage"],
        notes=[_cut(note) for note in notes_of(result)],
    )


def _source(mark: CitationMark, hit: PassageHit) -> SourceRecord:
    return SourceRecord(
        number=mark["number"],
        passage_id=hit["id"],
        title=_cut(hit["title"]),
        source=_cut(hit["source"]),
        excerpt=_cut(hit["text"][mark["start"] : mark["end"]]),
        start=mark["start"],
        end=mark["end"],
    )


def _cut(text: str) -> str:
    return text if len(text) <= EXCERPT_LIMIT else f"{text[: EXCERPT_LIMIT - 1]}…"


def _usage(result: Mapping[str, object]) -> UsageMetadata | None:
    """Return the tokens as LangChain counts them; None where no model was asked, or its server told none."""
    usage = result["usage"]
    assert isinstance(usage, dict)
    if not usage["calls"] or usage["unknown"] == usage["calls"]:
        return None
    read, written = usage["prompt_tokens"], usage["completion_tokens"]
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)


@dataclass(frozen=True, slots=True)
class NextQuestion:
    """A question of a conversation.

    Attributes:
        question: whole where a reading was chosen, else as the user wrote it.
        turns: those before it, the last one last; none before a chosen reading, which stands alone.
    """

    question: str
    turns: tuple[Turn, ...]


def next_question(messages: Sequence[BaseMessage]) -> NextQuestion:
    """Return the question that a conversation ends with, and the turns before it.

    Raises:
        BadInput: it does not end with a question of the user.
    """
    asked = _last_place(messages, HumanMessage)
    answered = _last_place(messages, AIMessage)
    if asked < 0 or answered > asked:
        raise BadInput("The conversation ends without a question", "Send a message of the user (type human) last")
    question = text_of(messages[asked])
    if (chosen := chosen_reading(question, choices_of(messages[:asked]))) is not None:
        return NextQuestion(chosen, ())
    return NextQuestion(question, _turns(messages[:asked]))


def choices_of(messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    """Return the readings that the last message asks the user to choose from; none where it asks nothing."""
    answer = next((each for each in reversed(messages) if isinstance(each, HumanMessage | AIMessage)), None)
    metadata = _told_by(answer) if isinstance(answer, AIMessage) else None
    return metadata.choices if metadata else ()


class _Source(BaseModel):
    passage_id: Annotated[str, Field(max_length=QUESTION_LIMIT)]


class _Understood(BaseModel):
    choices: Annotated[list[Annotated[str, Field(max_length=QUESTION_LIMIT)]], Field(max_length=100)]


class _Told(BaseModel):
    """The part of an answer's metadata that counts in the next turn."""

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


def _turns(messages: Sequence[BaseMessage]) -> tuple[Turn, ...]:
    """Return the turns that earlier messages make."""
    pairs: list[tuple[HumanMessage, AIMessage | None]] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            pairs.append((message, None))
        elif isinstance(message, AIMessage) and pairs and text_of(message):
            pairs[-1] = (pairs[-1][0], message)
    last = len(pairs) - 1
    turns = [_turn(asked, answer, place == last) for place, (asked, answer) in enumerate(pairs)]
    return tuple(turn for turn in turns if turn)[-TURNS_LIMIT:]


def _turn(asked: HumanMessage, answer: AIMessage | None, is_last: bool) -> Turn | None:
    """Return a question with its answer; None where it does not count."""
    metadata = _told_by(answer) if answer else None
    question = metadata.question if metadata else text_of(asked)
    is_settled = metadata and metadata.choices and not is_last
    if is_settled or not question.strip() or len(question) > QUESTION_LIMIT:
        return None
    if answer is None or (metadata is None and METADATA in answer.response_metadata):
        return Turn(question)
    text = without_words(without_sources(text_of(answer)))[:ANSWER_LIMIT]
    return Turn(question, text, tuple(source.passage_id for source in metadata.sources) if metadata else ())


def text_of(message: BaseMessage) -> str:
    """Return the text of a message: its content, or its blocks of text, one a line."""
    blocks = [message.content] if isinstance(message.content, str) else message.content
    texts = (block if isinstance(block, str) else block.get("text") for block in blocks)
    return "\n".join(text for text in texts if isinstance(text, str))


def _last_place(messages: Sequence[BaseMessage], kind: type[BaseMessage]) -> int:
    return next((place for place in reversed(range(len(messages))) if isinstance(messages[place], kind)), -1)
