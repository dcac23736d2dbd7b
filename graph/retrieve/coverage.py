"""Coverage: the second passage is chosen for what the first one leaves open.

A question of several steps has its words in several passages. The best passage of a walk holds those of one step, and
passages beside it that hold the same words again crowd out the one that holds the others. So among the best passages,
one that shares a name with the first counts more, the more of the question's other words it holds. Choosing passages
for the words that those before them lack is the principle of AIR (Yadav, Bethard and Surdeanu, ACL 2020).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def second_for_open_words(
    ranking: Sequence[tuple[int, float]],
    weights: NDArray[np.float64],
    occurrences: NDArray[np.bool_],
    joined: NDArray[np.bool_],
    strength: float,
) -> list[tuple[int, float]]:
    """Move the best second passage to the second place; the others keep their order.

    It has the greatest score x exp(strength x share), where the share is that of the question's words that it holds and
    the first one does not; it keeps no more than the first one's score.

    Args:
        ranking: (passage, score), best first; two or more.
        weights: of the question's words, shape (n_words,).
        occurrences: whether a passage holds a word, shape (n_words, n_ranked).
        joined: whether a passage shares a name with the first one, shape (n_ranked,); of others no share counts.
        strength: how much the share counts.
    """
    if not len(weights):
        return list(ranking)
    scores = np.array([score for _, score in ranking])
    open_words = np.where(occurrences[:, 0], 0.0, weights)
    lifted = scores * np.exp(strength * joined * (open_words @ occurrences) / weights.sum())
    second = 1 + int(np.argmax(lifted[1:]))
    chosen = (ranking[second][0], float(min(scores[0], lifted[second])))
    return [ranking[0], chosen, *ranking[1:second], *ranking[second + 1 :]]
