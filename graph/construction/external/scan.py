"""The first stage: what each passage of a shard says, as columns of files.

A shard's files depend on its passages alone: names, facts, tokens and terms have numbers within the shard. So a shard
that was read once need not be read again while its passages stay. Shards are cut where the ids of passages say so.
"""

from __future__ import annotations

import hashlib
import shutil
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from graph.construction.builder import ADDRESS_SIGNS
from graph.construction.evidence import Evidence, Handles, Names, keep_smallest, read_evidence
from graph.construction.external.arrays import Columns, joined, packed
from graph.construction.external.kept_pairs import FOLDER
from graph.construction.external.layout import Shard
from graph.construction.knowledge_graph import BUILT_IN, table_of_passages
from graph.corrections.apply import Corrections
from graph.schema import Fact, RelationType
from graph.storage.entry import Entry
from graph.storage.record import Record
from graph.storage.workspace import Workspace

SCAN_VERSION = 2
"""Counts up where a shard's files, or what is read from a passage, change."""

IN_ADDRESS, IN_SMALL_LETTERS = np.uint8(1), np.uint8(2)
_NO_CHUNK = bytes(16)

Ints = NDArray[np.int32]


def scan(entries: Iterable[Entry], corrections: Corrections, dimension: int, folder: Path) -> None:
    """Read what the passages of a shard say, and write it into an empty folder.

    Args:
        entries: in the order of their ids.
        corrections: of the record.
        dimension: of the passages' vectors.
        folder: the shard's.
    """
    shard = _Shard.read(entries, corrections)
    columns = Columns(folder)
    _save_passages(columns, shard, dimension)
    names = _in_use(shard)
    number_of = np.full(len(shard.names.keys), -1, dtype=np.int32)
    number_of[names] = np.arange(len(names), dtype=np.int32)
    _save_names(columns, shard, names, number_of)
    _save_links(columns, shard, number_of)
    _save_facts(columns, shard, number_of)
    _save_tokens(columns, shard)
    _save_terms(columns, shard)


@dataclass(frozen=True, slots=True)
class _Shard:
    """The passages of a shard and what they say, with numbers that hold within it."""

    passages: Sequence[Evidence]
    names: Names
    facts: Handles
    terms: Handles
    own_relations: Handles

    @staticmethod
    def read(entries: Iterable[Entry], corrections: Corrections) -> _Shard:
        names, facts, terms, own = Names(), Handles(), Handles(), Handles()
        read = [
            read_evidence(entry, corrections.stated(entry.passage, entry.extraction), "", names, facts, terms, own)
            for entry in entries
        ]
        return _Shard(read, names, facts, terms, own)


def _save_passages(columns: Columns, shard: _Shard, dimension: int) -> None:
    passages = [evidence.passage for evidence in shard.passages]
    table_of_passages(passages).save(columns.folder, "passages")
    vectors = [evidence.vector for evidence in shard.passages]
    chunks = [_chunk_key(evidence.chunk_of) for evidence in shard.passages]
    columns.save(
        passage_vectors=np.stack(vectors) if vectors else np.zeros((0, dimension), dtype=np.float32),
        content_lengths=np.array([len(passage.content) for passage in passages], dtype=np.int32),
        chunk_of=np.frombuffer(b"".join(chunks), dtype=np.uint64).reshape(len(chunks), 2),
    )


def _chunk_key(chunk_of: tuple[str, str] | None) -> bytes:
    """Return sixteen bytes for the document that a passage is a chunk of; zeros where it is no chunk."""
    if chunk_of is None:
        return _NO_CHUNK
    text = "\x00".join(chunk_of).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=len(_NO_CHUNK)).digest()


def _in_use(shard: _Shard) -> NDArray[np.intp]:
    """Return the numbers of the names that some passage holds, in the order of their ids."""
    held = np.unique(joined([evidence.links.names for evidence in shard.passages], np.int32)).tolist()
    return np.array(sorted(held, key=shard.names.keys.__getitem__), dtype=np.intp)


