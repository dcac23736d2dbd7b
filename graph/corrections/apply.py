"""Applying corrections: from what was extracted from a passage to what the graph takes from it.

A pure function of the passage, its extraction and the corrections that stand. These apply one after the other, each
to what those before it made; so the last word counts, and the order in which passages are indexed does not.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from graph.corrections.kinds import Apart, Change, Correction, Drop, Merge, Pin, Split, Statement
from graph.schema import Extraction, Passage, RelationType, Triple, stable_id
from graph.text import normalise_name, title_name

_LATEST = 2**63
"""Behind every correction."""


@dataclass(frozen=True, slots=True)
class Stated:
    """The statements of a passage, as the graph takes them.

    Attributes:
        topic: the name that its title stands for; empty without a title.
        entities: its other names.
        triples: its facts.
        written: {normal form of a name: the other normal forms under which the passage writes it}.
        by: ids of the corrections that changed it, ascending.
        types: the user's own entity type of those names that have one, by name.
    """

    topic: str
    entities: tuple[str, ...]
    triples: tuple[Triple, ...]
    written: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by: tuple[int, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(passage: Passage, extraction: Extraction) -> Stated:
        """Return what a passage states without a correction."""
        topic = title_name(passage.title) if passage.title else ""
        return Stated(topic, extraction.entities, extraction.triples, types=extraction.types)

    def fingerprint(self, content: str) -> str:
        """Return what tells it apart, where ``content`` does that for the passage and its extraction."""
        triples = [repr((t.subject, t.predicate, t.object, t.relation.value, t.confidence)) for t in self.triples]
        written = [repr(item) for item in sorted(self.written.items())]
        types = [repr(item) for item in sorted(self.types.items())]
        parts = ([self.topic], self.entities, triples, written, types)
        return stable_id("corrected", content, *(repr([*part]) for part in parts))


@dataclass(frozen=True, slots=True)
class _Rename:
    """A name that becomes another one: everywhere, or in some places.

    Attributes:
        id: of the correction.
        into: what the name becomes.
        places: sources, documents and passages; None for everywhere.
    """

    id: int
    into: str
    places: frozenset[str] | None

    def covers(self, passage: Passage | None) -> bool:
        """Tell whether it holds in a passage; without one, whether it holds everywhere."""
        return self.places is None or (passage is not None and lies_in(passage, self.places))


Transition = tuple[str, _Rename]
"""A normal form, and what it becomes."""


def places_of(passage: Passage) -> frozenset[str]:
    """Return the places that a passage lies in: itself, its document and its source."""
    return frozenset({passage.id, passage.document, passage.source} - {""})


def lies_in(passage: Passage, places: Iterable[str]) -> bool:
    """Tell whether a passage lies in one of some places."""
    return not places_of(passage).isdisjoint(places)


class Corrections:
    """The corrections that stand, ready to be applied.

    Attributes:
        standing: by id.
    """

    def __init__(self, standing: Iterable[Correction] = ()) -> None:
        """Take in those of some corrections that were not undone."""
        self.standing = tuple(sorted((each for each in standing if each.stands), key=lambda each: each.id))
        self._renames: dict[str, list[_Rename]] = defaultdict(list)
        self._facts: dict[str, list[int]] = defaultdict(list)
        self._pins: dict[str, list[int]] = defaultdict(list)
        self._by_id = {each.id: each.what for each in self.standing}
        self._patterns: dict[int, tuple[str, str, str]] = {}
        for each in self.standing:
            self._take_in(each)

    def __bool__(self) -> bool:
        return bool(self.standing)

    def _take_in(self, each: Correction) -> None:
        what = each.what
        if isinstance(what, Merge):
            for form in sorted(self._members(what, each.id)):
                self._renames[form].append(_Rename(each.id, what.name, None))
        elif isinstance(what, Split):
            into = self.meaning(what.into, before=each.id)
            self._renames[normalise_name(what.name)].append(_Rename(each.id, into, frozenset(what.places)))
        elif isinstance(what, Change | Drop):
            ends = (normalise_name(self.meaning(end, before=each.id)) for end in (what.fact.subject, what.fact.object))
            subject, object_ = ends
            self._patterns[each.id] = (subject, normalise_name(what.fact.predicate), object_)
            self._facts[subject].append(each.id)
        elif isinstance(what, Pin):
            self._pins[what.passage].append(each.id)

    def _members(self, merge: Merge, id: int) -> set[str]:
        """Return the normal forms of the names that are merged, and of what they mean already."""
        named = {normalise_name(name) for name in (*merge.names, merge.name)}
        return named | {normalise_name(self.meaning(name, before=id)) for name in named}

    def meaning(self, name: str, passage: Passage | None = None, before: int = _LATEST) -> str:
        """Return the name that a name stands for in a passage, or everywhere if none is given.

        With ``before``, under the corrections of smaller ids.
        """
        steps = [into for id, into in self.history(normalise_name(name), passage) if id < before]
        return steps[-1] if steps else name

    def history(self, form: str, passage: Passage | None) -> list[tuple[int, str]]:
        """Return (id of a correction, what it makes of a name that is written so), in order."""
        if form not in self._renames:
            return []
        steps: list[tuple[int, str]] = []
        at, current = 0, form
        while due := self._next(form, current, at, passage):
            at, current = due.id, normalise_name(due.into)
            steps.append((at, due.into))
        return steps

    def _next(self, written: str, current: str, at: int, passage: Passage | None) -> _Rename | None:
        """Return the next rename of a name after correction ``at``; a split holds of the name as it is written, too."""
        due = [one for one in self._renames.get(current, ()) if one.id > at]
        due += [one for one in self._renames.get(written, ()) if one.id > at and one.places is not None]
        return min((one for one in due if one.covers(passage)), key=lambda one: one.id, default=None)

    def stated(self, passage: Passage, extraction: Extraction) -> Stated:
        """Return what a passage states after the corrections."""
        plain = Stated.of(passage, extraction)
        if not self.standing:
            return plain
        names = _Names(self, passage)
        triples_said, by = self._triples(passage, plain.triples, names)
        triples, looped = _collapsed(triples_said, names)
        topic = names.shown(plain.topic) if normalise_name(plain.topic) else plain.topic
        entities = tuple(dict.fromkeys([*map(names.shown, plain.entities), *looped]))
        types = {names.shown(name): own_type for name, own_type in extraction.types.items()}
        stated = Stated(topic, entities, triples, names.written(), types=types)
        if stated == plain:
            return plain
        return replace(stated, by=tuple(sorted(by | names.used)))

    def _triples(self, passage: Passage, triples: Sequence[Triple], names: _Names) -> tuple[list[Triple], set[int]]:
        """Return the passage's facts after the corrections, as written, and the ids of those that were about one."""
        revised = list(triples)
        due = {*self._pins.get(passage.id, ()), *(id for triple in revised for id in self._due(triple, names))}
        waiting, by = sorted(due), set()
        while waiting:
            id = heapq.heappop(waiting)
            revised, new = self._revised(id, revised, passage, names)
            if new is None:
                continue
            by.add(id)
            later = {other for triple in new for other in self._due(triple, names) if other > id} - {*waiting}
            for other in later:
                heapq.heappush(waiting, other)
        return revised, by

    def _due(self, triple: Triple, names: _Names) -> Iterator[int]:
        """Yield the corrections that may be about a fact, by what its subject means at some time."""
        for form in names.forms(triple.subject):
            yield from self._facts.get(form, ())

    def _revised(
        self, id: int, triples: list[Triple], passage: Passage, names: _Names
    ) -> tuple[list[Triple], list[Triple] | None]:
        """Return facts after one correction, and those that it brought; None where it is about none of them."""
        what = self._by_id[id]
        if isinstance(what, Pin):
            pinned = _triple(what.fact, None)
            return [*triples, pinned], [pinned]
        assert isinstance(what, Change | Drop)
        if what.places and not lies_in(passage, what.places):
            return triples, None
        meant = [self._means(id, what.fact, triple, names) for triple in triples]
        if not any(meant):
            return triples, None
        kept, new = [], []
        for triple, is_meant in zip(triples, meant, strict=True):
            if not is_meant:
                kept.append(triple)
            elif isinstance(what, Change):
                new.append(_triple(what.to, triple.relation))
                kept.append(new[-1])
        return kept, new

    def _means(self, id: int, fact: Statement, triple: Triple, names: _Names) -> bool:
        subject, predicate, object_ = self._patterns[id]
        return (
            (not fact.relation or triple.relation.value == fact.relation)
            and normalise_name(triple.predicate) == predicate
            and normalise_name(names.shown(triple.subject, before=id)) == subject
            and normalise_name(names.shown(triple.object, before=id)) == object_
        )

    def transitions(self, form: str) -> frozenset[Transition]:
        """Return all that may become of a name that is written so, in whichever passage."""
        transitions: set[Transition] = set()
        waiting = [(form, 0)]
        while waiting:
            current, at = waiting.pop()
            due = {one for one in self._renames.get(current, ()) if one.id > at}
            due |= {one for one in self._renames.get(form, ()) if one.id > at and one.places is not None}
            for one in due - {rename for known, rename in transitions if known == current}:
                transitions.add((current, one))
                waiting.append((normalise_name(one.into), one.id))
        return frozenset(transitions)

    def forms(self) -> set[str]:
        """Return the normal forms that some correction makes another name of."""
        return set(self._renames)

    def forms_of(self, id: int) -> set[str]:
        """Return the normal forms of names by which passages are found that a correction may be about."""
        what = self._by_id[id]
        if isinstance(what, Change | Drop):
            return {self._patterns[id][0]}
        return {form for form, renames in self._renames.items() if any(one.id == id for one in renames)}

    def merges_of(self, name: str) -> set[int]:
        """Return the corrections that make another name of a name everywhere."""
        return {id for id, _ in self.history(normalise_name(name), None)}

    def pinned_in(self, id: int) -> set[str]:
        """Return the passages that a correction pins a fact in."""
        what = self._by_id[id]
        return {what.passage} if isinstance(what, Pin) else set()

    def kept_apart(self) -> dict[tuple[str, str], int]:
        """Return {(smaller, larger normal form) of two names that are kept apart: the correction that says so}."""
        groups: list[tuple[int, set[str]]] = []
        split: dict[str, set[str]] = defaultdict(set)
        for each in self.standing:
            what = each.what
            if isinstance(what, Apart):
                groups.append((each.id, {normalise_name(self.meaning(name)) for name in what.names}))
            elif isinstance(what, Split):
                ends = {normalise_name(self.meaning(name)) for name in (what.name, what.into)}
                split[normalise_name(what.name)] |= ends
                groups.append((each.id, set(split[normalise_name(what.name)])))
        return {pair: id for id, group in reversed(groups) for pair in combinations(sorted(group), 2)}


