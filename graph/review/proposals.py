"""Proposals for a user to look at: names that may be one, and names that may be two, with the evidence.

The rules and weights are ours. Which predicates have one value (a date of birth, say) is told by the corpus: those of
which nearly every subject has one object.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.schema import entity_id
from graph.text import is_date, normalise_name, tokens

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

    Args:
        labels: the names as the corpus writes them, of different normal forms.
    """
    for likeness, groups, differ in (
        (Likeness.LETTERS, _by_letters(labels), _is_another_word),
        (Likeness.SPELLING, _by_deletion(labels), _is_no_mistake),
    ):
        for group in groups:
            if len(group) <= _MOST_ALIKE:
                for a, b in combinations(sorted(set(group)), 2):
                    if _numbers(labels[a]) == _numbers(labels[b]) and not differ(labels[a], labels[b]):
                        yield (a, b), likeness
    for likeness, pairs in (
        (Likeness.ACRONYM, _acronyms(labels)),
        (Likeness.SHORTENED, _shortened(labels)),
        (Likeness.ENDING, _with_ending(labels)),
    ):
        for a, b in pairs:
            if a != b:
                yield (min(a, b), max(a, b)), likeness


def letters_of(name: str) -> str:
    """Return a name's letters and digits alone, without diacritics and case."""
    decomposed = unicodedata.normalize("NFKD", normalise_name(name))
    return "".join(c for c in decomposed if c.isalnum())