def _save_names(columns: Columns, shard: _Shard, names: NDArray[np.intp], number_of: Ints) -> None:
    """Write the names in the order of their ids, how each is spelled and of which types, and the passages' aliases."""
    columns.save(name_ids=packed([shard.names.keys[handle] for handle in names.tolist()]))
    columns.save_texts("names", (shard.names.normal[handle] for handle in names.tolist()))
    labels: Counter[tuple[int, str]] = Counter()
    types: Counter[tuple[int, str]] = Counter()
    for evidence in shard.passages:
        labels.update(zip(number_of[evidence.spelled].tolist(), evidence.spellings, strict=True))
        types.update((int(number_of[handle]), entity_type) for handle, entity_type in evidence.typed)
    _save_counts(columns, "label", labels)
    _save_counts(columns, "type", types)
    aliases = sorted({(alias, int(number_of[name])) for alias, name in _aliases(shard)})
    columns.save_texts("aliases", (alias for alias, _ in aliases))
    columns.save(alias_names=np.array([name for _, name in aliases], dtype=np.int32))


def _aliases(shard: _Shard) -> Iterable[tuple[str, int]]:
    return (evidence.alias for evidence in shard.passages if evidence.alias)


def _save_counts(columns: Columns, name: str, counts: Mapping[tuple[int, str], int]) -> None:
    """Write how often each name has each text, by name."""
    rows = sorted(counts)
    columns.save_texts(f"{name}_texts", (text for _, text in rows))
    columns.save(
        **{
            f"{name}_names": np.array([number for number, _ in rows], dtype=np.int32),
            f"{name}_counts": np.array([counts[row] for row in rows], dtype=np.int32),
        }
    )


def _save_links(columns: Columns, shard: _Shard, number_of: Ints) -> None:
    links = [evidence.links for evidence in shard.passages]
    columns.save(
        link_passages=_repeated(links_of.names for links_of in links),
        link_names=number_of[joined([each.names for each in links], np.int32)],
        link_subject_of=joined([each.subject_of for each in links], np.int32),
        link_object_of=joined([each.object_of for each in links], np.int32),
        link_titled=joined([each.titled for each in links], np.bool_),
        link_offsets=joined([each.offsets for each in links], np.int32),
    )


def _repeated(parts: Iterable[NDArray[np.generic]]) -> Ints:
    """Return the place of each element's part."""
    sizes = np.fromiter(map(len, parts), dtype=np.int64)
    return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def _save_facts(columns: Columns, shard: _Shard, number_of: Ints) -> None:
    """Write the triples, passage by passage, and the facts in the order of their ids."""
    every = shard.passages
    held = joined([evidence.facts for evidence in every], np.int32)
    subjects = number_of[joined([evidence.subjects for evidence in every], np.int32)]
    objects = number_of[joined([evidence.objects for evidence in every], np.int32)]
    ids = packed(shard.facts.keys)
    order = np.argsort(ids, kind="stable")
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    ends = np.zeros((len(order), 2), dtype=np.int32)
    ends[place[held]] = np.column_stack([subjects, objects])
    columns.save(
        triple_subjects=subjects,
        triple_objects=objects,
        triple_kinds=joined([evidence.kinds for evidence in every], np.int32),
        triple_confidences=joined([evidence.confidences for evidence in every], np.float64),
    )
    pairs = np.unique(place[held].astype(np.int64) << 32 | _repeated(evidence.facts for evidence in every))
    shown: dict[int, Fact] = {}
    for evidence in every:
        keep_smallest(shown, evidence.facts.tolist(), evidence.statements)
    facts = [shown[handle] for handle in order.tolist()]
    columns.save_texts("statements", (part for fact in facts for part in (fact.subject, fact.predicate, fact.object)))
    columns.save_texts("own_relations", shard.own_relations.keys)
    columns.save(
        fact_ids=ids[order],
        fact_ends=ends,
        fact_relations=np.array([_relation_of(fact.relation, shard.own_relations) for fact in facts], dtype=np.int32),
        held_facts=(pairs >> 32).astype(np.int32),
        held_by=(pairs & 0xFFFFFFFF).astype(np.int32),
    )


