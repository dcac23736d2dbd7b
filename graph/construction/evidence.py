"""The evidence of each passage, kept between two builds of the graph: names, facts and terms as small numbers.

A passage's evidence depends on the passage alone, but for the mentions of names that other passages brought in.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graph.construction.bm25 import terms_of
from graph.construction.edges import KIND_INDEX, EdgeKind
from graph.corrections.apply import Stated
from graph.schema import Fact, Passage, Triple, entity_id
from graph.storage.entry import Entry
from graph.text import find_name, normalise_name, token_spans

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]

NO_FLOATS: Floats = np.zeros(0, dtype=np.float32)


class _Numbers(dict[str, int]):
    """Numbers of keys; one that is asked for and new is numbered next, and appended to both lists."""

    def __init__(self, keys: list[str], held: list[int]) -> None:
        super().__init__()
        self._keys = keys
        self._held = held

    def __missing__(self, key: str) -> int:
        number = self[key] = len(self._keys)
        self._keys.append(key)
        self._held.append(0)
        return number


class Handles:
    """Numbers for keys, given once and never to another key; and how many passages hold each."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.held: list[int] = []
        self._of_key = _Numbers(self.keys, self.held)

    def of(self, key: str) -> int:
        """Return the key's number."""
        return self._of_key[key]

    def of_all(self, keys: Iterable[str]) -> Ints:
        """Return the number of each key."""
        return _ints([*map(self._of_key.__getitem__, keys)])

    def known(self, key: str) -> int:
        """Return the number of a key that has one. Raises KeyError where it has none."""
        handle = self.find(key)
        if handle < 0:
            raise KeyError(key)
        return handle

    def find(self, key: str) -> int:
        """Return the number of a key; -1 for one that has none."""
        return self._of_key.get(key, -1)

    def in_use(self) -> list[int]:
        """Return the handles that some passage holds, in the order of their keys."""
        return sorted((handle for handle, count in enumerate(self.held) if count), key=self.keys.__getitem__)


class Names(Handles):
    """The names of entities, by entity id."""

    def __init__(self) -> None:
        super().__init__()
        self.normal: list[str] = []
        self._of_spelling: dict[str, int] = {}

    def spelled(self, spelling: str) -> int:
        """Return the number of the entity that a name spells; -1 for what is no name."""
        handle = self._of_spelling.get(spelling)
        if handle is None:
            normal = normalise_name(spelling)
            handle = self.of(entity_id(spelling)) if normal else -1
            if handle == len(self.normal):
                self.normal.append(normal)
            self._of_spelling[sys.intern(spelling)] = handle
        return handle


@dataclass(slots=True)
class Links:
    """The names of one passage, one element each.

    Attributes:
        names: their numbers.
        subject_of, object_of: in how many triples of the passage each stands so.
        titled: whether it is the passage's own title.
        offsets: where it stands first in the content, in characters; -1 where it does not.
        cosines: of the name's vector to the passage's.
    """

    names: Ints
    subject_of: Ints
    object_of: Ints
    titled: NDArray[np.bool_]
    offsets: Ints
    cosines: Floats = field(default_factory=lambda: NO_FLOATS)

    @staticmethod
    def of_mentions(found: dict[int, int]) -> Links:
        """Return the links of names that the text merely spells out, with where each stands first."""
        none = np.zeros(len(found), dtype=np.int32)
        names = np.fromiter(found, dtype=np.int32, count=len(found))
        offsets = np.fromiter(found.values(), dtype=np.int32, count=len(found))
        return Links(names, none, none, none.astype(bool), offsets)


@dataclass(slots=True)
class Writings:
    """How the text of one passage writes the names that stand in it, one element a name.

    Attributes:
        names: their numbers.
        times: how often each stands there.
        small: how often in small letters.
    """

    names: Ints
    times: Ints
    small: Ints

    @staticmethod
    def of(found: Mapping[int, Sequence[bool]]) -> Writings:
        """Return the columns of {name: whether it is in small letters, each time that it stands}."""
        names, each = _ints(list(found)), found.values()
        return Writings(names, _ints([len(times) for times in each]), _ints([sum(times) for times in each]))


@dataclass(slots=True)
class Evidence:
    """One passage and what it says.

    Attributes:
        fingerprint: of what its entry states.
        vector: the passage's.
        typed: the numbers of its names that have an entity type, with it.
        spelled, spellings: the numbers of its names and how each is written, one element each time one is.
        words: its tokens, joined by and within spaces.
        starts: where each token stands in the content, in characters.
        links: its own names: the title, what was extracted.
        mentions: names that other passages brought in and its text spells out.
        writings: how its text writes both.
        subjects, objects, kinds, confidences, facts: of its triples, one element each. Of a fact of a user's own type,
            the kind is its number among those that the builder met, behind the built-in ones.
        statements: each fact as it is written here.
        terms: what BM25 counts.
        alias: its full title with its entity, where that is another name than the entity's.
        chunk_of: the document it is a chunk of, as (source, title).
    """

    passage: Passage
    fingerprint: str
    vector: Floats
    typed: tuple[tuple[int, str], ...]
    spelled: Ints
    spellings: tuple[str, ...]
    words: str
    starts: Ints
    links: Links
    mentions: Links
    writings: Writings
    subjects: Ints
    objects: Ints
    kinds: Ints
    confidences: NDArray[np.float64]
    facts: Ints
    statements: tuple[Fact, ...]
    terms: Ints
    alias: tuple[str, int] | None
    chunk_of: tuple[str, str] | None


