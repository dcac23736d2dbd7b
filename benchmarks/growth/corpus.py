"""A made-up corpus of any size, whose names grow, recur and resemble each other as those of text do.

* How many names there are grows with a power of the passages below one (Heaps' law); which ones recur follows a power
  of their age (Zipf's law). A passage has a topic, whose names it shares with the topic's other passages.
* Names come in families: a stem of invented syllables with given names, kinds of places, organisations and works about
  it, some spelled otherwise. Large families hold about half of the names, so that synonyms are most of a graph's edges,
  about a hundred a passage.
* A passage states three facts of different relation types in words that name them, and mentions its other names among
  common words.

Everything about a passage follows from the seed, the size of the corpus and the passage's number: shards of it are
made anywhere, in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.relations import RelationType
from graph.schema import Extraction, Passage, Triple

SOURCE = "made-up.jsonl"
_NAMES_AT_MILLION, _HEAPS = 2_000_000, 0.92
_NAMES_OF_PASSAGE = 12
_SHARD = 500
_FACTS = 3
_PASSAGES_OF_TOPIC = 60
_OF_TOPIC = 0.7
"""Share of recurring names that come from the passage's topic; the others come from everywhere."""
_TOPIC_AGE, _AGE = 1.6, 4.0
"""Recurring names are drawn at the n-th power of an even draw: the oldest ones most often."""
_LARGE_FAMILY = 170
_VARIANT_EVERY = 12


def _words(text: str) -> list[str]:
    return text.split()


_ONSETS = _words("b br c ch d dr f fl g gr h k kl l m n p pr r s sk st t tr v w z")
_VOWELS = _words("a e i o u ae ei ou")
_CODAS = ["", "", "", *_words("l n r s m rk nd st x")]
_LAST = _words("ford ham stad berg ov ska ton mere wick dal holm sen ric vale mont tor")
_GIVEN = _words(
    "Anna Boris Carla Daniel Edith Felix Greta Hugo Irene Jonas Karin Louis Marta Nils Olga Peter Rosa Simon Tessa"
    " Ulrich Vera Walter Xenia Yusuf Zoe Adam Bella Conrad Dora Erik Flora Georg Helen Ivan Julia Klara Leon Mira Noah"
    " Oscar Paula Ralf Sara Theo Ursula Viktor Wanda Yara Arthur Beatrice"
)
_INITIALS = _words("A. C. E.")
_PLACES = _words(
    "Bridge Castle County River Lake Harbour Valley Station Abbey Forest Island Hill Square Palace Airport Park Market"
    " Tower Cathedral Province"
)
_BODIES = _words(
    "University Institute Museum Orchestra Company Bank Railway Brewery Society Hospital Academy Press Union League"
    " Theatre Shipyard Observatory Council Foundation Library"
)
_WORKS = _words("Symphony Chronicle Trilogy Letters Sonata Atlas Treaty Expedition Prize Affair")
_BEFORE = _words("North South East West New Old Upper Lower Port Mount Saint Great")
_PREDICATES: dict[RelationType, Sequence[str]] = {
    RelationType.HIERARCHICAL: ("is part of", "belongs to", "is a branch of", "includes", "is a member of"),
    RelationType.TEMPORAL: ("preceded", "followed", "succeeded", "came before", "replaced"),
    RelationType.SPATIAL: ("is located in", "lies near", "borders on", "stands beside", "faces"),
    RelationType.CAUSALITY: ("caused", "led to", "prevented", "resulted from", "gave rise to"),
    RelationType.ATTRIBUTION: ("founded", "designed", "wrote about", "was led by", "financed"),
}
_FRAMES = (
    "A report describes {0} and {1} during an early period.",
    "Several visitors mention {0}, later known beside {1}.",
    "Local records of {0} note the trade with {1}.",
    "An annual survey compares {0} with {1}.",
    "The archive holds many documents on {0} and on {1}.",
)


def _templates() -> list[tuple[str, str]]:
    """Return what may stand before and behind a stem, each pair once."""
    given = [(name, "") for name in _GIVEN] + [(f"{name} {i}", "") for name in _GIVEN[:30] for i in _INITIALS]
    kinds = [("", kind) for kind in (*_PLACES, *_BODIES, *_WORKS)]
    before = [(word, "") for word in _BEFORE] + [(word, kind) for word in _BEFORE for kind in _PLACES[:4]]
    return [("", ""), *given, *kinds, *before]


_TEMPLATES = _templates()

KNOWN_WORDS = frozenset(
    word.strip(".,").casefold()
    for words in (
        *(text.split() for pair in _TEMPLATES for text in pair),
        *(phrase.split() for phrases in _PREDICATES.values() for phrase in phrases),
        *(frame.split() for frame in _FRAMES),
    )
    for word in words
)
"""Words that are not invented: they tell little of what a text is about."""


