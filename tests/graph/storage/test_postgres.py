"""The record in Postgres: what is rewritten for it, what it keeps, who joins it, and what its messages leave out."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graph.corrections.kinds import Merge
from graph.errors import BadInput, WorkspaceLocked
from graph.moments import first_moment
from graph.publish.derive import publish_committed
from graph.relationships.documents import relate
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Node, NodeType
from graph.schema import Extraction, Passage
from graph.storage import database
from graph.storage.correcting import plan_corrections
from graph.storage.database import AMONG
from graph.storage.entry import Entry
from graph.storage.opening import place_to_make
from graph.storage.place import PLACE_FILE, Place, name_record
from graph.storage.postgres import PostgresDatabase, marked
from graph.storage.record import Record
from graph.storage.record_tables import Additions, NewVectors
from graph.storage.workspace import Workspace
from tests.builders import DIMENSION, Child, HashEmbedder, TripleParts, passage_of, publish_workspace, write_passages
from tests.cases import PASSWORD_PARTS, unreadable_addresses
from tests.postgres_server import PASSWORD
from tests.records import dump
from workflows.admin.upkeep import move_record

NISSAN = passage_of("nissan", "Nissan", "Nissan was founded in 1933.")
YOKOHAMA = passage_of("yokohama", "Yokohama", "Nissan has its seat in Yokohama.")
NOON = "2026-01-01T12:00:00.000000+00:00"
TRIPLES: dict[str, list[TripleParts]] = {
    "nissan": [("Nissan", "founded", "1933")],
    "yokohama": [("Nissan", "sits in", "Yokohama")],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept") / "record.sqlite"


@pytest.fixture
def in_postgres(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MARA_RECORD_URL", postgres_url)
    return postgres_url


class TestStatements:
    def test_only_the_marks_for_values_are_exchanged(self) -> None:
        cases: list[tuple[str, Any, str]] = [
            ("SELECT a FROM t WHERE b = ? AND c = ?", (), "SELECT a FROM t WHERE b = %s AND c = %s"),
            ("x = :at AND y = :at_most", {"at": 1, "at_most": 2}, "x = %(at)s AND y = %(at_most)s"),
            ("SELECT a FROM t WHERE b LIKE '%x%'", (), "SELECT a FROM t WHERE b LIKE '%%x%%'"),
            (f"DELETE FROM t WHERE NOT a {AMONG} AND b = ?", (), "DELETE FROM t WHERE NOT a = ANY (%s) AND b = %s"),
            ("SELECT 1 WHERE a IN (SELECT value FROM json_each(:l))", {"l": []}, "SELECT 1 WHERE a = ANY (%(l)s)"),
        ]
        for statement, values, written in cases:
            assert marked(statement, values) == written, statement


class TestPlace:
    def test_a_folder_names_a_record_and_no_server(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MARA_RECORD_URL", "postgresql://mara:secret@db.example/records?sslmode=require")
        place = place_to_make(tmp_path / "record.sqlite")
        assert place is not None
        assert place.url == "postgresql://mara:secret@db.example/records?sslmode=require"
        assert json.loads((tmp_path / PLACE_FILE).read_text()) == {"record": place.name}
        assert "secret" not in repr(place)

    def test_an_address_that_is_none_is_not_repeated(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for url in [
            *("http://me:hidden@host/", "hidden", "postgresql://db/x?password=hid#den", "postgresql://me:hidden"),
            *unreadable_addresses("postgresql"),
        ]:
            monkeypatch.setenv("MARA_RECORD_URL", url)
            with pytest.raises(
                BadInput, match=r"MARA_RECORD_URL is no address .*percent-encode the password"
            ) as refused:
                Workspace(tmp_path).create()
            assert not any(part in str(refused.value) for part in ("hid", "den", *PASSWORD_PARTS)), url

    def test_a_folder_that_names_one_says_that_the_setting_is_missing(self, tmp_path: Path) -> None:
        for name in ("", "a b", "x" * 41, 'a"; DROP SCHEMA public; --'):
            with pytest.raises(BadInput, match="is not the name of a record"):
                name_record(tmp_path, name)
        name_record(tmp_path, "team")
        with pytest.raises(BadInput, match=r"is in Postgres, and MARA_RECORD_URL is not set\. Set MARA_RECORD_URL="):
            Workspace(tmp_path).open_record()

    def test_a_record_in_sqlite_is_not_read_in_silence_where_the_setting_says_postgres(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        workspace = Workspace(tmp_path / "w")
        workspace.create()
        monkeypatch.setenv("MARA_RECORD_URL", "postgresql://db/records")
        for read in (workspace.open_record, workspace.create):
            with pytest.raises(BadInput, match=r"is in SQLite, and MARA_RECORD_URL says .*`mara doctor --move-record`"):
                read()


@pytest.mark.slow
class TestKeeping:
    @pytest.fixture
    def record(self, path: Path, in_postgres: str) -> Iterator[Record]:
        with Record(path, create=True) as record:
            yield record

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @example(text="\x00", key="a")
    @example(text="\x1a0\x00\x1a\x1a", key="\U0010ffff")
    @given(
        text=st.text(alphabet=st.characters(exclude_categories=["Cs"])),
        key=st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=20),
    )
    def test_every_text_comes_back_as_it_was(self, record: Record, text: str, key: str) -> None:
        vector = np.linspace(-1, 1, DIMENSION, dtype=np.float32)
        entry = Entry(Passage(key, text, text, text, {"said": text}), Extraction((), (), "import"), 1, vector)
        record.commit([entry], _nothing(), "hash")
        (kept,) = record.entries([key])
        assert (kept.passage, kept.extraction) == (entry.passage, entry.extraction)
        assert kept.vector.tobytes() == vector.tobytes()

    def test_passages_are_in_the_order_of_their_bytes(self, record: Record) -> None:
        keys = ["a", "B", "é", "z", "Z-1", "_", "日", "\U0001f600", "ﬀ"]
        vector = np.zeros(DIMENSION, dtype=np.float32)
        nothing = Extraction((), (), "import")
        record.commit([Entry(passage_of(k, k, k), nothing, 1, vector) for k in keys], _nothing(), "hash")
        found = [entry.passage.id for entry in record.entries()]
        assert found == sorted(found, key=str.encode)
        assert set(keys) <= set(found)


@pytest.mark.slow
@pytest.mark.usefixtures("in_postgres")
class TestTwoFolders:
    def test_one_writes_at_a_time_and_the_other_takes_over_what_it_wrote(self, tmp_path: Path) -> None:
        one = publish_workspace(tmp_path / "one", [NISSAN], TRIPLES)
        other = Workspace(tmp_path / "other")
        other.root.mkdir()
        name_record(other.root, json.loads(one.record_path.read_text())["record"])
        with one.writing(), pytest.raises(WorkspaceLocked, match=rf"other is being written by process {os.getpid()} "):
            other.claim()
        assert publish_committed(other) == other.current() == 1
        with other.writing() as lock, other.open_record(lock) as record:
            write_passages(record, [YOKOHAMA], TRIPLES, HashEmbedder())
        assert publish_committed(one) == one.current() == 2
        with one.open_record() as record:
            assert set(record.fingerprints()) == {"nissan", "yokohama"}

    def test_a_writer_that_is_killed_while_it_commits_leaves_the_last_commit(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.2)
        workspace = publish_workspace(tmp_path / "w", [NISSAN], TRIPLES)
        before = dump(workspace.record_path)
        program = """
