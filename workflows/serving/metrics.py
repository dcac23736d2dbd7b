"""The metrics of a server for Prometheus: questions, their time and that of each node, fallbacks, tokens, refusals.

No label holds what users wrote. With several workers each writes into files of a folder that they share, and any of
them tells of all.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from graph.environment import environment, set_variables
from workflows.results import TOTAL

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder that workers share; `prometheus_client` reads it as it is imported."""

CONTENT_TYPE = CONTENT_TYPE_LATEST

_QUESTION_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 300)
_NODE_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60)


class Metrics:
    """The figures of a worker. Safe across threads."""

    def __init__(self) -> None:
        own = self._own = CollectorRegistry()
        self._questions = Counter(
            "mara_questions", "Questions that ended.", ("workflow", "mode", "outcome"), registry=own
        )
        self._seconds = Histogram(
            "mara_question_seconds", "Seconds of a question's run.", ("workflow",), buckets=_QUESTION_S, registry=own
        )
        self._nodes = Histogram(
            "mara_node_seconds", "Seconds of a question in a node.", ("node",), buckets=_NODE_S, registry=own
        )
        self._notes = Counter(
            "mara_notes", "Entries of results' errors: whatever was retried, dropped or defaulted.",
            ("node", "kind"), registry=own,
        )  # fmt: skip
        self._tokens = Counter("mara_tokens", "Tokens of chat models.", ("direction",), registry=own)
        self._calls = Counter("mara_model_calls", "Calls of chat models.", registry=own)
        self._refused = Counter("mara_refused", "Questions refused with 429.", registry=own)
        self._failed = Counter("mara_failed", "Questions that ended with an error.", ("kind",), registry=own)
        self._at_work = Gauge("mara_at_work", "Questions at work.", multiprocess_mode="livesum", registry=own)
        self._waiting = Gauge(
            "mara_waiting", "Questions that wait for their turn.", multiprocess_mode="livesum", registry=own
        )
        self._workers = Gauge("mara_workers", "Workers that answer.", multiprocess_mode="livesum", registry=own)

    def start(self) -> None:
        """Count this worker among those that answer."""
        self._workers.set(1)

    def answered(self, result: Mapping[str, Any]) -> None:
        """Count a result."""
        workflow = result.get("workflow") or "retrieval"
        outcome = result.get("answer_kind") or ("passages" if result["passages"] else "nothing")
        self._questions.labels(workflow, result["mode"], outcome).inc()
        for node, ms in result["timings_ms"].items():
            histogram = self._seconds.labels(workflow) if node == TOTAL else self._nodes.labels(node)
            histogram.observe(ms / 1000)
        for note in result["errors"]:
            self._notes.labels(note["node"], note["kind"]).inc()
        usage = result["usage"]
        if usage["calls"]:
            self._calls.inc(usage["calls"])
            self._tokens.labels("in").inc(usage["prompt_tokens"])
            self._tokens.labels("out").inc(usage["completion_tokens"])

    def failed(self, fault: BaseException) -> None:
        """Count a question that ended with an error."""
        self._failed.labels(type(fault).__name__).inc()

    def refused(self) -> None:
        """Count a question that was refused."""
        self._refused.inc()

    def load(self, at_work: int, waiting: int) -> None:
        """Note how many questions are at work, and how many wait."""
        self._at_work.set(at_work)
        self._waiting.set(waiting)

    def text(self) -> bytes:
        """Return all figures in Prometheus' format: of every worker that shares this one's folder."""
        registry = self._own
        if environment().value(FOLDER_VARIABLE):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Let the processes that are started within the block count together; yields the folder of their files."""
    folder = Path(tempfile.mkdtemp(prefix="mara-metrics-"))
    before = environment().variables.get(FOLDER_VARIABLE)
    set_variables({FOLDER_VARIABLE: str(folder)})
    try:
        yield folder
    finally:
        set_variables({FOLDER_VARIABLE: before})
        shutil.rmtree(folder, ignore_errors=True)
