"""Examining a workspace: whether record, snapshot, word index and search index agree; and deriving again what does not.

An examination writes nothing, not even what SQLite or Chroma write when they read: the record is read in place or from
a copy, the embedded search index from a copy. A repair embeds nothing: all that it writes follows from the record.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graph.checks.findings import Finding, judged, leftover, lost, repairable, sound
from graph.checks.index_checks import check_search_index, check_words, compare_snapshot, open_snapshot
from graph.checks.record_checks import MENDED, examine_record
from graph.checks.search_files import open_search_files
from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.errors import MaraError, StoreUnavailable, WorkspaceDamaged, WorkspaceLocked, WorkspaceMissing
from graph.publish.derive import forget_derivations, publish
from graph.publish.search_indexes import drop_shared, ids_of_generations, is_on_server, open_store
from graph.relationships.documents import forget_step, is_in_step, relate
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.relationships.schema import NodeType
from graph.storage.lock import WriterLock, is_being_written, writer_of
from graph.storage.place import PLACE_FILE, RECORD_FILE, RELATIONSHIPS_FILE
from graph.storage.read_only import open_read_only
from graph.storage.record import Record, RecordReader
from graph.storage.record_tables import RESTORE, DerivedRows
from graph.storage.workspace import REPLY_CACHE, Workspace, manifest_of

RELATIONSHIPS = "relationship graph"
_RESTORE = f"Restore {RELATIONSHIPS_FILE} from a backup, or delete it: conversations and views in it are then lost"
_ORPHANS = (
    "SELECT id FROM document_chunk WHERE NOT EXISTS (SELECT 1 FROM chunk_of WHERE source = key)"
    " UNION SELECT id FROM document WHERE NOT EXISTS (SELECT 1 FROM chunk_of WHERE target = key)"
)

_ATTEMPTS = 3
_UNHARMED = ("indexing run", "reply cache", RELATIONSHIPS)
"""Checks whose problems keep nothing from being derived again."""

_SEARCH = "search index"
_TEMPORARY = re.compile(r"\.(manifest\.json|tuning\.json|CURRENT)\.\d+")


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings on a workspace.

    Attributes:
        findings: one a check, in the order of looking.
        commit_id: the record's commit; empty where it cannot be read.
        generation: the published one; None where there is none.
        rows: what the record should hold beside passages and vectors; None where more is wrong with it than that.
    """

    findings: tuple[Finding, ...]
    commit_id: str
    generation: int | None
    rows: DerivedRows | None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; there may be something to tidy up."""
        return all(finding.ok for finding in self.findings)


def examine_workspace(root: Path) -> Examination:
    """Look at everything of a workspace, and write nothing.

    While a writer is at work, the published generation is looked at; that the record is ahead of it is no fault then.
    What changes while it is looked at is looked at again.

    Raises:
        WorkspaceMissing: there is none.
    """
    workspace = Workspace(root)
    if not root.is_dir() or not any(
        (root / name).exists() for name in (RECORD_FILE, PLACE_FILE, "manifest.json", "CURRENT")
    ):
        raise WorkspaceMissing(
            f"There is no workspace at {root}", "Index some documents first: `mara index SOURCE...`, or `mara demo`"
        )
    for _ in range(_ATTEMPTS):
        before = _state(workspace)
        with TemporaryDirectory(prefix="mara-doctor-") as scratch:
            found, pinned = _examine(workspace, Path(scratch))
        after = _state(workspace)
        if after == before or (pinned and after[0] == before[0]):
            break
    return found


def repair_workspace(root: Path) -> tuple[Examination, list[str], Examination]:
    """Derive again what does not agree with the record, and tidy up; nothing is embedded.

    Where something is broken that cannot be derived, nothing is written at all: what is derived would be as broken.

    Returns:
        What was found before, what was done, in sentences, and what is found now.

    Raises:
        WorkspaceMissing: there is none.
        WorkspaceLocked: another process is writing.
        StoreUnavailable: the Chroma server does not take what is written.
    """
    before = examine_workspace(root)
    if before.rows is None or not all(f.ok or f.repairable or f.check in _UNHARMED for f in before.findings):
        return before, [], before
    if not any(finding.repairable for finding in before.findings):
        return before, [], before
    workspace = Workspace(root)
    lock = WriterLock(workspace.record_path)
    try:
        with Record(workspace.record_path) as record:
            record.fence(lock.check)
            if (record.commit_id, workspace.current()) != (before.commit_id, before.generation):
                raise WorkspaceLocked(f"{root} was written meanwhile", "Run the same command again")
            done = list(_repair(workspace, record, before))
    finally:
        lock.release()
    return before, done, examine_workspace(root)


def _state(workspace: Workspace) -> tuple[int | None, list[tuple[int, int]]]:
    """Return what tells that somebody wrote: the published generation, and times and sizes of the record's files."""
    record = workspace.record_path
    files = [path.stat() for path in (record, record.with_name(f"{record.name}-wal")) if path.exists()]
    return workspace.current(), [(file.st_mtime_ns, file.st_size) for file in files]


