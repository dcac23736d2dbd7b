"""Small workspaces and graphs for tests, made without any model."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from graph.construction.bm25 import SparseIndex, terms, write_index
from graph.construction.edges import KIND_INDEX, EdgeKind, Edges, sort_edges
from graph.construction.knowledge_graph import KnowledgeGraph, StoredPassages, table_of_passages
from graph.moments import first_moment
from graph.publish.chroma_store import ChromaSet
from graph.publish.derive import publish
from graph.publish.vector_store import COLLECTIONS
from graph.retrieve.open_index import Index
from graph.schema import Extraction, Passage, RelationType, Triple, entity_id
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from graph.storage.writer import Writer
from graph.text import NameMatcher
from tests.snapshots import facts_of

DIMENSION = 64
_FLIPS = 3

TripleParts = tuple[str, str, str] | tuple[str, str, str, RelationType] | tuple[str, str, str, RelationType, float]


class HashEmbedder:
    """Unit vectors that depend on the text alone: texts that begin with the same word have a cosine over 0.8.

    All elements are +-1/8, so that every dot product is exact, in whatever order it is summed.

    Attributes:
        asked: the texts embedded so far.
    """

    dimension = DIMENSION

    def __init__(self, model_id: str = "hash") -> None:
        self.model_id = model_id
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.extend(texts)
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(len(texts), DIMENSION)

    def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.embed([question])[0]
        return vector

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        return [1 + len(text) // 1000 for text in texts]

    def _vector(self, text: str) -> NDArray[np.float64]:
        family = hashlib.blake2b((text.casefold().split() or [""])[0].encode(), key=self.model_id.encode()).digest()
        own = hashlib.blake2b(text.encode(), key=self.model_id.encode()).digest()
        bits = np.unpackbits(np.frombuffer(family[: DIMENSION // 8], dtype=np.uint8))
        for place in own[:_FLIPS]:
            bits[place % DIMENSION] ^= 1
        return np.where(bits, 0.125, -0.125)


class Silent(HashEmbedder):
    """Embeds questions alone: what is derived again is derived from the record's vectors."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import pytest

        pytest.fail(f"asked to embed {texts}")

    def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = HashEmbedder().embed([question])[0]
        return vector


def passage_of(key: str, title: str, text: str, **metadata: str | int) -> Passage:
    """Return a passage."""
    return Passage(key, title, text, f"{key}.txt", metadata)


def extraction_of(triples: Sequence[TripleParts] = (), entities: Sequence[str] = ()) -> Extraction:
    """Return an extraction of tuples (subject, predicate, object[, relation[, confidence]])."""
    return Extraction(tuple(entities), tuple(Triple(*parts) for parts in triples), "test")


def write_passages(
    record: Record,
    passages: Sequence[Passage],
    triples: Mapping[str, Sequence[TripleParts]],
    embedder: HashEmbedder,
    removed: Sequence[str] = (),
) -> None:
    """Commit passages with their triples, by passage id, as one batch."""
    batch = [(passage, extraction_of(triples.get(passage.id, ()))) for passage in passages]
    Writer(record, embedder).write(batch, removed)


def publish_workspace(
    root: Path,
    passages: Sequence[Passage],
    triples: Mapping[str, Sequence[TripleParts]] | None = None,
    embedder: HashEmbedder | None = None,
    removed: Sequence[str] = (),
    date: str | None = None,
) -> Workspace:
    """Write passages into the workspace at ``root``, made where there is none, and publish the generation.

    From a date on, passages stand from it, and those that are replaced are kept as versions.
    """
    workspace = Workspace(root)
    workspace.create()
    with workspace.writing(), workspace.open_record() as record:
        if date is not None:
            with record.transaction():
                record.versions.begin(first_moment(date))
            record.stand_from(first_moment(date))
        write_passages(record, passages, triples or {}, embedder or HashEmbedder(), removed)
        publish(workspace, record)
    return workspace


def write_dated(
    root: Path,
    date: str,
    passages: Sequence[Passage],
    triples: Mapping[str, Sequence[TripleParts]] | None = None,
    removed: Sequence[str] = (),
) -> Workspace:
    """Write passages that stand from a date, and publish the generation."""
    return publish_workspace(root, passages, triples, removed=removed, date=date)


