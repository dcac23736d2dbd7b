"""Examining a workspace: whether record, snapshot, word index and search index agree; and deriving again what does not.

An examination writes nothing, not even what SQLite or Chroma write when they read: the record is read in place or from
a copy, the embedded search index from a copy. A repair embeds nothing: all that it writes follows from the record.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from graph.construction.bm25 import SparseIndex
from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.corrections.apply import Corrections, Stated
from graph.errors import MaraError, WorkspaceDamaged, WorkspaceLocked, WorkspaceMissing
from graph.moments import ALWAYS, FOREVER
from graph.publish.derive import publish
from graph.publish.generation_vectors import GenerationVectors, is_on_server, open_vectors
from graph.publish.vector_store import COLLECTIONS
from graph.relationships.documents import forget_step, is_in_step, relate
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.relationships.schema import NodeType
from graph.storage.entry import Entry, facts_of, names_of
from graph.storage.lock import WriterLock, is_being_written, writer_of
from graph.storage.place import PLACE_FILE, RECORD_FILE, RELATIONSHIPS_FILE
from graph.storage.record import Record, RecordReader, declared_types
from graph.storage.record_tables import HELD_BY, RESTORE, Corrected, DerivedRows
from graph.storage.workspace import Workspace, manifest_of

_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one check.

    Attributes:
        check: what was looked at.
        ok: whether it is as it should be.
        message: what was found, in a sentence.
        repairable: whether a repair puts it right; where all is well: whether there is something to tidy up.
        advice: what to do about it, where a repair does not.
        examples: some of the ids, files or values that are meant.
    """

    check: str
    ok: bool
    message: str
    repairable: bool = False
    advice: str = ""
    examples: tuple[str, ...] = ()


def sound(check: str, message: str) -> Finding:
    """Say that all is well."""
    return Finding(check, True, message)


def leftover(check: str, message: str, examples: Iterable[str]) -> Finding:
    """Say that all is well, and that something is left over."""
    return Finding(check, True, message, True, "", _some(examples))


def repairable(check: str, message: str, examples: Iterable[str] = ()) -> Finding:
    """Say what a repair puts right."""
    return Finding(check, False, message, True, "", _some(examples))


def lost(check: str, message: str, advice: str, examples: Iterable[str] = ()) -> Finding:
    """Say what no repair puts right, and what to do."""
    return Finding(check, False, message, False, advice, _some(examples))


def judged(check: str, wrong: Collection[str], problem: str, fine: str, advice: str = "") -> Finding:
    """Say that all is fine where nothing is wrong, else what the problem is; a repair solves it unless there is advice.

    Args:
        check: what was looked at.
        wrong: the ids or values that are wrong.
        problem: what to say of them.
        fine: what to say where there are none.
        advice: what to do about it, where no repair puts it right.
    """
    return Finding(check, False, problem, not advice, advice, _some(wrong)) if wrong else sound(check, fine)


def _some(examples: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(examples)[:_EXAMPLES])


MENDED = {"record file", "derived rows"}
"""Checks whose problems `Record.replace_derived` solves."""

_REEMBED = "Run `mara doctor --reembed`: it embeds again the texts, which the record still holds"
_INDEX_AGAIN = "Index their sources again (`mara index` or `mara sync`), which replaces them, or restore a backup"
_NO_VERSIONS = "Restore the record from a backup, or erase all versions: `mara index SOURCE --set keep_versions=false`"
_DERIVED_TABLES = {*(f"passage_{table}" for table in HELD_BY), "synonyms", "corrected"}


