"""Proposals for a user to look at: names that may be one, with the evidence. The rules and weights are ours."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import combinations

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.schema import entity_id
from graph.text import is_date, normalise_name

_MOST_ALIKE = 20
"""Names that share a key; of more, the key tells nothing."""
_SHORTEST_TYPO = 6
_SHORTEST_WORD = 5
_LEAST_ENDINGS = 3
_LONGEST_ACRONYM = 6
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_ROMAN = re.compile(r"\b[IVX]+\b")
_WORD = re.compile(r"[^\W_]+(?:[.'’&-][^\W_]+)*\.?")


class Likeness(StrEnum):
    """How two names are alike."""

    LETTERS = "same letters"
    """But for punctuation, spaces and diacritics: I.B.M. and IBM."""
    ACRONYM = "initials of a name"
    """United Nations and UN."""
    SHORTENED = "words shortened to initials"
    """J. Smith and John Smith."""
    ENDING = "an ending set off"
    """Velm and Velm Inc., or Velm, Ostra: what follows is an abbreviation or stands after a comma, and follows several
    names of the corpus that also stand without it."""
    SPELLING = "one letter differs"
    MEANING = "near embeddings"


Pair = tuple[int, int]


def alike_pairs(labels: Sequence[str]) -> Iterator[tuple[Pair, Likeness]]:
    """Yield pairs of places (the smaller first) of names that are spelled alike, and how; one may be yielded twice.

    Names of which two differ by one letter (put in, left out or put for another) share what is left when a letter is
    deleted, as in SymSpell, and do so at one place.

    Args:
        labels: the names as the corpus writes them, of different normal forms.
    """
    groups: dict[tuple[Likeness, str, int], list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        letters = _letters(label)
        if not any(map(str.isalpha, letters)):
            continue
        groups[Likeness.LETTERS, letters, 0].append(place)
        for at in range(len(letters) + 1) if len(letters) >= _SHORTEST_TYPO else ():
            # One that lacks a letter meets those that have one there.
            groups[Likeness.SPELLING, letters, at].append(place)
            if at < len(letters) and not letters[at].isdigit():
                groups[Likeness.SPELLING, letters[:at] + letters[at + 1 :], at].append(place)
    for (likeness, _, _), group in groups.items():
        differ = _is_another_word if likeness is Likeness.LETTERS else _is_no_mistake
        for a, b in combinations(sorted(set(group)), 2) if len(group) <= _MOST_ALIKE else ():
            if _NUMBER.findall(labels[a]) == _NUMBER.findall(labels[b]) and not differ(labels[a], labels[b]):
                yield (a, b), likeness
    for likeness, find in (
        (Likeness.ACRONYM, _acronyms),
        (Likeness.SHORTENED, _shortened),
        (Likeness.ENDING, _with_ending),
    ):
        for a, b in find(labels):
            if a != b:
                yield (min(a, b), max(a, b)), likeness


def _letters(name: str) -> str:
    """Return a name's letters and digits alone, without diacritics and case."""
    decomposed = unicodedata.normalize("NFKD", normalise_name(name))
    return "".join(c for c in decomposed if c.isalnum())


def _acronyms(labels: Sequence[str]) -> Iterator[Pair]:
    """Yield (an acronym, a name whose words, all or those with a capital, begin with its letters)."""
    known: dict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        letters = label.replace(".", "")
        if 2 <= len(letters) <= _LONGEST_ACRONYM and letters.isalpha() and letters.isupper():
            known[letters.casefold()].append(place)
    for place, label in enumerate(labels):
        words = _WORD.findall(label)
        capitals = [word for word in words if word[0].isupper()]
        if len(capitals) < 2:
            continue
        for some in {tuple(words), tuple(capitals)}:
            for acronym in known.get("".join(word[0] for word in some).casefold(), ()):
                yield acronym, place


def _shortened(labels: Sequence[str]) -> Iterator[Pair]:
    """Yield (a name with initials, one that has words in their place) of names that end in the same word."""
    by_ends: dict[tuple[int, str, str], list[tuple[int, list[str]]]] = defaultdict(list)
    for place, label in enumerate(labels):
        words = [word.rstrip(".") for word in _WORD.findall(label)]
        if len(words) > 1 and len(words[-1]) > 1 and all(word[:1].isupper() for word in words):
            folded = [word.casefold() for word in words]
            by_ends[len(words), folded[-1], folded[0][0]].append((place, folded))
    for group in by_ends.values():
        for (a, one), (b, other) in combinations(group, 2):
            if one != other and all(map(_fits, one, other)):
                yield a, b


