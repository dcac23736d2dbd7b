"""Writing the record of a made-up corpus: made, embedded and committed shard by shard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.growth.corpus import NamedCorpus
from benchmarks.growth.embedder import NameEmbedder
from graph.corrections.apply import Corrections
from graph.schema import entity_id
from graph.storage.entry import Entry, facts_of
from graph.storage.record import Record
from graph.storage.record_tables import Additions, NewVectors
from graph.storage.workspace import Workspace
from graph.text import normalise_name

_BATCH = 20_000
_INDEXES = {"passages_of_name": "passage_names (name_id)", "passages_of_fact": "passage_facts (fact_id)"}


@dataclass(frozen=True, slots=True)
class Shard:
    """Passages with their vectors, the names that no earlier passage has, and their facts."""

    entries: list[Entry]
    names: NewVectors
    facts: NewVectors


def write_record(root: Path, passages: int) -> dict[str, int]:
    """Write the record of a corpus into a workspace, from where an earlier run was interrupted; return its counts."""
    workspace = Workspace(root)
    workspace.create()
    corpus, embedder = NamedCorpus(passages), NameEmbedder()
    with workspace.writing() as lock, workspace.open_record(lock) as record, _without_indexes(record):
        for start in range(record.count_passages(), passages, _BATCH):
            shard = shard_of(corpus, embedder, start, min(start + _BATCH, passages))
            record.commit(shard.entries, Additions(shard.names, shard.facts), embedder.model_id)
        return {"passages": record.count_passages(), "names": record.count_names()}


@contextmanager
def _without_indexes(record: Record) -> Iterator[None]:
    """Make the indexes of links when all is written: each commit of passages in any order would rewrite all of them."""
    database = record._db
    database.execute("PRAGMA cache_size = -200000")
    for name in _INDEXES:
        database.execute(f"DROP INDEX IF EXISTS {name}")
    yield
    for name, columns in _INDEXES.items():
        database.execute(f"CREATE INDEX {name} ON {columns}")


def bytes_under(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def shard_of(corpus: NamedCorpus, embedder: NameEmbedder, start: int, end: int) -> Shard:
    """Return the passages from one number to another, embedded."""
    made = list(corpus.passages(start, end))
    vectors = embedder.embed([passage.content for passage, _ in made])
    corrections = Corrections([])
    facts: dict[str, str] = {}
    for passage, extraction in made:
        facts.update(facts_of(corrections.stated(passage, extraction)))
    names = {entity_id(name): normalise_name(name) for name in corpus.new_names(start, end)}
    return Shard(
        [Entry(passage, extraction, 1, vectors[row]) for row, (passage, extraction) in enumerate(made)],
        _embedded(names, embedder),
        _embedded(facts, embedder),
    )


def _embedded(texts: dict[str, str], embedder: NameEmbedder) -> NewVectors:
    """Return texts with their vectors in the order of their ids, in which an index takes them fastest."""
    ordered = dict(sorted(texts.items()))
    return NewVectors(ordered, embedder.embed([*ordered.values()]))