def examine_record(record: RecordReader) -> tuple[list[Finding], DerivedRows | None]:
    """Return what is right and wrong with a record, and the rows that it should hold; None where they cannot be told.

    A check that rests on something broken is left out.
    """
    findings: list[Finding] = []
    try:
        for check in (_check_file, _check_settings):
            findings.append(check(record))
            if not findings[-1].ok and not findings[-1].repairable:
                return findings, None
        entries = dict(record.examined())
        whole = [entry for entry in entries.values() if entry is not None]
        broken = [key for key, entry in entries.items() if entry is None]
        problem = f"{len(broken)} passages cannot be read, or are not what was written"
        fine = f"{len(whole)} passages are what was written"
        findings.append(judged("passages", broken, problem, fine, _INDEX_AGAIN))
        if broken:
            return findings, None
        corrections = Corrections(record.corrections())
        rows = _rows_of([(entry, corrections.stated(entry.passage, entry.extraction)) for entry in whole])
        stored = record.derived_rows()
        findings += [_check_versions(record, corrections), _check_vectors(record, rows, stored)]
        if not findings[-1].ok:
            return findings, None
        return [*findings, _check_rows(rows, stored)], rows
    except (MaraError, ValueError, TypeError) as fault:
        return [*findings, lost("record file", f"The record cannot be read ({fault})", RESTORE)], None


def _check_file(record: RecordReader) -> Finding:
    said, tables = record.faults_of_file()
    if said or tables - _DERIVED_TABLES:
        return lost("record file", "SQLite finds the record damaged", RESTORE, said or tables)
    problem = "Rows of the record refer to rows that are not there"
    return judged("record file", tables, problem, "SQLite finds the record whole")


def _check_settings(record: RecordReader) -> Finding:
    check = "record settings"
    try:
        declared_types(record)
        generation, model = record.generation, record.embedding_model
        lacks_model = record.count_passages() and not (model and record.dimension)
        if not (record.workspace_id and record.commit_id) or lacks_model:
            raise ValueError("an id or the model is missing")
    except (MaraError, ValueError) as fault:
        return lost(check, f"The record does not properly tell its settings ({fault})", RESTORE)
    return sound(check, f"Generation {generation}, vectors of {model or 'no model yet'}")


def _rows_of(stated: Sequence[tuple[Entry, Stated]]) -> DerivedRows:
    """Return the rows that follow from passages."""
    rows = DerivedRows({table: {} for table in HELD_BY}, {table: set() for table in HELD_BY}, {})
    for entry, says in stated:
        for table, texts in (("names", names_of(says)), ("facts", facts_of(says))):
            rows.texts[table].update(texts)
            rows.links[table].update((entry.passage.id, key) for key in texts)
        if says.by:
            rows.corrected[entry.passage.id] = Corrected(says.fingerprint(entry.fingerprint), says.by)
    return rows


def _check_versions(record: RecordReader, corrections: Corrections) -> Finding:
    """Compare past versions with what was written, and look for passages of which two versions stand at once."""
    versions = record.versions
    if not versions.are_kept:
        return sound("versions", "No versions are kept")
    wrong = set(record.odd_vectors("past_passages"))
    last: dict[str, str] = {}
    try:
        for span in versions.spans():
            if span.since < last.get(span.passage_id, ALWAYS):
                wrong.add(span.passage_id)
            last[span.passage_id] = span.until or FOREVER
            if span.version is not None:
                entry = versions.entry(span)
                facts = {*facts_of(corrections.stated(entry.passage, entry.extraction))}
                if (versions.fingerprint(span), versions.facts(span)) != (entry.fingerprint, facts):
                    wrong.add(span.passage_id)
    except (ValueError, TypeError) as fault:
        return lost("versions", f"A past version cannot be read ({fault})", _NO_VERSIONS)
    problem = f"Past versions of {len(wrong)} passages are not what was written, or stand while another one does"
    fine = f"Each of {versions.count()} past versions is what was written, and stands alone in its time"
    return judged("versions", wrong, problem, fine, _NO_VERSIONS)


def _check_vectors(record: RecordReader, rows: DerivedRows, stored: DerivedRows) -> Finding:
    lacking = [text for table in HELD_BY for key, text in rows.texts[table].items() if key not in stored.texts[table]]
    odd = [key for table in ("passages", *HELD_BY) for key in record.odd_vectors(table)]
    problem = (
        f"{len(lacking)} names and facts that passages hold have no vector, {len(odd)} vectors are broken: of another"
        " length, not finite, or no unit vectors"
    )
    fine = f"All names and facts of passages are there, and all vectors are unit vectors of {record.dimension} numbers"
    return judged("vectors", lacking + odd, problem, fine, _REEMBED)


