"""The table of ``mara eval --answers``: what each system answers, and what its answers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.chat.local_model import LOCAL, local_name
from workflows.evaluation.systems import NEED_A_MODEL, Given, answer_systems
from workflows.output.markdown import NOTHING, figure
from workflows.runtime.resources import OFFLINE

COLUMNS: Mapping[str, str] = {
    "system": "system",
    "EM": "EM",
    "F1": "F1",
    "gold in answer": "gold",
    "refused": "ref.",
    "claim support": "support",
    "calls": "calls",
    "tokens in": "in",
    "tokens out": "out",
    "seconds": "s",
    "lost": "lost",
}
"""The headings of a report, and those of a terminal."""

SHORT_LEGEND = (
    "gold: a gold answer stands in the answer; ref.: refused; support: of claims, c as the system checks them, w by"
    " words; in, out: tokens; s: median seconds; lost: no result"
)
LEGEND = (
    "EM and F1 as SQuAD normalises; *gold in answer*: a gold answer's text stands somewhere in the answer. All three"
    " are shares of the questions that have gold answers, and a question that is refused or lost counts as wrong."
    " *Claim support* is the share of the claims that the system's own claim check found supported (*c*), else"
    " the share of its sentences that the cited passages hold by their words (*w*). Calls and tokens are means"
    " of a question; seconds are the median, and hold the waiting for questions asked at the same time. *Lost*:"
    " questions without a result; the next run of the same command asks again those that a model or a server failed."
)
PACKAGED = "The packaged model proves that the machinery works. It is no measure of quality."
EVIDENCE = "No chat model is configured: EM, F1 and gold in answer are those of quoted evidence, not of answers."


def is_answer_run(systems: Mapping[str, Any], chat_model: str) -> bool:
    """Tell whether a run holds all systems that ``--answers`` asks."""
    return systems.keys() >= set(answer_systems(chat_model))


def answer_rows(systems: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return the cells of `COLUMNS` for each system: its name, then figures as text.

    Args:
        systems: what ``metrics.json`` holds of each.
    """
    return [[name, *_figures(name, found)] for name, found in systems.items()]


def left_out(chat_model: str) -> Mapping[str, str]:
    """Return the systems that ``--answers`` cannot ask without a chat model, and why."""
    return NEED_A_MODEL if chat_model == OFFLINE else {}


def remarks(chat_model: str) -> Sequence[str]:
    """Return what a reader has to know of the figures, beside the legend."""
    if chat_model == OFFLINE:
        return (EVIDENCE, *(f"`{name}` is left out: it {why}." for name, why in left_out(chat_model).items()))
    return (PACKAGED,) if chat_model == local_name(LOCAL) else ()


def _figures(name: str, found: Mapping[str, Any]) -> list[str]:
    spent, total = found["usage_per_question"], found["latency_ms"]["total"]
    return [
        *map(figure, (found["em"], found["f1"]["mean"], found["gold_in_answer"], found["refusal_rate"])),
        NOTHING if name.split("+")[0] == Given.CLOSED_BOOK else _claim_support(found),
        figure(spent["calls"], 1),
        figure(spent["prompt_tokens"], 0),
        figure(spent["completion_tokens"], 0),
        figure(total["p50"] / 1000 if total else None, 2),
        str(found["failed"]),
    ]


def _claim_support(found: Mapping[str, Any]) -> str:
    if found["claim_support_rate"] is not None:
        return f"{figure(found['claim_support_rate'])} c"
    return NOTHING if found["citation_recall"] is None else f"{figure(found['citation_recall'])} w"
