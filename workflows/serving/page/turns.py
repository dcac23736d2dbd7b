"""A turn on the page: the events of its answer, the answer as HTML, and on request all that is behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agents.answerer import ChatAnswerer
from agents.answers.citations import parse_citations, renumbered
from agents.final_predictor import ChatFinalPredictor
from graph.retrieve.modes import Mode
from workflows.conversation.kept import KeptTurn
from workflows.output.markdown import plain
from workflows.output.printable import visible
from workflows.output.quoted import moved, place_of
from workflows.results import (
    TOTAL,
    closest_passages,
    in_words,
    is_cut,
    label_of,
    parts_of,
    refusal_text,
    remarks_on,
    words_of,
)
from workflows.serving.page.markdown import Written, to_html
from workflows.serving.page.passages import AFTER, BEFORE, passage_html, passage_told
from workflows.settings.enums import ResultKind, Workflow
from workflows.settings.mara import MOST_ANSWER_TOKENS
from workflows.streaming import ANSWERING, NodeStarted, Progress, Token

_TOLD_BY_OTHERS = ("check_claims",)
"""Nodes whose own nodes tell what they do."""

_CHECKING = ("judge_claims", "check_words", "settle_claims")
_JUDGED = ("score_passage", "leave_unjudged")
_WRITING = (ANSWERING, "quote_passages")

_OWN_TOKENS = {Workflow.MARA: ChatAnswerer.reply_tokens, Workflow.RAGENTA: ChatFinalPredictor.reply_tokens}

_WHICH = "Which do you mean?"
"""A question back: what it could mean stands on the buttons below."""


WORKFLOWS: Mapping[Workflow, str] = {Workflow.MARA: "Quick", Workflow.RAGENTA: "Thorough: checks each claim"}
"""The workflows; the first one is the page's default."""

RANKINGS: Mapping[Mode, str] = {
    Mode.MARA: "By the relations that the question asks for",
    Mode.HIPPORAG2: "By the graph alone, as HippoRAG 2 does",
    Mode.MARA_MATRIX: "As HippoRAG 2 does, with weights of relations",
    Mode.DENSE: "By meaning",
    Mode.SPARSE: "By words",
    Mode.HYBRID: "By meaning and words",
}

_SIGNS = {"$eq": "is", "$ne": "is not", "$gte": "at least", "$lte": "at most"}


def differing(settings: Mapping[str, Any]) -> list[str]:
    """Return those settings of a turn that differ from the page's defaults, each in a few words."""
    return [visible(words) for words in _differing(settings)]


def _differing(settings: Mapping[str, Any]) -> Iterator[str]:
    if workspace := settings.get("workspace"):
        yield f"Workspace: {workspace}"
    if settings.get("workflow", Workflow.MARA) != Workflow.MARA:
        yield WORKFLOWS[Workflow(settings["workflow"])]
    if mode := settings.get("mode"):
        yield f"Ranking: {RANKINGS[Mode(mode)].lower()}"
    if as_of := settings.get("as_of"):
        yield f"As of {as_of}"
    if settings.get("personalise"):
        yield "Personal"
    for key, condition in (settings.get("where") or {}).items():
        signs = condition if isinstance(condition, Mapping) else {"$eq": condition}
        for sign, value in signs.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{key} {_SIGNS.get(sign, sign)} {text}"


def event(kind: str, **values: Any) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps({'kind': kind, **values})}\n\n"


