"""Adding one passage to a large workspace, step by step: `python -m benchmarks.adding`.

The corpus is made up: passages of invented words, with triples whose names follow Zipf's law. Its vectors are random
but for those of the added passages, which the embedded model makes, as it would for a user.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import describe_machine
from graph.embedding.bert import DIMENSION, MiniLMEmbedder, unit_rows
from graph.embedding.embeddings import configured_embedder
from graph.publish.derive import publish
from graph.retrieve.index_pool import IndexPool
from graph.schema import ENTITY_RELATIONS, Extraction, Passage, Triple
from graph.storage.workspace import Workspace
from graph.storage.writer import Writer
from workflows.indexing import index_sources

_SOUNDS = [
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "je",
    "ki",
    "lo",
    "mu",
    "na",
    "pe",
    "ri",
    "so",
    "tu",
    "va",
    "we",
    "zi",
]
_BATCH = 512
_WORDS = 20_000
_SHARED_NAMES = 6_000
_OWN_NAMES = 7
_TRIPLES = 8.4
_NEAR = 1 / 3


class RandomVectors(MiniLMEmbedder):
    """Stands for the embedded model while the corpus is made: random unit vectors, at once."""

    def __init__(self) -> None:
        super().__init__()
        self._random = np.random.default_rng(0)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return random unit vectors, shape (len(texts), 384); a third are near the one before, as synonyms are."""
        vectors = unit_rows(self._random.standard_normal((len(texts), DIMENSION), dtype=np.float32))
        for row in np.flatnonzero(self._random.random(len(texts)) < _NEAR).tolist():
            vectors[row] = vectors[row - 1] + 0.5 * vectors[row]
        return unit_rows(vectors)

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return 1 for each text."""
        return [1] * len(texts)


class Corpus:
    """Invented passages with triples; the same for the same seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = np.random.default_rng(seed)
        self._words = [self._word(2 + i % 3) for i in range(_WORDS)]
        self._shared = [self._name(i) for i in range(_SHARED_NAMES)]

    def passages(self, n: int, first: int = 0) -> Iterator[tuple[Passage, Extraction]]:
        """Yield so many passages with their triples."""
        for number in range(first, first + n):
            yield self._passage(number)

    def _passage(self, number: int) -> tuple[Passage, Extraction]:
        own = [self._name(_SHARED_NAMES + number * _OWN_NAMES + i) for i in range(_OWN_NAMES)]
        ends = [*own, *(self._shared[i] for i in self._zipf(_SHARED_NAMES, 6))]
        triples = []
        for _ in range(self._random.poisson(_TRIPLES)):
            subject, other = self._random.choice(len(ends), 2, replace=False)
            relation = ENTITY_RELATIONS[int(self._random.integers(len(ENTITY_RELATIONS)))]
            triples.append(Triple(ends[subject], self._words[int(self._random.integers(500))], ends[other], relation))
        filler = [self._words[i] for i in self._zipf(_WORDS, 60)]
        said = ". ".join(f"{t.subject} {t.predicate} {t.object}" for t in triples)
        passage = Passage(f"passage-{number:06d}", own[0], f"{said}. {' '.join(filler)}.", "made up")
        return passage, Extraction(tuple(ends), tuple(triples), "made up")

    def _zipf(self, n: int, size: int) -> list[int]:
        return [int(n**share) - 1 for share in self._random.random(size)]

    def _word(self, syllables: int) -> str:
        return "".join(_SOUNDS[int(i)] for i in self._random.integers(len(_SOUNDS), size=syllables))

    def _name(self, number: int) -> str:
        return f"{self._word(3).title()} {self._word(2).title()}{number}"


def build_workspace(root: Path, passages: int) -> None:
    """Fill a workspace with the first passages of the corpus and publish it."""
    corpus = Corpus()
    workspace = Workspace(root)
    workspace.create()
    with workspace.writing() as lock, workspace.open_record(lock) as record:
        writer = Writer(record, RandomVectors())
        batch = list(corpus.passages(passages))
        for start in range(0, passages, _BATCH):
            writer.write(batch[start : start + _BATCH])
        publish(workspace, record)


def add_one(workspace: Workspace, pool: IndexPool, added: tuple[Passage, Extraction]) -> dict[str, float]:
    """Add a passage as `mara index` does and open the new generation; return the seconds of each step."""
    passage, extraction = added
    row = {"id": passage.id, "title": passage.title, "text": passage.text}
    triples = [[t.subject, t.predicate, t.object, t.relation.value, t.confidence] for t in extraction.triples]
    corpus, facts = workspace.root.parent / "one.jsonl", workspace.root.parent / "one-triples.jsonl"
    corpus.write_text(json.dumps(row), encoding="utf-8")
    facts.write_text(json.dumps({"id": passage.id, "entities": extraction.entities, "triples": triples}))
    start = time.perf_counter()
    report = index_sources([corpus], workspace.root, facts)
    indexed = time.perf_counter()
    index = pool.get(workspace.root, configured_embedder())
    opened = time.perf_counter()
    assert report.added == 1
    assert passage.id in index.graph.passage_index
    return {"index": indexed - start, "open": opened - indexed}


def main() -> None:
    """Build the workspace, add passages one by one, and print what each step took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=12_000)
    parser.add_argument("--adds", type=int, default=6)
    arguments = parser.parse_args()
    corpus = Corpus()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        workspace = Workspace(Path(folder) / "w")
        # In a process of its own, whose memory does not count.
        builder = get_context("spawn").Process(target=build_workspace, args=(workspace.root, arguments.passages))
        builder.start()
        builder.join()
        built = time.perf_counter() - start
        pool = IndexPool()
        for _ in corpus.passages(arguments.passages):
            pass
        index = pool.get(workspace.root, configured_embedder())
        index.encode("The model is loaded before the clock starts.")
        rounds = [add_one(workspace, pool, added) for added in corpus.passages(arguments.adds, arguments.passages)]
        index = pool.get(workspace.root, configured_embedder())
        counts = (len(index.graph.passages), index.graph.n_entities, len(index.graph.facts), len(index.graph.edges))
        pool.close()
    machine = describe_machine()
    print(f"{machine.processor}, {machine.cores} cores")
    print("{} passages, {} names, {} facts, {} edges; built in {:.1f} s".format(*counts, built))
    totals = [sum(each.values()) for each in rounds]
    print(f"first in a process {totals[0]:6.2f} s")
    for name, times in {
        "index": [each["index"] for each in rounds[1:]],
        "open for reading": [each["open"] for each in rounds[1:]],
        "both": totals[1:],
    }.items():
        print(f"{name:18} {statistics.median(times):6.2f} s ({min(times):.2f} to {max(times):.2f})")
    print(f"peak memory {peak_memory():.2f} GiB")


def peak_memory() -> float:
    """Return the most memory that this process ever had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
