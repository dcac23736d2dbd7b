"""A run of indexing: its documents, what they change, and, once it writes, its workspace's record and lock.

The state of the graph only names it. A fork, a restart or an interrupt makes it anew: it reads the sources and compares
them with the record again; committed passages then count as unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from threading import Lock
from typing import Any, Self

from agents.chat.reply_cache import ReplyCache
from agents.chat.throttle import Cancelled
from agents.extraction import Extracted, ExtractionRun
from agents.extractor import ChatExtractor, Extractor
from agents.offline.extractor import OfflineExtractor
from graph.construction.edges import PASSAGE_CLASSES
from graph.construction.knowledge_graph import load_header
from graph.embedding.embeddings import check_embedder, configured_embedder
from graph.environment import refresh_environment
from graph.errors import BadInput, WorkspaceLocked
from graph.moments import first_moment, now
from graph.own_types import NO_TYPES, OwnTypes
from graph.publish.derive import is_published, publish
from graph.schema import Extraction, Passage
from graph.server_clients import serves_clients
from graph.sources.documents import read_documents
from graph.sources.loaders import readable_hint
from graph.sources.skipped import keep_skipped
from graph.sources.triples import read_own_types, read_triples
from graph.storage.entry import content_hash
from graph.storage.record import Record, declare_types, declared_types
from graph.storage.workspace import REPLY_CACHE, Workspace, admitted, check_may_be_written, resolve_workspace
from graph.storage.writer import EmbeddedBatch, Writer
from workflows.access.source_paths import resolve_source
from workflows.indexing_run.changes import Changes, nothing_found, plan_changes, refused_sources
from workflows.runtime.extraction import extraction_run, extractor_for
from workflows.runtime.resources import FRESH_GENERATIONS
from workflows.settings.indexing import IndexingContext
from workflows.states.indexing import FoundInPassage, added_up, extraction_of, found_in, found_in_file

NO_OWN_TYPES = "none"
"""In place of a file of types: the workspace is to have none any more."""

_VERSIONS = "versions"
_NO_VERSIONS = "none"
"""Where the record keeps whether it keeps versions, and what says that it does not."""

Progress = Callable[[str, int, int], None]
"""Called with a stage, the number of its passages that are done, and their total."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of one commit.

    Attributes:
        found: what was found in its passages.
        counts: passages ``written``, ``replaced`` (known ids), ``removed`` and ``failed`` (written without an
            extraction).
        notes: what was dropped or defaulted, by reason.
    """

    found: Sequence[FoundInPassage] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunKey:
    """The part of a state that names a run, from which it is made again where it is gone (a fork, an interrupt)."""

    sources: list[str]
    triples: str
    sync: bool


class IndexingRun:
    """One run, for as long as it is under way in this process; once it is open, the sole writer of its workspace.

    Attributes:
        context: its settings.
        prices: prices of tokens, where the user gives them.
        documents: content of the sources.
        own: the user's own types, by which passages are extracted.
        imported: precomputed triples, where some were given.
        changes: what to write and remove; known once the run is open.
        pending: ids of the passages still to be committed, in order.
        to_remove: ids of the passages that the next commit removes.
        total: how many passages are to be written.
    """

    record: Record
    changes: Changes

    def __init__(self, extractor: Extractor | None = None) -> None:
        """Begin a run with the caller's own extractor, or with the configured one."""
        refresh_environment()
        self._own_extractor = extractor
        self._lent = Lock()
        self._held = ExitStack()
        self._is_read = self._is_open = self._is_stopped = False
        self._extraction: ExtractionRun | None = None
        self._embedded: tuple[list[str], EmbeddedBatch] | None = None
        self._extracted = self._failed = self._tokens = 0

    @contextmanager
    def lent(self, key: RunKey, context: IndexingContext, emit: Callable[[dict[str, Any]], None]) -> Iterator[Self]:
        """Lend it to one node at a time, which tells its progress by ``emit``."""
        with self._lent:
            self._key, self.context, self._emit = key, context, emit
            yield self

    def read(self) -> None:
        """Read the documents and triples, unless that is done.

        Raises:
            BadInput: there is nothing, something cannot be used, or a client of a server may not do it.
        """
        if self._is_read:
            return
        context, key = self.context, self._key
        if context.replace_all and serves_clients():
            raise BadInput("A client may not replace everything", "Leave replace_all out: it is for the command line")
        self.prices = context.prices()
        self.root = resolve_workspace(context.workspace)
        check_may_be_written(self.root)
        self._sources = [resolve_source(name) for name in key.sources]
        self.documents = read_documents(self._sources, context.read_options())
        self.workspace = Workspace(self.root)
        self.own = self._own_types()
        self.imported = read_triples(resolve_source(key.triples), self.own) if key.triples else None
        if not self.documents.passages:
            raise BadInput(nothing_found(self._sources, self.documents), readable_hint())
        self.embedder = configured_embedder()
        self.extractor = self._own_extractor or extractor_for(context, self.own)
        self._is_read = True

    def open(self) -> None:
        """Become the workspace's writer and plan the changes, unless that is done; no passage is written yet.

        Raises:
            WorkspaceLocked: another process, or another run, is writing.
            EmbeddingMismatch: the workspace was written by another embedding model.
            WorkspaceDamaged: the workspace cannot be read.
            BadInput: as `read` does, or a sync would keep nothing.
            Cancelled: the run was stopped.
        """
        self._check_not_stopped()
        self.read()
        if not self._is_open:
            with ExitStack() as stack:
                self._open(stack)
                self._held.push(stack.pop_all())
            self._is_open = True
        self._check_not_stopped()

    def _open(self, stack: ExitStack) -> None:
        with admitted(self.root):
            self.workspace.create()
        lock = stack.enter_context(self.workspace.writing())
        self.record = stack.enter_context(self.workspace.open_record(lock))
        if self.record.embedding_model:
            check_embedder(self.embedder, self.record.embedding_model)
        if self.context.passage_classes is not None:
            self.record.change_setting(PASSAGE_CLASSES, self.context.passage_classes)
        self._keep_own_types()
        self.changes = self.plan(self.record)
        keep_versions(self.workspace, self.record, self.context)
        self.pending = dict.fromkeys(self.changes.to_write)
        self.to_remove, self.total = self.changes.removed, len(self.pending)
        cache = ReplyCache(self.root / REPLY_CACHE) if isinstance(self.extractor, ChatExtractor) else None
        if cache is not None:
            stack.callback(cache.close)
        self._extraction = stack.enter_context(extraction_run(self.extractor, self.context, cache))
        self._started = time.monotonic()

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
            remove_others=self._key.sync,
            keep_sources=refused_sources(self.documents, self._sources),
        )
        if changes.removed and len(changes.removed) == record.count_passages() and not self.context.replace_all:
            places = ", ".join(self._key.sources)
            alone = ", add files with `mara index`, or replace everything with --replace-all"
            otherwise = "" if serves_clients() else alone
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

    def next_batch(self, size: int) -> list[str]:
        """Return the ids of the next passages to extract."""
        return list(islice(self.pending, size))

    def extract(self, ids: Sequence[str]) -> list[FoundInPassage]:
        """Extract those passages that are still pending; failed ones are returned with their reason.

        Raises:
            ModelUnavailable: the model's endpoint refuses the key or the model, or fails every passage.
        """
        passages = [self.documents.passages[key] for key in ids if key in self.pending]
        assert self._extraction is not None
        imported = {p.id: extraction for p in passages if (extraction := self.imported_for(p))}
        asked = [passage for passage in passages if passage.id not in imported]
        results = {one.passage_id: one for one in self._extraction.extract_all(asked, self._count)}
        for _ in imported:
            self._count(None)
        return [
            found_in_file(p, imported[p.id]) if p.id in imported else found_in(p, results[p.id], self.extractor.name)
            for p in passages
        ]

    def embed(self, findings: Sequence[FoundInPassage]) -> None:
        """Embed a batch, its passages and the names and facts that are new, and keep the vectors until it is committed.

        A passage that is no longer there, or has changed since it was extracted, is left for the next batch.
        """
        current = self._current(findings)
        batch = [(self.documents.passages[one["id"]], extraction_of(one)) for one in current]
        self._embedded = [one["id"] for one in current], self._writer.embed(batch)

    def commit(self, findings: Sequence[FoundInPassage]) -> Committed:
        """Commit a batch, embedded or not yet, and, with the first one, the removals."""
        current, removed = self._current(findings), self.to_remove
        ids = [one["id"] for one in current]
        if not ids and not removed:
            return Committed()
        if self._embedded is None or self._embedded[0] != ids:
            self.embed(current)
        assert self._embedded is not None
        if self.record.complete:
            self.record.mark_complete(False)
        batch = self._embedded[1]
        self._writer.commit(batch, removed)
        self._embedded, self.to_remove = None, ()
        for key in ids:
            del self.pending[key]
        counts = {
            "written": len(ids),
            "replaced": len(set(ids).intersection(self.changes.changed)),
            "removed": len(removed),
            "failed": sum(bool(one["failure"]) for one in current),
        }
        return Committed(current, counts, added_up(*(entry.extraction.notes for entry in batch.entries)))

    def publish(self) -> dict[str, int]:
        """Let readers have what the record holds, unless they have it, and return the counts of its graph.

        In a server, the next question begins with it.
        """
        self.tell("graph", 0, 1)
        if not self.record.complete:
            self.record.mark_complete(True)
        documents = self.documents
        keep_skipped(self.record, self._sources, documents.refused, documents.skipped, alone=self._key.sync)
        if not is_published(self.workspace, self.record):
            publish(self.workspace, self.record)
            FRESH_GENERATIONS.catch_up(self.root)
        header = load_header(self.workspace.index_folder(self.record.generation))
        self.tell("graph", 1, 1)
        return {name: int(header[name]) for name in ("entities", "facts", "edges")}

    def tell(self, stage: str, done: int, total: int) -> None:
        """Tell how far a stage has come."""
        rate = round(self._extracted / max(1e-9, time.monotonic() - self._started), 2)
        counts = {"failed": self._failed, "tokens": self._tokens, "rate": rate}
        self._emit({"stage": stage, "done": done, "total": total, **counts})

    @property
    def done(self) -> int:
        """How many of the passages to write are committed."""
        return self.total - len(self.pending)

    def cancel(self) -> None:
        """Send no more requests, from any thread; whatever waits to send one gets an error, as does the next node."""
        self._is_stopped = True
        if self._extraction is not None:
            self._extraction.cancel()

    def close(self) -> None:
        """Stop and release everything, the lock last, once the node at work has ended."""
        self.cancel()
        with self._lent:
            self._held.close()

    def _check_not_stopped(self) -> None:
        if self._is_stopped:
            raise Cancelled("The run was stopped", "Run it again: what was committed is kept")

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

    @cached_property
    def _writer(self) -> Writer:
        return Writer(self.record, self.embedder)

    def _current(self, findings: Sequence[FoundInPassage]) -> list[FoundInPassage]:
        """Return what was found in passages that are still to be committed, and have not changed since."""
        passages = self.documents.passages
        there = [one for key, one in {one["id"]: one for one in findings}.items() if key in self.pending]
        return [one for one in there if one["content"] == content_hash(passages[one["id"]])]

    def _count(self, extracted: Extracted | None) -> None:
        """Tell of a passage that was extracted, or imported."""
        self._extracted += 1
        if extracted is not None:
            self._failed += extracted.extraction is None
            self._tokens += extracted.usage.prompt_tokens + extracted.usage.completion_tokens
        self.tell("extract", min(self._extracted, self.total), self.total)


