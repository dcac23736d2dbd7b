"""Applying corrections: from what was extracted from a passage to what the graph takes from it.

A pure function of the passage, its extraction and the corrections that stand. These apply one after the other, each
to what those before it made; so the last word counts, and the order in which passages are indexed does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
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


Transition = tuple[str, _Rename]
"""A normal form, and what it becomes."""


def lies_in(passage: Passage, places: Iterable[str]) -> bool:
    """Tell whether a passage lies in one of some places: itself, its document and its source."""
    return not ({passage.id, passage.document, passage.source} - {""}).isdisjoint(places)


class Corrections:
    """The corrections that stand, ready to be applied.

    Attributes:
        standing: by id.
    """

    def __init__(self, standing: Iterable[Correction] = ()) -> None:
        """Take in those of some corrections that were not undone."""
        self.standing = tuple(sorted((each for each in standing if each.stands), key=lambda each: each.id))
        self._renames: dict[str, list[_Rename]] = defaultdict(list)
        self._facts: dict[int, Change | Drop | Pin] = {}
        self._patterns: dict[int, tuple[str, ...]] = {}
        for id, what in ((each.id, each.what) for each in self.standing):
            if isinstance(what, Merge):
                for form in sorted(self._members(what, id)):
                    self._renames[form].append(_Rename(id, what.name, None))
            elif isinstance(what, Split):
                into = self.meaning(what.into, before=id)
                self._renames[normalise_name(what.name)].append(_Rename(id, into, frozenset(what.places)))
            elif not isinstance(what, Apart):
                self._facts[id] = what
                fact = what.fact
                ends = (self.meaning(end, before=id) for end in (fact.subject, fact.object))
                self._patterns[id] = tuple(map(normalise_name, (*ends, fact.predicate)))

    def __bool__(self) -> bool:
        return bool(self.standing)

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
        holding = [one for one in due if one.places is None or (passage and lies_in(passage, one.places))]
        return min(holding, key=lambda one: one.id, default=None)

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
        revised, by = list(triples), set[int]()
        subjects = {form for triple in revised for form in names.forms(triple.subject)}
        for id, what in self._facts.items():
            if isinstance(what, Pin):
                if what.passage != passage.id:
                    continue
                right: Statement | None = what.fact
                revised.append(_triple(what.fact))
            else:
                if self._patterns[id][0] not in subjects or (what.places and not lies_in(passage, what.places)):
                    continue
                meant = [self._means(id, what.fact, triple, names) for triple in revised]
                if not any(meant):
                    continue
                right = what.to if isinstance(what, Change) else None
                revised = [
                    _triple(right, triple.relation) if right and is_meant else triple
                    for triple, is_meant in zip(revised, meant, strict=True)
                    if right or not is_meant
                ]
            by.add(id)
            subjects.update(names.forms(right.subject) if right else ())
        return revised, by

    def _means(self, id: int, fact: Statement, triple: Triple, names: _Names) -> bool:
        shown = (names.shown(end, before=id) for end in (triple.subject, triple.object))
        is_of_type = triple.relation.value == fact.relation or not fact.relation
        return is_of_type and tuple(map(normalise_name, (*shown, triple.predicate))) == self._patterns[id]

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
        if id in self._facts:
            return {self._patterns[id][0]}
        return {form for form, renames in self._renames.items() if any(one.id == id for one in renames)}

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
        self._history = cache(partial(corrections.history, passage=passage))
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


def _triple(fact: Statement, relation: str = "") -> Triple:
    """Return a fact that a user states, of this relation type where he names none."""
    return Triple(fact.subject, fact.predicate, fact.object, RelationType(fact.relation or relation), 1.0)


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
