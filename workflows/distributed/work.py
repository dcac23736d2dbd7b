"""The work of one worker: it holds the models, and reads files, extracts and embeds shards. Nothing here knows Ray.

Beside it stands how tasks, settings and errors are sent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import compress, zip_longest
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from agents.chat.reply_cache import Replies
from agents.extraction import ExtractionRun
from graph import errors
from graph.embedding.bert import THREADS_VARIABLE
from graph.embedding.embeddings import Embedder, check_embedder, configured_embedder
from graph.endpoints.address import censored
from graph.environment import environment, set_variables
from graph.errors import BadInput, ClusterUnavailable, MaraError, ModelUnavailable
from graph.own_types import OwnTypes
from graph.sources.documents import ToRead, read_each
from graph.sources.loaders.document import Loaded
from workflows.distributed.shards import Shard, ShardTask, embedded
from workflows.runtime.resources import extraction_run, extractor_for
from workflows.settings.indexing import IndexingContext
from workflows.states.indexing import FoundInPassage, found_in

_LONGEST_FAULT = 300
_PASSED_ON = (
    *("OPENAI_", "LANGSMITH_", "LANGCHAIN_", "MARA_CHAT_", "MARA_CONTEXT_", "MARA_EMBEDDING_", "MARA_EXTRACTION_"),
    *("MARA_PRICE_", "MARA_QUESTION_", "MARA_THINKING_", "MARA_TIMEOUT_"),
)
"""The beginnings of variables that choose models and bound their requests."""


@dataclass(frozen=True, slots=True)
class Work:
    """What all workers of a run are told.

    Attributes:
        context: the settings of the run.
        own: the user's own types.
        extractor: the extractor's name.
        embedding_model: the embedding model's id.
        extractors: how many workers ask the model, which share the limits of the run.
        environment: variables that choose models and their servers.
    """

    context: IndexingContext
    own: OwnTypes
    extractor: str
    embedding_model: str
    extractors: int
    environment: Mapping[str, str]


def environment_of_workers() -> dict[str, str]:
    """Return the variables that workers on other machines need to use the same models: none of a store or a server."""
    variables = environment().variables.items()
    return {name: value for name, value in variables if name.startswith(_PASSED_ON) and name != THREADS_VARIABLE}


class Worker:
    """Extracts and embeds, on one core: models are loaded with the first shard, and kept."""

    def __init__(self, work: Work, cache: Replies | None = None) -> None:
        """Take on the settings of the run.

        Args:
            work: what all workers are told.
            cache: kept replies of the model.
        """
        set_variables({**work.environment, THREADS_VARIABLE: "1"})
        self._work = work
        self._cache = cache
        self._fault: MaraError | None = None

    def extract(self, task: ShardTask) -> list[FoundInPassage]:
        """Return what is found in the passages of a task, in their order; failed ones have their reason.

        Raises:
            ModelUnavailable: the model's endpoint refuses the key or the model, or fails every passage.
            BadInput: this machine's extractor is another one than the run's.
        """
        asked = [passage for passage in task.passages if passage.id not in task.given]
        try:
            results = {one.passage_id: one for one in self._run.extract_all(asked)} if asked else {}
        except MaraError as fault:
            self._fault = self._fault or fault  # which stops the run: all that follows is told as stopped
            raise self._fault from None
        return [
            task.given[each.id] if each.id in task.given else found_in(each, results[each.id], self._work.extractor)
            for each in task.passages
        ]

    def make(self, task: ShardTask) -> Shard:
        """Return the shard of a task.

        Raises:
            EmbeddingMismatch: this machine's embedding model is another one than the run's.
            ModelUnavailable: a model cannot be used.
            BadInput: this machine's extractor is another one than the run's.
        """
        return embedded(task, self.extract(task), self._embedder)

    @cached_property
    def _run(self) -> ExtractionRun:
        extractor = extractor_for(self._work.context, self._work.own)
        if extractor.name != self._work.extractor:
            raise BadInput(
                f"A worker has the extractor {extractor.name!r}, the run {self._work.extractor!r}",
                "Install the same version of mara and its models on all machines",
            )
        return extraction_run(extractor, self._work.context, self._cache, self._work.extractors)

    @cached_property
    def _embedder(self) -> Embedder:
        embedder = configured_embedder()
        check_embedder(embedder, self._work.embedding_model)
        return embedder


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Files that one worker reads, one after another.

    Attributes:
        files: by absolute paths.
        digests: of their content, as the machine of the run sees it; none where the worker is on that machine.
        context: the settings of the run, which say how they are read.
    """

    files: tuple[ToRead, ...]
    digests: tuple[str, ...]
    context: IndexingContext

    @staticmethod
    def of(files: Sequence[ToRead], context: IndexingContext) -> ReadTask:
        """Return the task of some files."""
        digests = tuple(_digest(file.path) for file in files) if context.address else ()
        return ReadTask(tuple(ToRead(file.path.absolute(), file.source) for file in files), digests, context)


def read_task(task: ReadTask) -> list[Loaded | None]:
    """Return what each file holds; None for those that cannot be read, or that this machine has otherwise, or not.

    The machine of the run reads these itself, and says what is wrong with them.
    """
    there = [not digest or digest == _digest(file.path) for file, digest in zip_longest(task.files, task.digests)]
    outcomes = read_each([*compress(task.files, there)], task.context.read_options())
    found = (outcome if isinstance(outcome, Loaded) else None for outcome in outcomes)
    return [next(found) if here else None for here in there]


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; "unreadable" where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"


def to_json(kind: Any, value: object) -> str:
    """Return a value of a type as JSON, which runs nothing when it is received, as a pickle might."""
    return json.dumps(_adapter(kind).dump_python(value, mode="json"))


def from_json(kind: Any, text: str) -> Any:
    """Return what `to_json` gave."""
    return _adapter(kind).validate_python(json.loads(text))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def error_to_json(fault: Exception) -> str:
    """Return what a worker tells of a fault: our own errors as they are, any other in a line."""
    if not isinstance(fault, MaraError):
        fault = ClusterUnavailable(
            f"A worker failed: {type(fault).__name__}: {censored(str(fault))[:_LONGEST_FAULT]}",
            "Run it with the engine `local` to see the whole error",
        )
    status = fault.status if isinstance(fault, ModelUnavailable) else 0
    return json.dumps([fault.kind, fault.message, fault.hint, status])


def error_from_json(text: str) -> MaraError:
    """Return the error that `error_to_json` told."""
    name, message, hint, status = json.loads(text)
    kind = getattr(errors, name, MaraError)
    if issubclass(kind, ModelUnavailable):
        return ModelUnavailable(message, hint, status=status)
    remade: MaraError = (kind if kind.__init__ is MaraError.__init__ else MaraError)(message, hint)
    return remade