def _fits(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])


def _with_ending(labels: Sequence[str]) -> Iterator[Pair]:
    """Yield (a name, the same with an ending) for endings that are set off and follow several names."""
    place_of = {_letters(label): place for place, label in enumerate(labels)}
    pairs_of: dict[str, list[Pair]] = defaultdict(list)
    for place, label in enumerate(labels):
        words = label.split()
        if len(words) > 1 and _is_set_off(words[-1], words[-2]):
            stem = place_of.get(_letters(" ".join(words[:-1])))
            if stem is not None:
                pairs_of[_letters(words[-1])].append((stem, place))
    for pairs in pairs_of.values():
        if len(pairs) >= _LEAST_ENDINGS:
            yield from pairs


def _is_set_off(word: str, before: str) -> bool:
    """Tell whether a last word stands after a comma or is an abbreviation: with a period, or ending in a capital.

    One of capitals alone is more often a noun (API) than a legal form (GmbH).
    """
    plain = word.strip(".,")
    ends_in_capital = plain[-1:].isupper() and not plain.isupper()
    return plain.isalpha() and (before.endswith(",") or word.endswith(".") or ends_in_capital)


def _is_another_word(one: str, other: str) -> bool:
    """Tell whether two short names of the same letters may be different words: I'd and ID, unlike U.K. and UK."""
    if len(_letters(one)) >= _SHORTEST_WORD:
        return False
    plain = [label.replace(".", "").replace(" ", "") for label in (one, other)]
    return plain[0] != plain[1] or not plain[0].isalnum() or not plain[0].isupper()


def _is_no_mistake(one: str, other: str) -> bool:
    """Tell whether two names differ by a letter at the end, as forms of one word do, or in a word of capitals."""
    a, b = _letters(one), _letters(other)
    if a.startswith(b) or b.startswith(a) or a[:-1] == b[:-1]:
        return True
    differing = set(_WORD.findall(one)) ^ set(_WORD.findall(other))
    return any(word.isupper() for word in differing)


LEAST_SCORE = 0.5
"""From this score on, a pair is proposed."""

_BASE: Mapping[Likeness, float] = {
    Likeness.LETTERS: 0.9,
    Likeness.ACRONYM: 0.4,
    Likeness.SHORTENED: 0.45,
    Likeness.ENDING: 0.5,
    Likeness.SPELLING: 0.4,
    Likeness.MEANING: 0.0,
}
_AMBIGUOUS = {Likeness.ACRONYM, Likeness.SHORTENED, Likeness.ENDING}
_SHARED_FACT, _MOST_FOR_FACTS = 0.2, 0.4
_SHARED_NEIGHBOUR, _MOST_FOR_NEIGHBOURS = 0.1, 0.3
_SAME_PASSAGE, _EXPLAINED = 0.2, 0.35
_COSINE_FROM = 0.8
_COSINE_WEIGHT = 1.5
_FREQUENT_NEIGHBOUR = 20
"""A neighbour of more entities says little about two of them."""
_LEAST_NAME_SHARE = 0.5
_TOLD = 5


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """Two names that may mean one entity.

    Attributes:
        names: as the corpus writes them; the one in more passages first.
        score: 0 to 1.
        likeness: how the names are alike.
        shared_facts: what both are said to do or to be, as "PREDICATE OBJECT" or "SUBJECT PREDICATE".
        shared_neighbours: entities that facts link with both.
        passages: of each name, the first ones that hold it.
        passages_with_both: passages that hold both names: they explain an acronym, or may tell two names apart.
    """

    names: tuple[str, str]
    score: float
    likeness: tuple[Likeness, ...]
    shared_facts: tuple[str, ...]
    shared_neighbours: tuple[str, ...]
    passages: tuple[tuple[str, ...], tuple[str, ...]]
    passages_with_both: tuple[str, ...]


