"""The first stage of a build: what each passage of a shard says, as columns of files.

A shard's files depend on its passages alone: names, facts, tokens and terms have numbers within the shard. So a shard
that was read once need not be read again while its passages stay. Shards are cut where the ids of passages say so.
"""

from __future__ import annotations

import hashlib
import shutil
import zlib
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from graph.construction.bm25 import terms_of
from graph.construction.columns import Columns, packed
from graph.construction.knowledge_graph import BUILT_IN, table_of_passages
from graph.corrections.apply import Corrections, Stated
from graph.schema import Fact, Passage, RelationType, Triple, entity_id
from graph.storage.entry import Entry
from graph.storage.record import Record
from graph.text import find_name, normalise_name, token_spans

SCAN_VERSION = 3
"""Counts up where a shard's files, or what is read from a passage, change."""

PASSAGE = np.dtype([("length", "i4"), ("tokens", "i4"), ("terms", "i4")])
"""Of a passage: the characters of its content, and how many tokens and terms it has."""

LINK = np.dtype(
    [("passage", "i4"), ("name", "i4"), ("subject_of", "i4"), ("object_of", "i4"), ("titled", "?"), ("offset", "i4")]
)
"""A name of a passage: in how many of its triples it is subject and object, whether it is the title, where it stands
first in the content, in characters; -1 where it does not."""

GIVEN = np.dtype([("name", "i4"), ("count", "i4")])
"""How often a text is given to a name."""

TRIPLE = np.dtype([("subject", "i4"), ("object", "i4"), ("relation", "i4"), ("confidence", "f8")])
FACT = np.dtype([("subject", "i4"), ("object", "i4"), ("relation", "i4")])
"""A relation type is its place among the built-in ones, with the shard's own ones behind them."""

HELD = np.dtype([("fact", "i4"), ("passage", "i4")])
TOKEN = np.dtype([("word", "i4"), ("start", "i4"), ("in_address", "?"), ("small", "?")])
"""A token: where it stands, whether as part of an address or a compound, and whether it begins with a small letter."""

POSTING = np.dtype([("term", "i4"), ("passage", "i4"), ("times", "i4")])

_ADDRESS_SIGNS = frozenset("/\\._@=&?#-")
"""Behind these a word is part of an address, a path or a compound, where even names stand in small letters."""

_NO_CHUNK = bytes(16)


