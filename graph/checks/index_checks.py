"""Checks of the derived files against the record: the snapshot with its word index, and the vectors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from graph.checks.findings import Finding, judged, lost, repairable, sound
from graph.construction.bm25 import SparseIndex
from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.errors import MaraError, WorkspaceDamaged
from graph.publish.generation_vectors import GenerationVectors, is_on_server, open_vectors
from graph.publish.vector_store import COLLECTIONS
from graph.storage.record import RecordReader
from graph.storage.workspace import Workspace

SEARCH = "search index"

_WEIGHT_TOLERANCE = 1e-6
_VECTOR_TOLERANCE = 2.5e-4
"""Half precision, which many facts are mapped in, is half of that from what it stands for."""

_PAGE = 5_000
_SEARCHES = 20


def open_snapshot(folder: Path) -> tuple[Finding, KnowledgeGraph | None]:
    """Read a snapshot and its word index, all of their numbers and texts."""
    try:
        graph = load(folder)
        named = chain(graph.entity_names, graph.entity_labels, graph.aliases)
        deque(chain(named, graph.passages, graph.facts, graph.facts.rows), maxlen=0)
        words = SparseIndex.load(folder / "bm25", len(graph.passages))
    except Exception as fault:
        # Whatever a damaged file makes its reader raise.
        return repairable("snapshot", f"The snapshot cannot be read ({fault})", [folder.name]), None
    message = (
        f"{len(graph.passages)} passages, {graph.n_entities} entities, {len(graph.edges)} edges and"
        f" {len(words.numbers)} words can be read"
    )
    return sound("snapshot", message), graph


def compare_with_record(folder: Path, record: RecordReader) -> Finding:
    """Compare the files of a generation with those that the record gives now."""
    with TemporaryDirectory(prefix="mara-doctor-") as scratch:
        fresh = Path(scratch)
        derive_graph(record, fresh)
        differing = differing_files(folder, fresh)
    problem = f"{len(differing)} files of the generation are not what the record gives"
    return judged("snapshot and record", differing, problem, "The snapshot is what the record gives, edge for edge")


def differing_files(folder: Path, fresh: Path) -> list[str]:
    """Return the names of the files of a fresh folder that another one does not have alike."""
    names = [path.relative_to(fresh) for path in sorted(fresh.rglob("*")) if path.is_file()]
    return [str(name) for name in names if not _alike(folder / name, fresh / name)]


def _alike(stored: Path, fresh: Path) -> bool:
    """Tell whether two files say the same, but for what rounding changes."""
    if not stored.exists():
        return False
    if fresh.suffix == ".json":
        return bool(json.loads(stored.read_bytes()) == json.loads(fresh.read_bytes()))
    if fresh.suffix != ".npy":
        return stored.read_bytes() == fresh.read_bytes()
    one, other = np.load(stored), np.load(fresh)
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol=_WEIGHT_TOLERANCE, atol=_WEIGHT_TOLERANCE)


def check_vectors(
    workspace: Workspace, graph: KnowledgeGraph, record: RecordReader, *, same: bool
) -> Iterator[Finding]:
    """Look at the vectors of a generation: at a server's, or at files, which another process reads first.

    Args:
        workspace: whose generation it is.
        graph: the generation's snapshot.
        record: the workspace's.
        same: whether the snapshot is what the record gives, and its facts' vectors can be compared.
    """
    on_server = is_on_server(workspace, graph.generation)
    if reason := "" if on_server else why_unreadable(workspace.root, graph.generation):
        yield repairable(SEARCH, f"The search index cannot be read ({reason})")
        return
    try:
        with closing(open_vectors(workspace, record.workspace_id, graph, untouched=True)) as vectors:
            facts, passages = graph.facts.ids, graph.passage_vectors
            yield _compare_vectors(vectors, "passages", len(passages), lambda page: passages[page])
            if same:
                yield _compare_vectors(vectors, "facts", len(facts), lambda page: record.fact_vectors([*facts[page]]))
    except WorkspaceDamaged as fault:
        yield repairable(SEARCH, fault.message)
    except MaraError as fault:
        yield lost(SEARCH, fault.message, fault.hint)


def _compare_vectors(
    vectors: GenerationVectors, name: str, count: int, read: Callable[[slice], NDArray[np.float32]]
) -> Finding:
    """Compare all vectors, some thousand at a time, and search for some; ``read`` returns what a slice should be."""
    check, odd, lost = f"search index: vectors of {name}", 0, 0
    searched = _searched(count)
    for page in _pages(count):
        right, stored = read(slice(page.start, page.stop)), vectors.vectors(name, page)
        odd += int((np.abs(stored - right).max(axis=1) > _VECTOR_TOLERANCE).sum())
        hits = (vectors.search(name, right[row - page.start], 1) for row in searched if row in page)
        lost += sum(not hit or hit[0][1] < 1 - _VECTOR_TOLERANCE for hit in hits)
    if odd:
        return repairable(check, f"{odd} vectors of {name} are not those of the record")
    if lost:
        return repairable(check, f"A search among the {name} does not find what is there")
    return sound(check, f"All {count} vectors of {name} are those of the record, and are found")


def _pages(count: int) -> Iterator[range]:
    return (range(start, min(start + _PAGE, count)) for start in range(0, count, _PAGE))


def _searched(count: int) -> range:
    return range(0, count, max(1, count // _SEARCHES))


def why_unreadable(root: Path, generation: int) -> str:
    """Return how a process ended that read a generation's vectors; empty where it came to its end."""
    command = [sys.executable, "-m", __name__, str(root.absolute()), str(generation)]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    if not ended.returncode:
        return ""
    said = ended.stderr.strip().splitlines()
    return said[-1] if said and ended.returncode > 0 else f"it ends the process that reads it, {ended.returncode}"


def read_everything(root: Path, generation: int) -> dict[str, int]:
    """Read every vector, and go through all links between them; nothing is written.

    Returns:
        How many vectors of each collection one search came by.

    Raises:
        WorkspaceDamaged: something cannot be read.
    """
    workspace = Workspace(root)
    reached: dict[str, int] = {}
    with closing(open_vectors(workspace, "", load(workspace.index_folder(generation)), untouched=True)) as vectors:
        for name in COLLECTIONS:
            count = vectors.count(name)
            for page in _pages(count):
                vectors.vectors(name, page)
            asked = vectors.vectors(name, _searched(count))
            hits = [vectors.search(name, vector, 1) for vector in asked]
            reached[name] = len(vectors.search(name, asked[0], count)) if hits else 0
    return reached


if __name__ == "__main__":
    read_everything(Path(sys.argv[1]), int(sys.argv[2]))
