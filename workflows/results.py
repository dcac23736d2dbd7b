"""The result of asking, as a type: plain values, the same for every workflow, less those that a workflow lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agents.answers.quotes import parts_of_quotes
from agents.chat.usage import Prices
from agents.roles import Turn
from workflows.settings.enums import ResultKind, Workflow
from workflows.states.ragenta import JUDGED, RagentaOutput
from workflows.states.records import UNREAD_FILES, CitationMark, PassageHit, usage_of
from workflows.states.shared import CLAIMS, Output

ALSO_RELATED = "Also related"
"""The words over what bears on a question beside its answer."""

TOTAL = "total"
"""The key of a result's timings that tells of the whole run."""


class Result(RagentaOutput):
    """A result: an answer; with its claims where they were checked; with what was judged where passages were."""


def turn_of(result: Mapping[str, Any]) -> Turn:
    """Return a result as a turn of its conversation, for the next question."""
    cited = dict.fromkeys(mark["passage_id"] for mark in result["citations"])
    return Turn(result["question"], result["answer"], tuple(cited))


def cited_passages(result: Mapping[str, Any]) -> list[tuple[CitationMark, PassageHit]]:
    """Return each citation of an answer with the passage that it cites."""
    hits = {hit["number"]: hit for hit in result["passages"]}
    return [(mark, hits[mark["number"]]) for mark in result["citations"] if mark["number"] in hits]


def name_of(hit: Mapping[str, Any]) -> str:
    """Return what a passage is called where its source is shown: its title and its source, else its id."""
    return " · ".join(filter(None, (hit["title"], hit["source"]))) or hit["id"]


def notes_of(result: Mapping[str, Any]) -> list[str]:
    """Return what was retried, dropped or defaulted on the way to a result, one text each."""
    return [f"{each['node']}: {each['kind']}: {each['message']}" for each in result["errors"]]


_REASONS = ("UnknownKeys", "NothingSelected", "Evidence", UNREAD_FILES)
"""Kinds of notes that tell why a question is not answered."""


def reasons_of(result: Mapping[str, Any]) -> list[str]:
    """Return why a question is not answered; nothing where it is."""
    if result["answer_kind"] != ResultKind.REFUSAL:
        return []
    return [note["message"] for note in result["errors"] if note["kind"] in _REASONS]


def label_of(kind: str) -> str:
    """Return the words that stand by a result of this kind wherever it is shown; empty where it says itself what it is.

    Args:
        kind: a `ResultKind`; empty where none is known.
    """
    return "Quotes from your documents (not checked by a model)" if kind == ResultKind.EVIDENCE else ""


def parts_of(answer: str, kind: str) -> tuple[str, str]:
    """Return the answer of a result of this kind in two parts, as Markdown: itself, and a list of what is also related.

    Evidence alone has both.
    """
    return parts_of_quotes(answer) if kind == ResultKind.EVIDENCE else (answer, "")


def labelled(answer: str, kind: str) -> str:
    """Return the answer of a result of this kind as it is shown, under its label and over what is also related."""
    first, related = parts_of(answer, kind)
    label = label_of(kind)
    told = [f"{label}:" if label else "", first, f"{ALSO_RELATED}:" if related else "", related]
    return "\n\n".join(filter(None, told))


def understood_as(result: Mapping[str, Any]) -> str:
    """Return what a question that leans on earlier turns was understood as; empty where it stood alone or is open."""
    understood = result["understood"]
    if not understood or understood["choices"]:
        return ""
    question = str(result["question"])
    if question != understood["asked"] or not understood["names"]:
        return question
    return f"{question} ({', '.join(understood['names'])})"


_ANSWER = tuple(key for key in Output.__annotations__ if key not in (*CLAIMS, "written_from"))


def result_of(state: Mapping[str, Any], total_ms: float | None = None, prices: Prices | None = None) -> Result:
    """Return what a run gave as a result, keys in the documented order.

    What judging passages and checking claims give is there where the workflow did so.

    Args:
        state: the output of the run.
        total_ms: its time, where it was measured; nodes that run side by side overlap.
        prices: the user's, where there are any.
    """
    keys = _ANSWER
    if state.get("workflow") == Workflow.RAGENTA:
        keys += CLAIMS + JUDGED
    elif state.get("coverage"):
        keys += CLAIMS
    result = {key: state.get(key) for key in keys}
    if total_ms is not None:
        result["timings_ms"] = {**state["timings_ms"], TOTAL: round(total_ms, 3)}
    if prices is not None:
        cost = prices.cost_of(usage_of(state["usage"]))
        result["usage"] = {**state["usage"], "cost": cost if cost is None else round(cost, 9)}
    return cast(Result, result)