def _check_rows(rows: DerivedRows, stored: DerivedRows) -> Finding:
    """Compare the rows that follow from passages with what they should be."""
    wrong = {key for key, _ in rows.corrected.items() ^ stored.corrected.items()}
    for table in HELD_BY:
        wrong |= {key for key, _ in rows.texts[table].items() ^ stored.texts[table].items()}
        wrong |= {" ".join(link) for link in rows.links[table] ^ stored.links[table]}
    problem = f"{len(wrong)} names, facts, links or corrected passages are not what the passages give"
    counts = ", ".join(f"{len(texts):,} {table}" for table, texts in rows.texts.items())
    fine = f"{counts} and their links are what the passages give"
    return judged("derived rows", wrong, problem, fine)


SEARCH = "search index"

_WEIGHT_TOLERANCE = 1e-6
_VECTOR_TOLERANCE = 2.5e-4
"""Half precision, which many facts are mapped in, is half of that from what it stands for."""

_PAGE = 5_000
_SEARCHES = 20


def open_snapshot(folder: Path) -> tuple[Finding, KnowledgeGraph | None]:
    """Read a snapshot and its word index, all of their numbers and texts."""
    try:
        graph = load(folder)
        named = chain(graph.entity_names, graph.entity_labels, graph.aliases)
        deque(chain(named, graph.passages, graph.facts, graph.facts.rows), maxlen=0)
        words = SparseIndex.load(folder / "bm25", len(graph.passages))
    except Exception as fault:
        # Whatever a damaged file makes its reader raise.
        return repairable("snapshot", f"The snapshot cannot be read ({fault})", [folder.name]), None
    message = (
        f"{len(graph.passages)} passages, {graph.n_entities} entities, {len(graph.edges)} edges and"
        f" {len(words.numbers)} words can be read"
    )
    return sound("snapshot", message), graph


def compare_with_record(folder: Path, record: RecordReader) -> Finding:
    """Compare the files of a generation with those that the record gives now."""
    with TemporaryDirectory(prefix="mara-doctor-") as scratch:
        fresh = Path(scratch)
        derive_graph(record, fresh)
        differing = differing_files(folder, fresh)
    problem = f"{len(differing)} files of the generation are not what the record gives"
    return judged("snapshot and record", differing, problem, "The snapshot is what the record gives, edge for edge")


def differing_files(folder: Path, fresh: Path) -> list[str]:
    """Return the names of the files of a fresh folder that another one does not have alike."""
    names = [path.relative_to(fresh) for path in sorted(fresh.rglob("*")) if path.is_file()]
    return [str(name) for name in names if not _alike(folder / name, fresh / name)]


def _alike(stored: Path, fresh: Path) -> bool:
    """Tell whether two files say the same, but for what rounding changes."""
    if not stored.exists():
        return False
    if stored.read_bytes() == fresh.read_bytes():
        return True
    if fresh.suffix != ".npy":
        return False
    one, other = np.load(stored), np.load(fresh)
    is_float = one.dtype.kind == "f" and (one.shape, one.dtype) == (other.shape, other.dtype)
    return is_float and np.allclose(one, other, rtol=_WEIGHT_TOLERANCE, atol=_WEIGHT_TOLERANCE)


def check_vectors(
    workspace: Workspace, graph: KnowledgeGraph, record: RecordReader, *, same: bool
) -> Iterator[Finding]:
    """Look at the vectors of a generation: at a server's, or at files, which another process reads first.

    Args:
        workspace: whose generation it is.
        graph: the generation's snapshot.
        record: the workspace's.
        same: whether the snapshot is what the record gives, and its facts' vectors can be compared.
    """
    on_server = is_on_server(workspace, graph.generation)
    if reason := "" if on_server else why_unreadable(workspace.root, graph.generation):
        yield repairable(SEARCH, f"The search index cannot be read ({reason})")
        return
    try:
        with closing(open_vectors(workspace, record.workspace_id, graph, untouched=True)) as vectors:
            facts, passages = graph.facts.ids, graph.passage_vectors
            yield _compare_vectors(vectors, "passages", len(passages), lambda page: passages[page])
            if same:
                yield _compare_vectors(vectors, "facts", len(facts), lambda page: record.fact_vectors([*facts[page]]))
    except WorkspaceDamaged as fault:
        yield repairable(SEARCH, fault.message)
    except MaraError as fault:
        yield lost(SEARCH, fault.message, fault.hint)