class Review:
    """Looks through one generation for names to merge."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        synonyms: Iterable[tuple[str, str, float]] = (),
        kept_apart: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Take what is known.

        Args:
            graph: the generation.
            synonyms: (entity id, entity id, cosine) of names with near embeddings.
            kept_apart: pairs of normal forms that a user keeps apart; they are never proposed.
        """
        self._graph = graph
        # Of each entity: {(whether it is the subject, predicate, the other end): place of the fact}.
        self._said: dict[int, dict[tuple[bool, str, int], int]] = defaultdict(dict)
        for place, each in enumerate(graph.facts.rows):
            predicate = normalise_name(each.fact.predicate)
            self._said[each.subject].setdefault((True, predicate, each.object), place)
            self._said[each.object].setdefault((False, predicate, each.subject), place)
        self._neighbours = cache(lambda entity: {other for _, _, other in self._said.get(entity, ())} - {entity})
        index = graph.entity_index
        self._cosines = {_pair(index[a], index[b]): cosine for a, b, cosine in synonyms if a in index and b in index}
        ids = ((entity_id(a), entity_id(b)) for a, b in kept_apart)
        self._apart = {_pair(index[a], index[b]) for a, b in ids if a in index and b in index}

    def merges(self, least: float = LEAST_SCORE) -> list[MergeProposal]:
        """Return pairs of names that may be one, the likeliest first, from a score on."""
        alike: dict[Pair, set[Likeness]] = defaultdict(set)
        labels = self._graph.entity_labels
        names = [entity for entity in range(len(labels)) if self._is_name(entity)]
        for (one, other), likeness in alike_pairs([labels[entity] for entity in names]):
            alike[names[one], names[other]].add(likeness)
        known = set(names)
        for a, b in self._cosines:
            same_numbers = all(find(labels[a]) == find(labels[b]) for find in (_NUMBER.findall, _ROMAN.findall))
            if a in known and b in known and same_numbers:
                alike[a, b].add(Likeness.MEANING)
        # Of how many names a shorter one may stand for.
        partners = Counter(
            (name, each) for pair, likenesses in alike.items() for each in likenesses & _AMBIGUOUS for name in pair
        )
        proposals = []
        for pair in alike.keys() - self._apart:
            base = max(_BASE[each] / max(1, *(partners[name, each] for name in pair)) for each in alike[pair])
            proposals.append(self._proposal(pair, sorted(alike[pair], key=[*Likeness].index), base))
        likely = (proposal for proposal in proposals if proposal.score >= least)
        return sorted(likely, key=lambda each: (-each.score, each.names))

    def _is_name(self, entity: int) -> bool:
        """Tell whether the corpus writes it as a name, rather than as a word or a date."""
        graph = self._graph
        label = graph.entity_labels[entity]
        if is_date(label) or not any(map(str.isalpha, label)):
            return False
        return bool(graph.name_shares[entity] >= _LEAST_NAME_SHARE) and label != label.lower()

    def _proposal(self, pair: Pair, likeness: Sequence[Likeness], base: float) -> MergeProposal:
        graph, neighbours_of = self._graph, self._neighbours
        a, b = sorted(pair, key=lambda name: (-graph.name_passages[name].item(), graph.entity_labels[name]))
        shared = self._said.get(a, {}).keys() & self._said.get(b, {}).keys()
        pairs = {(other, predicate) for _, predicate, other in shared}
        neighbours = [
            each
            for each in sorted(neighbours_of(a) & neighbours_of(b) - {other for other, _ in pairs})
            if len(neighbours_of(each)) <= _FREQUENT_NEIGHBOUR
        ]
        of_each = [set(graph.passages_with(name).tolist()) for name in (a, b)]
        both = of_each[0] & of_each[1]
        score = base + _COSINE_WEIGHT * max(0.0, self._cosines.get(pair, 0.0) - _COSINE_FROM)
        score += min(_MOST_FOR_FACTS, _SHARED_FACT * len(pairs))
        score += min(_MOST_FOR_NEIGHBOURS, _SHARED_NEIGHBOUR * len(neighbours))
        if both and Likeness.ACRONYM in likeness:
            # An abbreviation is explained where it is first used.
            score += _EXPLAINED
        elif both and set(likeness) <= {Likeness.SPELLING, Likeness.MEANING}:
            score -= _SAME_PASSAGE
        return MergeProposal(
            names=(graph.entity_labels[a], graph.entity_labels[b]),
            score=round(min(1.0, max(0.0, score)), 3),
            likeness=tuple(likeness),
            shared_facts=tuple(self._fact_text(self._said[a][key]) for key in sorted(shared)[:_TOLD]),
            shared_neighbours=tuple(graph.entity_labels[each] for each in neighbours[:_TOLD]),
            passages=(self._first(of_each[0]), self._first(of_each[1])),
            passages_with_both=self._first(both),
        )

    def _fact_text(self, place: int) -> str:
        return self._graph.facts.rows.at(place).fact.text

    def _first(self, passages: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._graph.passage_ids[place] for place in sorted(passages)[:_TOLD])


def _pair(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)
