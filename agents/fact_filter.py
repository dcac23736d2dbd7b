"""Recognition memory on a chat model: it picks, among the candidate facts, those worth starting from."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from agents.chat.agent import ChatAgent
from agents.chat.fitting import Room
from agents.chat.json_schema import numbers_of, object_of
from agents.roles import FactChoice, Feedback
from graph.errors import MalformedReply
from graph.schema import Fact, ScoredFact
from graph.text import normalise_name


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
            kept = tuple(shown[number] for number in picked[:max_facts])
            return FactChoice(kept, dropped=sum(number not in shown for number in reply.facts))

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