class Handles(dict[str, int]):
    """Numbers for keys: one that is looked up and new is numbered next.

    Attributes:
        order: the keys by their numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def __missing__(self, key: str) -> int:
        number = self[key] = len(self.order)
        self.order.append(key)
        return number


class ShardReader:
    """Takes in what the passages of a shard say, in the order of their ids."""

    def __init__(self) -> None:
        self._names, self._facts, self._words, self._terms = Handles(), Handles(), Handles(), Handles()
        self._relations: dict[RelationType, int] = {relation: place for place, relation in enumerate(BUILT_IN)}
        self._of_spelling: dict[str, int] = {}
        self._passages: list[Passage] = []
        self._vectors: list[NDArray[np.float32]] = []
        self._sizes: list[tuple[int, int, int]] = []
        self._chunks: list[bytes] = []
        self._links: list[tuple[int, ...]] = []
        self._triples: list[tuple[int, int, int, float]] = []
        self._held: list[tuple[int, int]] = []
        self._shown: dict[int, Fact] = {}
        self._ends: dict[int, tuple[int, int, int]] = {}
        self._given: dict[str, Counter[tuple[int, str]]] = {name: Counter() for name in ("labels", "types", "aliases")}
        self._token_columns: tuple[list[int], list[int], list[bool], list[bool]] = [], [], [], []
        self._term_numbers: list[int] = []

    def read(self, entry: Entry, stated: Stated) -> None:
        """Take in the next passage."""
        passage, place = entry.passage, len(self._passages)
        self._passages.append(passage)
        self._vectors.append(entry.vector)
        self._chunks.append(_chunk_key(passage))
        content = passage.content
        spans = token_spans(content)
        tokens, starts = [token for token, _, _ in spans], [start for _, start, _ in spans]
        words, places, in_address, small = self._token_columns
        words.extend(map(self._words.__getitem__, tokens))
        places.extend(starts)
        in_address.extend([start > 0 and content[start - 1] in _ADDRESS_SIGNS for start in starts])
        small.extend([_is_small(content[start]) for start in starts])
        terms = terms_of(tokens)
        self._term_numbers.extend(map(self._terms.__getitem__, terms))
        self._sizes.append((len(content), len(tokens), len(terms)))
        triples = [
            (triple, subject, object_)
            for triple in stated.triples
            if (subject := self._name(triple.subject)) >= 0 and (object_ := self._name(triple.object)) >= 0
        ]
        for triple, subject, object_ in triples:
            self._read_triple(place, triple, subject, object_)
        self._read_names(place, passage, stated, triples, tokens, starts)

    def _read_triple(self, place: int, triple: Triple, subject: int, object_: int) -> None:
        relation = self._relations.setdefault(triple.relation, len(self._relations))
        statement = Fact(triple.subject, triple.predicate, triple.object, triple.relation)
        fact = self._facts[statement.id]
        self._triples.append((subject, object_, relation, triple.confidence))
        self._held.append((fact, place))
        self._ends[fact] = subject, object_, relation
        keep_smallest(self._shown, fact, statement)

    def _read_names(
        self,
        place: int,
        passage: Passage,
        stated: Stated,
        triples: list[tuple[Triple, int, int]],
        tokens: list[str],
        starts: list[int],
    ) -> None:
        """Take in the names: the title, what was extracted, the ends of triples."""
        own = self._name(stated.topic) if stated.topic else -1
        spelled = [(self._name(name), name) for name in stated.entities]
        for triple, subject, object_ in triples:
            spelled += (subject, triple.subject), (object_, triple.object)
        spelled = [(name, text.strip()) for name, text in (*spelled, (own, stated.topic)) if name >= 0]
        names = dict.fromkeys(name for name, _ in spelled)
        typed = [(self._name(name), own_type) for name, own_type in stated.types.items()]
        full = normalise_name(passage.title)
        self._given["labels"].update(spelled)
        self._given["types"].update((name, own_type) for name, own_type in typed if name in names)
        if own >= 0 and full != self._names.order[own]:
            self._given["aliases"][own, full] += 1
        subject_of, object_of = (Counter(ends) for ends in ([s for _, s, _ in triples], [o for _, _, o in triples]))
        words = f" {' '.join(tokens)} "
        for name in names:
            normal = self._names.order[name]
            written = (find_name(words, form) for form in (normal, *stated.written.get(normal, ())))
            first = min((token for token in written if token >= 0), default=-1)
            offset = starts[first] if first >= 0 else -1
            self._links.append((place, name, subject_of[name], object_of[name], name == own, offset))

    def _name(self, spelling: str) -> int:
        """Return the number of the name that is spelled so; -1 for what is no name."""
        number = self._of_spelling.get(spelling)
        if number is None:
            normal = normalise_name(spelling)
            number = self._of_spelling[spelling] = self._names[normal] if normal else -1
        return number

    def save(self, folder: Path, dimension: int) -> None:
        """Write all of it into an empty folder; names and facts in the order of their ids."""
        columns = Columns(folder)
        table_of_passages(self._passages).save(folder, "passages")
        columns.save_texts("own_relations", [*map(str, self._relations)][len(BUILT_IN) :])
        columns.save(
            passage_vectors=np.array(self._vectors, dtype=np.float32).reshape(-1, dimension),
            passages=np.array(self._sizes, dtype=PASSAGE),
            chunk_of=np.frombuffer(b"".join(self._chunks), dtype=np.uint64).reshape(-1, 2),
        )
        name_of = self._save_names(columns)
        links = np.array(self._links, dtype=LINK)
        links["name"] = name_of[links["name"]]
        columns.save(links=links)
        self._save_facts(columns, name_of)
        columns.save_texts("words", self._words.order)
        tokens = np.empty(len(self._token_columns[0]), dtype=TOKEN)
        for name, column in zip(TOKEN.fields or (), self._token_columns, strict=True):
            tokens[name] = column
        columns.save(tokens=tokens)
        self._save_terms(columns)

    def _save_names(self, columns: Columns) -> NDArray[np.int32]:
        """Write the names that some passage holds, and what is given to each; return their places among these."""
        used = np.unique(np.array([link[1] for link in self._links], dtype=np.int32))
        ids = packed(entity_id(self._names.order[name]) for name in used.tolist())
        order = np.argsort(ids, kind="stable")
        name_of = np.full(len(self._names.order), -1, dtype=np.int32)
        name_of[used[order]] = np.arange(len(order), dtype=np.int32)
        columns.save(name_ids=ids[order])
        for what, counts in self._given.items():
            spellings = sorted((name_of.item(name), text, count) for (name, text), count in counts.items())
            columns.save_texts(what, (text for _, text, _ in spellings))
            columns.save(**{f"{what}.names": np.array([(name, count) for name, _, count in spellings], dtype=GIVEN)})
        return name_of

    def _save_facts(self, columns: Columns, name_of: NDArray[np.int32]) -> None:
        """Write the triples, passage by passage, and the facts with the passages that hold each."""
        ids = packed(self._facts.order)
        order = np.argsort(ids, kind="stable")
        fact_of = np.empty(len(order), dtype=np.int32)
        fact_of[order] = np.arange(len(order), dtype=np.int32)
        triples = np.array(self._triples, dtype=TRIPLE)
        facts = np.array([self._ends[fact] for fact in order.tolist()], dtype=FACT)
        statements = np.array(self._held, dtype=HELD)
        statements["fact"] = fact_of[statements["fact"]]
        for table in (triples, facts):
            for end in ("subject", "object"):
                table[end] = name_of[table[end]]
        shown = [self._shown[fact] for fact in order.tolist()]
        columns.save_texts("facts", (part for fact in shown for part in (fact.subject, fact.predicate, fact.object)))
        columns.save(triples=triples, fact_ids=ids[order], facts=facts, held=np.unique(statements))

    def _save_terms(self, columns: Columns) -> None:
        """Write the terms in the order in which they first stand, and which passages hold each how often."""
        sizes = [terms for _, _, terms in self._sizes]
        numbers = np.array(self._term_numbers, dtype=np.int64)
        pairs, times = np.unique(numbers << 32 | np.repeat(np.arange(len(sizes)), sizes), return_counts=True)
        postings = np.empty(len(pairs), dtype=POSTING)
        postings["term"], postings["passage"], postings["times"] = pairs >> 32, pairs & 0xFFFFFFFF, times
        columns.save_texts("terms", self._terms.order)
        columns.save(postings=postings)


@lru_cache(maxsize=4096)
def _is_small(letter: str) -> bool:
    return letter == letter.lower() != letter.upper()


def _chunk_key(passage: Passage) -> bytes:
    """Return sixteen bytes for the document that a passage is a chunk of; zeros where it is no chunk."""
    if "chunk" not in passage.metadata:
        return _NO_CHUNK
    text = "\x00".join((passage.source, passage.title)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=len(_NO_CHUNK)).digest()


def keep_smallest(shown: dict[int, Fact], fact: int, statement: Fact) -> None:
    """Keep, of the statements of a fact, the one that is shown for all of its spellings: the smallest."""
    known = shown.setdefault(fact, statement)
    if known != statement and _rank(statement) < _rank(known):
        shown[fact] = statement


def _rank(fact: Fact) -> tuple[str, str, str]:
    return fact.text, fact.subject, fact.predicate


@dataclass(frozen=True, slots=True)
class Shard:
    """Neighbouring passages that are read together.

    Attributes:
        folder: of what they say, see `ShardReader`.
        first: the id of the first passage.
        last: of the last one.
        start: the place of the first among all passages.
        size: how many they are.
    """

    folder: Path
    first: str
    last: str
    start: int
    size: int

    @property
    def said(self) -> Columns:
        """The arrays of what its passages say."""
        return Columns(self.folder)

    @property
    def is_read(self) -> bool:
        """Whether an earlier build wrote its folder."""
        return self.folder.is_dir()

    def read(self, record: Record, corrections: Corrections) -> None:
        """Write its folder, whole at once; nothing where it is there already."""
        if self.is_read:
            return
        unfinished = self.folder.with_name(f"new-{uuid4().hex}")
        unfinished.mkdir(parents=True)
        try:
            reader = ShardReader()
            for entry in record.entries_between(self.first, self.last):
                reader.read(entry, corrections.stated(entry.passage, entry.extraction))
            reader.save(unfinished, record.dimension)
            unfinished.rename(self.folder)
        except OSError:
            # A process that a killed build left may have written the same shard meanwhile.
            if not self.is_read:
                raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


_LEAST, _MOST, _SHARDS = 256, 4_096, 32


def shard_size(n_passages: int) -> int:
    """Return of about how many passages a shard is: a small corpus is cut finer, so that a change reads little again.

    A power of two: it stays the same until the corpus has doubled.
    """
    return min(_MOST, max(_LEAST, 1 << (n_passages // _SHARDS).bit_length()))


def vectors_made_with(record: Record) -> tuple[str, ...]:
    """Return something else where the same text has another vector than before."""
    return record.workspace_id, record.embedding_model, record.vectors_id


def shards_of(record: Record, size: int, cache: Path) -> tuple[Shard, ...]:
    """Return the shards of a record's passages, of about ``size`` passages, twice that at most.

    Where one ends depends on the ids near by: a passage that comes or goes changes its own shard and, at most, the
    next one. The name of its folder tells whether it changed.
    """
    made_with = "\x00".join((str(SCAN_VERSION), *vectors_made_with(record)))
    begun = hashlib.blake2b(made_with.encode(), digest_size=16)
    shards: list[Shard] = []
    keys: list[str] = []
    made_of, start = begun.copy(), 0

    def end() -> None:
        shards.append(Shard(cache / made_of.hexdigest(), keys[0], keys[-1], start, len(keys)))

    for key, fingerprint in record.stated_in_order():
        keys.append(key)
        made_of.update(f"{len(key)} {key} {fingerprint}\n".encode())
        if len(keys) == 2 * size or zlib.crc32(key.encode()) % size == 0:
            end()
            start += len(keys)
            keys, made_of = [], begun.copy()
    if keys:
        end()
    return tuple(shards)
