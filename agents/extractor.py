"""The extractor on a chat model: the entities and typed triples of one passage, in one call."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from random import randrange
from typing import Protocol

from pydantic import BaseModel, Field, FiniteFloat

from agents.chat.agent import (
    ChatAgent,
    Schema,
    json_format,
    list_of,
    object_of,
    one_of,
    prompt_messages,
    share,
    text_of,
)
from agents.chat.echoes import check_no_echo
from agents.chat.material import most_tokens, quoted
from agents.chat.model import ChatModel, ChatReply
from agents.chat.replies import parse_object
from agents.roles import Feedback
from graph.errors import MalformedReply
from graph.own_types import NO_TYPES, OwnTypes, definition_list, entity_list
from graph.relations import fact_relations
from graph.schema import Extraction, Passage, Triple
from graph.sources.splitting import estimate_tokens
from graph.taxonomy import fact_type_of, type_triple
from graph.text import normalise_name
from prompts import fill

MAX_ENTITIES = 200
MAX_TRIPLES = 200
"""A reply that lists more is refused, and asked again."""

DEFAULT_CONFIDENCE = 0.5

MAX_REPLY_TOKENS = 4_096
"""Tokens that the reply to the longest passage may take, beside those of a model's thinking."""

_LEAST_REPLY_TOKENS = 256
# By the same estimate, the denser of the two examples takes as many, which leaves half of them free by its real count.
_REPLY_TOKENS_A_TOKEN = 8
_MAX_NAME = 300
_BYTES_PER_TOKEN = 4
_NAME = text_of(_MAX_NAME)


class Extractor(Protocol):
    """Finds the entities and typed triples of one passage."""

    @property
    def name(self) -> str:
        """The extractor's name; stored with each passage."""

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        """Return what the passage says. Raises MalformedReply."""


class TripleReply(BaseModel):
    """One statement; what has a default may be missing, and is counted."""

    subject: str
    predicate: str
    object: str
    relation: str | None = None
    confidence: FiniteFloat | None = None


class EntityTypeReply(BaseModel):
    """The user's own type of one of the entities."""

    entity: str
    type: str


class ExtractorReply(BaseModel):
    """The entities of the passage, its statements about them, and the entities' types where the user has some."""

    entities: list[str] = Field(max_length=MAX_ENTITIES)
    triples: list[TripleReply] = Field(max_length=MAX_TRIPLES)
    entity_types: list[EntityTypeReply] = Field(default=[], max_length=MAX_ENTITIES)


class ChatExtractor(ChatAgent):
    """Asks a chat model for the entities and typed triples of a passage.

    Asking and reading are two steps, so that a reply that was kept can be read again: see `agents.extraction`.
    """

    prompt = "extractor"
    material = "passage"
    reply_tokens = MAX_REPLY_TOKENS

    def __init__(self, model: ChatModel, own: OwnTypes = NO_TYPES, others: Sequence[ChatModel] = ()) -> None:
        """``others`` are more servers of the same model: each request goes to the next one."""
        super().__init__(model)
        self._models = (model, *others)
        self._turns = count(randrange(len(self._models)))
        self._own = own
        self._system = fill(
            self.prompt,
            relations=definition_list(fact_relations(own.relation_types), own),
            max_entities=MAX_ENTITIES,
            max_triples=MAX_TRIPLES,
            entity_types=fill("entity_types", types=entity_list(own)) if own.entities else "",
        )
        self._system_tokens = estimate_chat_tokens(self._system)

    @property
    def name(self) -> str:
        """The model and a hash of the prompt with its schema: another model or prompt is another extractor.

        So are other rules of own types, which type what the model leaves untyped; its replies are then read again.
        """
        rules = f"+{self._own.rules}" if self._own.rules else ""
        return f"{self._model.name}#{hashlib.blake2b(self._system.encode(), digest_size=4).hexdigest()}{rules}"

    def key(self, passage: Passage) -> bytes:
        """Return the hash of all that a reply depends on; passages of one title and text share it."""
        digest = hashlib.blake2b(digest_size=20)
        for part in (self._system, self._model.name, repr(float(self._model.temperature)), self._material(passage)):
            digest.update(hashlib.blake2b(part.encode()).digest())
        return digest.digest()

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        """Return what the model finds in the passage; see `read`.

        Raises:
            MalformedReply: the reply is not of the schema, holds too many items, or is an echo.
            TransportFault: the endpoint could not be reached, was busy or broke off.
            ModelUnavailable: the endpoint refused the key, the model or the request.
        """
        return self.read(self.ask(passage, feedback).text(), passage)

    def ask(self, passage: Passage, feedback: Feedback | None = None) -> ChatReply:
        """Return the model's reply unread. Raises TransportFault, ModelUnavailable."""
        shown = self._shown(passage)
        messages = prompt_messages(self._system, _material(passage.title, shown), feedback)
        size = most_tokens(f"{passage.title}\n{shown}")
        asked = json_format(ExtractorReply.__name__, _schema(size, self._own))
        model = self._models[next(self._turns) % len(self._models)]
        most = min(MAX_REPLY_TOKENS, _LEAST_REPLY_TOKENS + _REPLY_TOKENS_A_TOKEN * size)
        return model.ask(messages, asked, max_tokens=most)

    def read(self, reply: str, passage: Passage) -> Extraction:
        """Return the extraction that a reply to a passage states, its types and confidences checked.

        ``notes`` counts what was dropped (``unusable names``: blank, above 300 characters or with control characters;
        ``unusable triples``, with such a part; ``self_reference``; ``triples without a listed entity``; ``unusable
        entity types``, of no listed name or of no known type) and what was defaulted (``triples
        typed by rule``, where no known type was given; ``triples without a cue``, where no rule told it either;
        ``confidences defaulted`` to 0.5; ``confidences clamped`` to [0, 1]).
        ``ends of passages not shown`` counts a passage of which the model's context window holds the beginning alone.

        Raises:
            MalformedReply: the reply is not of the schema, holds too many items, or is an echo.
        """
        parsed = parse_object(reply, ExtractorReply)
        try:
            check_no_echo(parsed, prompt_messages(self._system, self._material(passage)))
        except MalformedReply as echo:
            raise MalformedReply(echo.reason, reply) from None
        notes = Counter[str]()
        notes["ends of passages not shown"] = self._shown(passage) != passage.text
        names = [name for text in parsed.entities if (name := _usable(text)) is not None]
        notes["unusable names"] = len(parsed.entities) - len(names)
        listed = {normalise_name(name) for name in names}
        triples = [triple for item in parsed.triples if (triple := _triple(item, listed, notes, self._own)) is not None]
        types = _types(parsed.entity_types, names, notes, self._own)
        kept_notes = {reason: count for reason, count in notes.items() if count}
        return Extraction(tuple(names), tuple(triples), self.name, kept_notes, types=types)

    def estimate_prompt_tokens(self, passage: Passage) -> int:
        """Estimate the tokens of a request from its text; servers count by tokenizers of their own."""
        return self._system_tokens + estimate_chat_tokens(_material(passage.title, passage.text))

    def _material(self, passage: Passage) -> str:
        return _material(passage.title, self._shown(passage))

    def _shown(self, passage: Passage) -> str:
        """The text of a passage as far as it fits into the model's context window."""
        return self._room(prompt_messages(self._system, _material(passage.title, ""))).cut(passage.text)