def _compare_vectors(
    vectors: GenerationVectors, name: str, count: int, read: Callable[[slice], NDArray[np.float32]]
) -> Finding:
    """Compare all vectors, some thousand at a time, and search for some; ``read`` returns what a slice should be."""
    wrong: set[str] = set()
    searched = range(0, count, max(1, count // _SEARCHES))
    for page in _pages(count):
        right, stored = read(slice(page.start, page.stop)), vectors.vectors(name, page)
        odd = np.flatnonzero(np.abs(stored - right).max(axis=1) > _VECTOR_TOLERANCE)
        wrong.update(str(page[row]) for row in odd.tolist())
        hits = {row: vectors.search(name, right[row - page.start], 1) for row in searched if row in page}
        wrong.update(str(row) for row, hit in hits.items() if not hit or hit[0][1] < 1 - _VECTOR_TOLERANCE)
    problem = f"{len(wrong)} vectors of {name} are not those of the record, or a search does not find them"
    fine = f"All {count} vectors of {name} are those of the record, and are found"
    return judged(f"{SEARCH}: vectors of {name}", wrong, problem, fine)


def _pages(count: int) -> Iterator[range]:
    return (range(start, min(start + _PAGE, count)) for start in range(0, count, _PAGE))


def why_unreadable(root: Path, generation: int) -> str:
    """Return how a process ended that read a generation's vectors; empty where it came to its end."""
    command = [sys.executable, "-m", __name__, str(root.absolute()), str(generation)]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    if ended.returncode < 0:
        return f"it ends the process that reads it, {ended.returncode}"
    return ended.stderr.strip().splitlines()[-1] if ended.returncode else ""


def read_everything(root: Path, generation: int) -> None:
    """Read every vector, and go through all links between them; nothing is written.

    Raises:
        WorkspaceDamaged: something cannot be read.
    """
    workspace = Workspace(root)
    with closing(open_vectors(workspace, "", load(workspace.index_folder(generation)), untouched=True)) as vectors:
        for name in COLLECTIONS:
            count = vectors.count(name)
            for page in _pages(count):
                vectors.search(name, vectors.vectors(name, page)[0], count)


RELATIONSHIPS = "relationship graph"
_RESTORE = f"Restore {RELATIONSHIPS_FILE} from a backup, or delete it: conversations and views in it are then lost"
_ORPHANS = (
    "SELECT id FROM document_chunk WHERE NOT EXISTS (SELECT 1 FROM chunk_of WHERE source = key)"
    " UNION SELECT id FROM document WHERE NOT EXISTS (SELECT 1 FROM chunk_of WHERE target = key)"
)
_UNHARMED = ("indexing run", RELATIONSHIPS)
"""Checks whose problems keep nothing from being derived again."""


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

    Raises:
        WorkspaceMissing: there is none.
    """
    workspace = Workspace(root)
    if not any((root / name).exists() for name in (RECORD_FILE, PLACE_FILE, "manifest.json", "CURRENT")):
        raise WorkspaceMissing(
            f"There is no workspace at {root}", "Index some documents first: `mara index SOURCE...`, or `mara demo`"
        )
    generation = workspace.current()
    try:
        record = RecordReader(workspace.record_path)
    except MaraError as fault:
        finding = lost("record file", fault.message, fault.hint or RESTORE)
        return Examination((finding, *_answerable(workspace, generation)), "", generation, None)
    with record:
        findings, rows = examine_record(record)
        if rows is None:
            return Examination((*findings, *_answerable(workspace, generation)), "", generation, None)
        findings += _check_files(workspace, record, generation)
        return Examination(tuple(findings), record.commit_id, generation, rows)


def _answerable(workspace: Workspace, generation: int | None) -> list[Finding]:
    """Tell whether questions can still be answered, where the record is broken."""
    return [] if generation is None else [open_snapshot(workspace.index_folder(generation))[0]]


def _check_files(workspace: Workspace, record: RecordReader, generation: int | None) -> Iterator[Finding]:
    """Look at everything beside the record; what a writer is making is left alone."""
    if is_being_written(workspace.record_path):
        message = f"A writer is at work ({writer_of(record)}): what it published last is looked at, and nothing else"
        yield sound("writer", message)
        yield from _check_generation(workspace, record, generation, is_written=True)
        return
    yield sound("writer", "No process is writing")
    if record.complete:
        yield sound("indexing run", "The last indexing run was finished")
    else:
        advice = "Run the same command again: it resumes after the last commit"
        yield lost("indexing run", "The last indexing run was interrupted", advice)
    yield _check_manifest(workspace, record, generation)
    yield from _check_generation(workspace, record, generation, is_written=False)
    if stale := workspace.stale_folders():
        message = f"There are {len(stale)} older or half-made generations that no process reads"
        yield leftover("older generations", message, (folder.name for folder in stale))
    else:
        yield sound("older generations", "None left over")
    yield check_relationships(workspace, record)


def _check_manifest(workspace: Workspace, record: RecordReader, generation: int | None) -> Finding:
    """Compare the manifest with the record, and with what is published."""
    path = workspace.root / "manifest.json"
    expected = manifest_of(record, generation)
    try:
        manifest = json.loads(path.read_bytes()) if path.exists() or generation is not None else expected
        differing = [name for name, value in expected.items() if manifest.get(name) != value]
    except (OSError, ValueError, AttributeError):
        differing = [path.name]
    problem = "manifest.json is not of this record and generation"
    return judged("manifest", differing, problem, "manifest.json is of this record")


def _check_generation(
    workspace: Workspace, record: RecordReader, generation: int | None, *, is_written: bool
) -> Iterator[Finding]:
    """Look at what is published, and compare it with the record while that has not moved on."""
    check = "published generation"
    if generation is None:
        lacking = ["CURRENT"] if record.count_passages() and not is_written else []
        problem = "CURRENT names no generation: nothing is published"
        yield judged(check, lacking, problem, "Nothing is published yet")
        return
    folder = workspace.index_folder(generation)
    finding, graph = open_snapshot(folder)
    yield finding
    if graph is None:
        return
    is_of_record = graph.commit_id == record.commit_id
    if is_of_record:
        yield sound(check, f"Generation {generation} is of the record as it stands")
        compared = compare_with_record(folder, record)
        yield compared
    elif is_written:
        yield sound(check, f"Generation {generation} is published; the record has moved on, as a writer is at work")
    else:
        yield repairable(check, f"Generation {generation} is not of the record as it stands, and no process is writing")
    yield from check_vectors(workspace, graph, record, same=is_of_record and compared.ok)


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
    can_derive = before.rows is not None and all(f.ok or f.repairable or f.check in _UNHARMED for f in before.findings)
    if not can_derive or not any(finding.repairable for finding in before.findings):
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


def _repair(workspace: Workspace, record: Record, results: Examination) -> Iterator[str]:
    """Put right what can be; yield what was done."""
    to_mend = {finding.check for finding in results.findings if finding.repairable}
    broken = {finding.check for finding in results.findings if not finding.ok}
    lost_ones = broken - to_mend
    broken -= {*lost_ones, RELATIONSHIPS}
    if results.rows and broken & MENDED:
        record.replace_derived(results.rows)
        yield "Put the record's tables of names, facts and links right"
    if broken:
        # What exists in part is derived under the next number, and without a copy.
        workspace.index_folder(record.generation).mkdir(parents=True, exist_ok=True)
        publish(workspace, record)
        yield f"Derived snapshot, word index and search index again, as generation {record.generation}"
    if RELATIONSHIPS in to_mend or (broken and RELATIONSHIPS not in lost_ones and has_relationships(workspace.root)):
        with RelationshipRecord.of(workspace.root) as relationships:
            forget_step(relationships)
        relate(workspace, record)
        yield "Brought the relationship graph in step with the passages"
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


if __name__ == "__main__":
    read_everything(Path(sys.argv[1]), int(sys.argv[2]))
