"""The restart vector: which entities and passages the walk starts from, and with what weight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from graph.text import NameMatcher, token_spans

COMMON_NOUN_SHARE = 0.25
"""The weight of a common noun that happens to be a known name, relative to a name that is written as one."""


def entity_seeds(
    facts: Iterable[tuple[int, int, float]], rarity_of: Callable[[int], float], limit: int
) -> dict[int, float]:
    """Weigh the entities of the kept facts (MARA-RAG phase 3.1).

    Each fact (subject, object, score) gives its two entities score x rarity; an entity has the mean of what it is
    given. The best ``limit`` are returned, best first, ties by index.
    """
    scores_of: dict[int, list[float]] = defaultdict(list)
    for subject, object_, score in facts:
        for entity in dict.fromkeys((subject, object_)):
            scores_of[entity].append(score * rarity_of(entity))
    means = {entity: sum(scores) / len(scores) for entity, scores in scores_of.items()}
    return dict(sorted(sorted(means.items()), key=itemgetter(1), reverse=True)[:limit])


def name_seeds(
    question: str,
    names: NameMatcher,
    passages_of: Callable[[int], int],
    weight: float,
    among: NDArray[np.bool_] | None = None,
) -> dict[int, float]:
    """Weigh the known names that the question spells out: ``weight`` / sqrt(n_passages), longest names only.

    A common noun gets its share of that, see `spelled_names`.
    """
    shares = spelled_names(question, names, among)
    return {entity: share * weight / max(1, passages_of(entity)) ** 0.5 for entity, share in shares.items()}


def spelled_names(text: str, names: NameMatcher, among: NDArray[np.bool_] | None = None) -> dict[int, float]:
    """Return {entity: share} of the known names that a text spells out, longest names only.

    A name in small letters, in a text that writes others with capitals or in a script without them, is a common
    noun and gets `COMMON_NOUN_SHARE`; any other gets 1. With ``among``, one element an entity, the names of all
    others are unknown.
    """
    spans = token_spans(text)
    words = [text[start:end] for _, start, end in spans]
    # A number, or a word of a script without capitals, is not small.
    small = [word == word.lower() != word.upper() for word in words]
    writes_names = any(map(_is_written_as_a_name, words[1:]))
    shares: dict[int, float] = {}
    for mention in names.find([token for token, _, _ in spans], among):
        is_common = writes_names and all(small[max(1, mention.start) : mention.end])
        share = COMMON_NOUN_SHARE if is_common else 1.0
        shares[mention.name] = max(share, shares.get(mention.name, 0.0))
    return shares


def _is_written_as_a_name(word: str) -> bool:
    """Tell whether a word has a capital, or letters of a script without any."""
    return word != word.lower() or (word.lower() == word.upper() and any(map(str.isalpha, word)))


def min_max(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale to [0, 1]; equal scores become ones."""
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones_like(scores)


def seed_weights(scores: NDArray[np.float64], weight: float, sharpness: float) -> NDArray[np.float64]:
    """Weigh passages by their score: min-max to [0, 1], to the power ``sharpness``, times ``weight``.

    Args:
        scores: of all that are compared, in any order.
        weight: the passage weight, which the best gets.
        sharpness: 1 is linear, as published; more gives the mass to the few best.
    """
    return np.asarray(min_max(scores) ** sharpness * weight, dtype=np.float64)


def passage_seeds(
    ranking: Sequence[tuple[int, float]], weight: float, limit: int, sharpness: float
) -> dict[int, float]:
    """Weigh the best passages of a ranking, see `seed_weights`; those of weight 0 are no seeds.

    Args:
        ranking: (passage, score), best first.
        weight: the passage weight.
        limit: how many of the best are seeds; 0 for all.
        sharpness: the power on the scores.
    """
    scaled = seed_weights(np.asarray([score for _, score in ranking]), weight, sharpness)
    kept = ranking[:limit] if limit else ranking
    return {passage: float(scaled[i]) for i, (passage, _) in enumerate(kept) if scaled[i] > 0}
