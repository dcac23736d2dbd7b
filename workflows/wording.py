"""The words around an answer: labels, refusals and remarks, in the language of the question where it is one of four."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agents.roles import REFUSAL
from graph.errors import BudgetSpent, SlowReply
from graph.text import tokens
from workflows.states.records import CUT_ANSWER, DROPPED_CITATIONS, MALFORMED, UNREAD_FILES


@dataclass(frozen=True, slots=True)
class Words:
    """The words around an answer in one language.

    Attributes:
        quotes: the label of quotes, without a model.
        instead: the label of quotes in place of an answer that a model failed to give; its braces stand for why.
        related: over what also bears on a question.
        sources: over the sources of an answer.
        not_found: the whole of a refusal, without its full stop.
        failed: why a model's answer is none, in a sentence; its braces stand for one of ``failures``.
        failures: why, by `failure_of`.
        lacking: that the passages lack names; its braces stand for them.
        too_little: that the passages do not tell enough.
        closest: over the closest passages.
        advice: what to try.
        wider: what to try beside, where a filter is set.
        cut: that an answer stops at its limit.
        dropped: that citations were left out.
    """

    quotes: str
    instead: str
    related: str
    sources: str
    not_found: str
    failed: str
    failures: Mapping[str, str]
    lacking: str
    too_little: str
    closest: str
    advice: str
    wider: str
    cut: str
    dropped: str


WORDS: Mapping[str, Words] = {
    language: Words(**words)
    for language, words in tomllib.loads(files("workflows").joinpath("words.toml").read_text(encoding="utf-8")).items()
}
"""The words by language, as its code of ISO 639-1."""

_ASKING = {
    "en": "who what when where which how why whose is are does did",
    "de": "wer wann wo welche welcher welches wie warum wieviel wem wen ist wurde",
    "fr": "qui quand où quel quelle quels quelles comment pourquoi combien est qu",
    "es": "quién quiénes qué cuándo dónde cuál cuáles cómo cuánto cuántos cuántas",
}
"""The words that questions of a language ask with: each counts double."""

_FUNCTION = {
    "en": "the of and in to was were it its his her from by do for with that this",
    "de": "der die das und ein eine im von mit für den dem des hat war was zu nicht sind es in",
    "fr": "le la les des du un une et dans par pour a ont été sont il elle sur au aux que en",
    "es": "el la los las un una del de y en por para fue fueron es son se con su al",
}
_WEIGHTS = {
    each: {**dict.fromkeys(tokens(_FUNCTION[each]), 1), **dict.fromkeys(tokens(_ASKING[each]), 2)} for each in WORDS
}
_LEAST = 2

_AROUND = re.compile(
    "|".join(
        rf"\*?(?:{'|'.join(map(re.escape, (words.cut, words.dropped)))})\*?"
        rf"|\*(?:{re.escape(words.quotes)}|{re.escape(words.instead.partition('{}')[0])}.*)\*"
        for words in WORDS.values()
    )
)
_FALLBACK = ("Fallback", "quote_passages")
_NO_EVIDENCE = re.compile(r"No evidence for .*: (.+)", re.DOTALL)
_LACKING = re.compile(r"the (?:passages|rows) found do not (?:hold|tell) (.+)", re.DOTALL)
TOLD_OF_REFUSALS = ("UnknownKeys", "NothingSelected", "Evidence", UNREAD_FILES)
"""The kinds of notes that refusals tell."""

_NOTHING = "no passage was found"


def language_of(text: str) -> str:
    """Return the language of a question where its function words tell it among the four; English where in doubt."""
    words = tokens(text)
    scores = {each: sum(weights.get(word, 0) for word in words) for each, weights in _WEIGHTS.items()}
    best = max(scores, key=lambda each: scores[each])
    is_clear = scores[best] >= _LEAST and list(scores.values()).count(scores[best]) == 1
    return best if is_clear else "en"


def words_for(question: str) -> Words:
    """Return the words around an answer to this question."""
    return WORDS[language_of(question)]


def without_words(shown: str) -> str:
    """Return an answer as an agent gave it, of one that was shown with labels and remarks behind it."""
    if any(shown.startswith(f"{words.not_found}.") for words in WORDS.values()):
        return REFUSAL
    parts = shown.split("\n\n")
    while len(parts) > 1 and _AROUND.fullmatch(parts[-1]):
        parts.pop()
    return "\n\n".join(parts)


def failure_of(result: Mapping[str, Any]) -> str:
    """Return why the answer of a model that was asked is none, a key of ``failures``; empty where it is one."""
    notes = result["errors"]
    if not any((note["kind"], note["node"]) == _FALLBACK for note in notes):
        return ""
    faults = [note for note in notes if note["node"] == "write_answer"]
    kinds = [note for note in faults if note["kind"] in (MALFORMED, SlowReply.__name__, BudgetSpent.__name__)]
    last = kinds[-1] if kinds else {"kind": "", "message": ""}
    if last["kind"] != MALFORMED:
        return {SlowReply.__name__: "slow", BudgetSpent.__name__: "spent"}.get(last["kind"], "unsourced")
    return "cut" if "cut at" in last["message"] else "empty" if "is empty" in last["message"] else "unsourced"


def reasons_of(result: Mapping[str, Any], words: Words) -> list[str]:
    """Return why a question is not answered, in sentences: those of its notes that a reader can act on."""
    reasons = [words.failed.format(words.failures[failure])] if (failure := failure_of(result)) else []
    for note in result["errors"]:
        if note["kind"] in TOLD_OF_REFUSALS:
            lacking = _NO_EVIDENCE.fullmatch(note["message"])
            question = result.get("question", "")
            reasons.append(_lacking(lacking[1], words, question) if lacking else f"{note['message'].rstrip('.')}.")
    return list(dict.fromkeys(filter(None, reasons)))


def _lacking(reason: str, words: Words, question: str) -> str:
    if reason == _NOTHING:
        return ""
    if lacking := _LACKING.fullmatch(reason):
        names = [
            spelled[0] if (spelled := re.search(re.escape(name), question, re.IGNORECASE)) else name
            for name in lacking[1].split(", ")
        ]
        return words.lacking.format(", ".join(names))
    return f"{reason[0].upper()}{reason[1:]}." if words is WORDS["en"] else words.too_little


def remarks_of(result: Mapping[str, Any], words: Words) -> list[str]:
    """Return what stands below an answer: that it was cut, and that citations were left out."""
    kinds = {note["kind"] for note in result["errors"]}
    is_cut = result.get("cut") and CUT_ANSWER in kinds
    return [words.cut] * bool(is_cut) + [words.dropped] * (DROPPED_CITATIONS in kinds)