def keep_versions(workspace: Workspace, record: Record, context: IndexingContext) -> None:
    """Let what a run commits stand from its date, and keep what it replaces, unless the workspace keeps no versions.

    A choice of the run holds for the workspace from then on; to keep none erases those that there are.
    """
    versions = record.versions
    wanted = context.keep_versions
    if wanted is None:
        wanted = record.note(_VERSIONS) != _NO_VERSIONS
    with record.transaction():
        record.set_note(_VERSIONS, "" if wanted else _NO_VERSIONS)
        if wanted:
            versions.begin(now())
        elif versions.are_kept:
            versions.end()
    if not wanted:
        workspace.forget_past()
        record.shorten_log()
    record.stand_from(_moment(record, context) if wanted else "")


def check_date(record: Record, context: IndexingContext, passage_ids: Iterable[str]) -> None:
    """Check that a run may date what it writes so.

    Args:
        record: what there is.
        context: the run's settings.
        passage_ids: what it writes, finds unchanged or removes.

    Raises:
        BadInput: the date is none or lies in the future, the workspace keeps no versions, or one of the passages
            stands, or ended, later.
    """
    if not context.dated:
        return
    moment = first_moment(context.dated)
    if moment > now():
        raise BadInput("The date of an indexing run lies in the future", "Index what does not stand yet when it does")
    kept = record.note(_VERSIONS) != _NO_VERSIONS if context.keep_versions is None else context.keep_versions
    if not kept:
        raise BadInput("A workspace that keeps no versions has no dates", "Leave the date out, or keep versions")
    record.versions.check(passage_ids, moment, now())


def _moment(record: Record, context: IndexingContext) -> str:
    """Return the moment from which on what a run writes stands; a clock that went back changes no order."""
    return first_moment(context.dated) if context.dated else max(now(), record.versions.latest())
