"""The stages that are measured: building and publishing, opening and asking, adding a document."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.growth.corpus import NamedCorpus, Question
from benchmarks.growth.embedder import NameEmbedder
from benchmarks.growth.measure import Figures, memory_of
from benchmarks.growth.record import bytes_under, shard_of
from graph.construction import build
from graph.construction.knowledge_graph import load
from graph.embedding import embeddings
from graph.embedding.embeddings import EMBEDDED_MODELS
from graph.environment import set_variables
from graph.publish import derive
from graph.publish.generation_vectors import write_vectors
from graph.storage.record_tables import Additions
from graph.storage.workspace import Workspace

ASKED = 200
_DEPTHS = (5, 20)


def publish_record(root: Path) -> Figures:
    """Build and publish the generation of a record; return the seconds of each stage and the sizes."""
    _use_embedder()
    clock = _Clock()
    workspace = Workspace(root)
    with clock.watching(), workspace.writing() as lock, workspace.open_record(lock) as record:
        derive.publish(workspace, record)
        folder = workspace.index_folder(record.generation)
    graph = load(folder)
    return {
        "stages": clock.seconds(),
        "bytes_of_record": (root / "record.sqlite").stat().st_size,
        "bytes_of_generation": bytes_under(folder),
        "bytes_kept_for_builds": bytes_under(workspace.build_cache),
        "files": {path.name: path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()},
        "names": graph.n_entities,
        "facts": len(graph.facts),
        "edges": len(graph.edges),
    }


def ask_questions(root: Path, passages: int) -> Figures:
    """Open a generation and ask questions through the retrieval workflow, twice; return times, recall and memory.

    The first time, pages of the files are read that no question needed before. The embedder's time is counted apart.
    """
    from workflows import retrieval
    from workflows.context import Context
    from workflows.context import Question as Asked
    from workflows.runtime.resources import open_workspace_index

    embedding = _use_embedder()
    warming, *asked = NamedCorpus(passages).questions(1 + ASKED)
    context = Context(workspace=str(root), model="offline", mode="mara", top_k=max(_DEPTHS))
    start = time.perf_counter()
    index = open_workspace_index(context)
    opened = time.perf_counter() - start
    figures: Figures = {"open_seconds": round(opened, 3), **_memory("opened")}
    # The first question of a process compiles the walk, or loads what was compiled.
    retrieval.graph.invoke(Asked(question=warming.text), context=context)
    for name in ("first", "again"):
        answers = [_ask(retrieval.graph, Asked(question=question.text), context) for question in asked]
        times = {what: [getattr(answer, what) for answer in answers] for what in ("workflow", "processor", "nodes")}
        by_node = _by_node([answer.state["timings_ms"] for answer in answers])
        figures[name] = {**{what: _percentiles(each) for what, each in times.items()}, "by_node": by_node}
        figures |= _memory(name)
    figures["recall"] = _recall([answer.state["passages"] for answer in answers], asked)
    figures["engines"] = sorted({str((answer.state.get("walk") or {}).get("engine")) for answer in answers})
    figures["embedder_ms"] = round(1000 * embedding.seconds / max(1, embedding.calls), 3)
    index.close()
    return figures


@dataclass(frozen=True, slots=True)
class _Answer:
    """The state that a question ended with, and its seconds less the embedder's: in all, of the processor, of nodes."""

    state: dict[str, Any]
    workflow: float
    processor: float
    nodes: float


def _ask(graph: Any, question: Any, context: Any) -> _Answer:
    embedded, start, processor = _TimedEmbedder.seconds, time.perf_counter(), time.process_time()
    state = graph.invoke(question, {"max_concurrency": 1}, context=context)
    taken, busy = time.perf_counter() - start, time.process_time() - processor
    embedded = _TimedEmbedder.seconds - embedded
    nodes = sum(state["timings_ms"].values()) / 1000
    return _Answer(state, taken - embedded, busy - embedded, nodes - embedded)