def _examine(workspace: Workspace, scratch: Path) -> tuple[Examination, bool]:
    """Look once; return what was found, and whether the record that was read is of one moment for sure."""
    generation = workspace.current()
    try:
        record = RecordReader(workspace.record_path)
    except MaraError as fault:
        findings = [lost("record file", fault.message, fault.hint or RESTORE)]
        findings += _check_without_record(workspace, generation)
        return Examination(tuple(findings), "", generation, None), True
    with record:
        findings, rows = examine_record(record)
        if rows is None or not all(finding.ok or finding.repairable for finding in findings):
            findings += _check_without_record(workspace, generation)
            return Examination(tuple(findings), "", generation, None), record.pinned
        look = _Look(workspace, record, generation, scratch, _writer_at_work(record, workspace))
        return Examination((*findings, *look.findings()), record.commit_id, generation, rows), record.pinned


def _check_without_record(workspace: Workspace, generation: int | None) -> list[Finding]:
    """Tell whether questions can still be answered, where the record is broken."""
    if generation is None:
        return []
    folder = workspace.index_folder(generation)
    finding, graph = open_snapshot(folder)
    return [finding] if graph is None else [finding, check_words(folder, len(graph.passages), None)]


def _writer_at_work(record: RecordReader, workspace: Workspace) -> str:
    """Return who is writing; empty where nobody is, or somebody was who has been killed."""
    writer = writer_of(record)
    return writer if writer and is_being_written(workspace.record_path) else ""