def _relation_of(relation: RelationType, own: Handles) -> int:
    """Return the place of a relation type among the built-in ones, with the shard's own ones behind them."""
    return len(BUILT_IN) + own.known(relation) if relation.is_own else BUILT_IN.index(relation)


def _save_tokens(columns: Columns, shard: _Shard) -> None:
    """Write the tokens of each passage, where they start, and how the text around them is written."""
    words = Handles()
    numbers = [words.of_all(evidence.words.split()) for evidence in shard.passages]
    columns.save_texts("words", words.keys)
    columns.save(
        tokens=joined(numbers, np.int32),
        token_counts=np.fromiter(map(len, numbers), dtype=np.int64, count=len(numbers)),
        token_starts=joined([evidence.starts for evidence in shard.passages], np.int32),
        token_marks=joined([_marks(evidence) for evidence in shard.passages], np.uint8),
    )


def _marks(evidence: Evidence) -> NDArray[np.uint8]:
    content, starts = evidence.passage.content, evidence.starts.tolist()
    return np.array(
        [
            (1 if start and content[start - 1] in ADDRESS_SIGNS else 0) | (2 if _is_small(content[start]) else 0)
            for start in starts
        ],
        dtype=np.uint8,
    )


def _is_small(letter: str) -> bool:
    return letter == letter.lower() != letter.upper()


def _save_terms(columns: Columns, shard: _Shard) -> None:
    """Write the terms in the order in which they first stand, and which passages hold each how often."""
    every = [evidence.terms for evidence in shard.passages]
    pairs = joined(every, np.int32).astype(np.int64) << 32 | _repeated(every)
    held, times = np.unique(pairs, return_counts=True)
    columns.save_texts("terms", shard.terms.keys)
    columns.save(
        term_counts=np.fromiter(map(len, every), dtype=np.int64, count=len(every)),
        posting_terms=(held >> 32).astype(np.int32),
        posting_passages=(held & 0xFFFFFFFF).astype(np.int32),
        posting_times=times.astype(np.int32),
    )


_NEW = "new-"


def shards_of(record: Record, size: int, cache: Path) -> tuple[Shard, ...]:
    """Return the shards of a record's passages, of about ``size`` passages, twice that at most.

    Where one ends depends on the ids near by: a passage that comes or goes changes its own shard and, at most, the
    next one. The name of its folder tells whether it changed.
    """
    made_with = (str(SCAN_VERSION), record.workspace_id, record.embedding_model, record.vectors_id)
    begun = hashlib.blake2b("\x00".join(made_with).encode(), digest_size=16)
    shards: list[Shard] = []
    held: list[str] = []
    made_of, start = begun.copy(), 0

    def end() -> None:
        shards.append(Shard(cache / made_of.hexdigest(), held[0], held[-1], start, len(held)))

    for key, fingerprint in record.stated_in_order():
        held.append(key)
        made_of.update(f"{len(key)} {key} {fingerprint}\n".encode())
        if len(held) == 2 * size or zlib.crc32(key.encode()) % size == 0:
            end()
            start += len(held)
            held, made_of = [], begun.copy()
    if held:
        end()
    return tuple(shards)


def scan_shard(root: Path, folder: Path, first: str, last: str) -> None:
    """Write a shard's folder, whole at once; nothing where it is there already.

    Args:
        root: the workspace's folder.
        folder: the shard's.
        first: the id of its first passage.
        last: of its last one.
    """
    if folder.is_dir():
        return
    unfinished = folder.with_name(f"{_NEW}{uuid4().hex}")
    unfinished.mkdir(parents=True)
    try:
        with Workspace(root).open_record() as record:
            entries = record.entries_between(first, last)
            scan(entries, Corrections(record.corrections()), record.dimension, unfinished)
        unfinished.rename(folder)
    except OSError:
        # A process that a killed build left may have written the same shard meanwhile.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def prune_cache(cache: Path, used: Iterable[Shard]) -> None:
    """Remove the folders of shards that no passage needs any more."""
    kept = {FOLDER, *(shard.folder.name for shard in used)}
    for folder in cache.iterdir():
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)
