"""The table of ``mara eval --answers``: what each system answers, and what its answers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.chat.local_model import LOCAL, local_name
from workflows.evaluation.reports.markdown import NOTHING, figure
from workflows.evaluation.systems import NEED_A_MODEL, Given, answer_systems
from workflows.runtime.resources import OFFLINE

COLUMNS = (
    *("system", "EM", "F1", "gold in answer", "refused", "claim support", "calls", "tokens in", "tokens out"),
    *("seconds", "lost"),
)

LEGEND = (
    "EM and F1 as SQuAD normalises; *gold in answer*: a gold answer's text stands somewhere in the answer. All three"
    " are shares of the questions that have gold answers, and a question that is refused or lost counts as wrong."
    " *Claim support* is the share of the claims that the system's own claim check found supported (*checked*), else"
    " the share of its sentences that the cited passages hold by their words (*by words*). Calls and tokens are means"
    " of a question; seconds are the median, and hold the waiting for questions asked at the same time. *Lost*:"
    " questions without a result; the next run of the same command asks again those that a model or a server failed."
)
PACKAGED = "The packaged model proves that the machinery works. It is no measure of quality."
EVIDENCE = (
    "No chat model is configured: EM, F1 and gold in answer are those of quoted evidence, not of written answers."
)


def is_answer_run(systems: Mapping[str, Any], chat_model: str) -> bool:
    """Tell whether a run holds all systems that ``--answers`` asks."""
    return systems.keys() >= set(answer_systems(chat_model))


def answer_rows(systems: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return a row of `COLUMNS` for each system: its name, then figures as text.

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
        return f"{figure(found['claim_support_rate'])} checked"
    return NOTHING if found["citation_recall"] is None else f"{figure(found['citation_recall'])} by words"
