"""Examining a workspace: whether record, snapshot, word index and search index agree; and deriving again what does not.

An examination writes nothing, not even what SQLite or Chroma write when they read: the record is read in place or from
a copy, the embedded search index from a copy. A repair embeds nothing: all that it writes follows from the record.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph.checks.findings import Finding, judged, leftover, lost, repairable, sound
from graph.checks.index_checks import check_vectors, compare_with_record, open_snapshot
from graph.checks.record_checks import MENDED, examine_record
from graph.errors import MaraError, WorkspaceLocked, WorkspaceMissing
from graph.publish.derive import publish
from graph.relationships.documents import forget_step, is_in_step, relate
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.relationships.schema import NodeType
from graph.storage.database import FIRST_FORMAT, SqliteDatabase
from graph.storage.lock import WriterLock, is_being_written, writer_of
from graph.storage.place import PLACE_FILE, RECORD_FILE, RELATIONSHIPS_FILE
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

_TEMPORARY = re.compile(r"\.(manifest\.json|tuning\.json|CURRENT|\w+\.sqlite)\.\d+(-wal|-shm)?")


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
    A workspace that changes while it is looked at is looked at again.

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
        examination = _examine(workspace)
        if _state(workspace) == before:
            break
    return examination


def repair_workspace(root: Path) -> tuple[Examination, list[str], Examination]:
    """Derive again what does not agree with the record, and tidy up; nothing is embedded.

    Where something is broken that cannot be derived, nothing is written at all: what is derived would be as broken.

    Returns:
        The findings before, the repairs, in sentences, and the findings now.

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


def _examine(workspace: Workspace) -> Examination:
    """Look once."""
    generation = workspace.current()
    try:
        record = RecordReader(workspace.record_path)
    except MaraError as fault:
        findings = [lost("record file", fault.message, fault.hint or RESTORE)]
        return Examination((*findings, *_answerable(workspace, generation)), "", generation, None)
    with record:
        findings, rows = examine_record(record)
        if rows is None:
            return Examination((*findings, *_answerable(workspace, generation)), "", generation, None)
        writer = writer_of(record)
        is_written = bool(writer) and is_being_written(workspace.record_path)
        findings += _check_writing(record, writer, is_written=is_written)
        findings += _check_manifest(workspace, record, generation, is_written=is_written)
        findings += _check_generation(workspace, record, generation, is_written=is_written)
        if not is_written:
            findings += _check_leftovers(workspace)
            findings += [_check_replies(workspace), check_relationships(workspace, record)]
        return Examination(tuple(findings), record.commit_id, generation, rows)


def _answerable(workspace: Workspace, generation: int | None) -> list[Finding]:
    """Tell whether questions can still be answered, where the record is broken."""
    return [] if generation is None else [open_snapshot(workspace.index_folder(generation))[0]]


def _check_writing(record: RecordReader, writer: str, *, is_written: bool) -> Iterator[Finding]:
    if is_written:
        yield sound("writer", f"A writer is at work ({writer}): what it published last is looked at, and nothing else")
    elif writer:
        yield sound("writer", f"A writer ({writer}) ended without giving the workspace back; the next one takes over")
    else:
        yield sound("writer", "No process is writing")
    if record.complete or is_written:
        yield sound("indexing run", "The last indexing run was finished, or is under way")
    else:
        advice = "Run the same command again: it resumes after the last commit"
        yield lost("indexing run", "The last indexing run was interrupted", advice)


def _check_manifest(
    workspace: Workspace, record: RecordReader, generation: int | None, *, is_written: bool
) -> Iterator[Finding]:
    """Compare the manifest with the record, and with what is published."""
    path = workspace.root / "manifest.json"
    if not path.exists() and generation is None:
        return
    expected = manifest_of(record, generation)
    try:
        manifest: Any = json.loads(path.read_text(encoding="utf-8"))
        differing = [name for name, value in expected.items() if manifest.get(name) != value]
    except (OSError, ValueError, AttributeError) as fault:
        yield repairable("manifest", f"manifest.json cannot be read ({type(fault).__name__})")
        return
    if is_written and manifest.get("workspace_id") == record.workspace_id:
        differing = []
    problem = "manifest.json is not of this record and generation"
    yield judged("manifest", differing, problem, "manifest.json is of this record")


