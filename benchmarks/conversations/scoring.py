"""Figures of conversations: plain functions on texts, results and labels."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workflows.evaluation.compare import bootstrap_interval

_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|\w+")


def ids_of(result: Mapping[str, Any]) -> list[str]:
    """Return the ids of a result's passages, best first; none where it asks back."""
    return [passage["id"] for passage in result.get("passages") or []]


def holds_words(answer: str, gold: str) -> bool:
    """Tell whether every word of a gold answer occurs in an answer, in whatever order and case."""
    return _words(gold) <= _words(answer)


def same_result(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two results are the same, letter by letter, but for their timings."""
    return _untimed(one) == _untimed(other)


def precision_and_recall(found: Collection[str], right: Collection[str]) -> tuple[float | None, float | None]:
    """Return which share of what was found is right, and which share of what is right was found; None of nothing."""
    both = len(set(found) & set(right))
    return (both / len(set(found)) if found else None), (both / len(set(right)) if right else None)


def difference(better: Sequence[float], worse: Sequence[float]) -> str:
    """Return the mean paired difference with its 95 % bootstrap interval, as text."""
    interval = bootstrap_interval([a - b for a, b in zip(better, worse, strict=True)])
    return f"{interval.mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]" if interval else "too few"


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _untimed(result: Mapping[str, Any]) -> str:
    return json.dumps({key: value for key, value in result.items() if key != "timings_ms"}, ensure_ascii=False)