@dataclass(frozen=True)
class Question:
    """A question on two passages, without the name that joins them.

    Attributes:
        text: in plain words.
        first: id of a passage with a fact of which the question names one end.
        second: id of another one; what both facts are about is asked for.
    """

    text: str
    first: str
    second: str


class _Drawn(NamedTuple):
    """The draws for the passages of a shard, a row each: names, kinds of facts, and how they are worded."""

    names: NDArray[np.int64]
    kinds: NDArray[np.int64]
    phrases: NDArray[np.int64]


class NamedCorpus:
    """So many passages, made on demand."""

    def __init__(self, passages: int, seed: int = 22) -> None:
        self.n_passages = passages
        self.seed = seed

    @cached_property
    def born(self) -> NDArray[np.int64]:
        """How many names there are before each passage, and at the end; a passage brings at most half of its own."""
        at = np.arange(self.n_passages + 1, dtype=np.float64)
        names = _NAMES_AT_MILLION * (at / 1e6) ** _HEAPS
        steps = np.minimum(np.diff(np.ceil(names).astype(np.int64)), _NAMES_OF_PASSAGE // 2)
        return np.concatenate([[0], np.cumsum(np.maximum(steps, 1))])

    @property
    def n_names(self) -> int:
        """How many names there are, but for those of families that are spelled alike by chance."""
        return int(self.born[-1])

    @cached_property
    def families(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Of each name, its family and its place in it; which names make one is left to chance."""
        rng = np.random.default_rng([self.seed, 1])
        n = self.n_names
        large = round(_share_in_large_families(n / self.n_passages) * n)
        sizes = np.concatenate(
            [
                1 + rng.poisson(_LARGE_FAMILY, large // _LARGE_FAMILY + 1),
                np.minimum(1 + rng.pareto(1.2, n), 60).astype(np.int64),
            ]
        )
        ends = np.cumsum(np.minimum(sizes, len(_TEMPLATES)))
        last = int(np.searchsorted(ends, n)) + 1
        sizes = np.diff(np.minimum(ends[:last], n), prepend=0)
        family = np.repeat(np.arange(last, dtype=np.int32), sizes)
        member = np.arange(n, dtype=np.int32) - np.repeat(np.cumsum(sizes) - sizes, sizes).astype(np.int32)
        order = rng.permutation(n)
        return family[order], member[order]

    @cached_property
    def topics(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Of each passage its topic; and the passages by topic, and where each topic's begin."""
        rng = np.random.default_rng([self.seed, 2])
        count = max(1, self.n_passages // _PASSAGES_OF_TOPIC)
        topic = (count * rng.random(self.n_passages) ** 1.3).astype(np.int32)
        order = np.argsort(topic, kind="stable")
        return topic, order, np.searchsorted(topic[order], np.arange(count + 1))

    def names(self, numbers: NDArray[np.int64]) -> list[str]:
        """Return some names."""
        families, members = self.families
        return [
            _name(family, member)
            for family, member in zip(families[numbers].tolist(), members[numbers].tolist(), strict=True)
        ]

    def new_names(self, start: int, end: int) -> list[str]:
        """Return the names that some passages bring in."""
        return self.names(np.arange(self.born[start], self.born[end]))

    def passages(self, start: int, end: int) -> Iterator[tuple[Passage, Extraction]]:
        """Yield passages by their numbers, with what they state."""
        for shard in range(start // _SHARD, -(-end // _SHARD)):
            first = shard * _SHARD
            drawn = self._draw(shard)
            yield from self._make(drawn, first, range(max(0, start - first), min(len(drawn.names), end - first)))

    def passage(self, number: int) -> tuple[Passage, Extraction]:
        """Return a passage with what it states."""
        return next(self.passages(number, number + 1))

    def _draw(self, shard: int) -> _Drawn:
        rng = np.random.default_rng([self.seed, 3, shard])
        numbers = np.arange(shard * _SHARD, min((shard + 1) * _SHARD, self.n_passages))
        names = self._names_of(numbers, rng)
        kinds = rng.permuted(np.tile(np.arange(len(_PREDICATES)), (len(numbers), 1)), axis=1)
        return _Drawn(names, kinds, rng.integers(0, len(_FRAMES), (len(numbers), 2 * _FACTS)))

    def _make(self, drawn: _Drawn, first: int, rows: range) -> Iterator[tuple[Passage, Extraction]]:
        names, kinds, phrases = (column[rows.start : rows.stop] for column in drawn)
        spelled = iter(self.names(names.ravel()))
        for row, how in zip(rows, zip(kinds.tolist(), phrases.tolist(), strict=True), strict=True):
            yield _passage(first + row, [*dict.fromkeys(islice(spelled, _NAMES_OF_PASSAGE))], *how)

    def _names_of(self, numbers: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the names of passages, shape (passages, 12): those that each brings in, and others that recur."""
        shape = len(numbers), _NAMES_OF_PASSAGE
        known, new = self.born[numbers][:, None], (self.born[numbers + 1] - self.born[numbers])[:, None]
        of_all = (known * rng.random(shape) ** _AGE).astype(np.int64)
        topic, order, starts = self.topics
        first = starts[topic[numbers]][:, None]
        # The passages of a topic stand in the order of their numbers: the earlier ones lie before this one.
        rank = self._place_in_topic[numbers][:, None]
        hosts = order[first + (rank * rng.random(shape) ** _TOPIC_AGE).astype(np.int64)]
        width = self.born[hosts + 1] - self.born[hosts]
        of_topic = self.born[hosts] + (width * rng.random(shape)).astype(np.int64)
        recurring = np.where((rng.random(shape) < _OF_TOPIC) & (rank > 0), of_topic, of_all)
        places = np.arange(_NAMES_OF_PASSAGE)[None, :]
        return rng.permuted(np.where(places < new, known + places, recurring), axis=1)

    @cached_property
    def _place_in_topic(self) -> NDArray[np.int64]:
        topic, order, starts = self.topics
        place = np.empty(self.n_passages, dtype=np.int64)
        place[order] = np.arange(self.n_passages) - starts[topic[order]]
        return place

    def questions(self, count: int) -> list[Question]:
        """Return questions of two hops: a fact of one passage, and one of another about the name that they share."""
        rng = np.random.default_rng([self.seed, 4])
        _, order, starts = self.topics
        asked: list[Question] = []
        for topic in rng.permutation(len(starts) - 1).tolist():
            if len(asked) == count:
                break
            members = order[int(starts[topic]) : int(starts[topic + 1])][:40]
            asked.extend(_questions_on([self.passage(number) for number in members.tolist()])[:2])
        return asked[:count]


def passage_id(number: int) -> str:
    """Return the id of a passage."""
    return f"made-up-{number:08d}"


def _share_in_large_families(names_a_passage: float) -> float:
    """Return which share of names is to be in large families, so that a passage has about a hundred edges."""
    return min(0.95, _SYNONYMS_A_PASSAGE / names_a_passage / _PAIRS_A_NAME)


_SYNONYMS_A_PASSAGE, _PAIRS_A_NAME = 85.0, 73.0


def _stem(family: int) -> str:
    """Return the invented word of a family: one for each number."""
    number = family * 2_654_435_761 % 2**32
    parts = []
    for choices in (_ONSETS, _VOWELS, _CODAS, _ONSETS, _VOWELS, _CODAS, _LAST):
        number, at = divmod(number, len(choices))
        parts.append(choices[at])
    return "".join(parts).capitalize()


def _misspelled(stem: str, member: int) -> str:
    """Return another spelling of a stem: a letter doubled, or an end that is silent."""
    at = 2 + member % max(1, len(stem) - 3)
    return f"{stem[:at]}{stem[at - 1]}{stem[at:]}" if member % 2 else f"{stem}e"


def _name(family: int, member: int) -> str:
    before, behind = _TEMPLATES[(family * 37 + member) % len(_TEMPLATES)]
    stem = _stem(family)
    if member % _VARIANT_EVERY == _VARIANT_EVERY - 1:
        stem = _misspelled(stem, member)
    return " ".join(word for word in (before, stem, behind) if word)


def _passage(
    number: int, names: Sequence[str], kinds: Sequence[int], phrases: Sequence[int]
) -> tuple[Passage, Extraction]:
    relations = [*_PREDICATES]
    triples = [
        Triple(names[2 * fact], _PREDICATES[relations[kind]][phrase], names[2 * fact + 1], relations[kind])
        for fact, kind, phrase in zip(range(min(_FACTS, len(names) // 2)), kinds, phrases, strict=False)
    ]
    text = _text(names, triples, phrases[_FACTS:])
    return Passage(passage_id(number), names[0], text, SOURCE), Extraction(tuple(names), tuple(triples), "made up")


def _text(names: Sequence[str], triples: Sequence[Triple], frames: Sequence[int]) -> str:
    said = [f"{t.subject} {t.predicate} {t.object}." for t in triples]
    others = names[2 * len(triples) :]
    pairs = zip(others[::2], [*others[1::2], *others[:1]], strict=False)
    said += [_FRAMES[frame].format(*pair) for frame, pair in zip(cycle(frames), pairs, strict=False)]
    return " ".join(said)


def _questions_on(passages: Sequence[tuple[Passage, Extraction]]) -> list[Question]:
    """Return questions on two of some passages that state facts about one name."""
    by_object = {t.object: (p, t) for p, x in passages for t in x.triples}
    asked = []
    for passage, extraction in passages:
        for triple in extraction.triples:
            before, fact = by_object.get(triple.subject, (passage, triple))
            if before.id != passage.id and triple.object != fact.subject:
                said = f"What {triple.predicate} {triple.object}, and is what {fact.subject} {fact.predicate}?"
                asked.append(Question(said, before.id, passage.id))
    return asked
