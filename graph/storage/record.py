"""The record of a workspace: one database that holds everything which cannot be derived again.

Passages with their extracted entities and triples, and every vector. Its transaction is the commit; the search
index and the snapshot are derived from it and can be rebuilt without embedding anything.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.corrections.apply import Corrections, Stated
from graph.corrections.kinds import Correction
from graph.errors import WorkspaceDamaged
from graph.own_types import OWN_TYPES, OwnTypes
from graph.storage import versions
from graph.storage.database import AMONG, Database, InDatabase, Kind, SqliteDatabase, statements_of
from graph.storage.entry import COLUMNS, Entry, check_passage, content_hash, facts_of, from_row, hash_of, to_row
from graph.storage.opening import open_database
from graph.storage.record_tables import (
    CORRECTION_TABLES,
    CORRECTIONS,
    HELD_BY,
    PAGE,
    RESTORE,
    SCHEMA,
    TEXT_COLUMN,
    Additions,
    Corrected,
    DerivedRows,
    NewVectors,
    State,
    delete,
    drop_unheld,
    hold,
    insert_vectors,
    read_corrected,
    read_corrections,
    replace_corrected,
    unlink,
)
from graph.storage.versions import Versions

FORMAT_VERSION = 2
_UNIT_TOLERANCE = 1e-3
_RESTORE = "Restore it from a backup, or index into a new workspace"
_TABLES = ("meta", "passages", "names", "facts", "passage_names", "passage_facts")
_VECTORS = "vectors"


def _make(db: Database) -> None:
    """Create the tables of an empty record."""
    settings = {"format_version": FORMAT_VERSION, "generation": 0, "complete": 1, "dimension": 0}
    ids = {"workspace_id": uuid.uuid4().hex, "commit_id": uuid.uuid4().hex, "embedding_model": ""}
    db.define(statements_of(SCHEMA))
    db.insert("meta", [(key, str(value)) for key, value in {**settings, **ids}.items()])


def of_another_format(name: object, version: object) -> WorkspaceDamaged:
    """Return the error of a record or workspace that another version of mara wrote."""
    return WorkspaceDamaged(
        f"{name} was written in format {version}; this version of mara reads {FORMAT_VERSION}",
        "Index the documents into a new workspace: `mara index SOURCE --workspace NEW`",
    )


def _missing(name: str) -> WorkspaceDamaged:
    return WorkspaceDamaged(
        f"{name} is not there", "Restore it from a backup, or index the documents again with `mara index`"
    )


_KIND = Kind("meta", _make, _RESTORE, _missing, FORMAT_VERSION, lambda place: place.schema)


class Record(InDatabase):
    """An open record. One writer at a time (the workspace's lock sees to it); readers need none.

    One that may not be written is opened for reading.
    """

    _moment = ""

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        """Open the record whose SQLite file is ``path``, or which is in Postgres in its place; see `open_database`.

        Raises:
            WorkspaceDamaged: there is none (and ``create`` is false), it is no SQLite file, or of another format.
        """
        self._check: Callable[[], None] | None = None
        self._db = open_database(path, _KIND, create=create, read_only=read_only)
        try:
            self._check_format()
        except BaseException:
            self.close()
            raise

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
        """Its past versions, and since when the present one stands."""
        return Versions(self._db, self._rows)

    def fingerprints(self) -> dict[str, str]:
        """Return {passage id: fingerprint}."""
        return dict(self._rows("SELECT id, fingerprint FROM passages"))

    def stated_in_order(self) -> Iterator[tuple[str, str]]:
        """Yield (passage id, fingerprint of what it states), in the order of the ids."""
        corrected = self.corrected()
        for key, fingerprint in self._scan("SELECT id, fingerprint FROM passages ORDER BY id"):
            yield key, corrected[key].fingerprint if key in corrected else fingerprint

    def corrections(self) -> list[Correction]:
        """Return all corrections, by id, those that were undone among them."""
        with self._faults_named():
            return read_corrections(self._db)

    def corrected(self) -> dict[str, Corrected]:
        """Return {passage id: what corrections made of it} of the passages that they change."""
        with self._faults_named():
            return read_corrected(self._db)

    def passages_with(self, table: str, ids: Iterable[str]) -> set[str]:
        """Return the passages that hold one of some ``names`` or ``facts``."""
        query = f"SELECT passage_id FROM passage_{table} WHERE {HELD_BY[table]} {AMONG}"
        return {key for (key,) in self._rows(query, [*ids])}

    def sources(self) -> dict[str, str]:
        """Return {passage id: source}."""
        return dict(self._rows("SELECT id, source FROM passages"))

    def documents(self) -> dict[str, str]:
        """Return {passage id: document id} of the passages that are parts of a document."""
        # The text only says where there may be something: databases read JSON in ways of their own.
        rows = self._rows("""SELECT id, metadata FROM passages WHERE metadata LIKE '%"document"%'""")
        try:
            documents = [(key, json.loads(metadata).get("document")) for key, metadata in rows]
        except (ValueError, AttributeError) as fault:
            raise WorkspaceDamaged(f"{self._db.told}: metadata cannot be read ({fault})", RESTORE) from fault
        return {key: str(document) for key, document in documents if document is not None}

    def failures(self) -> dict[str, str]:
        """Return {passage id: why nothing could be extracted from it}, for those it holds of."""
        return dict(self._rows("SELECT id, failure FROM passages WHERE failure <> ''"))

    def states(self, ids: Collection[str]) -> dict[str, State]:
        """Return {passage id: what it was made of} of those of some passages that the record holds."""
        columns = "id, fingerprint, extractor, failure, title, text, source, metadata"
        rows = self._rows_of(columns, ids)
        return {key: State(made, extractor, failure, hash_of(*parts)) for key, made, extractor, failure, *parts in rows}

    def missing(self, table: str, ids: Iterable[str]) -> set[str]:
        """Return those ids of ``names`` or ``facts`` that the record has no vector for."""
        wanted = [*ids]
        stored = self._rows(f"SELECT id FROM {table} WHERE id {AMONG}", wanted)
        return set(wanted).difference(key for (key,) in stored)

    def entries(self, ids: Collection[str] | None = None) -> Iterator[Entry]:
        """Yield every entry, or those of some passages, by passage id."""
        every = f"SELECT {COLUMNS} FROM passages ORDER BY id"
        return self._read_entries(self._scan(every) if ids is None else self._rows_of(COLUMNS, ids))

    def entries_between(self, first: str, last: str) -> Iterator[Entry]:
        """Yield the entries of the passages from one id to another, both included, by passage id."""
        asked = f"SELECT {COLUMNS} FROM passages WHERE id >= ? AND id <= ? ORDER BY id"
        return self._read_entries(self._scan(asked, first, last))

    def _read_entries(self, rows: Iterable[Any]) -> Iterator[Entry]:
        for row in rows:
            try:
                yield from_row(row)
            except (ValueError, TypeError) as fault:
                raise WorkspaceDamaged(
                    f"{self._db.told}: the passage {row[0]!r} cannot be read ({fault})", _RESTORE
                ) from fault

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
        rows = self._scan("SELECT id, vector FROM facts ORDER BY id")
        while page := list(islice(rows, PAGE)):
            yield [key for key, _ in page], np.array([np.frombuffer(blob, dtype=np.float32) for _, blob in page])

    def count_names(self) -> int:
        """Return how many names the record holds."""
        return self._count("names")

    def count_passages(self) -> int:
        """Return how many passages the record holds."""
        return self._count("passages")

    def commit(
        self, entries: Sequence[Entry], new: Additions, embedding_model: str, removed: Iterable[str] = ()
    ) -> None:
        """Write entries (replacing those of the same id) and drop ``removed``, in one transaction.

        Names and facts that no passage holds any more go with the last passage that held them. Other content than what
        stood before leaves a version of that, where versions are kept: see `stand_from`.

        Raises:
            BadInput: an entry's passage cannot be kept, see `check_passage`.
        """
        removed = [*removed]
        for entry in entries:
            check_passage(entry.passage)
        corrections = Corrections(self.corrections())
        with self.transaction():
            since = self._keep_versions(entries, removed)
            held_before = delete(self._db, [*(entry.passage.id for entry in entries), *removed])
            self._db.insert("passages", map(to_row, entries))
            self._add(new)
            hold(self._db, [(entry, corrections.stated(entry.passage, entry.extraction)) for entry in entries])
            if since:
                self.versions.stand(since)
            drop_unheld(self._db, held_before)
            if entries:
                self._set_meta("embedding_model", embedding_model)
                self._set_meta("dimension", str(entries[0].vector.shape[0]))
            self._count_up()

    def restate(
        self, stated: Sequence[tuple[Entry, Stated]], new: Additions, change: Callable[[Database], None]
    ) -> None:
        """Change the corrections, and with them what some passages state, in one transaction.

        Args:
            stated: the entries whose statements change, with those that they have afterwards.
            new: the names and facts that the record lacks.
            change: writes the corrections.
        """
        with self.transaction():
            change(self._db)
            held_before = unlink(self._db, [entry.passage.id for entry, _ in stated])
            self._add(new)
            hold(self._db, stated)
            if self.versions.are_kept:
                corrections = Corrections(self.corrections())
                self.versions.restate(lambda entry: facts_of(corrections.stated(entry.passage, entry.extraction)))
            drop_unheld(self._db, held_before)
            self._count_up()

    def replace_vectors(
        self, passages: NewVectors, windows: Sequence[int], new: Additions, embedding_model: str
    ) -> None:
        """Put another model's vectors in place of all present ones, in one transaction."""
        with self.transaction():
            rows = [(passages.vectors[i].tobytes(), windows[i], key) for i, key in enumerate(passages.texts)]
            self._db.executemany("UPDATE passages SET vector = ?, windows = ? WHERE id = ?", rows)
            for table in HELD_BY:
                self._db.execute(f"DELETE FROM {table}")
            self._add(new)
            self._set_meta("embedding_model", embedding_model)
            self._set_meta("dimension", str(passages.vectors.shape[1]))
            self.set_note(_VECTORS, uuid.uuid4().hex)
            self._count_up()

    def replace_derived(self, rows: DerivedRows) -> None:
        """Put the rows that follow from passages and vectors in place of the present ones, in one transaction.

        No vector goes that a passage needs.
        """
        with self.transaction():
            for table, column in HELD_BY.items():
                self._db.execute(f"DELETE FROM passage_{table}")
                self._db.insert(f"passage_{table}", rows.links[table])
                self._db.execute(
                    f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM passage_{table} WHERE {column} = id)"
                )
                texts = ((text, key, text) for key, text in rows.texts[table].items())
                text_column = TEXT_COLUMN[table]
                self._db.executemany(f"UPDATE {table} SET {text_column} = ? WHERE id = ? AND {text_column} <> ?", texts)
            replace_corrected(self._db, rows.corrected)
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

    def copy_to(self, path: Path) -> None:
        """Copy it, as it stands at one moment, to a SQLite file that is not there yet."""
        with SqliteDatabase(path, FORMAT_VERSION, _RESTORE) as copy, copy.transaction():
            self.copy_into(copy)

    def copy_into(self, target: Database) -> None:
        """Copy it, as it stands at one moment, into an empty database, within a transaction of that."""
        scripts = {"meta": SCHEMA, "corrections": CORRECTIONS, "standing": ";".join(versions.TABLES)}
        with nullcontext() if self._db.in_transaction else self.as_it_stands():
            for table, script in scripts.items():
                if self._db.has_table(table):
                    target.define(statements_of(script))
            for table in (*_TABLES, *CORRECTION_TABLES, *reversed(versions.TABLE_NAMES)):
                if self._db.has_table(table):
                    target.insert(table, self._db.scan(f'SELECT * FROM "{table}"'))
        target.continue_numbers()

    def part_from(self, *, complete: bool) -> None:
        """Make a copy a record of its own: under another id, complete or not, without a writer and without versions."""
        with self.transaction():
            self.versions.end()
            self._db.execute("DELETE FROM meta WHERE key IN ('note:writer', 'note:removal', 'note:skipped')")
            self._set_meta("workspace_id", uuid.uuid4().hex)
            self._set_meta("complete", str(int(complete)))

    def fence(self, check: Callable[[], None]) -> None:
        """Let every transaction begin with a check, which may refuse it by raising."""
        self._check = check

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do several things or none; no other process writes meanwhile."""
        with self._db.transaction():
            if self._check is not None:
                self._check()
            yield

    def _add(self, new: Additions) -> None:
        insert_vectors(self._db, "names", new.names)
        insert_vectors(self._db, "facts", new.facts)

    def _count_up(self) -> None:
        # Earlier releases kept pairs of near names, which the build finds now.
        self._db.execute("DROP TABLE IF EXISTS synonyms")
        self._set_meta("generation", str(self.generation + 1))
        self._set_meta("commit_id", uuid.uuid4().hex)

    def _check_format(self) -> None:
        version = self._meta("format_version")
        if version != str(FORMAT_VERSION):
            raise of_another_format(self._db.told, version)

    def _keep_versions(self, entries: Sequence[Entry], removed: Iterable[str]) -> dict[str, str]:
        """Move what is about to go to the past; return since when the entries stand, if versions are kept."""
        if not self._moment:
            return {}
        wanted = {entry.passage.id: content_hash(entry.passage) for entry in entries}
        return self.versions.replace(wanted, removed, self._moment)

    def _vectors(self, table: str, ids: Sequence[str]) -> NDArray[np.float32]:
        rows = dict(self._rows(f"SELECT id, vector FROM {table} WHERE id {AMONG}", [*{*ids}]))
        if lacking := len({*ids}) - len(rows):
            raise WorkspaceDamaged(
                f"{self._db.told} lacks the vectors of {lacking} {table}", "Restore it from a backup or index again"
            )
        return np.frombuffer(bytearray().join([rows[key] for key in ids]), np.float32).reshape(len(ids), self.dimension)

    def _count(self, table: str) -> int:
        ((count,),) = self._rows(f"SELECT count(*) FROM {table}")
        return int(count)

    def _meta(self, key: str) -> str:
        values = [value for (value,) in self._rows("SELECT value FROM meta WHERE key = ?", key)]
        if not values:
            raise WorkspaceDamaged(f"{self._db.told} lacks {key!r}", "Restore it from a backup or index again")
        return str(values[0])

    def _rows_of(self, columns: str, ids: Iterable[str]) -> Iterator[Any]:
        """Yield some columns of some passages, by passage id."""
        wanted = sorted(ids)
        for start in range(0, len(wanted), PAGE):
            query = f"SELECT {columns} FROM passages WHERE id {AMONG} ORDER BY id"
            yield from self._rows(query, wanted[start : start + PAGE])

    def _rows(self, query: str, *parameters: object) -> Iterator[Any]:
        with self._faults_named():
            yield from self._db.execute(query, parameters)

    def _scan(self, query: str, *parameters: object) -> Iterator[Any]:
        """Yield the rows of a large result, without holding all of them."""
        with self._faults_named():
            yield from self._db.scan(query, parameters)

    def _set_meta(self, key: str, value: str) -> None:
        self._db.put("meta", ["key"], ["value"], [(key, value)])


class RecordReader(Record):
    """A record as it stands at one moment, whatever a writer does meanwhile, with rows that may be broken.

    Nothing is written, neither to the file nor beside it.
    """

    def __init__(self, path: Path) -> None:
        """Open the record at ``path``; raises as `Record` does."""
        super().__init__(path, read_only=True)
        with self._faults_named():
            self._db.begin_reading()

    def faults_of_file(self) -> tuple[list[str], set[str]]:
        """Return what the database says against its files. Raises WorkspaceDamaged: it cannot even say that."""
        with self._faults_named():
            return self._db.faults_found()

    def examined(self) -> Iterator[tuple[str, Entry | None]]:
        """Yield id and entry of each passage, None for one that cannot be read or is not what was written."""
        for row in self._scan(f"SELECT {COLUMNS} FROM passages ORDER BY id"):
            try:
                entry = from_row(row)
                is_whole = entry.fingerprint == row[COLUMNS.split(", ").index("fingerprint")]
            except (ValueError, TypeError):
                is_whole = False
            yield str(row[0]), entry if is_whole else None

    def derived_rows(self) -> DerivedRows:
        """Return the rows that should follow from passages and vectors, as they are."""
        texts = {table: dict(self._rows(f"SELECT id, {TEXT_COLUMN[table]} FROM {table}")) for table in HELD_BY}
        links = {
            table: set(self._rows(f"SELECT passage_id, {column} FROM passage_{table}"))
            for table, column in HELD_BY.items()
        }
        return DerivedRows(texts, links, self.corrected())

    def odd_vectors(self, table: str) -> list[str]:
        """Return the ids of rows whose vector is of another length than the others', not finite or no unit vector.

        Of past passages, those count that the present model embedded.
        """
        of_model = "WHERE embedding_model = ?" if table == "past_passages" else ""
        rows = self._rows(f"SELECT id, vector FROM {table} {of_model}", *([self.embedding_model] if of_model else []))
        length = self.dimension
        return [key for key, blob in rows if not _is_unit(blob, length)]


def _is_unit(blob: object, length: int) -> bool:
    if not isinstance(blob, bytes) or len(blob) != 4 * length:
        return False
    norm = np.linalg.norm(np.frombuffer(blob, dtype=np.float32).astype(np.float64))
    return bool(abs(norm - 1) <= _UNIT_TOLERANCE)


def declared_types(record: Record) -> OwnTypes:
    """Return the own types of a workspace. Raises WorkspaceDamaged where its record holds something else."""
    try:
        return OwnTypes.from_json(record.note(OWN_TYPES))
    except ValueError as fault:
        raise WorkspaceDamaged(
            f"The own types in the record cannot be read ({fault})", "Index again with --types FILE"
        ) from fault


def declare_types(record: Record, types: OwnTypes) -> None:
    """Keep other own types, in a commit of its own; what is derived is then derived again."""
    record.change_setting(OWN_TYPES, types.to_json())
