"""The one or two sentences that answer a question best: one alone, two of a passage, or two over a bridging name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product

from agents.offline.asked import Asked, read_question
from agents.offline.entity_spans import scan_entities
from agents.offline.held import LONGER_TITLE, Held, joined, read_sentences, support
from agents.offline.quotes import Embed, Sentence
from agents.offline.words import word_set
from graph.text import title_name, tokens

LEAST_SUPPORT = 0.5
"""Sentences below this support do not answer a question."""

SECOND_SENTENCE = 0.9
"""What a second sentence of one passage takes off: the first may be enough."""

_CLASS_BEFORE_NAME = word_set("the river lake mount city town village county province republic kingdom island of")


@dataclass(frozen=True, slots=True)
class Unit:
    """Sentences that answer a question together, and how far, from 0 to 1."""

    sentences: tuple[Sentence, ...]
    support: float


def best_unit(
    question: str, sentences: Sequence[Sentence], embed: Embed | None, quoted: Collection[Sentence] | None = None
) -> Unit:
    """Return the best one or two sentences; none, with support 0, where there is none to choose from.

    Two of one passage go together where the question names what it asks about, two of different ones where it
    describes that: the first then names what the passage of the second is about, and that one holds the answer.

    Args:
        question: what is asked.
        sentences: all of each passage: some words may stand around the answer.
        embed: gives unit vectors of words; None compares words alone.
        quoted: the sentences to choose from; None for all.
    """
    asked = read_question(question, known_names(question, sentences))
    held = read_sentences(question, asked, sentences, embed)
    best = Unit((), 0.0)
    places = [place for place, sentence in enumerate(sentences) if quoted is None or sentence in quoted]
    for first, second in product(places, places):
        one, other = sentences[first], sentences[second]
        if first == second:
            best = _better(best, (one,), support(asked, held[first]))
        elif other.passage is not one.passage:
            if asked.is_nested and _leads_to(asked, one, other):
                best = _better(best, (one, other), support(asked, _over_bridge(asked, held[first], held[second])))
        elif second > first and not asked.is_nested and _are_about(held[first], held[second]):
            both = support(asked, joined(held[first], held[second]))
            best = _better(best, (one, other), SECOND_SENTENCE * both)
    return best


def known_names(question: str, sentences: Sequence[Sentence]) -> list[str]:
    """Return names that a question may hold in small letters: titles; without capitals, all names of the passages."""
    passages = {sentence.passage.id: sentence.passage for sentence in sentences}.values()
    names = [passage.title for passage in passages]
    if question[1:].islower():
        names.extend(span.text for passage in passages for span in scan_entities(passage.text).spans)
    return names


def _are_about(one: Held, other: Held) -> bool:
    """Whether two sentences both are about a name of the question, where it has any."""
    return not one.names or min(max(one.names), max(other.names)) >= LONGER_TITLE


def _better(best: Unit, sentences: tuple[Sentence, ...], share: float) -> Unit:
    return Unit(sentences, share) if share > best.support else best


def _leads_to(asked: Asked, one: Sentence, other: Sentence) -> bool:
    """Whether the first sentence names what the passage of the second is about, and the question does not."""
    name = tokens(title_name(other.passage.title))
    while len(name) > 1 and name[0] in _CLASS_BEFORE_NAME:
        name = name[1:]
    if not name or asked.tokens.issuperset(name):
        return False
    return f" {' '.join(name)} " in f" {' '.join(tokens(one.text))} "


def _over_bridge(asked: Asked, one: Held, other: Held) -> Held:
    """What both hold of the description, and the second alone of what is asked."""
    both = joined(one, other)
    relation = tuple(
        near if word.is_inner else answering
        for word, near, answering in zip(asked.relation, both.relation, other.relation, strict=True)
    )
    return replace(both, relation=relation, kind=other.kind)
