"""The result of asking, as a type: plain values, the same for every workflow, less those that a workflow lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from agents.answers.claims import marks_in_words
from agents.answers.quotes import parts_of_quotes
from agents.chat.usage import Prices
from agents.roles import Turn
from workflows.output.markdown import plain
from workflows.output.quoted import place_of
from workflows.settings.enums import ResultKind, Workflow
from workflows.states.ragenta import JUDGED, RagentaOutput
from workflows.states.records import CitationMark, PassageHit, usage_of
from workflows.states.shared import CLAIMS, Output
from workflows.wording import Words, failure_of, reasons_of, remarks_of, words_for

CLOSEST = 3
"""Passages that a refusal names."""

UNSUPPORTED = "(no passage says so)"
"""The words behind a claim that no passage supports."""

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


def words_of(result: Mapping[str, Any]) -> Words:
    """Return the words around the answer of a result, in the language of its question as it was typed."""
    understood = result.get("understood")
    return words_for(understood["asked"] if understood else result.get("question", ""))


def is_cut(result: Mapping[str, Any]) -> bool:
    """Tell whether an answer stops at its limit of tokens."""
    return bool(result.get("cut")) and result["answer_kind"] == ResultKind.ANSWER


def remarks_on(result: Mapping[str, Any]) -> list[str]:
    """Return what stands below an answer that a model wrote: that it was cut, and that citations were left out."""
    return remarks_of(result, words_of(result)) if result["answer_kind"] == ResultKind.ANSWER else []


def label_of(result: Mapping[str, Any]) -> str:
    """Return the words that stand by the answer of a result wherever it is shown; empty where it says what it is."""
    if result["answer_kind"] != ResultKind.EVIDENCE:
        return ""
    words, failure = words_of(result), failure_of(result)
    return words.instead.format(words.failures[failure]) if failure else words.quotes


def refusal_text(result: Mapping[str, Any], written: Callable[[str], str] = plain, *, has_filter: bool = False) -> str:
    """Return a refusal in plain words, as Markdown: why, the closest passages by their numbers, and what to try.

    Args:
        result: one that refuses.
        written: writes texts of documents and notes, such as titles.
        has_filter: whether a filter was set.
    """
    words = words_of(result)
    why = " ".join([f"{words.not_found}.", *(written(each) for each in reasons_of(result, words))])
    closest = [
        f"- [{hit['number']}] {written(' · '.join(filter(None, (hit['title'], place_of(hit, [])))) or hit['id'])}"
        for hit in closest_passages(result)
    ]
    has_filter = has_filter or any(note["kind"] == "NothingSelected" for note in result["errors"])
    parts = [why, f"{words.closest}:" if closest else "", "\n".join(closest)]
    return "\n\n".join(filter(None, [*parts, f"{words.advice} {words.wider}" if has_filter else words.advice]))


def closest_passages(result: Mapping[str, Any]) -> list[PassageHit]:
    """Return the passages that a refusal names."""
    return list(result["passages"][:CLOSEST])


def in_words(answer: str, kind: str) -> str:
    """Return the answer of a result of this kind as people read it; programs read marks behind unsupported claims."""
    return answer if kind == ResultKind.EVIDENCE else marks_in_words(answer, UNSUPPORTED)


def parts_of(answer: str, kind: str) -> tuple[str, str]:
    """Return the answer of a result of this kind in two parts, as Markdown: itself, and a list of what is also related.

    Evidence alone has both.
    """
    return parts_of_quotes(answer) if kind == ResultKind.EVIDENCE else (in_words(answer, kind), "")


def labelled(result: Mapping[str, Any], written: Callable[[str], str] = plain, *, has_filter: bool = False) -> str:
    """Return the answer of a result as it is shown: under its label and over what is also related and remarked.

    A refusal is told in plain words: see `refusal_text`.
    """
    if result["answer_kind"] == ResultKind.REFUSAL:
        return refusal_text(result, written, has_filter=has_filter)
    first, related = parts_of(result["answer"], result["answer_kind"])
    label = label_of(result)
    shown = [f"{label}:" if label else "", first, f"{words_of(result).related}:" if related else "", related]
    return "\n\n".join(filter(None, [*shown, *remarks_on(result)]))


def kept_answer(answer: str, kind: str, question: str) -> dict[str, Any]:
    """Return an answer as a result, as far as it is shown, where no more of it is kept than this."""
    return {"answer": answer, "answer_kind": kind, "question": question, "errors": [], "passages": []}


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

    The results of judging passages and checking claims are there where the workflow did so.

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
