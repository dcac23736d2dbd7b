"""Experiments: questions with gold are asked of systems, measured and compared.

The measures of retrieval and of answers stand here: plain functions on ids, texts and lists.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from graph.errors import BadInput

DEPTHS = (1, 2, 5, 10, 20)
"""The numbers of passages at which recall, precision and their F1 are given."""

ALL_GOLD_DEPTHS = (2, 5, 10)
"""The numbers of passages at which the share of questions with all their gold passages is given."""

FIRST_PAGE = 5
"""The number of passages among which MRR@5 looks for the first gold one."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))


def recall_at_k(retrieved: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the gold passages that stand among the first ``k`` retrieved, in [0, 1].

    An id that is retrieved twice takes both places and counts once.

    Raises:
        BadInput: there is no gold.
    """
    wanted = _gold_set(gold)
    return len(set(retrieved[:k]) & wanted) / len(wanted)


def precision_at_k(retrieved: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the share of the first ``k`` places that hold a gold passage, in [0, 1].

    A place that is empty or repeats an id holds none.

    Raises:
        BadInput: there is no gold.
    """
    return len(set(retrieved[:k]) & _gold_set(gold)) / k


def f1_at_k(retrieved: Sequence[str], gold: Collection[str], k: int) -> float:
    """Return the harmonic mean of precision and recall at ``k``, in [0, 1]. Raises BadInput as `recall_at_k` does."""
    wanted = _gold_set(gold)
    return 2 * len(set(retrieved[:k]) & wanted) / (k + len(wanted))


def found_all_at_k(retrieved: Sequence[str], gold: Collection[str], k: int) -> bool:
    """Tell whether every gold passage stands among the first ``k``. Raises BadInput as `recall_at_k` does."""
    return _gold_set(gold) <= set(retrieved[:k])


def reciprocal_rank(retrieved: Sequence[str], gold: Collection[str], k: int | None = None) -> float:
    """Return 1 / the place of the first gold passage, 0 where none was retrieved.

    Args:
        retrieved: ids, best first.
        gold: ids.
        k: only the first so many places are looked at; None for all.

    Raises:
        BadInput: there is no gold.
    """
    wanted = _gold_set(gold)
    return next((1 / place for place, id_ in enumerate(retrieved[:k], start=1) if id_ in wanted), 0.0)


def passage_overlap(named: Collection[str], gold: Collection[str]) -> tuple[float | None, float | None]:
    """Return precision and recall of passages that a system names, in no order, against the gold ones.

    None for the precision of nothing named, and for both of a question without gold passages.
    """
    shared = len(set(named) & set(gold))
    if not gold:
        return None, None
    return (shared / len(set(named)) if named else None), shared / len(set(gold))


def averaged(
    measure: Callable[[Sequence[str], Collection[str]], float],
    rankings: Sequence[Sequence[str]],
    golds: Sequence[Collection[str]],
) -> float | None:
    """Return a measure of rankings averaged over all questions that have gold; None where none has."""
    return mean(measure(ranking, gold) for ranking, gold in zip(rankings, golds, strict=True) if gold)


def mrr(rankings: Sequence[Sequence[str]], golds: Sequence[Collection[str]], k: int | None = None) -> float | None:
    """Return the reciprocal rank, among the first ``k`` or among all, as `averaged` gives it."""
    return averaged(partial(reciprocal_rank, k=k), rankings, golds)


def mean(values: Iterable[float]) -> float | None:
    """Return the mean, the same in whatever order; None of nothing."""
    known = list(values)
    return math.fsum(known) / len(known) if known else None


def known(rows: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    """Return what rows tell under a key; those that tell nothing are left out."""
    return [row[key] for row in rows if row[key] is not None]


def normalise_answer(text: str) -> str:
    """Return an answer as SQuAD compares it: small letters, no ASCII punctuation, no English article, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, golds: str | Sequence[str]) -> float:
    """Return 1 where the answer is one of the gold answers in SQuAD's normal form, else 0.

    A blank answer is only a blank gold answer, never one that is blank in its normal form alone, such as "The".

    Raises:
        BadInput: there is no gold answer.
    """
    return max(_exact(answer, gold) for gold in _gold_answers(golds))


def token_f1(answer: str, golds: str | Sequence[str]) -> float:
    """Return SQuAD's F1 over words, against the gold answer that gives the most, in [0, 1].

    "Yes" and "no" are words like others. Where a normal form holds no word, F1 is the exact match.

    Raises:
        BadInput: there is no gold answer.
    """
    return max(_f1(answer, gold) for gold in _gold_answers(golds))


def holds_gold(answer: str, golds: Collection[str]) -> bool:
    """Tell whether a gold answer stands somewhere in an answer, letter by letter but for their case.

    Args:
        answer: without citations.
        golds: each is right.
    """
    said = answer.casefold()
    return any(gold.casefold() in said for gold in golds)


def claim_support_rate(claims: Iterable[Mapping[str, int]]) -> float | None:
    """Return the share of claims that are supported, of ``{claims, supported}`` of any number of answers; None of none.

    All answers are taken together.
    """
    known = list(claims)
    total = sum(counts["claims"] for counts in known)
    return sum(counts["supported"] for counts in known) / total if total else None


def _gold_set(gold: Collection[str]) -> set[str]:
    if not gold:
        raise BadInput("A question without gold passages has no recall", "Leave it out")
    return set(gold)


def _gold_answers(golds: str | Sequence[str]) -> Sequence[str]:
    if isinstance(golds, str):
        return [golds]
    if not golds:
        raise BadInput("Without a gold answer there is no match", "Leave the question out")
    return golds


def _exact(answer: str, gold: str) -> float:
    same = normalise_answer(answer) == normalise_answer(gold)
    return float(same and bool(answer.strip()) == bool(gold.strip()))


def _f1(answer: str, gold: str) -> float:
    words, wanted = normalise_answer(answer).split(), normalise_answer(gold).split()
    if not words or not wanted:
        return _exact(answer, gold)
    shared = (Counter(words) & Counter(wanted)).total()
    return 2 * shared / (len(words) + len(wanted))
