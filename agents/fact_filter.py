"""Recognition memory on a chat model: it picks, among the candidate facts, those worth starting from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, JsonValue, WithJsonSchema

from agents.chat.agent import ChatAgent
from agents.roles import FactChoice, Feedback
from graph.errors import MalformedReply
from graph.schema import ScoredFact
from graph.sources.notation import fact_parts
from graph.text import normalise_name

FactParts = tuple[str, str, str]

_FACT_SCHEMA = {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3}


class FactFilterReply(BaseModel):
    """The chosen facts; each a list of subject, predicate and object."""

    facts: Annotated[
        list[list[JsonValue] | dict[str, JsonValue] | str], WithJsonSchema({"type": "array", "items": _FACT_SCHEMA})
    ]


class ChatFactFilter(ChatAgent):
    """Asks a chat model which candidate facts help to answer the question."""

    prompt = "fact_filter"
    material = "question and facts"
    reply_tokens = 256

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        """Return the candidates that the model picked, in the candidates' order; without candidates, ask nothing.

        A pick counts only if its normal form is a candidate's; anything else is dropped and counted, never matched
        to something near. Repeated picks count once. Of more than ``max_facts`` picks the first in the candidates'
        order stay; the rest are not counted as dropped, since they were candidates.

        Raises:
            MalformedReply: the reply is not of the schema, or picks facts of which none is a candidate.
        """
        if not candidates:
            return FactChoice(())
        positions: dict[FactParts, int] = {}
        for position, candidate in enumerate(candidates):
            fact = candidate.fact
            positions.setdefault(_normal_form((fact.subject, fact.predicate, fact.object)), position)
        shown = [candidates[position].fact for position in positions.values()]
        material = {"question": question, "facts": [[fact.subject, fact.predicate, fact.object] for fact in shown]}

        def check(reply: FactFilterReply) -> FactChoice:
            read = map(parse_fact, reply.facts)
            found = [positions.get(_normal_form(parts)) if parts else None for parts in read]
            picked = sorted({position for position in found if position is not None})
            if found and not picked:
                raise MalformedReply("None of the chosen facts is in the list: copy them letter by letter")
            kept = tuple(candidates[position] for position in picked[:max_facts])
            return FactChoice(kept, dropped=found.count(None))

        return self._ask_object(FactFilterReply, material, check, feedback, max_facts=max_facts)


def parse_fact(item: object) -> FactParts | None:
    """Return subject, predicate and object of a fact in any accepted notation, or None where it is none.

    Accepted: ``s ||| p ||| o``, a list or tuple, an object with these three keys, and the text of any of them as
    JSON or as a Python tuple. Lists of five parts carry a type and a confidence, which are left out. Texts above
    2,000 characters are refused unread.
    """
    parts = fact_parts(item)
    return None if parts is None else _three_parts(parts[:3])


def _three_parts(parts: Sequence[object]) -> FactParts | None:
    """The parts as text, if each is a name or a number."""
    if any(isinstance(part, bool) or not isinstance(part, str | int | float) for part in parts):
        return None
    subject, predicate, object_ = (str(part).strip() for part in parts)
    return (subject, predicate, object_) if subject and predicate and object_ else None


def _normal_form(parts: FactParts) -> FactParts:
    subject, predicate, object_ = map(normalise_name, parts)
    return subject, predicate, object_