class Draft:
    """The answer so far, and what runs: each step told once, in words.

    Attributes:
        text: what has been written since it last began anew.
    """

    def __init__(self) -> None:
        self.text = ""
        self._begins_anew = False
        self._judged = self._to_judge = 0

    def events_of(self, run_event: NodeStarted | Progress | Token) -> Iterator[dict[str, Any]]:
        """Yield the events that tell of one event of a run."""
        if isinstance(run_event, Token):
            if self._begins_anew:
                yield from self._begin_anew()
            self.text += run_event.text
            yield {"kind": "token", "text": run_event.text}
        elif isinstance(run_event, NodeStarted):
            self._begins_anew = True
            if run_event.node in _WRITING:
                yield from self._begin_anew()
            if run_event.node not in _TOLD_BY_OTHERS:
                again = f", attempt {run_event.attempt}" if run_event.attempt > 1 else ""
                yield {"kind": "step", "text": f"{_step(run_event.node)}{again}"}
        elif "to_judge" in run_event.details:
            self._judged, self._to_judge = 0, int(run_event.details["to_judge"])
        elif run_event.node in _JUDGED and run_event.event in ("finished", "fallback"):
            self._judged += 1
            text = f"Judging passages: {self._judged} of {self._to_judge}"
            yield {"kind": "step", "text": text, "replaces": self._judged > 1}
        elif run_event.event == "started" and run_event.node in _CHECKING:
            yield {"kind": "step", "text": _step(run_event.node)}

    def _begin_anew(self) -> Iterator[dict[str, Any]]:
        self._begins_anew = False
        if self.text:
            self.text = ""
            yield {"kind": "void"}


def _step(node: str) -> str:
    return node.replace("_", " ").capitalize()


def shown(turn: KeptTurn) -> dict[str, Any]:
    """Return a turn as the page draws it in its conversation."""
    view = {name: getattr(turn, name) for name in ("id", "number", "question", "alone", "settings", "state")}
    view |= {"text": turn.answer, "html": to_html(turn.answer).strip(), "error": turn.error}
    view |= {"versions": turn.versions, "at": turn.touched, "asked_with": differing(turn.settings)}
    if turn.result is None:
        return view
    view |= _answer(turn.result, turn.settings)
    return {**view, "copied": as_text(view)}


class Drawn:
    """The events of a turn as a window hears them: those of words with the blocks of HTML that they make.

    Args:
        first: the position of the first event that the window did not hear.
    """

    def __init__(self, first: int = 0) -> None:
        self._first, self._words = first, ""
        self._written = Written()

    def told(self, events: Sequence[str]) -> Iterator[str]:
        """Yield the next events as JSON; of words in a row, the last one has the blocks."""
        read = [json.loads(each) for each in events]
        for place, each in enumerate(read):
            if each["kind"] == "void":
                self._words, self._written = "", Written()
            if each["kind"] == "token":
                self._words += each["text"]
            if each["at"] < self._first:
                continue
            if each["kind"] == "token" and (place + 1 == len(read) or read[place + 1]["kind"] != "token"):
                each["from"], each["html"] = self._written.more(self._words)
                self._words = ""
            yield json.dumps(each)


def details(turn: KeptTurn) -> dict[str, Any]:
    """Return what is behind an answer: passages with their cited words, claims, follow-ups, notes and times."""
    result = turn.result
    if result is None:
        return {"passages": [], "claims": [], "follow_ups": [], "notes": [], "timings": {}}
    return {
        "passages": _passages(result),
        "claims": result.get("claims") or [],
        "coverage": result.get("coverage") or "",
        "follow_ups": result.get("follow_ups") or [],
        "notes": _notes(result),
        "timings": {_words(node): ms for node, ms in result["timings_ms"].items() if node != TOTAL},
        "walked": result.get("ranked_by") == "walk",
    }


