"""A run whose passages workers extract and embed: what they found is read from shards, in the order of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agents.chat.local_model import is_local
from agents.extractor import ChatExtractor, Extractor
from graph.embedding.embeddings import Embedder, configured_embedder
from graph.environment import environment
from graph.errors import BadInput, ClusterUnavailable
from graph.own_types import OwnTypes
from graph.schema import Extraction, Passage
from graph.storage.workspace import REPLY_CACHE
from workflows.distributed.engine import RayEngine
from workflows.distributed.shards import Shard, ShardFolder, ShardTask, Totals, plan_shards, shard_task
from workflows.distributed.work import Work, environment_of_workers
from workflows.runtime.resources import extraction_urls
from workflows.settings.indexing import IndexingContext
from workflows.states.indexing import FoundInPassage


class ShardVectors:
    """An embedding model that knows the vectors of the shards that are being committed.

    A text's vector does not depend on where and with which others it was computed, so that a record is the same either
    way. What no shard holds (a name that a correction made) is computed here.

    Attributes:
        model_id: the model's own, as are the vectors of questions and what is understood.
        computed: how many texts were computed here.
    """

    def __init__(self, model: Embedder) -> None:
        self.model_id = model.model_id
        self.embed_question = model.embed_question
        self.understands = model.understands
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
        found = dict(zip(missing, self._model.embed(missing), strict=True)) if missing else {}
        if not texts:
            return np.stack([*self._vectors.values()])[:0] if self._vectors else self._model.embed(texts)
        return np.stack([found[text] if text in found else self._vectors[text] for text in texts])

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return in how many pieces each text is read."""
        return [self._windows.get(text) or self._model.count_windows([text])[0] for text in texts]


_EXTRACTORS_AN_ENDPOINT = 2
"""Workers that ask one endpoint: while one waits for the last replies of a shard, the other has begun the next."""


class DistributedRun:
    """The shards of one run: those that an earlier run left, and those that workers make.

    Attributes:
        embedder: the run's embedding model, which knows the vectors of the shards that were read and not committed.
        reused: how many shards were there already.
    """

    def __init__(self, context: IndexingContext) -> None:
        """Take the settings of a run.

        Raises:
            BadInput: a caller gives an extractor of its own, which cannot be sent to other processes.
            DependencyMissing: the packages of the extra are not installed.
        """
        if context.own_extractor is not None:
            raise BadInput("Workers of Ray cannot have an extractor of a caller", "Use the engine `local`")
        self._context = context
        self.engine = RayEngine(context)
        self.embedder = ShardVectors(configured_embedder())
        self.reused = 0
        self._folder: ShardFolder
        self._passages: Mapping[str, Passage]
        self._key_of: dict[str, str] = {}
        self._there: set[str] = set()
        self._open: dict[str, Shard] = {}
        self._left: dict[str, int] = {}
        self._before = Totals()

    def begin(
        self,
        root: Path,
        passages: Mapping[str, Passage],
        ids: Sequence[str],
        given: Mapping[str, Extraction],
        extractor: Extractor,
        own: OwnTypes,
    ) -> None:
        """Take the shards that are there, and let the others be made.

        Args:
            root: the workspace.
            passages: by id; they are read when they are needed, by any thread.
            ids: of those that are to be written, in their order.
            given: imported extractions, by passage id.
            extractor: who extracts the others.
            own: the user's own types.
        """
        self._folder = ShardFolder(root)
        self._folder.tidy()
        asks = isinstance(extractor, ChatExtractor)
        name = f"{extractor.name} at {self._context.temperature}" if asks else extractor.name
        ids_of: dict[str, Sequence[str]] = {}
        for task in plan_shards((passages[key] for key in ids), given, name, self.embedder.model_id):
            ids_of[task.key] = [passage.id for passage in task.passages]
            shard = self._folder.get(task.key)
            if shard is not None and not shard.totals.failed:  # failed passages are tried again
                self._there.add(task.key)

        def task_of(key: str) -> ShardTask:
            return shard_task([passages[each] for each in ids_of[key]], given, name, self.embedder.model_id)

        self._passages = passages
        self._key_of = {each: key for key, held in ids_of.items() for each in held}
        self._left = {key: len(held) for key, held in ids_of.items()}
        self.reused = len(self._there)
        self._before = Totals(passages=sum(self._left[key] for key in self._there))
        wanted = [key for key in ids_of if key not in self._there]
        work = Work(
            context=self._context,
            own=own,
            extractor=extractor.name,
            embedding_model=self.embedder.model_id,
            extractors=self._extractors() if asks else 0,
            environment=environment_of_workers(),
        )
        if wanted:
            self.engine.make(work, map(task_of, wanted), root, root / REPLY_CACHE if asks else None)

    def found(self, ids: Sequence[str], glance: Callable[[Totals], None]) -> list[FoundInPassage]:
        """Return what was found in passages, in the order given; their vectors are known from then on.

        Args:
            ids: passages of the run that are not committed yet.
            glance: called with what is made so far, each second at least.

        Raises:
            MaraError: what a worker raised.
            ClusterUnavailable: Ray ends again and again, or a finished shard is torn.
            Cancelled: the run was stopped.
        """
        found: dict[str, FoundInPassage] = {}
        for key in dict.fromkeys(self._key_of[each] for each in ids):
            found.update((one["id"], one) for one in self._shard(key, glance).found)
        return [found[key] for key in ids]

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
        self.engine.close()

    def _shard(self, key: str, glance: Callable[[Totals], None]) -> Shard:
        """Return a shard once it is made."""
        if key in self._open:
            return self._open[key]
        if key in self._there:
            glance(self._before)
        else:
            self.engine.wait(key, lambda made: glance(self._before.plus(made)))
        shard = self._folder.get(key)
        if shard is None:
            raise ClusterUnavailable(f"The shard {key} is torn", "Run it again: it is made again, all others are kept")
        if key in self._there:
            shard = replace(shard, found=tuple(map(_as_kept, shard.found)))
        self._open[key] = shard
        self.embedder.learn(shard, [self._passages[one["id"]] for one in shard.found])
        return shard

    def _extractors(self) -> int:
        """Return how many workers ask the model: at most one a request, and one for a model of this machine."""
        if is_local(self._context.model) or is_local(environment().mara_chat_model):
            return 1
        return min(self._context.concurrency, _EXTRACTORS_AN_ENDPOINT * max(1, len(extraction_urls())))


def _as_kept(found: FoundInPassage) -> FoundInPassage:
    """Return what an earlier run found as this one reports it: nothing was asked for it, and nothing paid."""
    tally = {"extracted": 1, "cached": int(bool(found["tally"].get("requests") or found["tally"].get("cached")))}
    return {**found, "tally": tally if found["tally"] else {}, "retries": {}}