class _Names:
    """The names of one passage, as they are written and as they are meant; each is looked up once.

    Attributes:
        used: the corrections that made another name of one that was shown at last.
    """

    def __init__(self, corrections: Corrections, passage: Passage) -> None:
        self.used: set[int] = set()
        self._corrections = corrections
        self._passage = passage
        self._histories: dict[str, list[tuple[int, str]]] = {}
        self._written: dict[str, set[str]] = defaultdict(set)

    def shown(self, name: str, before: int = 0) -> str:
        """Return what a name stands for; with ``before``, under the corrections of smaller ids, and unnoticed."""
        form = normalise_name(name)
        steps = [step for step in self._history(form) if not before or step[0] < before]
        if not steps:
            return name
        if not before:
            if steps[-1][1] != name:
                earlier = [name, *(into for _, into in steps)]
                self.used.update(id for (id, into), was in zip(steps, earlier, strict=False) if into != was)
            if normalise_name(steps[-1][1]) != form:
                self._written[normalise_name(steps[-1][1])].add(form)
        return steps[-1][1]

    def forms(self, name: str) -> list[str]:
        """Return the normal form of a name, and of all that the corrections make of it in turn."""
        form = normalise_name(name)
        return [form, *(normalise_name(into) for _, into in self._history(form))]

    def written(self) -> dict[str, tuple[str, ...]]:
        """Return {normal form of a name that was shown: its other normal forms in this passage}."""
        return {form: tuple(sorted(others)) for form, others in sorted(self._written.items())}

    def _history(self, form: str) -> list[tuple[int, str]]:
        if form not in self._histories:
            self._histories[form] = self._corrections.history(form, self._passage)
        return self._histories[form]


def _triple(fact: Statement, relation: RelationType | None) -> Triple:
    """Return a fact that a user states, of this relation type where he names none."""
    own = RelationType(fact.relation) if fact.relation or relation is None else relation
    return Triple(fact.subject, fact.predicate, fact.object, own, 1.0)


def _collapsed(triples: Iterable[Triple], names: _Names) -> tuple[tuple[Triple, ...], list[str]]:
    """Return triples under the names that are meant, identical ones once, with the highest confidence.

    One whose two ends became one name states nothing any more; the names of such are returned, too.
    """
    kept: dict[tuple[str, str, str, str], Triple] = {}
    looped: list[str] = []
    for triple in triples:
        meant = replace(triple, subject=names.shown(triple.subject), object=names.shown(triple.object))
        subject, object_ = normalise_name(meant.subject), normalise_name(meant.object)
        if subject == object_ and normalise_name(triple.subject) != normalise_name(triple.object):
            looped.append(meant.subject)
            continue
        key = (subject, normalise_name(triple.predicate), object_, triple.relation.value)
        if key not in kept or meant.confidence > kept[key].confidence:
            kept[key] = meant
    return tuple(kept.values()), looped