def _answer(result: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    hits = {hit["number"]: hit for hit in result["passages"]}
    marks = _marks(result)
    numbers = dict.fromkeys(mark["number"] for mark in result["citations"])
    sources = [
        {
            **_named(hits[number]),
            "mark": marks[number],
            "place": visible(place_of(hits[number], result["citations"])),
        }
        for number in sorted(numbers, key=lambda number: marks[number])
    ]
    understood = result.get("understood")
    titles = {each["number"]: each["title"] for each in sources}
    first, related = parts_of(result["answer"] or "", result["answer_kind"])
    is_refused = result["answer_kind"] == ResultKind.REFUSAL
    if is_refused:
        titles = {hit["number"]: _named(hit)["title"] for hit in closest_passages(result)}
        first = refusal_text(result, _written, has_filter=bool(settings.get("where") or settings.get("as_of")))
    elif understood and understood["choices"]:
        first = _WHICH
    words, label, remarks = words_of(result), label_of(result), remarks_on(result)
    paragraphs = [f"{label}:" if label else "", first, f"{words.related}:" if related else "", related, *remarks]
    return {
        "kind": result["answer_kind"],
        "label": label,
        "also_related": words.related,
        "sources_label": words.sources,
        "remarks": remarks,
        "goes_on": _more_room(result, settings) if is_cut(result) else None,
        "asked_back": result["answer_kind"] == ResultKind.CLARIFICATION,
        "text": first if is_refused else in_words(result["answer"] or "", result["answer_kind"]),
        "told": renumbered("\n\n".join(filter(None, paragraphs)), marks),
        "html": to_html(first, titles, marks),
        "related": to_html(related, titles, marks) if related else "",
        "sources": sources,
        "understood": understood and {**understood, "question": result["question"]},
        "n_passages": len(hits),
        "notes": _notes(result),
        "took": _took(result),
    }


def _written(text: str) -> str:
    """Return what a refusal says of documents and notes, for visitors."""
    return plain(visible(text))


def _marks(result: Mapping[str, Any]) -> dict[int, int]:
    """Return what the numbers of passages are shown as: from 1, as the answer cites them, and then as they rank."""
    known = {hit["number"] for hit in result["passages"]}
    cited = parse_citations(result["answer"] or "", known).numbers
    listed = [mark["number"] for mark in result["citations"]]
    return {number: mark for mark, number in enumerate(dict.fromkeys([*cited, *listed, *sorted(known)]), start=1)}


def _more_room(result: Mapping[str, Any], settings: Mapping[str, Any]) -> int | None:
    """Return twice the tokens that an answer had; None where it had as many as any may."""
    had = settings.get("answer_tokens") or _OWN_TOKENS[result["workflow"]]
    return 2 * had if 2 * had <= MOST_ANSWER_TOKENS else None


def _passages(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    shown_as = _marks(result)
    marks: dict[int, list[tuple[int, int]]] = {}
    for mark in result["citations"]:
        spans = marks.setdefault(mark["number"], [])
        if mark["start"] is not None:
            spans.append((mark["start"], mark["end"]))
    return [
        {
            **_named(hit),
            "id": hit["id"],
            "mark": shown_as[hit["number"]],
            **passage_told(hit, result["citations"]),
            "html": passage_html(hit["text"], marks.get(hit["number"], [])),
            "cited": hit["number"] in marks,
            "score": round(hit["score"], 4),
            "moved": visible(moved(hit)),
            BEFORE: _number(hit, "chunk") > 0,
            AFTER: _number(hit, "chunk") + 1 < _number(hit, "chunks"),
        }
        for hit in sorted(result["passages"], key=lambda hit: shown_as[hit["number"]])
    ]


def _number(hit: Mapping[str, Any], key: str) -> int:
    number = hit["metadata"].get(key, 0)
    return number if isinstance(number, int) else 0


def _named(hit: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a passage is called, without signs that hide or turn what is read."""
    ended = f" (superseded on {hit['superseded_at']})" if hit.get("superseded_at") else ""
    source = f"{visible(hit['source'])}{ended}"
    return {"number": hit["number"], "title": visible(hit["title"]) or hit["id"], "source": source}


def _took(result: Mapping[str, Any]) -> str:
    usage, seconds = result["usage"], result["timings_ms"].get(TOTAL, 0) / 1000
    took = f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    calls = usage["calls"]
    if not calls:
        return f"{took}, without a model"
    return f"{took}, {calls} model call{'' if calls == 1 else 's'}"


def _notes(result: Mapping[str, Any]) -> list[str]:
    return [visible(f"{_words(note['node'])}: {note['message']}") for note in result["errors"]]


def _words(node: str) -> str:
    return node.replace("_", " ")


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
