"""The record of a workspace: one SQLite file that holds everything which cannot be derived again.

Passages with their extracted entities and triples, and every vector. Its transaction is the commit; the search
index and the snapshot are derived from it and can be rebuilt without embedding anything.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graph.corrections.apply import Corrections, Stated
from graph.corrections.kinds import Correction
from graph.errors import BadInput, WorkspaceDamaged
from graph.out_of_resources import shortage_behind
from graph.storage import correction_table
from graph.storage.entry import (
    COLUMNS,
    Entry,
    check_passage,
    content_hash,
    facts_of,
    from_row,
    hash_of,
    names_of,
    to_row,
)
from graph.storage.read_only import may_write, open_read_only, scratch_folder
from graph.storage.record_tables import HELD_BY, SCHEMA, TEXT_COLUMN, DerivedRows, NewVectors, State
from graph.storage.versions import Versions

FORMAT_VERSION = 2
_BUSY_TIMEOUT_S = 30.0
_LOG_TIMEOUT_MS = 1_000
_PAGE_BYTES = 8192
_VECTORS = "vectors"
SYNONYMS = "synonyms"
"""The note of the record that says how pairs of synonyms are found."""
_PAGE = 5_000
"""Ids that one statement asks for: SQLite takes 32,766 parameters."""


class Record:
    """An open record. One writer at a time (the workspace's lock sees to it); readers need none.

    One that may not be written is opened for reading.
    """

    _scratch: TemporaryDirectory[str] | None = None
    _moment = ""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open the record at ``path``.

        Raises:
            WorkspaceDamaged: there is none (and ``create`` is false), it is no SQLite file, or of another format.
        """
        if not create and not path.exists():
            raise WorkspaceDamaged(f"There is no record at {path}", "Index the documents again with `mara index`")
        self._path = path
        self._fence: Callable[[Record], None] | None = None
        if not create and not (may_write(path.parent) and may_write(path)):
            self._open_for_reading(path)
            return
        with self._damage_named():
            self._db = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
            if create:
                self._db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
            self._db.execute("PRAGMA secure_delete = ON")
            if create and not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                self._create()
        self._check_format()

    def _open_for_reading(self, path: Path) -> None:
        self._scratch = scratch_folder()
        with self._damage_named():
            self._db, _ = open_read_only(path, Path(self._scratch.name))
            self._db.execute("COMMIT")
        self._check_format()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    @property
    def workspace_id(self) -> str:
        """Random id given when the record was created."""
        return self._meta("workspace_id")

    @property
    def generation(self) -> int:
        """Counts the commits; what is derived is stamped with it."""
        return int(self._meta("generation"))

    @property
    def commit_id(self) -> str:
        """Random id of the last commit: tells a restored or replaced record from the one that was derived from."""
        return self._meta("commit_id")

    @property
    def vectors_id(self) -> str:
        """Random id of the last time that all vectors were replaced at once."""
        return self.note(_VECTORS)

    @property
    def complete(self) -> bool:
        """Whether no indexing run was interrupted."""
        return self._meta("complete") == "1"

    @property
    def embedding_model(self) -> str:
        """Id of the model that made the vectors; empty before the first commit."""
        return self._meta("embedding_model")

    @property
    def dimension(self) -> int:
        """Length of the vectors; 0 before the first commit."""
        return int(self._meta("dimension"))

    @property
    def versions(self) -> Versions:
        """What stood in it before, and since when what it holds stands."""
        return Versions(self._db, self._rows)

    def fingerprints(self) -> dict[str, str]:
        """Return {passage id: fingerprint}."""
        return dict(self._rows("SELECT id, fingerprint FROM passages"))

    def stated_fingerprints(self) -> dict[str, str]:
        """Return {passage id: fingerprint of what it states}, which differs where corrections change that."""
        return self.fingerprints() | {key: each.fingerprint for key, each in self.corrected().items()}

    def stated_in_order(self) -> Iterator[tuple[str, str]]:
        """Yield (passage id, fingerprint of what it states), in the order of the ids."""
        corrected = self.corrected()
        for key, fingerprint in self._rows("SELECT id, fingerprint FROM passages ORDER BY id"):
            yield key, corrected[key].fingerprint if key in corrected else fingerprint

    def corrections(self) -> list[Correction]:
        """Return all corrections, by id, those that were undone among them."""
        with self._damage_named():
            return correction_table.read(self._db)

    def corrected(self) -> dict[str, correction_table.Corrected]:
        """Return {passage id: what corrections made of it} of the passages that they change."""
        with self._damage_named():
            return correction_table.read_corrected(self._db)

    def passages_with(self, table: str, ids: Iterable[str]) -> set[str]:
        """Return the passages that hold one of some ``names`` or ``facts``."""
        held = f"SELECT passage_id FROM passage_{table} WHERE {HELD_BY[table]} IN (SELECT value FROM json_each(?))"
        return {key for (key,) in self._rows(held, json.dumps([*ids]))}

    def sources(self) -> dict[str, str]:
        """Return {passage id: source}."""
        return dict(self._rows("SELECT id, source FROM passages"))

    def documents(self) -> dict[str, str]:
        """Return {passage id: document id} of the passages that are parts of a document."""
        # What SQLite takes out of JSON ends at a NUL character: it only says where there is something.
        query = "SELECT id, metadata FROM passages WHERE json_extract(metadata, '$.document') IS NOT NULL"
        return {key: str(json.loads(metadata)["document"]) for key, metadata in self._rows(query)}

    def failures(self) -> dict[str, str]:
        """Return {passage id: why nothing could be extracted from it}, for those it holds of."""
        return dict(self._rows("SELECT id, failure FROM passages WHERE failure <> ''"))

    def states(self, ids: Collection[str]) -> dict[str, State]:
        """Return {passage id: what it was made of} of those of some passages that the record holds."""
        columns = "id, fingerprint, extractor, failure, title, text, source, metadata"
        rows = self._rows_of(columns, ids)
        return {key: State(made, extractor, failure, hash_of(*given)) for key, made, extractor, failure, *given in rows}

    def missing(self, table: str, ids: Iterable[str]) -> set[str]:
        """Return those ids of ``names`` or ``facts`` that the record has no vector for."""
        query = f"SELECT value FROM json_each(?) WHERE value NOT IN (SELECT id FROM {table})"
        return {key for (key,) in self._rows(query, json.dumps([*ids]))}

    def entries(self, ids: Collection[str] | None = None) -> Iterator[Entry]:
        """Yield every entry, or those of some passages, by passage id."""
        every = f"SELECT {COLUMNS} FROM passages ORDER BY id"
        return self._read_entries(self._rows(every) if ids is None else self._rows_of(COLUMNS, ids))

    def entries_between(self, first: str, last: str) -> Iterator[Entry]:
        """Yield the entries of the passages from one id to another, both included, by passage id."""
        asked = f"SELECT {COLUMNS} FROM passages WHERE id >= ? AND id <= ? ORDER BY id"
        return self._read_entries(self._rows(asked, first, last))

    def _read_entries(self, rows: Iterable[Any]) -> Iterator[Entry]:
        for row in rows:
            try:
                yield from_row(row)
            except (ValueError, TypeError) as fault:
                raise WorkspaceDamaged(
                    f"{self._path}: the passage {row[0]!r} cannot be read ({fault})",
                    "Restore it from a backup, or index into a new workspace",
                ) from fault

    def names(self) -> tuple[list[str], list[str], NDArray[np.float32]]:
        """Return ids, normal forms and vectors of all names, by id."""
        vectors = np.zeros((self._count("names"), self.dimension), dtype=np.float32)
        ids: list[str] = []
        names: list[str] = []
        for row, (key, name, vector) in enumerate(self._rows("SELECT id, name, vector FROM names ORDER BY id")):
            ids.append(key)
            names.append(name)
            vectors[row] = np.frombuffer(vector, dtype=np.float32)
        return ids, names, vectors

    def name_vectors(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of some names, in the order given, shape (len(ids), dimension).

        Raises WorkspaceDamaged where one is missing.
        """
        return self._vectors("names", ids)

    def fact_vectors(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of some facts as `name_vectors` does."""
        return self._vectors("facts", ids)

    def all_fact_vectors(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """Yield ids and vectors of all facts, by id, some thousand at a time: all at once may not fit into memory."""
        rows = self._rows("SELECT id, vector FROM facts ORDER BY id")
        while page := list(islice(rows, _PAGE)):
            yield [key for key, _ in page], np.array([np.frombuffer(blob, dtype=np.float32) for _, blob in page])

    def synonyms(self) -> list[tuple[str, str, float]]:
        """Return (name id, name id, cosine) for each pair once, the smaller id first."""
        return list(self.each_synonym())

    def each_synonym(self) -> Iterator[tuple[str, str, float]]:
        """Yield what `synonyms` returns."""
        return self._rows("SELECT a, b, cosine FROM synonyms ORDER BY a, b")

    def replace_synonyms(self, synonyms: Iterable[tuple[str, str, float]], found_by: str) -> None:
        """Put these pairs in place of all present ones and note how they are found; this counts as no commit."""
        with self.transaction():
            self._db.execute("DELETE FROM synonyms")
            self._db.executemany("INSERT INTO synonyms VALUES (?,?,?)", synonyms)
            self.set_note(SYNONYMS, found_by)

    def count_names(self) -> int:
        """Return how many names the record holds."""
        return self._count("names")

    def count_passages(self) -> int:
        """Return how many passages the record holds."""
        return self._count("passages")

    def commit(
        self,
        entries: Sequence[Entry],
        names: NewVectors,
        facts: NewVectors,
        synonyms: Iterable[tuple[str, str, float]],
        embedding_model: str,
        removed: Iterable[str] = (),
    ) -> set[str]:
        """Write entries (replacing those of the same id) and drop ``removed``, in one transaction.

        Names and facts that no passage holds any more go with the last passage that held them. Other content than what
        stood before leaves a version of that, where versions are kept: see `stand_from`.

        Returns:
            The ids of the names that went.

        Raises:
            BadInput: an entry's passage cannot be kept, see `check_passage`.
        """
        removed = [*removed]
        for entry in entries:
            check_passage(entry.passage)
        corrections = Corrections(self.corrections())
        with self.transaction():
            since = self._keep_versions(entries, removed)
            held_before = self._delete([*(entry.passage.id for entry in entries), *removed])
            self._db.executemany("INSERT INTO passages VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", map(to_row, entries))
            self._insert_vectors("names", names)
            self._insert_vectors("facts", facts)
            self._db.executemany("INSERT OR REPLACE INTO synonyms VALUES (?,?,?)", synonyms)
            for entry in entries:
                self._hold(entry, corrections.stated(entry.passage, entry.extraction))
            if since:
                self.versions.stand(since)
            gone = {table: self._drop_unheld(table, held) for table, held in held_before.items()}
            if entries:
                self._set_meta("embedding_model", embedding_model)
                self._set_meta("dimension", str(entries[0].vector.shape[0]))
            self._count_up()
        return gone["names"]

    def restate(
        self,
        stated: Sequence[tuple[Entry, Stated]],
        names: NewVectors,
        facts: NewVectors,
        synonyms: Iterable[tuple[str, str, float]],
        change: Callable[[sqlite3.Connection], None],
    ) -> set[str]:
        """Change the corrections, and with them what some passages state, in one transaction.

        Args:
            stated: the entries whose statements change, with those that they have afterwards.
            names: vectors of names that the record lacks.
            facts: the same, of facts.
            synonyms: of the new names.
            change: writes the corrections.

        Returns:
            The ids of the names that went.
        """
        with self.transaction():
            change(self._db)
            held_before = self._unlink([entry.passage.id for entry, _ in stated])
            self._insert_vectors("names", names)
            self._insert_vectors("facts", facts)
            self._db.executemany("INSERT OR REPLACE INTO synonyms VALUES (?,?,?)", synonyms)
            for entry, says in stated:
                self._hold(entry, says)
            if self.versions.are_kept:
                corrections = Corrections(self.corrections())
                self.versions.restate(lambda entry: facts_of(corrections.stated(entry.passage, entry.extraction)))
            gone = {table: self._drop_unheld(table, held) for table, held in held_before.items()}
            self._count_up()
        return gone["names"]

    def replace_vectors(
        self,
        passages: NewVectors,
        windows: Sequence[int],
        names: NewVectors,
        facts: NewVectors,
        synonyms: Iterable[tuple[str, str, float]],
        embedding_model: str,
    ) -> None:
        """Put another model's vectors in place of all present ones, in one transaction."""
        with self.transaction():
            rows = [(passages.vectors[i].tobytes(), windows[i], key) for i, key in enumerate(passages.texts)]
            self._db.executemany("UPDATE passages SET vector = ?, windows = ? WHERE id = ?", rows)
            self._db.execute("DELETE FROM synonyms")
            self._db.execute("DELETE FROM names")
            self._db.execute("DELETE FROM facts")
            self._insert_vectors("names", names)
            self._insert_vectors("facts", facts)
            self._db.executemany("INSERT INTO synonyms VALUES (?,?,?)", synonyms)
            self._set_meta("embedding_model", embedding_model)
            self._set_meta("dimension", str(passages.vectors.shape[1]))
            self.set_note(_VECTORS, uuid.uuid4().hex)
            self._count_up()

    def replace_derived(self, rows: DerivedRows) -> None:
        """Put the rows that follow from passages and vectors in place of the present ones, in one transaction.

        Of passages only ids change, and no vector goes that a passage needs.
        """
        with self.transaction():
            for table, column in HELD_BY.items():
                self._db.execute(f"DELETE FROM passage_{table}")
                self._db.executemany(f"INSERT INTO passage_{table} VALUES (?,?)", rows.links[table])
                self._db.execute(f"DELETE FROM {table} WHERE id NOT IN (SELECT {column} FROM passage_{table})")
                texts = ((text, key, text) for key, text in rows.texts[table].items())
                text_column = TEXT_COLUMN[table]
                self._db.executemany(f"UPDATE {table} SET {text_column} = ? WHERE id = ? AND {text_column} <> ?", texts)
            self._db.execute("DELETE FROM synonyms")
            synonyms = ((a, b, cosine) for (a, b), cosine in rows.synonyms.items())
            self._db.executemany("INSERT INTO synonyms VALUES (?,?,?)", synonyms)
            # An id is renamed together with the rows that refer to it: SQLite checks them at the end.
            self._db.execute("PRAGMA defer_foreign_keys = ON")
            renamed = [(new, old) for old, new in rows.renamed.items()]
            self._db.executemany("UPDATE passages SET id = ? WHERE id = ?", renamed)
            for table in HELD_BY:
                self._db.executemany(f"UPDATE passage_{table} SET passage_id = ? WHERE passage_id = ?", renamed)
            corrected = {rows.renamed.get(key, key): each for key, each in rows.corrected.items()}
            correction_table.replace_corrected(self._db, corrected)
            self._count_up()

    def advance_generation(self) -> None:
        """Count the generation up without a change, so that what is derived is built again in a place of its own."""
        with self.transaction():
            self._count_up()

    def mark_complete(self, complete: bool) -> None:
        """Note whether an indexing run is under way (or was interrupted), so that answers can say so."""
        with self.transaction():
            self._set_meta("complete", str(int(complete)))

    def note(self, key: str) -> str:
        """Return what was noted under a key; empty where nothing was."""
        return next((str(value) for (value,) in self._rows("SELECT value FROM meta WHERE key = ?", f"note:{key}")), "")

    def set_note(self, key: str, text: str) -> None:
        """Note a text under a key, within a `transaction`."""
        self._set_meta(f"note:{key}", text)

    def change_setting(self, key: str, text: str) -> None:
        """Note a setting that what is derived depends on, in a commit of its own where it is another one."""
        if self.note(key) != text:
            with self.transaction():
                self.set_note(key, text)
                self._count_up()

    def stand_from(self, moment: str) -> None:
        """Let what is committed from now on stand from a moment, and keep what it replaces or removes as a version.

        Without a moment nothing is kept. The record has to keep versions, see `Versions.begin`.
        """
        self._moment = moment

    @contextmanager
    def as_it_stands(self) -> Iterator[None]:
        """Read what stands at the beginning of the block, whatever a writer does meanwhile; nothing can be written."""
        with self._damage_named():
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("COMMIT")

    def copy_to(self, path: Path) -> None:
        """Copy it, as it stands at one moment, to a file that is not there yet."""
        with self._damage_named(), closing(sqlite3.connect(path)) as copy:
            self._db.backup(copy)

    def part_from(self, *, complete: bool) -> None:
        """Make a copy a record of its own: under another id, complete or not, without a writer and without versions."""
        with self.transaction():
            self.versions.end()
            self._db.execute("DELETE FROM meta WHERE key IN ('note:writer', 'note:removal')")
            self._set_meta("workspace_id", uuid.uuid4().hex)
            self._set_meta("complete", str(int(complete)))

    def shorten_log(self) -> None:
        """Take what was erased out of the log beside the file, too, unless a reader is at work all the while."""
        with self._damage_named():
            self._db.execute(f"PRAGMA busy_timeout = {_LOG_TIMEOUT_MS}")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._db.execute(f"PRAGMA busy_timeout = {1000 * _BUSY_TIMEOUT_S:.0f}")

    def fence(self, check: Callable[[Record], None]) -> None:
        """Let every transaction begin with a check, which may refuse it by raising."""
        self._fence = check

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do several things or none; no other process writes meanwhile."""
        with self._damage_named():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                if self._fence is not None:
                    self._fence(self)
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _count_up(self) -> None:
        self._set_meta("generation", str(self.generation + 1))
        self._set_meta("commit_id", uuid.uuid4().hex)

    def _create(self) -> None:
        with self.transaction():
            for statement in SCHEMA.split(";"):
                self._db.execute(statement)
            self._set_meta("format_version", str(FORMAT_VERSION))
            self._set_meta("workspace_id", uuid.uuid4().hex)
            self._set_meta("generation", "0")
            self._set_meta("commit_id", uuid.uuid4().hex)
            self._set_meta("complete", "1")
            self._set_meta("embedding_model", "")
            self._set_meta("dimension", "0")

    def _check_format(self) -> None:
        version = self._meta("format_version")
        if version != str(FORMAT_VERSION):
            age = "an older" if version.isdigit() and int(version) < FORMAT_VERSION else "a newer"
            raise WorkspaceDamaged(
                f"{self._path} is of format {version}, written by {age} version of mara (this one reads"
                f" {FORMAT_VERSION})",
                "Index the documents into a new workspace: `mara index SOURCE --workspace NEW`",
            )

    def _keep_versions(self, entries: Sequence[Entry], removed: Iterable[str]) -> dict[str, str]:
        """Move what is about to go to the past; return since when the entries stand, if versions are kept."""
        if not self._moment:
            return {}
        wanted = {entry.passage.id: content_hash(entry.passage) for entry in entries}
        return self.versions.replace(wanted, removed, self._moment)

    def _delete(self, ids: Sequence[str]) -> dict[str, set[str]]:
        """Delete passages; return the names and facts that they held, by table."""
        held = self._unlink(ids)
        for among, page in _pages(ids):
            self._db.execute(f"DELETE FROM passages WHERE id {among}", page)
        return held

    def _unlink(self, ids: Sequence[str]) -> dict[str, set[str]]:
        """Let passages hold nothing; return the names and facts that they held, by table."""
        held: dict[str, set[str]] = {table: set() for table in HELD_BY}
        for among, page in _pages(ids):
            for table, column in HELD_BY.items():
                gone = f"DELETE FROM passage_{table} WHERE passage_id {among} RETURNING {column}"
                held[table].update(key for (key,) in self._db.execute(gone, page))
        correction_table.forget_corrected(self._db, ids)
        return held

    def _hold(self, entry: Entry, stated: Stated) -> None:
        """Let a passage hold what it states."""
        self._link("passage_names", entry.passage.id, names_of(stated))
        self._link("passage_facts", entry.passage.id, facts_of(stated))
        if stated.by:
            correction_table.keep_corrected(
                self._db, entry.passage.id, stated.fingerprint(entry.fingerprint), stated.by
            )

    def _drop_unheld(self, table: str, candidates: Iterable[str]) -> set[str]:
        """Delete those of the names or facts that no passage holds; return them."""
        rows = self._db.execute(
            f"DELETE FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
            f" AND id NOT IN (SELECT {HELD_BY[table]} FROM passage_{table}"
            f" WHERE {HELD_BY[table]} IN (SELECT value FROM json_each(?))) RETURNING id",
            (json.dumps([*candidates]),) * 2,
        )
        return {key for (key,) in rows}

    def _vectors(self, table: str, ids: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(ids), self.dimension), dtype=np.float32)
        found = 0
        asked = f"SELECT asked.key, vector FROM json_each(?) AS asked JOIN {table} ON {table}.id = asked.value"
        for row, blob in self._rows(asked, json.dumps(ids)):
            vectors[row] = np.frombuffer(blob, dtype=np.float32)
            found += 1
        if found < len(ids):
            raise WorkspaceDamaged(
                f"{self._path} lacks the vectors of {len(ids) - found} {table}",
                "Restore it from a backup or index again",
            )
        return vectors

    def _insert_vectors(self, table: str, new: NewVectors) -> None:
        rows = ((key, text, new.vectors[i].tobytes()) for i, (key, text) in enumerate(new.texts.items()))
        self._db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?,?,?)", rows)

    def _link(self, table: str, passage_id: str, held: Iterable[str]) -> None:
        self._db.executemany(f"INSERT INTO {table} VALUES (?,?)", [(passage_id, key) for key in held])

    def _count(self, table: str) -> int:
        ((count,),) = self._rows(f"SELECT count(*) FROM {table}")
        return int(count)

    def _meta(self, key: str) -> str:
        values = [value for (value,) in self._rows("SELECT value FROM meta WHERE key = ?", key)]
        if not values:
            raise WorkspaceDamaged(f"{self._path} lacks {key!r}", "Restore it from a backup or index again")
        return str(values[0])

    def _rows_of(self, columns: str, ids: Iterable[str]) -> Iterator[Any]:
        """Yield some columns of some passages, by passage id."""
        for among, page in _pages(sorted(ids)):
            yield from self._rows(f"SELECT {columns} FROM passages WHERE id {among} ORDER BY id", *page)

    def _rows(self, query: str, *parameters: str) -> Iterator[Any]:
        with self._damage_named():
            yield from self._db.execute(query, parameters)

    def _set_meta(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as fault:
            if shortage := shortage_behind(fault):
                raise shortage from fault
            if isinstance(fault, sqlite3.OperationalError) and _is_refused(fault):
                raise BadInput(
                    f"{self._path} cannot be opened for writing ({fault})", "Check the permissions and the disk"
                ) from fault
            raise WorkspaceDamaged(
                f"{self._path} cannot be read ({fault})", "Restore it from a backup, or index into a new workspace"
            ) from fault


def _pages(ids: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield a condition and the ids that it asks for; a list in JSON would end each id at a NUL character."""
    for start in range(0, len(ids), _PAGE):
        page = ids[start : start + _PAGE]
        yield f"IN ({','.join('?' * len(page))})", page


def _is_refused(fault: sqlite3.OperationalError) -> bool:
    return any(words in str(fault) for words in ("readonly", "unable to open", "full", "disk I/O"))