def names_in(record: Record) -> tuple[list[str], list[str], NDArray[np.float32]]:
    """Return ids, normal forms and vectors of all names of a record, by id."""
    rows = list(record._rows("SELECT id, name FROM names ORDER BY id"))
    ids = [key for key, _ in rows]
    return ids, [name for _, name in rows], record.name_vectors(ids)


def facts_in(record: Record) -> tuple[list[str], list[str], NDArray[np.float32]]:
    """Return ids, texts and vectors of all facts of a record, by id."""
    rows = list(record._rows("SELECT id, text FROM facts ORDER BY id"))
    ids = [key for key, _ in rows]
    return ids, [text for _, text in rows], record.fact_vectors(ids)


def write_bm25(contents: Sequence[str], folder: Path) -> None:
    """Write the BM25 index of some contents into a folder, which is made."""
    vocabulary: dict[str, int] = {}
    numbered = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms(content)] for content in contents]
    held = Counter((term, passage) for passage, found in enumerate(numbered) for term in found)
    postings = np.array([(term, passage, held[term, passage]) for term, passage in sorted(held)], dtype=np.int64)
    columns = postings.reshape(-1, 3).T
    frequency = np.bincount(columns[0], minlength=len(vocabulary))
    lengths = np.array([*map(len, numbered)], dtype=np.int64)
    write_index(folder, vocabulary, frequency, lengths, [(columns[0], columns[1], columns[2])])


def bm25_of(contents: Sequence[str]) -> SparseIndex:
    """Return the BM25 index of some contents."""
    with TemporaryDirectory() as folder:
        write_bm25(contents, Path(folder) / "bm25")
        return SparseIndex.load(Path(folder) / "bm25", len(contents))


def stored(passages: Iterable[Passage]) -> StoredPassages:
    """Return passages as a snapshot holds them."""
    return StoredPassages(table_of_passages(passages))


def typed_graph(n_entities: int, n_passages: int, edges: Sequence[tuple[int, int, EdgeKind, float]]) -> KnowledgeGraph:
    """Return a graph of bare nodes with the given edges (source, target, kind, weight)."""
    columns = list(zip(*edges, strict=True)) or [()] * 4
    names = tuple(sorted((f"entity {i}" for i in range(n_entities)), key=entity_id))
    return KnowledgeGraph(
        generation=1,
        embedding_model="none",
        entity_names=names,
        entity_labels=tuple(name.capitalize() for name in names),
        triple_passages=np.ones(n_entities, dtype=np.int32),
        name_passages=np.ones(n_entities, dtype=np.int32),
        name_shares=np.ones(n_entities, dtype=np.float32),
        passages=stored(passage_of(f"p{i}", "", f"text {i}") for i in range(n_passages)),
        passage_vectors=np.zeros((n_passages, DIMENSION), dtype=np.float32),
        facts=facts_of({}),
        aliases=(),
        names=NameMatcher.of((name, index) for index, name in enumerate(names)),
        edges=sort_edges(
            Edges(
                source=np.array(columns[0], dtype=np.int32),
                target=np.array(columns[1], dtype=np.int32),
                kind=np.array([KIND_INDEX[kind] for kind in columns[2]], dtype=np.uint8),
                weight=np.array(columns[3], dtype=np.float32),
                count=np.ones(len(edges), dtype=np.float32),
                offset=np.full(len(edges), -1, dtype=np.int32),
            )
        ),
    )


class Child:
    """Another Python process, which says lines with ``print`` and waits for them with ``input``."""

    def __init__(self, program: str, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self) -> str:
        """Return the process's next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the other process ended ({self.process.wait()})"
        return line.strip()

    def tell(self, line: str = "") -> None:
        """Answer the process's next ``input``."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End the process without giving it a chance to tidy up."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *raised: object) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


HOLD_LOCK = """
import sys
from pathlib import Path
from graph.storage.workspace import Workspace
with Workspace(Path(sys.argv[1])).writing():
    print("locked")
    input()
print("done")
input()
"""
"""A program for a `Child` that holds the writer's lock of a workspace until it is told to go on."""


def drop_vectors(index: Index) -> None:
    """Delete the collections in Chroma that an index without layers searches."""
    own = chroma_of(index)
    for name in COLLECTIONS:
        own._client.delete_collection(own._name_of(name))


def chroma_of(index: Index) -> ChromaSet:
    """Return the one set in Chroma that an index without layers searches."""
    own = index._vectors._own
    assert index._vectors._base is None
    assert isinstance(own, ChromaSet)
    return own