@dataclass(frozen=True, slots=True)
class _Look:
    """A look at what lies around a record that is whole.

    Attributes:
        generation: the published one; None where there is none.
        scratch: an empty folder for copies.
        writer: who is writing; empty where nobody is.
    """

    workspace: Workspace
    record: RecordReader
    generation: int | None
    scratch: Path
    writer: str

    def findings(self) -> Iterator[Finding]:
        """Yield what is found, in the order of looking."""
        yield self._check_writer()
        yield self._check_run()
        yield from self._check_manifest()
        yield from self._check_generation()
        yield from self._check_leftovers()
        yield self._check_replies()
        yield self._check_relationships()

    def _check_writer(self) -> Finding:
        if self.writer:
            return sound("writer", f"A writer is at work ({self.writer}): what it published last is looked at")
        if killed := writer_of(self.record):
            ended = f"A writer ({killed}) ended without giving the workspace back; the next one takes over"
            return sound("writer", ended)
        return sound("writer", "Nobody is writing")

    def _check_run(self) -> Finding:
        if self.record.complete:
            return sound("indexing run", "The last indexing run was finished")
        if self.writer:
            return sound("indexing run", "An indexing run is under way")
        advice = "Run the same command again: it resumes after the last commit"
        return lost("indexing run", "The last indexing run was interrupted", advice)

    def _check_manifest(self) -> Iterator[Finding]:
        """Compare the manifest with the record, and with what is published."""
        path = self.workspace.root / "manifest.json"
        if not path.exists() and self.generation is None:
            return
        expected = manifest_of(self.record, self.generation)
        try:
            held: Any = json.loads(path.read_text(encoding="utf-8"))
            differing = [name for name, value in expected.items() if held.get(name) != value]
        except (OSError, ValueError, AttributeError) as fault:
            yield repairable("manifest", f"manifest.json cannot be read ({type(fault).__name__})")
            return
        if self.writer and held.get("workspace_id") == self.record.workspace_id:
            differing = []
        problem = "manifest.json is not of this record and generation"
        yield judged("manifest", differing, problem, "manifest.json is of this record")

    def _check_leftovers(self) -> Iterator[Finding]:
        """Name what nobody needs; while a writer is at work, what it is making looks the same."""
        if self.writer:
            return
        for check, paths, message in (
            ("older generations", self.workspace.stale_folders(), "older or half-made generations that nobody reads"),
            ("temporary files", _temporary_files(self.workspace.root), "files that a killed writer left"),
        ):
            if paths:
                yield leftover(check, f"There are {len(paths)} {message}", (path.name for path in paths))
            else:
                yield sound(check, "None left over")

    def _check_replies(self) -> Finding:
        """Tell whether SQLite can read the replies that are kept, if any are."""
        check, path = "reply cache", self.workspace.root / REPLY_CACHE
        if self.writer:
            return sound(check, "Not looked at, as a writer is at work")
        if not path.exists():
            return sound(check, "No replies of models are kept")
        try:
            with closing(open_read_only(path, self.scratch)[0]) as db:
                said = [str(line) for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]
        except sqlite3.DatabaseError as fault:
            said = [str(fault)]
        problem, fine = (f"The replies of models that are kept {verb} be read" for verb in ("cannot", "can"))
        advice = f"Delete {path.name}: what it held is requested again when needed"
        return judged(check, said, problem, fine, advice)

    def _check_relationships(self) -> Finding:
        if self.writer:
            return sound(RELATIONSHIPS, "Not looked at, as a writer is at work")
        return check_relationships(self.workspace, self.record)

    def _check_generation(self) -> Iterator[Finding]:
        """Look at what is published, and compare it with the record while that has not moved on."""
        check, generation, record = "published generation", self.generation, self.record
        if generation is None:
            if self.writer or not record.count_passages():
                yield sound(check, "Nothing is published yet")
            else:
                yield repairable(check, "CURRENT names no generation: nothing is published")
            return
        folder = self.workspace.index_folder(generation)
        finding, graph = open_snapshot(folder)
        if graph is None:
            yield finding
            return
        is_of_record = graph.commit_id == record.commit_id
        if is_of_record:
            yield sound(check, f"Generation {generation} is of the record as it stands")
        elif self.writer:
            yield sound(check, f"Generation {generation} is published; the record has moved on, as a writer is at work")
        else:
            yield repairable(check, f"Generation {generation} is not of the record as it stands, and nobody is writing")
        yield finding
        fresh, same = None, False
        if is_of_record:
            fresh = self.scratch / "fresh"
            fresh.mkdir()
            compared = compare_snapshot(graph, derive_graph(record, fresh))
            same = compared.ok
            yield compared
        yield check_words(folder, len(graph.passages), fresh)
        yield from self._check_store(graph, record if same else None)

    def _check_store(self, graph: KnowledgeGraph, record: RecordReader | None) -> list[Finding]:
        """Look at the search index: at its files, at a copy of the embedded one, or at the server's."""
        on_server = is_on_server(self.workspace, graph.generation)
        if on_server and self.writer:
            return [sound(_SEARCH, "The search index on the server is being written, and not looked at")]
        kept = ids_of_generations(self.workspace) if on_server else {}
        others = {name: {*chain.from_iterable(kept.get(name, {}).values())} for name in ("facts", "passages")}
        try:
            if on_server:
                store = open_store(self.workspace, self.record.workspace_id, graph.generation)
            else:
                store = open_search_files(self.workspace, graph.generation, self.scratch)
        except WorkspaceDamaged as fault:
            return [repairable(_SEARCH, fault.message)]
        except MaraError as fault:
            return [lost(_SEARCH, fault.message, fault.hint)]
        try:
            with closing(store):
                return check_search_index(store, graph, record, others)
        except (WorkspaceDamaged, StoreUnavailable) as fault:
            return [repairable(_SEARCH, fault.message)]


