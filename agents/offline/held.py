"""What of a question sentences hold: its names, what it asks about them, a kind of answer; alone and together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agents.offline.answer_type import AnswerType, holds_answer
from agents.offline.asked import OUTER, Asked
from agents.offline.nearness import sentence_words, word_nearness
from agents.offline.quotes import Embed, Sentence
from agents.offline.words import content_stems, stem
from graph.text import title_name, tokens

MISSED_WORD = 0.1
"""What a word of the relation that is not held counts in the geometric mean of them all: one of one refuses, one of
many hardly matters."""

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
        names: how far each name and number is held, from 0 to 1.
        relation: how near a word comes to each word of the relation, from 0 to 1.
        kind: whether there is an answer of the kind that is asked for.
    """

    names: tuple[float, ...]
    relation: tuple[float, ...]
    kind: bool


def joined(one: Held, other: Held) -> Held:
    """Return what two sentences hold together."""
    return Held(
        tuple(map(max, one.names, other.names)),
        tuple(map(max, one.relation, other.relation)),
        one.kind or other.kind,
    )


def support(asked: Asked, held: Held) -> float:
    """Return how far what is held answers the question, from 0 to 1: names, relation and kind are all needed."""
    names = sum(held.names) / len(held.names) if held.names else 1.0
    total = sum(word.weight for word in asked.relation)
    logs = sum(
        word.weight * math.log(max(near, MISSED_WORD)) for word, near in zip(asked.relation, held.relation, strict=True)
    )
    relation = math.exp(logs / total) if total else 1.0
    return names * relation * (1.0 if held.kind else MISSED_KIND)


def read_sentences(asked: Asked, sentences: Sequence[Sentence], embed: Embed | None) -> list[Held]:
    """Tell for each sentence what it holds of a question."""
    words = [sentence_words(sentence) for sentence in sentences]
    near = word_nearness(asked.relation, words, embed)
    around: dict[str, list[float]] = {}
    for sentence, row in zip(sentences, near, strict=True):
        best = around.setdefault(sentence.passage.id, [0.0] * len(row))
        around[sentence.passage.id] = list(map(max, best, row))
    return [
        Held(
            _names_held(asked, sentence),
            tuple(
                max(here, (OUTER_IN_PASSAGE if word.weight == OUTER else IN_PASSAGE) * near_by)
                for word, here, near_by in zip(asked.relation, row, around[sentence.passage.id], strict=True)
            ),
            _kind_held(asked, sentence),
        )
        for sentence, row in zip(sentences, near, strict=True)
    ]


def log_odds(share: float) -> float:
    """Return the natural log-odds of a support, clipped so that it stays finite."""
    clipped = min(1 - _LEAST_PROBABILITY, max(_LEAST_PROBABILITY, share))
    return math.log(clipped / (1 - clipped))


def _names_held(asked: Asked, sentence: Sentence) -> tuple[float, ...]:
    """How far the sentence is about each name and number."""
    title = frozenset(content_stems(title_name(sentence.passage.title)))
    whole_title = frozenset(map(stem, tokens(sentence.passage.title)))
    inside = frozenset(map(stem, tokens(sentence.text)))
    around = frozenset(map(stem, tokens(sentence.passage.text)))
    held = []
    for name in [*asked.names, *((stem(number),) for number in asked.numbers)]:
        if title == frozenset(name) or inside.issuperset(name):
            held.append(1.0)
        elif whole_title.issuperset(name):
            held.append(LONGER_TITLE)
        else:
            held.append(ELSEWHERE if (around | whole_title).issuperset(name) else 0.0)
    return tuple(held)


def _kind_held(asked: Asked, sentence: Sentence) -> bool:
    return asked.kind is AnswerType.ANY or holds_answer(sentence.text, asked.kind, asked.tokens)
