"""Recognition memory without a model: facts that resemble the question and share words with it."""

from __future__ import annotations

from collections.abc import Sequence, Set

from agents.offline.language.words import content_stems
from agents.roles import FactChoice, Feedback
from graph.schema import Fact, ScoredFact

NAME_BONUS = 0.2
"""The gain of a fact on its cosine when the question spells out its subject or object."""

NEAR_BEST = 0.7
"""A fact stays if its relevance is at least this share of the best one's."""

CONVINCING = 0.6
"""The cosine from which a fact stays without sharing a word with the question (another language, a paraphrase)."""

LEAST_SCORE = 0.2
"""The cosine below which a fact is dropped, whatever words it shares."""


class OfflineFactFilter:
    """Keeps facts by cosine, shared content words and named entities; deterministic, and may keep nothing."""

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        """Return at most ``max_facts`` of the candidates, in their order.

        A candidate is eligible with a cosine of `LEAST_SCORE` and a shared content word, or of `CONVINCING` without
        one. Of the eligible, those within `NEAR_BEST` of the most relevant stay, the most relevant first; ties go to
        the earlier candidate.
        """
        asked = frozenset(content_stems(question))
        relevance = {
            position: candidate.score + NAME_BONUS * _named_share(candidate.fact, asked)
            for position, candidate in enumerate(candidates)
            if _is_eligible(candidate, asked)
        }
        if not relevance:
            return FactChoice(())
        bar = NEAR_BEST * max(relevance.values())
        ranked = sorted(relevance, key=relevance.__getitem__, reverse=True)
        kept = sorted([position for position in ranked[: max(max_facts, 0)] if relevance[position] >= bar])
        return FactChoice(tuple(map(candidates.__getitem__, kept)))


def _is_eligible(candidate: ScoredFact, asked: Set[str]) -> bool:
    if candidate.score >= CONVINCING:
        return True
    return candidate.score >= LEAST_SCORE and not asked.isdisjoint(content_stems(candidate.fact.text))


def _named_share(fact: Fact, asked: Set[str]) -> float:
    """The larger share, in [0, 1], of the subject's or the object's content words that the question holds."""
    shares = []
    for name in (fact.subject, fact.object):
        words = frozenset(content_stems(name))
        shares.append(len(words & asked) / len(words) if words else 0.0)
    return max(shares)
