"""An open workspace: the graph of one generation and its search indexes, ready to answer questions."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
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
    QuestionCache,
    TextCache,
    check_dimension,
    check_embedder,
)
from graph.errors import BadInput, MaraError, OutOfResources, WorkspaceDamaged, WorkspaceLocked, shortage_behind
from graph.metadata_filter import Condition, canonical, read_conditions, to_chroma
from graph.publish.derive import is_published, publish
from graph.publish.search_indexes import SearchIndex, open_store
from graph.publish.vectors import Stamp, passage_metadata
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
_OPEN_ATTEMPTS = 5


class OpenFiles:
    """What an index has open: its search index, and its claim on the generation.

    It knows nothing of the index, so that it can be closed once nobody refers to that any more.

    Attributes:
        folder: of the generation.
    """

    def __init__(self, folder: Path, store: SearchIndex, hold: GenerationHold) -> None:
        self.folder = folder
        self._store = store
        self._hold = hold
        self._closing = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Let go of the files; once they are closed, it does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._store.close()
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
        store: SearchIndex,
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
        self._store = store
        self._sparse = sparse
        self.files = files
        self._questions = QuestionCache(embedder)
        self._texts = TextCache(embedder.embed)
        # Of no method: an index that refers to itself would keep its memory until garbage is looked for.
        scored = partial(_score_passages, graph.passage_vectors, self._questions)
        self._scores = lru_cache(maxsize=_SCORES_KEPT)(scored)
        self._nearest: OrderedDict[tuple[str, int, Selection | None], tuple[tuple[int, float], ...]] = OrderedDict()
        self._selections: OrderedDict[tuple[str, frozenset[str] | None], Selection] = OrderedDict()
        self._selecting = threading.Lock()

    @property
    def store_name(self) -> str:
        """Which Chroma serves: ``embedded``, or a server's address."""
        return self._store.where

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
        self._questions.forget()
        self._texts.forget()
        self._scores.cache_clear()
        self._nearest.clear()

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
                found = among or () if not conditions else self._matching(conditions)
                kept = found if among is None else (key for key in found if key in among)
                self._selections[asked] = Selection.of(self.graph, kept)
            self._selections.move_to_end(asked)
            if len(self._selections) > _SELECTIONS_KEPT:
                self._selections.popitem(last=False)
            return self._selections[asked]

    def search_facts(self, question: str, k: int, selection: Selection | None = None) -> list[tuple[GraphFact, float]]:
        """Return the ``k`` facts nearest to the question with their cosines clipped to [0, 1], nearest first.

        With a selection, of the facts that it supports, as it shows them.
        """
        found = self._search_facts(self._vector(question, QUESTION_TO_FACT), k, selection)
        fact_of = self.graph.facts.get if selection is None else selection.fact
        return [(fact, min(1.0, max(0.0, cosine))) for key, cosine in found if (fact := fact_of(key))]

    def least_fact_score(self, question: str, selection: Selection | None = None) -> float:
        """Return the cosine of the fact farthest from the question: the nearest one to the opposite vector."""
        return -self._search_facts(-self._vector(question, QUESTION_TO_FACT), 1, selection)[0][1]

    def search_passages(self, question: str, k: int, selection: Selection | None = None) -> list[tuple[int, float]]:
        """Return (passage, cosine) of the ``k`` passages nearest to the question, nearest first; of those selected.

        Several nodes of a run ask for the same: what the last questions found is kept.
        """
        asked = question, k, selection
        if (found := self._nearest.get(asked)) is None:
            found = self._search_passages(question, k, selection)
            with self._selecting:
                self._nearest[asked] = found
                if len(self._nearest) > _SCORES_KEPT:
                    self._nearest.popitem(last=False)
        return list(found)

    def search_words(self, question: str, k: int, shown: NDArray[np.bool_] | None = None) -> list[tuple[int, float]]:
        """Return (passage, BM25 score) of the best ``k`` that hold any word of the question, ties by index.

        With ``shown``, one element a passage, of those alone.
        """
        return self._sparse.best(question, k, shown)

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

    def _vector(self, question: str, instruction: str) -> NDArray[np.float32]:
        return _question_vector(self.graph.passage_vectors, self._questions, question, instruction)

    def _search_passages(self, question: str, k: int, selection: Selection | None) -> tuple[tuple[int, float], ...]:
        vector = self._vector(question, QUESTION_TO_PASSAGE)
        if selection is None:
            found = self._search("passages", vector, k, self.graph.passage_index)
        else:
            found = self._search_selected(vector, k, selection)
        hits = [(self.graph.passage_index[key], cosine) for key, cosine in found]
        return tuple(self._rescored(hits, vector) if self._store.shared else hits)

    def _search_selected(self, vector: NDArray[np.float32], k: int, selection: Selection) -> list[tuple[str, float]]:
        """Search among a selection's passages: in the whole index while that finds enough of them, else among them."""
        place, shown = self.graph.passage_index, selection.passages
        k = min(k, len(selection.rows))
        wanted = _OVERFETCH * k * len(shown) // max(1, len(selection.rows))
        if 0 < wanted <= _MOST_OVERFETCHED:
            hits = self._store.search("passages", vector, min(wanted, len(shown)))
            mine = [hit for hit in hits if hit[0] in place and shown[place[hit[0]]]]
            if len(mine) >= k:
                return mine[:k]
        return self._store.search("passages", vector, k, within=selection.ids) if k else []

    def _rescored(self, hits: Sequence[tuple[int, float]], vector: NDArray[np.float32]) -> list[tuple[int, float]]:
        """Rank passages by this generation's vectors; a server may hold one as a newer generation has it."""
        rows = [passage for passage, _ in hits]
        cosines = _cosines(self.graph.passage_vectors[rows], vector)
        order = np.argsort(-cosines, kind="stable")
        return [(rows[i], float(cosines[i])) for i in order]

    def _matching(self, conditions: Sequence[Condition]) -> Iterator[str]:
        """Yield the ids that Chroma selects, less what a server holds otherwise than this generation does."""
        keys = {condition.key for condition in conditions}
        for key, metadata in self._store.select(to_chroma(conditions)).items():
            if self._store.shared and key in self.graph.passage_index:
                passage = self.graph.passages[self.graph.passage_index[key]]
                own = passage_metadata("", passage.source, passage.metadata)
                if any(own.get(name) != metadata.get(name) for name in keys):
                    continue
            yield key

    def _search_facts(
        self, vector: NDArray[np.float32], k: int, selection: Selection | None
    ) -> list[tuple[str, float]]:
        """Search among a selection's facts; measured, asking for more is faster until that is over a thousand."""
        if selection is None:
            return self._search("facts", vector, k, self.graph.facts)
        k = min(k, len(selection.facts))
        if k < 1:
            return []
        wanted = _OVERFETCH * k * len(self.graph.facts) // len(selection.facts)
        if wanted <= _MOST_OVERFETCHED:
            hits = self._store.search("facts", vector, min(wanted, len(self.graph.facts)))
            mine = [hit for hit in hits if hit[0] in selection.facts]
            if len(mine) >= k:
                return mine[:k]
        return self._store.search("facts", vector, k, within=selection.facts)

    def _search(
        self, name: str, vector: NDArray[np.float32], k: int, known: Mapping[str, object]
    ) -> list[tuple[str, float]]:
        """Search, dropping what a server holds of another generation; ask for more where that leaves too few."""
        k = min(k, len(known))
        wanted = k
        while True:
            hits = self._store.search(name, vector, wanted)
            mine = [(key, cosine) for key, cosine in hits if key in known]
            if len(mine) >= k or len(hits) < wanted:
                return mine[:k]
            wanted *= _OVERFETCH


