"""The session of an indexing run, kept outside its state: documents, open record, lease, extractor at work.

Sessions live in this process, by run. A run without one (a fork, a restart, another process) makes a new one: it reads
the sources and compares them with the record again; committed passages then count as unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock, RLock

from agents.chat.reply_cache import ReplyCache
from agents.extraction.run import Extracted, ExtractionRun
from agents.extractor import ChatExtractor, Extractor
from agents.offline.extractor import OfflineExtractor
from graph.construction.builder import PASSAGE_CLASSES
from graph.embedding.embeddings import check_embedder, configured_embedder
from graph.environment import refresh_environment
from graph.errors import BadInput, WorkspaceLocked
from graph.own_types import NO_TYPES, OwnTypes
from graph.schema import Extraction, Passage
from graph.server_clients import serves_clients
from graph.sources.documents import READABLE_HINT, Documents, read_documents
from graph.sources.own_types_file import read_own_types
from graph.sources.skipped import keep_skipped
from graph.sources.triples import read_triples
from graph.storage.entry import content_hash
from graph.storage.lease import Lease
from graph.storage.own_types import declare_types, declared_types
from graph.storage.record import Record
from graph.storage.workspace import REPLY_CACHE, Workspace, admitted, check_may_be_written, resolve_workspace
from graph.storage.writer import EmbeddedBatch, Writer
from workflows.access.source_paths import resolve_source
from workflows.distributed.engine import Totals
from workflows.distributed.shard_files import ShardFolder
from workflows.indexing_run.changes import Changes, plan_changes
from workflows.indexing_run.dating import check_date, keep_versions
from workflows.indexing_run.extracting import extraction_run, workers_of
from workflows.indexing_run.refusals import nothing_found, refused_sources
from workflows.runtime.resources import extractor_for
from workflows.settings.indexing import IndexingContext
from workflows.states.indexing import FoundInPassage, RunKey, extraction_of, found_in, found_in_file

NO_OWN_TYPES = "none"
"""In place of a file of types: the workspace is to have none any more."""

SLICE_PASSAGES = 8
"""Passages per node where a model extracts several at once."""

Progress = Callable[[str, int, int], None]
"""Called with a stage, the number of its passages that are done, and their total."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of one commit.

    Attributes:
        written: ids of the passages.
        counts: passages ``written``, ``replaced`` (known ids), ``removed``, ``failed`` (written without an extraction)
            and ``long_passages`` (embedded window by window).
        notes: what was dropped or defaulted, by reason.
    """

    written: frozenset[str] = frozenset()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)


class Session:
    """One run's documents and what they change; once it is opened, the sole writer of its workspace.

    Attributes:
        documents: content of the sources.
        own: the user's own types, by which passages are extracted.
        imported: precomputed triples, where some were given.
        changes: what to write and remove; known once the session is open.
        pending: ids of the passages still to be committed, in order.
        failed: number of passages that failed so far.
        tokens: tokens used so far.
        prices: prices of tokens, where the user gives them.
        failure: the error that ended the run.
    """

    record: Record
    changes: Changes

    def __init__(self, key: RunKey, context: IndexingContext) -> None:
        """Read the documents and triples.

        Raises:
            BadInput: there is nothing, something cannot be used, or a client of a server may not do it.
        """
        refresh_environment()
        if context.replace_all and serves_clients():
            raise BadInput("A client may not replace everything", "Leave replace_all out: it is for the command line")
        self._held = ExitStack()
        self._workers = workers_of(context)
        if self._workers is not None:
            self._held.callback(self._workers.close)
        try:
            self._begin(key, context)
        except BaseException:
            self._held.close()
            raise

    def _begin(self, key: RunKey, context: IndexingContext) -> None:
        self.key = key
        self.context = context
        self.prices = context.prices()
        self.root = resolve_workspace(context.workspace)
        check_may_be_written(self.root)
        self._sources = [resolve_source(name) for name in key["sources"]]
        read_files = self._workers.engine.read if self._workers is not None else None
        self.documents = read_documents(self._sources, context.read_options(), read_files)
        self.workspace = Workspace(self.root)
        self.own = self._own_types()
        self.imported = read_triples(resolve_source(key["triples"]), self.own) if key["triples"] else None
        if not self.documents.passages:
            raise BadInput(nothing_found(self._sources, self.documents), READABLE_HINT)
        self.embedder = self._workers.embedder if self._workers is not None else configured_embedder()
        self.extractor: Extractor = extractor_for(context, self.own)
        self.pending: dict[str, None] = {}
        self.failed = self.tokens = 0
        self.failure: BaseException | None = None
        self.opened = self.closed = False
        self.last_used = time.monotonic()
        self._started = self.last_used
        self._extracted = self._total = 0
        self._at_work = 0
        self._lock, self._counting = RLock(), Lock()
        self._writer: Writer | None = None
        self._embedded: tuple[list[str], EmbeddedBatch] | None = None
        self._removed: tuple[str, ...] = ()
        self._lease: Lease | None = None
        self._run: ExtractionRun | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a node is using it."""
        return self._at_work > 0

    def open(self) -> None:
        """Become the workspace's writer and plan the changes; nothing is written yet.

        Raises:
            WorkspaceLocked: another process, or another run, is writing.
            EmbeddingMismatch: the workspace was written by another embedding model.
            WorkspaceDamaged: the workspace cannot be read.
            BadInput: a sync would keep nothing.
        """
        with self._lock:
            if self.opened:
                return
            with admitted(self.root):
                self.workspace.create()
            self._lease = self.workspace.claim()
            self._held.callback(self._lease.release)
            try:
                self.record = self._held.enter_context(self.workspace.open_record(self._lease))
                if self.record.embedding_model:
                    check_embedder(self.embedder, self.record.embedding_model)
                if self.context.passage_classes is not None:
                    self.record.change_setting(PASSAGE_CLASSES, self.context.passage_classes)
                self._keep_own_types()
                self.changes = self.plan(self.record)
                keep_versions(self.workspace, self.record, self.context)
                self.pending = dict.fromkeys(self.changes.to_write)
                self._begin_extraction()
            except BaseException:
                self.close()
                raise
            self._removed = self.changes.removed
            self._total = len(self.pending)
            self._started = time.monotonic()
            self.opened = True

    def _begin_extraction(self) -> None:
        """Make what extracts ready: workers, which begin at once, or a run of the extractor in this process."""
        if self._workers is not None:
            passages = self.documents.passages
            asked = self.pending if self.imported else ()
            given = {key: found for key in asked if (found := self.imported_for(passages[key]))}
            self._workers.begin(self.root, passages, [*self.pending], given, self.extractor, self.own)
            return
        cache = ReplyCache(self.root / REPLY_CACHE) if isinstance(self.extractor, ChatExtractor) else None
        if cache is not None:
            self._held.callback(cache.close)
        self._run = extraction_run(self.extractor, self.context, cache)

    def plan(self, record: Record) -> Changes:
        """Return what the run changes.

        Raises:
            BadInput: a sync would remove every passage, or the run's date cannot be used.
        """
        changes = plan_changes(
            record,
            self.documents.passages,
            self.extractor.name,
            self.imported,
            remove_others=self.key["sync"],
            keep_sources=refused_sources(self.documents, self._sources),
        )
        if changes.removed and len(changes.removed) == record.count_passages() and not self.context.replace_all:
            places = ", ".join(self.key["sources"])
            otherwise = "" if serves_clients() else ", or replace everything with --replace-all"
            raise BadInput(
                f"None of the {len(changes.removed)} passages in {self.root} is named as a file in {places[:500]}:"
                " all would go",
                "Passages are named by their path below the folder that was indexed: give that folder"
                f" again{otherwise}",
            )
        check_date(record, self.context, (*self.documents.passages, *changes.removed))
        return changes

    def imported_for(self, passage: Passage) -> Extraction | None:
        """Return the imported triples of a passage, if any."""
        return self.imported.of(passage) if self.imported else None

    @property
    def unfound_types(self) -> list[str]:
        """The own types that no rule can find, where rules extract."""
        return self.own.unfound if isinstance(self.extractor, OfflineExtractor) else []

    def keep_skipped(self) -> None:
        """Note in the record the files that were not read."""
        documents = self.documents
        keep_skipped(self.record, self._sources, documents.refused, documents.skipped, alone=self.key["sync"])

    @property
    def to_remove(self) -> tuple[str, ...]:
        """The ids of the passages that the next commit removes."""
        return self._removed

    def next_batch(self, size: int) -> list[str]:
        """Return the ids of the next passages to extract."""
        return list(islice(self.pending, size))

    @property
    def slice_size(self) -> int:
        """Passages per node: a few where they are extracted concurrently, else all."""
        return SLICE_PASSAGES if self._run is not None and self._run.concurrency > 1 else len(self.pending)

    def extract(self, ids: Sequence[str], emit: Progress) -> list[FoundInPassage]:
        """Extract those passages that are still pending; failed ones are returned with their reason.

        Raises:
            ModelUnavailable: the model's endpoint refuses the key or the model, or fails every passage.
        """
        read = self.documents.passages
        passages = [read[key] for key in ids if key in self.pending]
        if self._workers is not None:
            return self._workers.found([p.id for p in passages], lambda made: self._count_made(made, emit))
        assert self._run is not None
        given = {p.id: found for p in passages if (found := self.imported_for(p))}
        asked = [passage for passage in passages if passage.id not in given]

        def tell(extracted: Extracted | None) -> None:
            self._count(extracted, emit)

        results = {one.passage_id: one for one in self._run.extract_all(asked, tell)}
        for _ in given:
            tell(None)
        return [
            found_in_file(p, given[p.id]) if p.id in given else found_in(p, results[p.id], self.extractor.name)
            for p in passages
        ]

    def embed(self, found: Sequence[FoundInPassage]) -> None:
        """Embed a batch, and keep the vectors until it is committed."""
        with self._lock:
            self._embedded = self._embed(self._current(found))

    def commit(self, found: Sequence[FoundInPassage]) -> Committed:
        """Commit a batch and, with the first one, the removals.

        What is no longer there, or has changed since it was extracted, is left for the next batch.
        """
        with self._lock:
            batch = self._current(found)
            ids, removed = [passage.id for passage, _ in batch], self._removed
            if not ids and not removed:
                return Committed()
            if self._embedded is None or self._embedded[0] != ids:
                self._embedded = self._embed(batch)
            if self.record.complete:
                self.record.mark_complete(False)
            if removed and self._workers is None:
                ShardFolder(self.root).clear()  # Those of a run that was never resumed may hold what goes.
            report = self._open_writer().commit(self._embedded[1], removed)
            self._embedded, self._removed = None, ()
            for key in ids:
                del self.pending[key]
            if self._workers is not None:
                self._workers.committed(ids)
        counts = {
            "written": len(ids),
            "replaced": len(set(ids).intersection(self.changes.changed)),
            "removed": len(removed),
            "failed": sum(bool(extraction.failure) for _, extraction in batch),
            "long_passages": report.long_passages,
        }
        return Committed(frozenset(ids), counts, report.notes)

    def progress(self) -> tuple[int, int]:
        """Return how many passages are committed, and how many are to be written in all."""
        return self._total - len(self.pending), self._total

    def rate(self) -> float:
        """Return the passages extracted per second so far."""
        return round(self._extracted / max(1e-9, time.monotonic() - self._started), 2)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Note that a node is at work, and keep the lease."""
        with self._counting:
            self._at_work += 1
        try:
            self.renew()
            yield
        finally:
            with self._counting:
                self._at_work -= 1
                self.last_used = time.monotonic()

    def renew(self) -> None:
        """Keep the lease. Raises WorkspaceLocked where another writer has taken it over."""
        if self._lease is not None and not self.closed:
            self._lease.renew()

    def cancel(self) -> None:
        """Send no more requests, from any thread; threads waiting to send one get an error."""
        if self._run is not None:
            self._run.cancel()
        if self._workers is not None:
            self._workers.close()

    def close(self) -> None:
        """Stop and release everything, the lease last, after requests in flight have ended."""
        self.cancel()
        if self._run is not None:
            self._run.__exit__(None, None, None)
        with self._lock:
            if self.closed:
                return
            self.closed = True
            self._held.close()
            self.documents, self.imported, self.pending = Documents(), None, {}
            self._writer = self._embedded = None

    def _own_types(self) -> OwnTypes:
        """Return the own types of the run: those of a file that is given, none, or those that the workspace keeps."""
        if self.context.types and self.context.types != NO_OWN_TYPES:
            return read_own_types(resolve_source(self.context.types))
        if self.context.types or not self.workspace.record_path.exists():
            return NO_TYPES
        with self.workspace.open_record() as record:
            return declared_types(record)

    def _keep_own_types(self) -> None:
        """Let the workspace keep the run's own types; without a file it is to keep them already."""
        if self.context.types:
            declare_types(self.record, self.own)
        elif declared_types(self.record) != self.own:
            raise WorkspaceLocked(f"Another run gave {self.root} other types meanwhile", "Run this one again")

    def _open_writer(self) -> Writer:
        if self._writer is None:
            self._writer = Writer(self.record, self.embedder)
        return self._writer

    def _embed(self, batch: Sequence[tuple[Passage, Extraction]]) -> tuple[list[str], EmbeddedBatch]:
        return [passage.id for passage, _ in batch], self._open_writer().embed(batch)

    def _current(self, found: Sequence[FoundInPassage]) -> list[tuple[Passage, Extraction]]:
        """Return what was found in passages that are still to be committed, and have not changed since."""
        by_id = {one["id"]: one for one in found}
        there = [(self.documents.passages[key], one) for key, one in by_id.items() if key in self.pending]
        return [(passage, extraction_of(one)) for passage, one in there if one["content"] == content_hash(passage)]

    def _count(self, extracted: Extracted | None, emit: Progress) -> None:
        self.renew()
        with self._counting:
            self._extracted += 1
            if extracted is not None:
                self.failed += extracted.extraction is None
                self.tokens += extracted.usage.prompt_tokens + extracted.usage.completion_tokens
            emit("extract", min(self._extracted, self._total), self._total)

    def _count_made(self, made: Totals, emit: Progress) -> None:
        """Tell of the passages in the shards that workers have made, and keep the lease."""
        self.renew()
        with self._counting:
            if self._extracted == made.passages:
                return
            self._extracted, self.failed, self.tokens = made.passages, made.failed, made.tokens
            emit("extract", min(self._extracted, self._total), self._total)