def add_document(root: Path) -> Figures:
    """Commit a passage of new names, publish, and open the new generation; return the seconds of each."""
    from graph.retrieve.open_index import open_index

    _use_embedder()
    clock = _Clock()
    workspace = Workspace(root)
    start = time.perf_counter()
    with clock.watching(), workspace.writing() as lock, workspace.open_record(lock) as record:
        number = record.count_passages()
        shard = shard_of(NamedCorpus(number + 1), NameEmbedder(), number, number + 1)
        record.commit(shard.entries, Additions(shard.names, shard.facts), NameEmbedder.model_id)
        committed = time.perf_counter()
        derive.publish(workspace, record)
        published = time.perf_counter()
    open_index(root, NameEmbedder()).close()
    opened = time.perf_counter()
    return {
        "commit_seconds": round(committed - start, 3),
        "publish_seconds": round(published - committed, 3),
        "open_seconds": round(opened - published, 3),
        "stages": clock.seconds(),
        "passages": number + 1,
    }


class _TimedEmbedder(NameEmbedder):
    """Counts the seconds that embedding takes."""

    seconds = 0.0
    calls = 0

    def embed(self, texts: Sequence[str]) -> Any:
        """Return one unit vector a text."""
        start = time.perf_counter()
        try:
            return super().embed(texts)
        finally:
            type(self).seconds += time.perf_counter() - start
            type(self).calls += 1


def _use_embedder() -> type[_TimedEmbedder]:
    EMBEDDED_MODELS[NameEmbedder.model_id] = _TimedEmbedder  # type: ignore[assignment]
    set_variables({"MARA_EMBEDDING_MODEL": NameEmbedder.model_id})
    embeddings.configured_embedder().embed(["Tables are made before the clock starts."])
    return _TimedEmbedder


class _Clock:
    """The seconds of each stage of a build."""

    def __init__(self) -> None:
        self._begun: list[tuple[str, float]] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take the time of stages within the block."""
        self.begin("before")
        with (
            _replaced(build, "build_generation", partial(build.build_generation, on_stage=self.begin)),
            _replaced(derive, "write_vectors", self._named("search index", write_vectors)),
        ):
            yield
        self.begin("")

    def begin(self, stage: str) -> None:
        """Take the time at which a stage begins, and the one before it ends."""
        self._begun.append((stage, time.perf_counter()))

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each stage."""
        spent: dict[str, float] = {}
        for (stage, start), (_, end) in zip(self._begun, self._begun[1:], strict=False):
            spent[stage] = round(spent.get(stage, 0.0) + end - start, 3)
        return spent

    def _named(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def named(*arguments: Any, **options: Any) -> Any:
            self.begin(stage)
            result = function(*arguments, **options)
            self.begin("after")
            return result

        return named


@contextmanager
def _replaced(owner: Any, name: str, other: object) -> Iterator[None]:
    """Let a function be another one within the block."""
    own = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, own)


def _memory(moment: str) -> Figures:
    own, files = memory_of(os.getpid())
    return {f"memory_{moment}_gib": {"anonymous": round(own / 2**20, 3), "mapped": round(files / 2**20, 3)}}


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    p50, p95, most = np.percentile(seconds, [50, 95, 100])
    return {"p50_ms": round(1000 * p50, 2), "p95_ms": round(1000 * p95, 2), "most_ms": round(1000 * most, 2)}


def _by_node(timings: Sequence[dict[str, float]]) -> dict[str, float]:
    nodes = {name for each in timings for name in each}
    return {name: round(float(np.median([each.get(name, 0.0) for each in timings])), 3) for name in sorted(nodes)}


def _recall(found: Sequence[Sequence[Any]], asked: Sequence[Question]) -> dict[str, float]:
    recall = {}
    for depth in _DEPTHS:
        ids = [{hit["id"] for hit in hits[:depth]} for hits in found]
        one, other = (
            np.array([getattr(question, hop) in some for question, some in zip(asked, ids, strict=True)])
            for hop in ("first", "second")
        )
        recall[f"one@{depth}"] = round(float((one | other).mean()), 3)
        recall[f"both@{depth}"] = round(float((one & other).mean()), 3)
    return recall
