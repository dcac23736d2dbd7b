"""Recognition memory: it picks, among the candidate facts, those worth starting from."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel

from agents.agent import Agent
from agents.chat.agent import ChatAgent, numbers_of, object_of
from agents.chat.material import Room
from agents.offline.words import content_stems
from agents.roles import Feedback
from graph.errors import MalformedReply
from graph.schema import Fact, ScoredFact
from graph.text import normalise_name


@dataclass(frozen=True, slots=True)
class FactChoice:
    """The facts worth starting from.

    Attributes:
        kept: a subset of the candidates, in their order; empty is a legal choice.
        dropped: how many items of the reply were not candidates.
    """

    kept: tuple[ScoredFact, ...]
    dropped: int = 0


class FactFilter(Protocol):
    """Recognition memory: keeps the candidate facts that help to answer the question."""

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        """Return at most ``max_facts`` of the candidates. Raises MalformedReply."""


class FactFilterReply(BaseModel):
    """The numbers of the chosen facts."""

    facts: list[int]


class ChatFactFilter(ChatAgent):
    """Asks a chat model which candidate facts help to answer the question."""

    prompt = "fact_filter"
    material = "question and facts"
    reply_tokens = 100

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        """Return the candidates that the model picked, in the candidates' order; without candidates, ask nothing.

        Facts are shown and picked by number. A number that no shown fact has is dropped and counted; repeated ones
        count once. Of more than ``max_facts`` picks the first in the candidates' order stay; the rest are not counted
        as dropped, since they were candidates.

        Raises:
            MalformedReply: the reply is not of the schema, or picks numbers that no fact has, and no others.
        """
        if not candidates:
            return FactChoice(())
        distinct: dict[tuple[str, ...], ScoredFact] = {}
        for candidate in candidates:
            distinct.setdefault(tuple(map(normalise_name, _parts(candidate.fact))), candidate)
        about: dict[str, object] = {"question": question, "max_facts": max_facts}
        fitting = self._fitting(list(distinct.values()), self._room(self.messages(about, feedback)))
        shown = dict(enumerate(fitting, start=1))
        facts = [[number, *_parts(candidate.fact)] for number, candidate in shown.items()]

        def check(reply: FactFilterReply) -> FactChoice:
            picked = sorted(shown.keys() & reply.facts)
            if reply.facts and not picked:
                raise MalformedReply(f"None of the chosen facts exists: they are numbered 1 to {len(shown)}")
            chosen = tuple(shown[number] for number in picked[:max_facts])
            return FactChoice(chosen, dropped=sum(number not in shown for number in reply.facts))

        schema = object_of(facts=numbers_of(shown, max_facts))
        messages = self.messages({**about, "facts": facts}, feedback)
        return self._ask_object(FactFilterReply, schema, messages, check)

    def _fitting(self, candidates: Sequence[ScoredFact], room: Room) -> Sequence[ScoredFact]:
        """The best candidates that fit into the prompt, one at least; tells how many do not."""
        fitting = max(1, room.count([" ".join(_parts(candidate.fact)) for candidate in candidates]))
        if fitting < len(candidates):
            room.tell(f"{len(candidates) - fitting} of {len(candidates)} facts")
        return candidates[:fitting]


def _parts(fact: Fact) -> tuple[str, str, str]:
    return fact.subject, fact.predicate, fact.object


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
        scored = [_relevance(candidate, asked) for candidate in candidates]
        relevance = {position: score for position, score in enumerate(scored) if score is not None}
        if not relevance:
            return FactChoice(())
        bar = NEAR_BEST * max(relevance.values())
        ranked = sorted(relevance, key=relevance.__getitem__, reverse=True)
        chosen = sorted([position for position in ranked[: max(max_facts, 0)] if relevance[position] >= bar])
        return FactChoice(tuple([candidates[position] for position in chosen]))


def _relevance(candidate: ScoredFact, asked: Set[str]) -> float | None:
    """The cosine of an eligible fact, more where the question names its subject or object; None for another fact.

    How much more goes by the larger share of the name's content words that the question holds.
    """
    fact, score = candidate.fact, candidate.score
    if not (score >= CONVINCING or (score >= LEAST_SCORE and not asked.isdisjoint(content_stems(fact.text)))):
        return None
    shares = [0.0]
    for name in (fact.subject, fact.object):
        if words := frozenset(content_stems(name)):
            shares.append(len(words & asked) / len(words))
    return score + NAME_BONUS * max(shares)


class KeepAllFacts:
    """The fact filter of runs that want none: every candidate is kept."""

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        """Return all candidates, whatever ``max_facts`` says."""
        return FactChoice(tuple(candidates))


def _shown(choice: FactChoice) -> dict[str, Any]:
    return {"kept": [" ".join(_parts(chosen.fact)) for chosen in choice.kept], "dropped": choice.dropped}


def _keeping_all(settings: Any, has_model: bool) -> FactFilter | None:
    """A filter that keeps all where none is wanted: the modes that run as published use a model's alone."""
    is_wanted = settings.filter_facts and (has_model or not settings.mode.as_published)
    return None if is_wanted else KeepAllFacts()


FACT_FILTER: Agent[FactFilter, FactChoice] = Agent(
    name="fact_filter",
    key="filter",
    chat=lambda model, run: ChatFactFilter(model),
    offline=lambda run: OfflineFactFilter(),
    shown=_shown,
    instead="the best {} candidates are kept",
    own=_keeping_all,
)
