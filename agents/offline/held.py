"""What of a question sentences hold: its names, what it asks about them, a kind of answer; alone and together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agents.offline.answer_type import AnswerType, holds_answer
from agents.offline.asked import OUTER, Asked
from agents.offline.nearness import sentence_words, without_names, word_nearness
from agents.offline.quotes import Embed, Sentence
from agents.offline.words import content_stems, stem
from graph.dates import date_spans
from graph.text import title_name, tokens

MISSED = 0.1
"""What a name or a word that is not held counts in the geometric mean of them all: one of one or two refuses, one of
many hardly matters."""

UNLIKE, ALIKE = 0.4, 0.7
"""A sentence and a question with a cosine at the first or below, names apart, have nothing in common, at the second or
above the sentence says what is asked in other words."""

HALF = 0.5
"""A word that comes nearer than this is held."""

MISSED_KIND = 0.4
"""What is left of the support of sentences that hold no answer of the kind that is asked for."""

IN_PASSAGE = 0.7
"""What a describing word of the question counts that only another sentence of the passage holds."""

OUTER_IN_PASSAGE = 0.3
"""The same for a word of what is asked: one of several may stand elsewhere, not the only one."""

LONGER_TITLE = 0.7
"""What a name counts that is only part of the title: "Upper Moor" is not "Moor", yet "Alan Turing" is "Turing"."""

ELSEWHERE = 0.4
"""What a name counts that only another sentence of the passage holds: this one may be about something else."""

_LEAST_PROBABILITY = 0.01


@dataclass(frozen=True, slots=True)
class Held:
    """What a sentence holds of a question.

    Attributes:
        names: how far the sentence is about each name, from 0 to 1.
        numbers: how far it holds each number.
        relation: how near a word comes to each word of the relation, from 0 to 1.
        kind: whether there is an answer of the kind that is asked for.
        meaning: how near it comes to the question in meaning, names apart, from 0 to 1; 0 without such an answer.
    """

    names: tuple[float, ...]
    numbers: tuple[float, ...]
    relation: tuple[float, ...]
    kind: bool
    meaning: float

    @property
    def least_name(self) -> float:
        """How far the name is held that is held least; 0 where the question has none."""
        return min(self.names, default=0.0)


def joined(one: Held, other: Held) -> Held:
    """Return what two sentences hold together."""
    return Held(
        tuple(map(max, one.names, other.names)),
        tuple(map(max, one.numbers, other.numbers)),
        tuple(map(max, one.relation, other.relation)),
        one.kind or other.kind,
        max(one.meaning, other.meaning),
    )


def support(asked: Asked, held: Held) -> float:
    """Return how far what is held answers the question, from 0 to 1: names, relation and kind are all needed."""
    if not asked.names and not asked.relation:
        return 0.0
    known = [(near, 1.0) for near in (*held.names, *held.numbers)]
    said = [(max(near, held.meaning), word.weight) for word, near in zip(asked.relation, held.relation, strict=True)]
    return _geometric_mean(known) * _geometric_mean(said) * (1.0 if held.kind else MISSED_KIND)


def _geometric_mean(weighed: Sequence[tuple[float, float]]) -> float:
    """The weighted geometric mean of (share, weight), shares at least `MISSED`; 1 for nothing."""
    total = sum(weight for _, weight in weighed)
    return math.exp(sum(weight * math.log(max(share, MISSED)) for share, weight in weighed) / total) if total else 1.0


def read_sentences(question: str, asked: Asked, sentences: Sequence[Sentence], embed: Embed | None) -> list[Held]:
    """Tell for each sentence what it holds of a question.

    Where none holds a name that the question asks about, words are not compared by their meaning: nothing is lost.
    """
    names = [_names_held(asked.names, sentence) for sentence in sentences]
    if asked.names and not asked.is_nested and not any(map(any, names)):
        embed = None
    words = [sentence_words(sentence) for sentence in sentences]
    near = word_nearness(asked.relation, words, embed)
    meanings = _meanings(question, asked, sentences, names, embed)
    around: dict[str, list[float]] = {}
    for sentence, row in zip(sentences, near, strict=True):
        best = around.setdefault(sentence.passage.id, [0.0] * len(row))
        around[sentence.passage.id] = list(map(max, best, row))
    kinds = [_kind_held(asked, sentence) for sentence in sentences]
    return [
        Held(
            known,
            _names_held([(stem(number),) for number in asked.numbers], sentence),
            tuple(map(max, row, _held_around(asked, sentence, row, around[sentence.passage.id]))),
            kind,
            meaning if kind else 0.0,
        )
        for sentence, known, row, kind, meaning in zip(sentences, names, near, kinds, meanings, strict=True)
    ]


def _held_around(asked: Asked, sentence: Sentence, own: Sequence[float], best: Sequence[float]) -> list[float]:
    """What each word of the relation counts for standing anywhere in a sentence's passage.

    What describes the thing asked about counts nothing in a passage on a name of the question: there it may describe
    one thing, and the sentence be about the name. What is asked counts only beside another word of it.
    """
    is_named = _title_stems(sentence) in map(frozenset, asked.names)
    is_asked = any(near >= HALF for word, near in zip(asked.relation, own, strict=True) if not word.is_inner)
    counts = []
    for word, near in zip(asked.relation, best, strict=True):
        if word.is_inner:
            counts.append(0.0 if is_named else IN_PASSAGE * near)
        elif word.weight == OUTER:
            counts.append(OUTER_IN_PASSAGE * near if is_asked else 0.0)
        else:
            counts.append(IN_PASSAGE * near)
    return counts


def _meanings(
    question: str,
    asked: Asked,
    sentences: Sequence[Sentence],
    names: Sequence[tuple[float, ...]],
    embed: Embed | None,
) -> list[float]:
    """How near each sentence about the names comes to the question in meaning, names left out of both, from 0 to 1."""
    places = [place for place, held in enumerate(names) if min(held, default=0.0) >= LONGER_TITLE]
    meanings = [0.0] * len(sentences)
    if embed is None or asked.is_nested or not places:
        return meanings
    vectors = embed([without_names(question), *(without_names(sentences[place].text) for place in places)])
    for place, cosine in zip(places, vectors[1:] @ vectors[0], strict=True):
        meanings[place] = min(1.0, max(0.0, (float(cosine) - UNLIKE) / (ALIKE - UNLIKE)))
    return meanings


def log_odds(share: float) -> float:
    """Return the natural log-odds of a support, clipped so that it stays finite."""
    clipped = min(1 - _LEAST_PROBABILITY, max(_LEAST_PROBABILITY, share))
    return math.log(clipped / (1 - clipped))


def _title_stems(sentence: Sentence) -> frozenset[str]:
    return frozenset(content_stems(title_name(sentence.passage.title)))


def _names_held(names: Sequence[Sequence[str]], sentence: Sentence) -> tuple[float, ...]:
    """How far the sentence is about each name."""
    title = _title_stems(sentence)
    whole_title = frozenset(map(stem, tokens(sentence.passage.title)))
    inside = frozenset(map(stem, tokens(sentence.text)))
    around = frozenset(map(stem, tokens(sentence.passage.text)))
    held = []
    for name in names:
        if title == frozenset(name) or inside.issuperset(name):
            held.append(1.0)
        elif whole_title.issuperset(name):
            held.append(LONGER_TITLE)
        else:
            held.append(ELSEWHERE if (around | whole_title).issuperset(name) else 0.0)
    return tuple(held)


def _kind_held(asked: Asked, sentence: Sentence) -> bool:
    if asked.kind is AnswerType.ANY:
        return True
    text = sentence.text
    if asked.kind is AnswerType.NUMBER:
        for start, end in reversed(date_spans(text)):
            text = text[:start] + text[end:]
    return holds_answer(text, asked.kind, asked.tokens)
