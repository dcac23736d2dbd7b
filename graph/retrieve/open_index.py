"""An open workspace: the graph of one generation and its search indexes, ready to answer questions."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.bm25 import SparseIndex
from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph, load
from graph.embedding.embeddings import (
    QUESTION_TO_FACT,
    QUESTION_TO_PASSAGE,
    Embedder,
    TextCache,
    check_dimension,
    check_embedder,
)
from graph.errors import BadInput, MaraError, OutOfResources, WorkspaceDamaged, WorkspaceLocked, shortage_behind
from graph.metadata_filter import canonical, read_conditions
from graph.publish.derive import is_published, publish
from graph.publish.generation_vectors import GenerationVectors, open_vectors
from graph.publish.vector_store import Hits
from graph.retrieve.selection import Selection
from graph.storage.lock import GenerationHold
from graph.storage.read_only import may_write
from graph.storage.record import Record
from graph.storage.workspace import Workspace

_OVERFETCH = 2
_MOST_OVERFETCHED = 1_000
_COPIED_SHARE = 4
_SELECTIONS_KEPT = 8
_SCORES_KEPT = 4
_QUESTIONS_KEPT = 1024
_OPEN_ATTEMPTS = 5
_LOG = logging.getLogger(__name__)


class OpenFiles:
    """The open parts of an index: its search index, and its claim on the generation.

    It knows nothing of the index, so that it can be closed once nothing refers to that any more.

    Attributes:
        folder: of the generation.
    """

    def __init__(self, folder: Path, vectors: GenerationVectors, hold: GenerationHold) -> None:
        self.folder = folder
        self._vectors = vectors
        self._hold = hold
        self._closing = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Let go of the files; once they are closed, it does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._vectors.close()
        self._hold.release()


class Index:
    """One generation of a workspace, open for reading; safe across threads.

    Attributes:
        graph: the snapshot.
        workspace_id: whose generation it is.
        embedder: the model that encodes questions.
        complete: whether the indexing run that led to it ended, rather than being interrupted.
        files: what `close` closes.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        vectors: GenerationVectors,
        sparse: SparseIndex,
        embedder: Embedder,
        files: OpenFiles,
        *,
        workspace_id: str,
        complete: bool = True,
    ) -> None:
        self.graph = graph
        self.workspace_id = workspace_id
        self.complete = complete
        self.embedder = embedder
        self._vectors = vectors
        self._sparse = sparse
        self.files = files
        self._texts = TextCache(embedder.embed)
        # Of no method: an index that refers to itself would keep its memory until garbage is looked for.
        embedded = partial(_question_vector, embedder, graph.passage_vectors.shape[1])
        self._vector = lru_cache(maxsize=_QUESTIONS_KEPT)(embedded)
        self._scores = lru_cache(maxsize=_SCORES_KEPT)(partial(_score_passages, graph.passage_vectors, self._vector))
        self._selections: OrderedDict[tuple[str, frozenset[str] | None], Selection] = OrderedDict()
        self._selecting = threading.Lock()

    @property
    def store_name(self) -> str:
        """Where the vectors lie: ``embedded`` in Chroma, ``mapped``, or a server's address."""
        return self._vectors.where

    def encode(self, question: str) -> None:
        """Compute the question's two vectors, so that later look-ups find them in the cache.

        Raises EmbeddingMismatch when they are of another length than the workspace's vectors.
        """
        self._vector(question, QUESTION_TO_FACT)
        self._vector(question, QUESTION_TO_PASSAGE)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, shape (n, dimension); recent ones are kept."""
        return self._texts.embed(texts)

    def forget_vectors(self) -> None:
        """Empty the caches of questions, texts and scores, so that what is asked next is timed anew."""
        self._vector.cache_clear()
        self._texts.forget()
        self._scores.cache_clear()

    def select(self, where: Mapping[str, Any], among: frozenset[str] | None = None) -> Selection | None:
        """Return the passages that meet the conditions, with what they support; None where there is no condition.

        With ``among``, only passages of these ids.

        A generation never changes: what was selected last is kept.

        Raises:
            BadInput: a condition cannot be used.
        """
        if not where and among is None:
            return None
        conditions = read_conditions(where)
        asked = canonical(conditions), among
        with self._selecting:
            if asked not in self._selections:
                rows = np.arange(len(self.graph.passages)) if among is None else self.graph.passages_of(among)
                if conditions:
                    rows = rows[self._vectors.select(conditions)[rows]]
                self._selections[asked] = Selection.of(self.graph, rows)
            self._selections.move_to_end(asked)
            if len(self._selections) > _SELECTIONS_KEPT:
                self._selections.popitem(last=False)
            return self._selections[asked]

    def search_facts(self, question: str, k: int, selection: Selection | None = None) -> list[tuple[GraphFact, float]]:
        """Return the ``k`` facts nearest to the question with their cosines clipped to [0, 1], nearest first.

        With a selection, of the facts that it supports, as it shows them.
        """
        hits = self._search_facts(self._vector(question, QUESTION_TO_FACT), k, selection)
        fact_of = self.graph.facts.get if selection is None else selection.fact
        return [(fact, min(1.0, max(0.0, cosine))) for key, cosine in hits if (fact := fact_of(key))]

    def least_fact_score(self, question: str, selection: Selection | None = None) -> float:
        """Return the cosine of the fact farthest from the question: the nearest one to the opposite vector."""
        return -self._search_facts(-self._vector(question, QUESTION_TO_FACT), 1, selection)[0][1]

    def search_passages(self, question: str, k: int, selection: Selection | None = None) -> list[tuple[int, float]]:
        """Return (passage, cosine) of the ``k`` passages nearest to the question, nearest first; of those selected."""
        within = None if selection is None else selection.rows
        return self._search("passages", self._vector(question, QUESTION_TO_PASSAGE), k, within)

    def search_words(self, question: str, k: int, shown: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
        """Return (passage, BM25 score) of the best ``k`` that hold any word of the question, ties by index.

        With ``shown``, one element a passage, of those alone.
        """
        return self._sparse.best(question, k, shown)

    def held_words(self, question: str, rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the weight of each word of a question that any passage holds, and whether each in ``rows`` does.

        Shapes (n_words,) and (n_words, n_rows).
        """
        return self._sparse.held_words(question, rows)

    def score_passages(self, question: str, rows: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return the cosine of every passage, or of those in ``rows``, exactly, in their order.

        Several nodes of a run ask for all: those of the last questions are kept.
        """
        vectors = self.graph.passage_vectors
        if rows is not None and len(rows) * _COPIED_SHARE < len(vectors):
            return _cosines(vectors[rows], self._vector(question, QUESTION_TO_PASSAGE))
        scores = self._scores(question)
        return scores if rows is None else scores[rows]

    def close(self) -> None:
        """Let go of the files."""
        self.files.close()

    def _search_facts(
        self, vector: NDArray[np.float32], k: int, selection: Selection | None
    ) -> list[tuple[str, float]]:
        within = None if selection is None else selection.facts.rows
        return [(self.graph.facts.ids.at(row), cosine) for row, cosine in self._search("facts", vector, k, within)]

    def _search(self, name: str, vector: NDArray[np.float32], k: int, within: NDArray[np.intp] | None) -> Hits:
        """Search among some rows: in the whole index while that finds enough of them, else among them.

        Measured, asking for more is faster until that is over a thousand.
        """
        total = len(self.graph.facts if name == "facts" else self.graph.passages)
        if within is None:
            return self._vectors.search(name, vector, min(k, total))
        k = min(k, len(within))
        if k < 1:
            return []
        wanted = _OVERFETCH * k * total // len(within)
        if wanted <= _MOST_OVERFETCHED:
            hits = self._vectors.search(name, vector, min(wanted, total))
            is_within = np.isin([row for row, _ in hits], within).tolist()
            mine = [hit for hit, is_mine in zip(hits, is_within, strict=True) if is_mine]
            if len(mine) >= k:
                return mine[:k]
        return self._vectors.search(name, vector, k, within)


def _question_vector(embedder: Embedder, dimension: int, question: str, instruction: str) -> NDArray[np.float32]:
    vector = embedder.embed_question(question, instruction)
    check_dimension(vector, dimension)
    vector.setflags(write=False)
    return vector


def _score_passages(
    passages: NDArray[np.float32], vector_of: Callable[[str, str], NDArray[np.float32]], question: str
) -> NDArray[np.float64]:
    scores = _cosines(passages, vector_of(question, QUESTION_TO_PASSAGE))
    scores.setflags(write=False)
    return scores


def _cosines(vectors: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the products of unit vectors, row by row: the threads of a matrix product cost more than they save."""
    return np.asarray(np.vecdot(vectors, vector), dtype=np.float64)


def open_index(root: Path, embedder: Embedder) -> Index:
    """Open the newest generation of a workspace; one that is missing, behind or damaged is first derived again.

    Raises:
        WorkspaceMissing: there is no workspace, or it is empty.
        EmbeddingMismatch: another model wrote it.
        WorkspaceDamaged: its record cannot be read.
        WorkspaceLocked: it has to be derived again, and another process is writing.
        OutOfResources: the machine gives no more memory or open files.
    """
    workspace = Workspace(root)
    damaged: int | None = None
    for _ in range(_OPEN_ATTEMPTS):
        with workspace.open_record() as record:
            workspace.check_passages(record)
            check_embedder(embedder, record.embedding_model)
            generation, locked = _usable_generation(workspace, record, damaged)
            is_behind = locked is None and generation != record.generation
            workspace_id, complete = record.workspace_id, record.complete and not is_behind
        try:
            return _open_generation(workspace, generation, workspace_id, embedder, complete=complete)
        except Exception as error:
            # Whatever a damaged file makes its reader raise; a server that is down is no damage.
            if isinstance(error, MaraError) and not isinstance(error, WorkspaceDamaged):
                raise
            if shortage := shortage_behind(error):
                raise shortage from error
            if not may_write(root) and workspace.current() == generation:
                raise WorkspaceDamaged(
                    f"The index of {root} cannot be opened ({error})", "Publish it again where it may be written"
                ) from error
            if locked is not None and generation == damaged:
                raise locked from error
            if workspace.current() == generation:
                _LOG.warning("The index of %s cannot be opened: %s", root, error)
            damaged, fault = generation, error
    raise WorkspaceDamaged(f"The index of {root} cannot be opened ({fault})", "Delete its index folder") from fault


def _usable_generation(workspace: Workspace, record: Record, damaged: int | None) -> tuple[int, WorkspaceLocked | None]:
    """Return the generation to open; where it is missing, behind or ``damaged``, it is first derived again.

    That cannot be done while a writer is at work, which is returned, too: what it last published may still answer. So
    may what was last published in a workspace that may not be written, or where the disk, the memory or a document of
    what was committed since hinders it.
    """
    current = workspace.current()
    if current not in (None, damaged) and (not may_write(workspace.root) or is_published(workspace, record)):
        return current, None
    try:
        with workspace.writing() as lock, workspace.open_record(lock) as writer:
            if workspace.current() == damaged or not is_published(workspace, writer):
                _LOG.warning("The index of %s is derived again from its record", workspace.root)
                return publish(workspace, writer), None
            return writer.generation, None
    except WorkspaceLocked as locked:
        if current is None:
            raise
        return current, locked
    except (OSError, MemoryError, OutOfResources, BadInput) as fault:
        if current in (None, damaged):
            raise shortage_behind(fault) or fault from None
        return current, None


def _open_generation(
    workspace: Workspace, generation: int, workspace_id: str, embedder: Embedder, *, complete: bool
) -> Index:
    hold = workspace.hold(generation)
    vectors: GenerationVectors | None = None
    try:
        folder = workspace.index_folder(generation)
        graph = load(folder)
        if graph.embedding_model != embedder.model_id:
            raise WorkspaceDamaged(f"The snapshot was made with {graph.embedding_model!r}, not {embedder.model_id!r}")
        sparse = SparseIndex.load(folder / "bm25", len(graph.passages))
        vectors = open_vectors(workspace, workspace_id, graph)
        files = OpenFiles(folder, vectors, hold)
        return Index(graph, vectors, sparse, embedder, files, workspace_id=workspace_id, complete=complete)
    except BaseException:
        if vectors is not None:
            vectors.close()
        hold.release()
        raise