def _schema(size: int, own: OwnTypes) -> Schema:
    """The schema of a reply to a passage of so many tokens: twice what the examples list, so that lists end."""
    triple = object_of(
        subject=_NAME,
        predicate=_NAME,
        object=_NAME,
        relation=one_of([relation.value for relation in fact_relations(own.relation_types)]),
        confidence=share(),
    )
    most = min(MAX_ENTITIES, 10 + size // 6)
    typed = list_of(object_of(entity=_NAME, type=one_of(own.entity_types)), most)
    return object_of(
        entities=list_of(_NAME, most),
        triples=list_of(triple, min(MAX_TRIPLES, 8 + size // 12)),
        **({"entity_types": typed} if own.entities else {}),
    )


def estimate_chat_tokens(text: str) -> int:
    """Estimate a text's tokens for a chat model: by words, and by bytes for what has few words, such as JSON."""
    return max(estimate_tokens(text), len(text.encode()) // _BYTES_PER_TOKEN)


def _material(title: str, text: str) -> str:
    return quoted(ChatExtractor.material, {"title": title, "text": text})


def _usable(text: str) -> str | None:
    """A name on one line, or None where it cannot stand in a graph."""
    name = " ".join(text.split())
    printable = all(character >= " " and not "\x7f" <= character <= "\x9f" for character in name)
    return name if printable and len(name) <= _MAX_NAME and normalise_name(name) else None


def _triple(item: TripleReply, listed: set[str], notes: Counter[str], own: OwnTypes) -> Triple | None:
    """A statement with its type and confidence settled, or None where it is dropped; both counted."""
    subject, predicate, object_ = map(_usable, (item.subject, item.predicate, item.object))
    if subject is None or predicate is None or object_ is None:
        notes["unusable triples"] += 1
        return None
    ends = {normalise_name(subject), normalise_name(object_)}
    if len(ends) == 1:
        notes["self_reference"] += 1
        return None
    if not ends & listed:
        notes["triples without a listed entity"] += 1
        return None
    relation = fact_type_of(item.relation or "", own)
    if relation is None:
        relation, cued = type_triple(subject, predicate, object_, own)
        notes["triples typed by rule"] += 1
        notes["triples without a cue"] += not cued
    return Triple(subject, predicate, object_, relation, _confidence(item.confidence, notes))


def _types(
    replies: Iterable[EntityTypeReply], names: Iterable[str], notes: Counter[str], own: OwnTypes
) -> dict[str, str]:
    """Return the own types of listed names; what is of no listed name or no known type is dropped and counted."""
    spelled = {normalise_name(name): name for name in names}
    types: dict[str, str] = {}
    for item in replies:
        name, entity_type = spelled.get(normalise_name(item.entity)), own.entity_type_named(item.type)
        if name is not None and entity_type is not None:
            types.setdefault(name, entity_type)
        else:
            notes["unusable entity types"] += 1
    return types


def _confidence(stated: float | None, notes: Counter[str]) -> float:
    if stated is None:
        notes["confidences defaulted"] += 1
        return DEFAULT_CONFIDENCE
    clamped = min(1.0, max(0.0, stated))
    notes["confidences clamped"] += clamped != stated
    return clamped