def read_evidence(
    entry: Entry,
    stated: Stated,
    fingerprint: str,
    names: Names,
    facts: Handles,
    terms: Handles,
    own_relations: Handles,
) -> Evidence:
    """Return what an entry says, without cosines and mentions; ``fingerprint`` is of what it states."""
    passage = entry.passage
    given = [(t, names.spelled(t.subject), names.spelled(t.object)) for t in stated.triples]
    triples = [(triple, subject, object_) for triple, subject, object_ in given if subject >= 0 and object_ >= 0]
    statements = tuple([_fact(triple) for triple, _, _ in triples])
    title = stated.topic
    own = names.spelled(title) if title else -1
    spelled = [(names.spelled(name), name) for name in stated.entities]
    for triple, subject, object_ in triples:
        spelled += (subject, triple.subject), (object_, triple.object)
    spelled.append((own, title))
    spelled = [(handle, name) for handle, name in spelled if handle >= 0]
    handles = [handle for handle, _ in spelled]
    spans = token_spans(passage.content)
    tokens = [token for token, _, _ in spans]
    starts = _ints([start for _, start, _ in spans])
    words = f" {' '.join(tokens)} "
    subjects, objects = [subject for _, subject, _ in triples], [object_ for _, _, object_ in triples]
    full = normalise_name(passage.title)
    held = set(handles)
    typed = ((names.spelled(name), entity_type) for name, entity_type in stated.types.items())
    return Evidence(
        passage=passage,
        fingerprint=fingerprint,
        vector=entry.vector,
        typed=tuple((handle, entity_type) for handle, entity_type in typed if handle in held),
        spelled=_ints(handles),
        spellings=tuple([sys.intern(name.strip()) for _, name in spelled]),
        words=words,
        starts=starts,
        links=_links(handles, subjects, objects, own, words, starts, names, stated.written),
        mentions=Links.of_mentions({}),
        writings=Writings.of({}),
        subjects=_ints(subjects),
        objects=_ints(objects),
        kinds=_ints([_kind_of(fact, own_relations) for fact in statements]),
        confidences=np.array([triple.confidence for triple, _, _ in triples], dtype=np.float64),
        facts=_ints([facts.of(fact.id) for fact in statements]),
        statements=statements,
        terms=terms.of_all(terms_of(tokens)),
        alias=(full, own) if own >= 0 and full != names.normal[own] else None,
        chunk_of=(passage.source, passage.title) if "chunk" in passage.metadata else None,
    )


def _links(
    held: Sequence[int],
    subjects: Sequence[int],
    objects: Sequence[int],
    own: int,
    words: str,
    starts: Ints,
    names: Names,
    written: Mapping[str, Sequence[str]],
) -> Links:
    handles = list(dict.fromkeys(held))
    as_subject, as_object = Counter(subjects), Counter(objects)
    normal = [names.normal[handle] for handle in handles]
    places = [_first_place(words, (name, *written.get(name, ()))) for name in normal]
    return Links(
        names=_ints(handles),
        subject_of=_ints([as_subject[handle] for handle in handles]),
        object_of=_ints([as_object[handle] for handle in handles]),
        titled=np.array([handle == own for handle in handles], dtype=bool),
        offsets=_ints([starts.item(place) if place >= 0 else -1 for place in places]),
    )


def _first_place(words: str, names: Iterable[str]) -> int:
    """Return the index of the first token of whichever name stands first; -1 where none does."""
    return min((place for name in names if (place := find_name(words, name)) >= 0), default=-1)


def keep_smallest(shown: dict[int, Fact], handles: Iterable[int], statements: Iterable[Fact]) -> None:
    """Keep, of the statements of each fact, the one that is shown for all of its spellings: the smallest."""
    for handle, statement in zip(handles, statements, strict=True):
        known = shown.setdefault(handle, statement)
        if known != statement and _rank(statement) < _rank(known):
            shown[handle] = statement


def _rank(fact: Fact) -> tuple[str, str, str]:
    return fact.text, fact.subject, fact.predicate


def _fact(triple: Triple) -> Fact:
    return Fact(sys.intern(triple.subject), sys.intern(triple.predicate), sys.intern(triple.object), triple.relation)


def _kind_of(fact: Fact, own_relations: Handles) -> int:
    kind = KIND_INDEX.get(EdgeKind(fact.relation))
    return len(KIND_INDEX) + own_relations.of(fact.relation) if kind is None else kind


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int32)