def _check_generation(
    workspace: Workspace, record: RecordReader, generation: int | None, *, is_written: bool
) -> Iterator[Finding]:
    """Look at what is published, and compare it with the record while that has not moved on."""
    check = "published generation"
    if generation is None:
        if is_written or not record.count_passages():
            yield sound(check, "Nothing is published yet")
        else:
            yield repairable(check, "CURRENT names no generation: nothing is published")
        return
    folder = workspace.index_folder(generation)
    finding, graph = open_snapshot(folder)
    if graph is None:
        yield finding
        return
    is_of_record = graph.commit_id == record.commit_id
    if is_of_record:
        yield sound(check, f"Generation {generation} is of the record as it stands")
    elif is_written:
        yield sound(check, f"Generation {generation} is published; the record has moved on, as a writer is at work")
    else:
        yield repairable(check, f"Generation {generation} is not of the record as it stands, and no process is writing")
    yield finding
    if is_of_record:
        compared = compare_with_record(folder, record)
        yield compared
    yield from check_vectors(workspace, graph, record, same=is_of_record and compared.ok)


def _check_leftovers(workspace: Workspace) -> Iterator[Finding]:
    """Name leftovers; the files that a writer is making would look the same."""
    for check, paths, message in (
        ("older generations", workspace.stale_folders(), "older or half-made generations that no process reads"),
        ("temporary files", _temporary_files(workspace.root), "files that a killed writer left"),
    ):
        if paths:
            yield leftover(check, f"There are {len(paths)} {message}", (path.name for path in paths))
        else:
            yield sound(check, "None left over")


def _check_replies(workspace: Workspace) -> Finding:
    """Tell whether SQLite can read the replies that are kept, if any are."""
    path, said = workspace.root / REPLY_CACHE, list[str]()
    if not path.exists():
        return sound("reply cache", "No replies of models are kept")
    try:
        with SqliteDatabase(path, FIRST_FORMAT, "", read_only=True) as replies, replies.faults_named():
            said, _ = replies.faults_found()
    except MaraError as fault:
        said = [fault.message]
    problem, fine = (f"The replies of models that are kept {verb} be read" for verb in ("cannot", "can"))
    advice = f"Delete {path.name}: what it held is requested again when needed"
    return judged("reply cache", said, problem, fine, advice)


def _temporary_files(root: Path) -> list[Path]:
    """Return the files that a writer puts in place of others, and did not."""
    return [path for path in root.iterdir() if _TEMPORARY.fullmatch(path.name)]


def _repair(workspace: Workspace, record: Record, results: Examination) -> Iterator[str]:
    """Put right what can be; yield what was done."""
    to_mend = {finding.check for finding in results.findings if finding.repairable}
    broken = {finding.check for finding in results.findings if not finding.ok and finding.repairable} - {RELATIONSHIPS}
    if results.rows and broken & MENDED:
        record.replace_derived(results.rows)
        yield "Put the record's tables of names, facts and links right"
    if broken == {"manifest"}:
        workspace.publish(record)
        yield "Wrote manifest.json again"
    elif broken:
        # What exists in part is derived under the next number, and without a copy.
        workspace.index_folder(record.generation).mkdir(parents=True, exist_ok=True)
        publish(workspace, record)
        yield f"Derived snapshot, word index and search index again, as generation {record.generation}"
    lost_ones = {finding.check for finding in results.findings if not finding.ok and not finding.repairable}
    if RELATIONSHIPS in to_mend or (broken and RELATIONSHIPS not in lost_ones and has_relationships(workspace.root)):
        with RelationshipRecord.of(workspace.root) as relationships:
            forget_step(relationships)
        relate(workspace, record)
        yield "Brought the relationship graph in step with the passages"
    for path in _temporary_files(workspace.root):
        path.unlink()
        yield f"Deleted {path.name}"
    for folder in workspace.stale_folders():
        shutil.rmtree(folder)
        yield f"Deleted generation {folder.name}"


def check_relationships(workspace: Workspace, record: Record) -> Finding:
    """Look at the relationship graph, if there is one; nothing is written.

    Rows that indexing derived can be put right; those that conversations wrote cannot.
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
    counts = f"{documents:,} documents, {record.count_names():,} concepts, {messages:,} messages"
    problem = f"It does not hold the passages and their documents as they are, in {len(wrong)} places"
    return judged(RELATIONSHIPS, wrong, problem, f"In step with the passages: {counts}")
