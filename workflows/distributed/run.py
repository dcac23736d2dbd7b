"""A run whose passages workers of Ray extract and embed: shards are made by other processes, and read in order."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import gettempdir, mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.chat.local_model import is_local
from agents.chat.throttle import Cancelled
from agents.extractor import ChatExtractor, Extractor
from graph.embedding.embeddings import Embedder, configured_embedder
from graph.endpoints.address import censored
from graph.environment import environment
from graph.errors import BadInput, ClusterUnavailable
from graph.own_types import OwnTypes
from graph.schema import Extraction, Passage
from graph.sources.child import from_json, to_json
from graph.storage.workspace import REPLY_CACHE
from workflows.distributed.coordinator import Work, environment_of_workers, error_from_json
from workflows.distributed.shards import Shard, ShardFolder, ShardTask, Totals, check_arrow, plan_shards
from workflows.runtime.extraction import extraction_urls
from workflows.settings.indexing import IndexingContext
from workflows.states.indexing import FoundInPassage

WAVE_SHARDS = 256
"""Shards that are given to Ray at once, at least."""

SHARDS_A_WORKER = 64
_GLANCE_S = 1.0
_END_S = 15.0
_COORDINATOR = (sys.executable, "-m", "workflows.distributed.coordinator")
_LOG = "coordinator.log"
_LONGEST_FOLDER = 48
"""Characters: Ray puts sockets into it, whose paths are limited to 107."""


_AGAIN = "Run it again: finished shards are kept"

Made = tuple[str, Totals]
"""A shard that is made, by its key, and its totals."""


class Coordinator:
    """A running coordinator's process, and the folder of its Ray."""

    def __init__(self, address: str, workers: int) -> None:
        """Start it; Ray is there once `ask` yields the first shard."""
        place = gettempdir()
        self.folder = Path(mkdtemp(prefix="mara-", dir=place if len(place) <= _LONGEST_FOLDER else "/tmp"))
        self.workers = workers
        self._told: SimpleQueue[bytes] = SimpleQueue()
        self._lock = threading.Lock()
        with (self.folder / _LOG).open("wb") as log:
            self._process = subprocess.Popen(
                [*_COORDINATOR, address, str(workers), str(self.folder / "r")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(address),
                start_new_session=True,
            )
        threading.Thread(target=self._listen, name="ray-events", daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with suppress(OSError, ValueError):
            for line in self._process.stdout:
                self._told.put(line)
        self._told.put(b"")

    def ask(self, job: Mapping[str, Any]) -> Iterator[Made | None]:
        """Have a job done; yield what is made, and None after each second without it.

        Raises:
            MaraError: what a worker raised; ClusterUnavailable where the process ended.
        """
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # a process that is gone is noticed when it is listened to
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()
        while True:
            try:
                event = json.loads(self._told.get(timeout=_GLANCE_S))
            except Empty:
                yield None
                continue
            except ValueError:  # the other end is gone, perhaps in the middle of a line
                raise ClusterUnavailable(f"Ray ended: {self.last_words()}", _AGAIN) from None
            if "error" in event:
                raise error_from_json(event["error"])
            if "over" in event:
                return
            if "workers" in event:
                self.workers = event["workers"]
            else:
                yield event["key"], from_json(Totals, event["totals"])

    def last_words(self) -> str:
        """Return the last line of its log."""
        with suppress(OSError):
            lines = (self.folder / _LOG).read_text(encoding="utf-8", errors="replace").split("\n")
            return censored(next((line.strip() for line in reversed(lines) if line.strip()), ""))[-300:]
        return ""

    def close(self) -> None:
        """End it and its Ray; what does not end soon is killed."""
        with self._lock:
            with suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)


def _environment(address: str) -> dict[str, str]:
    """Return the variables of a coordinator: where our modules are, and what keeps others out of a Ray of its own."""
    own = {} if address else {**_OWN_RAY_SETTINGS, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    modules = os.pathsep.join(map(os.path.abspath, sys.path))
    return {**environment().variables, **_RAY_SETTINGS, **own, "PYTHONPATH": modules}


_OWN_RAY_SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on Linux, too, the node has the loopback address, and binds no other
    "RAY_AUTH_MODE": "token",
    "RAY_process_group_cleanup_enabled": "0",  # workers stay in the coordinator's group, and are killed with it
}

_RAY_SETTINGS = {
    "RAY_ENABLE_AUTO_CONNECT": "0",  # else whatever still asks a Ray that was ended starts another one
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class ShardVectors:
    """An embedding model that knows the vectors of the shards that are being committed.

    A text's vector does not depend on where and with which others it was computed, so that a record is the same either
    way. A text that no shard holds (a name that a correction made) is computed here.

    Attributes:
        model_id: the model's own, as are the vectors of questions.
        computed: how many texts were computed here.
    """

    def __init__(self, model: Embedder) -> None:
        self.model_id = model.model_id
        self.embed_question = model.embed_question
        self._model = model
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._windows: dict[str, int] = {}
        self.computed = 0

    def learn(self, shard: Shard, passages: Iterable[Passage]) -> None:
        """Take in the vectors of a shard and its passages."""
        contents = [passage.content for passage in passages]
        self._vectors.update(zip(shard.texts, shard.text_vectors, strict=True))
        self._vectors.update(zip(contents, shard.vectors, strict=True))
        self._windows.update(zip(contents, shard.windows, strict=True))

    def forget(self) -> None:
        """Let go of all vectors."""
        self._vectors.clear()
        self._windows.clear()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, shape (len(texts), dimension)."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self.computed += len(missing)
        vectors = dict(zip(missing, self._model.embed(missing), strict=True)) if missing else {}
        if not texts:
            return np.stack([*self._vectors.values()])[:0] if self._vectors else self._model.embed(texts)
        return np.stack([vectors[text] if text in vectors else self._vectors[text] for text in texts])

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return in how many pieces each text is read."""
        return [self._windows.get(text) or self._model.count_windows([text])[0] for text in texts]


_EXTRACTORS_AN_ENDPOINT = 2
"""Workers that ask one endpoint: while one waits for the last replies of a shard, the other has begun the next."""


class DistributedRun:
    """The shards of one run: those that an earlier run left, and those that workers of Ray make.

    The workers are started when they are first needed.

    Attributes:
        embedder: the run's embedding model, which knows the vectors of the shards that were read and not committed.
    """

    def __init__(self, context: IndexingContext) -> None:
        """Take the settings of a run.

        Raises:
            BadInput: a caller gives an extractor of its own, which cannot be sent to other processes.
            DependencyMissing: the packages of the extra are not installed.
        """
        if context.own_extractor is not None:
            raise BadInput("Workers of Ray cannot have an extractor of a caller", "Use the engine `local`")
        check_arrow()
        self._context = context
        self.embedder = ShardVectors(configured_embedder())
        self._workers = context.engine.workers or (0 if context.engine.address else os.cpu_count() or 1)
        self._coordinator: Coordinator | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._folder: ShardFolder
        self._passages: Mapping[str, Passage]
        self._key_of: dict[str, str] = {}
        self._left: Counter[str] = Counter()
        self._there: set[str] = set()
        self._open: dict[str, Shard] = {}
        self._making: Iterator[Made | None]
        self._made: set[str] = set()
        self._totals = Totals()

    def begin(
        self,
        root: Path,
        passages: Mapping[str, Passage],
        ids: Sequence[str],
        imported: Mapping[str, Extraction],
        extractor: Extractor,
        own: OwnTypes,
    ) -> None:
        """Take the shards that are there, and let the others be made.

        Args:
            root: the workspace.
            passages: by id; they are read when they are needed, by any thread.
            ids: of those that are to be written, in their order.
            imported: imported extractions, by passage id.
            extractor: extracts the others.
            own: the user's own types.
        """
        self._folder = ShardFolder(root)
        self._folder.tidy()
        self._passages = passages
        asks = isinstance(extractor, ChatExtractor)
        name = f"{extractor.name} at {self._context.extraction.temperature}" if asks else extractor.name

        def planned() -> Iterator[ShardTask]:
            return plan_shards((passages[key] for key in ids), imported, name, self.embedder.model_id)

        for task in planned():
            self._key_of.update((passage.id, task.key) for passage in task.passages)
            shard = self._folder.get(task.key)
            if shard is not None and not shard.totals.failed:  # failed passages are tried again
                self._there.add(task.key)
                self._made.add(task.key)
                self._totals = self._totals.plus(Totals(passages=len(task.passages)))
        self._left.update(self._key_of.values())
        work = Work(
            context=self._context,
            own=own,
            extractor=extractor.name,
            embedding_model=self.embedder.model_id,
            extractors=self._extractors() if asks else 0,
            environment=environment_of_workers(),
        )
        job = {
            "work": to_json(Work, work),
            "extractors": work.extractors,
            "root": str(root),
            "replies": str(root / REPLY_CACHE) if asks else "",
        }
        self._making = self._waves(job, (task for task in planned() if task.key not in self._there))

    def found(self, ids: Sequence[str], glance: Callable[[Totals], None]) -> list[FoundInPassage]:
        """Return what was found in passages, in the order given; their vectors are known from then on.

        Args:
            ids: passages of the run that are not committed yet.
            glance: called with what is made so far, each second at least.

        Raises:
            MaraError: what a worker raised.
            ClusterUnavailable: Ray ended, or a finished shard is damaged.
            Cancelled: the run was stopped.
        """
        findings: dict[str, FoundInPassage] = {}
        for key in dict.fromkeys(self._key_of[each] for each in ids):
            findings.update((one["id"], one) for one in self._shard(key, glance).found)
        return [findings[key] for key in ids]

    def committed(self, ids: Sequence[str]) -> None:
        """Let go of passages that the record holds, and of shards of which it holds all."""
        for key in map(self._key_of.pop, ids):
            self._left[key] -= 1
            if not self._left[key]:
                del self._left[key]
                self._open.pop(key, None)
                self._folder.remove(key)
        if not self._open:
            self.embedder.forget()
        if not self._left:
            self._folder.clear()

    def close(self) -> None:
        """End the workers, from any thread."""
        with self._lock:
            self._closed = True
            coordinator, self._coordinator = self._coordinator, None
        if coordinator is not None:
            coordinator.close()

    def _shard(self, key: str, glance: Callable[[Totals], None]) -> Shard:
        """Return a shard once it is made."""
        if key in self._open:
            return self._open[key]
        self._wait(key, glance)
        shard = self._folder.get(key)
        if shard is None:
            raise ClusterUnavailable(f"The shard {key} is damaged", _AGAIN)
        if key in self._there:
            shard = replace(shard, found=tuple(map(_as_kept, shard.found)))
        self._open[key] = shard
        self.embedder.learn(shard, [self._passages[one["id"]] for one in shard.found])
        return shard

    def _wait(self, key: str, glance: Callable[[Totals], None]) -> None:
        """Return when a shard is there; ``glance`` is called with what is made so far, each second at least."""
        glance(self._totals)
        while key not in self._made:
            try:
                made = next(self._making)
            except ClusterUnavailable:
                self._check_not_closed()
                raise
            except StopIteration:
                raise Cancelled("The run was stopped", _AGAIN) from None
            if made is not None:
                self._made.add(made[0])
                self._totals = self._totals.plus(made[1])
            glance(self._totals)

    def _waves(self, job: Mapping[str, Any], tasks: Iterator[ShardTask]) -> Iterator[Made | None]:
        """Yield what is made of the tasks, which are sent a wave at a time."""
        workers = self._workers
        while wave := [*islice(tasks, max(WAVE_SHARDS, SHARDS_A_WORKER * workers))]:
            coordinator = self._running()
            yield from coordinator.ask({**job, "tasks": {task.key: to_json(ShardTask, task) for task in wave}})
            workers = coordinator.workers

    def _running(self) -> Coordinator:
        with self._lock:
            self._check_not_closed()
            if self._coordinator is None:
                self._coordinator = Coordinator(self._context.engine.address, self._workers)
            return self._coordinator

    def _check_not_closed(self) -> None:
        if self._closed:
            raise Cancelled("The run was stopped", _AGAIN)

    def _extractors(self) -> int:
        """Return how many workers ask the model: at most one a request, and one for a model of this machine."""
        if is_local(self._context.model) or is_local(environment().mara_chat_model):
            return 1
        return min(self._context.extraction.concurrency, _EXTRACTORS_AN_ENDPOINT * max(1, len(extraction_urls())))


def _as_kept(finding: FoundInPassage) -> FoundInPassage:
    """Return what an earlier run found as this one reports it: nothing was asked for it, and nothing paid."""
    tally = {"extracted": 1, "cached": int(bool(finding["tally"].get("requests") or finding["tally"].get("cached")))}
    return {**finding, "tally": tally if finding["tally"] else {}, "retries": {}}