def _temporary_files(root: Path) -> list[Path]:
    """Return the files that a writer puts in place of others, and did not."""
    return [path for path in root.iterdir() if _TEMPORARY.fullmatch(path.name)]


def _repair(workspace: Workspace, record: Record, found: Examination) -> Iterator[str]:
    """Put right what can be; yield what was done."""
    to_mend = {finding.check for finding in found.findings if finding.repairable}
    broken = {finding.check for finding in found.findings if not finding.ok and finding.repairable} - {RELATIONSHIPS}
    unknown = {finding.check for finding in found.findings if finding.ok and finding.repairable}
    if found.rows and broken & MENDED:
        record.replace_derived(found.rows)
        yield "Put the record's tables of names, facts, links and synonyms right"
    if broken == {"manifest"}:
        workspace.publish(record)
        yield "Wrote manifest.json again"
    elif broken or any(check.startswith(_SEARCH) for check in unknown):
        _derive_again(workspace, record, forget_store=any(check.startswith(_SEARCH) for check in broken))
        yield f"Derived snapshot, word index and search index again, as generation {record.generation}"
    lost_ones = {finding.check for finding in found.findings if not finding.ok and not finding.repairable}
    if RELATIONSHIPS in to_mend or (broken and RELATIONSHIPS not in lost_ones and has_relationships(workspace.root)):
        yield _relate_again(workspace, record)
    for path in _temporary_files(workspace.root):
        path.unlink()
        yield f"Deleted {path.name}"
    for folder in workspace.stale_folders():
        shutil.rmtree(folder)
        yield f"Deleted generation {folder.name}"


def _relate_again(workspace: Workspace, record: Record) -> str:
    """Compare all of the relationship graph with the passages, and write what differs; return what was done."""
    with RelationshipRecord.of(workspace.root) as relationships:
        forget_step(relationships)
    relate(workspace, record)
    return "Brought the relationship graph in step with the passages"


def _derive_again(workspace: Workspace, record: Record, *, forget_store: bool) -> None:
    """Publish what the record gives, and take nothing over from what was published before."""
    if forget_store:
        drop_shared(workspace, record.workspace_id)
    forget_derivations()
    # What exists in part is derived under the next number, and without a copy.
    workspace.index_folder(record.generation).mkdir(parents=True, exist_ok=True)
    publish(workspace, record)


def check_relationships(workspace: Workspace, record: Record) -> Finding:
    """Look at the relationship graph, if there is one; nothing is written.

    What indexing derived can be put right; what conversations wrote cannot.
    """
    if not has_relationships(workspace.root):
        return sound(RELATIONSHIPS, "The workspace has none")
    try:
        with RelationshipRecord.of(workspace.root, read_only=True) as relationships:
            if faults := relationships.faults_found():
                return lost(RELATIONSHIPS, f"SQLite finds faults in {RELATIONSHIPS_FILE}", _RESTORE, faults)
            return _compare(relationships, record)
    except MaraError as fault:
        return lost(RELATIONSHIPS, fault.message, fault.hint or _RESTORE)


def _compare(relationships: RelationshipRecord, record: Record) -> Finding:
    if not is_in_step(relationships, record):
        return leftover(RELATIONSHIPS, "It is not in step with the passages", [])
    chunks = dict(relationships.execute("SELECT id, fingerprint FROM document_chunk"))
    passages = record.fingerprints()
    wrong = {key for key in chunks.keys() | passages.keys() if chunks.get(key) != passages.get(key)}
    wrong |= {key for (key,) in relationships.execute(_ORPHANS)}
    documents, messages = map(relationships.count, (NodeType.DOCUMENT, NodeType.MESSAGE))
    told = f"{documents:,} documents, {record.count_names():,} concepts, {messages:,} messages"
    problem = f"It does not hold the passages and their documents as they are, in {len(wrong)} places"
    return judged(RELATIONSHIPS, wrong, problem, f"In step with the passages: {told}")
