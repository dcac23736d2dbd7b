"""The gate: which questions it takes to lean on earlier turns, beside labels that were given by hand."""

from __future__ import annotations

from collections.abc import Mapping

from agents.leaning import leaning_of
from benchmarks.conversations.scoring import precision_and_recall


def leans(question: str) -> bool:
    """Tell whether the gate takes a question to lean on earlier turns."""
    return bool(leaning_of(question))


def table(name: str, leaning: Mapping[str, str], alone: Mapping[str, str]) -> str:
    """Return the gate's precision and recall in finding the questions that lean, as a Markdown table.

    Args:
        name: of the questions.
        leaning: questions that lean, by id.
        alone: questions that stand alone, by id.
    """
    found = {id_ for id_, question in {**leaning, **alone}.items() if leans(question)}
    precision, recall = precision_and_recall(found, leaning)
    right, wrong = len(found & leaning.keys()), len(found & alone.keys())
    return "\n".join(
        [
            "| gate | lean | stand alone | found right | found wrong | precision | recall |",
            "|---|--:|--:|--:|--:|--:|--:|",
            f"| {name} | {len(leaning)} | {len(alone)} | {right} | {wrong} | {_told(precision)} | {_told(recall)} |",
        ]
    )


def wrong(leaning: Mapping[str, str], alone: Mapping[str, str]) -> str:
    """Return the questions that the gate gets wrong, to read; arguments are those of `table`."""
    missed = [question for question in leaning.values() if not leans(question)]
    taken = [f"{question} ({leaning_of(question)})" for question in alone.values() if leans(question)]
    return (
        "\n  ".join(["Leans, and the gate lets it stand alone:", *missed])
        + "\n\n"
        + "\n  ".join(["Stands alone, and the gate takes it to lean:", *taken])
    )


def _told(share: float | None) -> str:
    return "none" if share is None else f"{share:.3f}"