def _question_vector(
    passages: NDArray[np.float32], questions: QuestionCache, question: str, instruction: str
) -> NDArray[np.float32]:
    vector = questions.vector(question, instruction)
    check_dimension(vector, passages.shape[1])
    return vector


def _score_passages(passages: NDArray[np.float32], questions: QuestionCache, question: str) -> NDArray[np.float64]:
    scores = _cosines(passages, _question_vector(passages, questions, question, QUESTION_TO_PASSAGE))
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
            # Whoever may not write a workspace cannot tell whether somebody elsewhere does.
            is_written = locked is not None or not may_write(root)
            workspace_id, complete = record.workspace_id, record.complete and not is_behind
        try:
            return _open_generation(
                workspace, generation, workspace_id, embedder, complete=complete, written=is_written
            )
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
        with workspace.writing() as lease, workspace.open_record(lease) as writer:
            if workspace.current() == damaged or not is_published(workspace, writer):
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
    workspace: Workspace, generation: int, workspace_id: str, embedder: Embedder, *, complete: bool, written: bool
) -> Index:
    hold = workspace.hold(generation)
    store: SearchIndex | None = None
    try:
        folder = workspace.index_folder(generation)
        graph = load(folder)
        if graph.embedding_model != embedder.model_id:
            raise WorkspaceDamaged(f"The snapshot was made with {graph.embedding_model!r}, not {embedder.model_id!r}")
        sparse = SparseIndex.load(folder / "bm25", len(graph.passages))
        store = open_store(workspace, workspace_id, generation)
        _check_store(store, graph, written=written)
        files = OpenFiles(folder, store, hold)
        return Index(graph, store, sparse, embedder, files, workspace_id=workspace_id, complete=complete)
    except BaseException:
        if store is not None:
            store.close()
        hold.release()
        raise


def _check_store(store: SearchIndex, graph: KnowledgeGraph, *, written: bool) -> None:
    """Raise WorkspaceDamaged when the search index cannot serve the graph.

    A server may hold other generations, too. While it is ``written``, it serves as long as nothing of this one is gone.
    """
    for name, expected in (("facts", len(graph.facts)), ("passages", len(graph.passages))):
        stamp = store.stamp(name)
        if stamp is None or not _serves(stamp, graph.commit_id, written=written):
            raise WorkspaceDamaged(f"The search index does not hold the {name} of this generation")
        held = store.count(name)
        short = held < expected if store.shared else held != expected
        if short or (expected and not store.search(name, np.asarray(graph.passage_vectors[0]), 1)):
            raise WorkspaceDamaged(f"The search index holds {held} {name} instead of {expected}")


def _serves(stamp: Stamp, commit: str, *, written: bool) -> bool:
    return stamp.is_at(commit) or (written and commit in stamp.holds)