import sys
from pathlib import Path
from graph.storage.record import Record
from graph.storage.record_tables import NewVectors
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, TripleParts, passage_of, write_passages
def wait(record):
    print("committing")
    input()
Record._count_up = wait
workspace = Workspace(Path(sys.argv[1]))
with workspace.writing() as lock, workspace.open_record(lock) as record:
    write_passages(record, [passage_of("half", "Half", "Half of it.")], {}, HashEmbedder())
"""
        with Child(program, workspace.root) as writer:
            assert writer.hear() == "committing"
            with pytest.raises(WorkspaceLocked):
                workspace.claim()
            os.kill(writer.process.pid, signal.SIGKILL)
            with workspace.writing() as lock, workspace.open_record(lock) as record:
                assert "half" not in record.fingerprints()
                write_passages(record, [YOKOHAMA], TRIPLES, HashEmbedder())
                assert set(record.fingerprints()) == {"nissan", "yokohama"}
                record.commit([], _nothing(), "hash", removed=["yokohama"])
        assert _without_notes(dump(workspace.record_path)) == _without_notes(before)


@pytest.mark.slow
def test_a_workspace_that_moves_is_the_same_with_versions_corrections_and_history(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = publish_workspace(tmp_path / "w", [NISSAN, YOKOHAMA], TRIPLES)
    with workspace.writing() as lock, workspace.open_record(lock) as record:
        with record.transaction():
            record.versions.begin(first_moment("2020"))
        record.stand_from(first_moment("2021"))
        write_passages(record, [passage_of("nissan", "Nissan", "It was founded.")], TRIPLES, HashEmbedder())
        plan_corrections(record, [(Merge(("Nissan", "Nissan Motors"), "Nissan"), "")]).commit(record, HashEmbedder())
    publish_committed(workspace)
    with workspace.open_record() as record:
        relate(workspace, record)
        corrections, spans = record.corrections(), record.versions.spans()
    with RelationshipRecord.of(workspace.root) as relationships:
        relationships.put_node(Node(NodeType.QUERY, "q", {"text": "a\0b", "created_at": NOON}))
        counts, queries = relationships.counts(), list(relationships.nodes(NodeType.QUERY))
    before = dump(workspace.record_path)

    monkeypatch.setenv("MARA_RECORD_URL", postgres_url)
    name, aside = move_record(workspace.root).values()
    assert "record.sqlite.moved" in aside
    assert not (workspace.root / "record.sqlite").exists()
    assert _without_notes(dump(workspace.record_path)) == _without_notes(before)
    with workspace.open_record() as record:
        assert (record.corrections(), record.versions.spans()) == (corrections, spans)
    with RelationshipRecord.of(workspace.root) as relationships:
        assert (relationships.counts(), list(relationships.nodes(NodeType.QUERY))) == (counts, queries)
        relationships.put_node(Node(NodeType.QUERY, "r", {"text": "t", "created_at": NOON}))
    with pytest.raises(BadInput, match="no record in SQLite"):
        move_record(workspace.root)
    other = publish_workspace(tmp_path / "other", [])
    with pytest.raises(BadInput, match="no record in SQLite"):
        move_record(other.root)
    assert json.loads((workspace.root / PLACE_FILE).read_text()) == {"record": name}


@pytest.mark.slow
@pytest.mark.parametrize("taken", [0, 1])
def test_a_workspace_does_not_move_to_where_another_one_s_record_or_history_is(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, taken: int
) -> None:
    workspace = publish_workspace(tmp_path / "w", [NISSAN], TRIPLES)
    monkeypatch.setenv("MARA_RECORD_URL", postgres_url)
    place = Place(f"taken{taken}", postgres_url)
    with closing(PostgresDatabase(place, schemas_of(place.name)[taken], "")) as db:
        db.begin()
        db.define(["CREATE TABLE kept (id TEXT PRIMARY KEY)"])
        db.commit()
        with pytest.raises(BadInput, match=f"There is a record '{place.name}' in Postgres already"):
            move_record(workspace.root, place.name)
        assert db.has_table("kept")
    assert (workspace.root / "record.sqlite").exists()


@pytest.mark.slow
def test_a_move_that_breaks_off_leaves_nothing_and_can_be_made_again(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = publish_workspace(tmp_path / "w", [NISSAN], TRIPLES)
    with workspace.open_record() as record:
        relate(workspace, record)
    monkeypatch.setenv("MARA_RECORD_URL", postgres_url)
    with monkeypatch.context() as broken:
        broken.setattr(RelationshipRecord, "copy_into", interrupted)
        with pytest.raises(KeyboardInterrupt):
            move_record(workspace.root, "again")
    assert move_record(workspace.root, "again")["record"] == "again"


@pytest.mark.slow
def test_no_fault_of_the_server_tells_the_secret_or_what_a_row_holds(postgres_url: str) -> None:
    place = Place("faults", postgres_url)
    with closing(PostgresDatabase(place, place.schema, "")) as db:
        db.begin()
        db.define(["CREATE TABLE t (id TEXT PRIMARY KEY)"])
        db.commit()
        db.insert("t", [("a private matter",)])
        for statement in ("INSERT INTO t VALUES ('a private matter')", "SELECT nothing FROM t", "SELEC"):
            with pytest.raises(db.faults) as raised:
                db.execute(statement)
            told = str(db.named(raised.value))
            assert not any(text in told for text in ("private", PASSWORD, quote(PASSWORD, safe="")))


def schemas_of(name: str) -> tuple[str, str]:
    place = Place(name, "")
    return place.schema, place.relationships_schema


def interrupted(*given: object) -> None:
    raise KeyboardInterrupt


def _nothing() -> Additions:
    nothing = NewVectors({}, np.zeros((0, DIMENSION), dtype=np.float32))
    return Additions(nothing, nothing)


def _without_notes(lines: list[str]) -> list[str]:
    """A dump without what counts the commits and the writers."""
    return [line for line in lines if not any(key in line for key in ("'generation'", "'commit_id'", "'note:writer'"))]