def _by_letters(labels: Sequence[str]) -> Iterable[list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        if any(map(str.isalpha, key := letters_of(label))):
            groups[key].append(place)
    return groups.values()


def _by_deletion(labels: Sequence[str]) -> Iterator[list[int]]:
    """Yield groups of names of which each two differ by one letter: put in, left out or put for another.

    A group shares what is left when a letter is deleted (as in SymSpell); names that do so at one place differ there.
    """
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        letters = letters_of(label)
        if len(letters) < _SHORTEST_TYPO or not any(map(str.isalpha, letters)):
            continue
        for at, letter in enumerate(letters):
            if not letter.isdigit():
                groups[letters[:at] + letters[at + 1 :], at].append(place)
        # One that lacks a letter meets those that have one there.
        for at in range(len(letters) + 1):
            groups[letters, at].append(place)
    for group in groups.values():
        if len(group) > 1 and len({letters_of(labels[place]) for place in group}) > 1:
            yield group


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
    place_of = {letters_of(label): place for place, label in enumerate(labels)}
    pairs_of: dict[str, list[Pair]] = defaultdict(list)
    for place, label in enumerate(labels):
        words = label.split()
        if len(words) > 1 and _is_set_off(words[-1], words[-2]):
            stem = place_of.get(letters_of(" ".join(words[:-1])))
            if stem is not None:
                pairs_of[letters_of(words[-1])].append((stem, place))
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
    if len(letters_of(one)) >= _SHORTEST_WORD:
        return False
    plain = [label.replace(".", "").replace(" ", "") for label in (one, other)]
    return plain[0] != plain[1] or not plain[0].isalnum() or not plain[0].isupper()


def _is_no_mistake(one: str, other: str) -> bool:
    """Tell whether two names differ by a letter at the end, as forms of one word do, or in a word of capitals."""
    a, b = letters_of(one), letters_of(other)
    if a.startswith(b) or b.startswith(a) or a[:-1] == b[:-1]:
        return True
    differing = set(_WORD.findall(one)) ^ set(_WORD.findall(other))
    return any(word.isupper() for word in differing)


def numbered_alike(one: str, other: str) -> bool:
    """Tell whether two names hold the same numbers, small Roman ones among them."""
    return _numbers(one) == _numbers(other) and _ROMAN.findall(one) == _ROMAN.findall(other)


def _numbers(label: str) -> list[str]:
    return _NUMBER.findall(label)


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
_SHARED_FACT, _MOST_FOR_FACTS = 0.2, 0.4
_SHARED_NEIGHBOUR, _MOST_FOR_NEIGHBOURS = 0.1, 0.3
_CONTRADICTION = 0.4
_SAME_PASSAGE, _EXPLAINED = 0.2, 0.35
_COSINE_FROM = 0.8
_COSINE_WEIGHT = 1.5
_FREQUENT_NEIGHBOUR = 20
"""A neighbour of more entities says little about two of them."""
_LEAST_SUBJECTS, _ONE_VALUE_SHARE = 5, 0.9
_LEAST_NAME_SHARE = 0.5
_TOLD = 5


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """Two names that may mean one entity.

    Attributes:
        names: as the corpus writes them; the one in more passages first.
        score: 0 to 1.
        likeness: how the names are alike.
        cosine: of their embeddings, where that is near.
        shared_facts: what both are said to do or to be, as "PREDICATE OBJECT" or "SUBJECT PREDICATE".
        shared_neighbours: entities that facts link with both.
        contradictions: what has one value and is told of them differently.
        passages: of each name, the first ones that hold it.
        passages_with_both: passages that hold both names: they explain an acronym, or may tell two names apart.
    """

    names: tuple[str, str]
    score: float
    likeness: tuple[Likeness, ...]
    cosine: float | None
    shared_facts: tuple[str, ...]
    shared_neighbours: tuple[str, ...]
    contradictions: tuple[str, ...]
    passages: tuple[tuple[str, ...], tuple[str, ...]]
    passages_with_both: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """One date of what should have one, and where it stands."""

    fact: str
    passages: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SplitProposal:
    """A name that may mean two entities: different documents tell different dates of what has one.

    Attributes:
        score: 0 to 1: the share of subjects that have one value of the predicate, and more for each further predicate.
        values: the dates that contradict each other.
    """

    name: str
    score: float
    predicate: str
    values: tuple[Value, ...]


@dataclass(slots=True)
class _Facts:
    """The statements on each entity.

    Attributes:
        said: of each entity: {(whether it is the subject, predicate, the other end): place of the fact}.
        values: {(subject, predicate): {object: place of the fact}}.
    """

    said: dict[int, dict[tuple[bool, str, int], int]] = field(default_factory=lambda: defaultdict(dict))
    values: dict[tuple[int, str], dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _neighbours: dict[int, set[int]] = field(default_factory=dict)

    @staticmethod
    def of(graph: KnowledgeGraph) -> _Facts:
        facts = _Facts()
        for place, each in enumerate(graph.facts.rows):
            predicate = normalise_name(each.fact.predicate)
            facts.said[each.subject].setdefault((True, predicate, each.object), place)
            facts.said[each.object].setdefault((False, predicate, each.subject), place)
            facts.values[each.subject, predicate].setdefault(each.object, place)
        return facts

    def neighbours(self, entity: int) -> set[int]:
        """Return the entities that facts link with one."""
        if entity not in self._neighbours:
            self._neighbours[entity] = {other for _, _, other in self.said.get(entity, ())} - {entity}
        return self._neighbours[entity]

    def single_valued(self) -> dict[str, float]:
        """Return {predicate: the share of its subjects with one object} of those that seem to have one value."""
        subjects: Counter[str] = Counter()
        single: Counter[str] = Counter()
        for (_, predicate), objects in self.values.items():
            subjects[predicate] += 1
            single[predicate] += len(objects) == 1
        return {
            predicate: single[predicate] / count
            for predicate, count in subjects.items()
            if count >= _LEAST_SUBJECTS and single[predicate] >= _ONE_VALUE_SHARE * count
        }


class Review:
    """Looks through one generation for names to merge and to split."""

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
        self._facts = _Facts.of(graph)
        self._single = self._facts.single_valued()
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
            if a in known and b in known and numbered_alike(labels[a], labels[b]):
                alike[a, b].add(Likeness.MEANING)
        partners: Counter[tuple[int, Likeness]] = Counter(
            (name, likeness) for pair, likenesses in alike.items() for likeness in likenesses for name in pair
        )
        proposals = []
        for pair, likenesses in alike.items():
            if pair in self._apart:
                continue
            base = max(_BASE[each] / self._rivals(pair, each, partners) for each in likenesses)
            proposal = self._proposal(pair, sorted(likenesses, key=[*Likeness].index), base)
            if proposal.score >= least:
                proposals.append(proposal)
        return sorted(proposals, key=lambda each: (-each.score, each.names))

    def splits(self) -> list[SplitProposal]:
        """Return names that may be two, the likeliest first."""
        splits_of: dict[int, list[SplitProposal]] = defaultdict(list)
        for (subject, predicate), objects in self._facts.values.items():
            if len(objects) > 1 and predicate in self._single and self._is_name(subject):
                values = self._dates_apart(objects)
                if len(values) > 1:
                    label = self._graph.entity_labels[subject]
                    splits_of[subject].append(SplitProposal(label, self._single[predicate], predicate, values))
        proposals = []
        for several in splits_of.values():
            best = max(several, key=lambda each: (each.score, each.predicate))
            score = 1 - (1 - 0.5 * best.score) ** len(several)
            proposals.append(SplitProposal(best.name, round(score, 3), best.predicate, best.values))
        return sorted(proposals, key=lambda each: (-each.score, each.name))

    def _is_name(self, entity: int) -> bool:
        """Tell whether the corpus writes it as a name, rather than as a word or a date."""
        graph = self._graph
        label = graph.entity_labels[entity]
        if is_date(label) or not any(map(str.isalpha, label)):
            return False
        return bool(graph.name_shares[entity] >= _LEAST_NAME_SHARE) and label != label.lower()

    @staticmethod
    def _rivals(pair: Pair, likeness: Likeness, partners: Counter[tuple[int, Likeness]]) -> int:
        """Return how many names a shorter one may stand for."""
        if likeness not in (Likeness.ACRONYM, Likeness.SHORTENED, Likeness.ENDING):
            return 1
        return max(partners[name, likeness] for name in pair)

    def _proposal(self, pair: Pair, likeness: Sequence[Likeness], base: float) -> MergeProposal:
        graph, facts = self._graph, self._facts
        a, b = sorted(pair, key=lambda name: (-graph.name_passages[name].item(), graph.entity_labels[name]))
        shared = facts.said.get(a, {}).keys() & facts.said.get(b, {}).keys()
        pairs = {(other, predicate) for _, predicate, other in shared}
        neighbours = [
            each
            for each in sorted(facts.neighbours(a) & facts.neighbours(b))
            if len(facts.neighbours(each)) <= _FREQUENT_NEIGHBOUR and each not in {other for other, _ in pairs}
        ]
        contradictions = self._contradictions(a, b)
        both = sorted(self._passages(a) & self._passages(b))
        cosine = self._cosines.get(pair)
        score = base + _COSINE_WEIGHT * max(0.0, (cosine or 0.0) - _COSINE_FROM)
        score += min(_MOST_FOR_FACTS, _SHARED_FACT * len(pairs))
        score += min(_MOST_FOR_NEIGHBOURS, _SHARED_NEIGHBOUR * len(neighbours))
        score -= _CONTRADICTION * len(contradictions)
        if both and Likeness.ACRONYM in likeness:
            # An abbreviation is explained where it is first used.
            score += _EXPLAINED
        elif both and set(likeness) <= {Likeness.SPELLING, Likeness.MEANING}:
            score -= _SAME_PASSAGE
        return MergeProposal(
            names=(graph.entity_labels[a], graph.entity_labels[b]),
            score=round(min(1.0, max(0.0, score)), 3),
            likeness=tuple(likeness),
            cosine=cosine,
            shared_facts=tuple(self._fact_text(facts.said[a][key]) for key in sorted(shared)[:_TOLD]),
            shared_neighbours=tuple(graph.entity_labels[each] for each in neighbours[:_TOLD]),
            contradictions=tuple(contradictions[:_TOLD]),
            passages=(self._first(self._passages(a)), self._first(self._passages(b))),
            passages_with_both=self._first(both),
        )

    def _contradictions(self, a: int, b: int) -> list[str]:
        """Return what has one value, and has another of each."""
        contradictions = []
        values = self._facts.values
        for predicate in sorted({predicate for is_subject, predicate, _ in self._facts.said.get(a, ()) if is_subject}):
            mine, theirs = values.get((a, predicate), {}), values.get((b, predicate), {})
            if predicate not in self._single or not theirs or mine.keys() & theirs.keys():
                continue
            one, other = min(mine.values()), min(theirs.values())
            if self._differ(next(iter(mine)), next(iter(theirs))):
                contradictions.append(f"{self._fact_text(one)} / {self._fact_text(other)}")
        return contradictions

    def _dates_apart(self, objects: Mapping[int, int]) -> tuple[Value, ...]:
        """Return the dates of which each two differ and stand in different documents."""
        kept: list[tuple[int, Value]] = []
        used: set[str] = set()
        for object_, place in sorted(objects.items(), key=lambda item: item[1]):
            each = self._graph.facts.rows.at(place)
            passages = [self._graph.passages[row] for row in each.passages]
            documents = {str(passage.metadata.get("document", passage.id)) for passage in passages}
            if documents & used or not is_date(self._graph.entity_labels[object_]):
                continue
            if not all(self._differ(object_, other) for other, _ in kept):
                continue
            used |= documents
            sources = tuple(dict.fromkeys(passage.source for passage in passages))
            value = Value(self._fact_text(place), tuple(p.id for p in passages[:_TOLD]), sources[:_TOLD])
            kept.append((object_, value))
        return tuple(value for _, value in kept)

    def _differ(self, one: int, other: int) -> bool:
        """Tell whether two values cannot both hold: neither is a part of the other, and they are not spelled alike."""
        first, second = (set(tokens(self._graph.entity_names[each])) for each in (one, other))
        return one != other and not (first <= second or second <= first) and _pair(one, other) not in self._cosines

    def _fact_text(self, place: int) -> str:
        return self._graph.facts.rows.at(place).fact.text

    def _passages(self, entity: int) -> set[int]:
        """Return the passages that an entity is linked with."""
        return set(self._graph.passages_with(entity).tolist())

    def _first(self, passages: Iterable[int]) -> tuple[str, ...]:
        return tuple(self._graph.passage_ids[place] for place in sorted(passages)[:_TOLD])


def _pair(a: int, b: int) -> Pair:
    return (a, b) if a < b else (b, a)
