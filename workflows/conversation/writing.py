"""The message of an answer: its text, and its sources as small JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from typing_extensions import TypedDict  # pydantic, and so the schemas, takes no other before Python 3.12

from workflows.results import Result, label_of
from workflows.settings.enums import ResultKind
from workflows.states.records import CitationMark, PassageHit, Understood, UsageRecord

METADATA = "mara"
"""The key of an answer's ``response_metadata`` that holds its `AnswerMetadata`."""

EXCERPT_LIMIT = 300
"""Characters of a source's excerpt, of its title, and of a note."""

EVIDENCE_ENDING = f"\n\n({label_of(ResultKind.EVIDENCE)}.)"
"""The end of a message that quotes evidence: its kind is known once its words are said."""

NOTES_LIMIT = 20
"""Notes that an answer tells; of more, their number."""


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
    """What the message of an answer tells beside its text: small, since a thread keeps it for every turn.

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


def answer_message(result: Result, told: Sequence[str], message_id: str) -> AIMessage:
    """Return the message of an answer.

    Args:
        result: what the workflow gave.
        told: what was noted before it was asked.
        message_id: the id under which the answer was streamed.
    """
    return AIMessage(
        answer_text(result),
        id=message_id,
        response_metadata={METADATA: answer_metadata(result, told)},
        usage_metadata=_usage(result),
    )


def answer_text(result: Result) -> str:
    """Return the text of an answer, and that it is evidence where it is; where it asks back, also how to reply."""
    understood = result["understood"]
    choices = understood["choices"] if understood else []
    how = f"\n\nReply with a number from 1 to {len(choices)}, or in your own words." if choices else ""
    ending = EVIDENCE_ENDING if result["answer_kind"] == ResultKind.EVIDENCE else how
    return f"{result['answer']}{ending}"


def answer_metadata(result: Result, told: Sequence[str] = ()) -> AnswerMetadata:
    """Return what an answer tells beside its text; ``told`` was noted before it was asked."""
    hits = {hit["number"]: hit for hit in result["passages"]}
    return AnswerMetadata(
        question=result["question"],
        understood=result["understood"],
        workflow=result["workflow"],
        mode=result["mode"],
        answer_kind=result["answer_kind"],
        coverage=result.get("coverage") or "",
        sources=[_source(mark, hits[mark["number"]]) for mark in result["citations"] if mark["number"] in hits],
        generation=result["generation"],
        models=dict(result["models"]),
        usage=result["usage"],
        notes=_shortened([*told, *(f"{each['node']}: {each['kind']}: {each['message']}" for each in result["errors"])]),
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


def _shortened(notes: Sequence[str]) -> list[str]:
    shown = [_cut(note) for note in notes[:NOTES_LIMIT]]
    return shown if len(notes) <= NOTES_LIMIT else [*shown, f"and {len(notes) - NOTES_LIMIT} more"]


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
