"""A record that is damaged row by row: what is found, what is mended, and what is said to be lost."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from graph.checks.doctor import Finding, examine_record
from graph.moments import first_moment
from graph.schema import RelationType
from graph.storage.record import Record, RecordReader
from graph.storage.record_tables import DerivedRows
from tests.builders import DIMENSION, HashEmbedder, TripleParts, passage_of, write_passages

PASSAGES = [passage_of(key, f"Title {key}", f"Text of {key}", year=1900) for key in ("ab", "cd", "ef")]
TRIPLES: dict[str, list[TripleParts]] = {
    "ab": [("Lake Sund", "lies in", "Ostra", RelationType.SPATIAL), ("Lake Velm", "lies in", "Ostra")],
    "cd": [("Lake Sund", "was dammed in", "1911", RelationType.TEMPORAL, 0.7)],
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "record.sqlite"
    with Record(path, create=True) as record:
        write_passages(record, PASSAGES, TRIPLES, HashEmbedder())
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "record.sqlite"))


@contextmanager
def damaged(whole: Path, sql: str, *parameters: object) -> Iterator[Path]:
    """Yield a copy of a record that was written to as no writer would; it goes with the block."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copy(whole, folder))
        damage(path, sql, *parameters)
        yield path


def examine(path: Path) -> tuple[list[Finding], DerivedRows | None]:
    with RecordReader(path) as record:
        return examine_record(record)


def problems(findings: list[Finding]) -> dict[str, bool]:
    """Return {check: whether it can be repaired} of what is not in order."""
    return {finding.check: finding.repairable for finding in findings if not finding.ok}


def damage(path: Path, sql: str, *parameters: object) -> None:
    """Write to the record as no writer would."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        assert db.execute(sql, parameters).rowcount > 0


def dump(path: Path) -> list[tuple[object, ...]]:
    """Return all rows but those that every commit changes."""
    with closing(sqlite3.connect(path)) as db:
        tables = ("passages", "names", "facts", "passage_names", "passage_facts")
        return [row for table in tables for row in sorted(db.execute(f"SELECT * FROM {table}"))]


def test_a_whole_record_is_in_order(path: Path) -> None:
    findings, rows = examine(path)
    assert not problems(findings)
    assert rows is not None
    assert all(finding.message and not finding.repairable for finding in findings)
    assert len({finding.check for finding in findings}) == len(findings)
    empty = path.with_name("empty.sqlite")
    Record(empty, create=True).close()
    assert not problems(examine(empty)[0])


def test_what_follows_from_the_passages_is_found_and_mended(template: Path) -> None:
    whole = dump(template)
    for sql in (
        "INSERT INTO names SELECT 'entity-0', 'nobody', vector FROM names LIMIT 1",
        "UPDATE names SET name = 'ostro' WHERE name = 'ostra'",
        "UPDATE facts SET text = 'x' WHERE text = 'lake velm lies in ostra'",
        "DELETE FROM passage_names WHERE passage_id = 'cd'",
        "INSERT INTO passage_facts SELECT 'ef', id FROM facts LIMIT 1",
        "INSERT INTO passage_facts VALUES ('gone', 'fact-0')",
    ):
        with damaged(template, sql) as path:
            findings, rows = examine(path)
            refers_to_nothing = {"record file": True} if "gone" in sql else {}
            assert problems(findings) == {"derived rows": True, **refers_to_nothing}, sql
            assert next(finding for finding in findings if finding.check == "derived rows").examples
            assert rows
            with Record(path) as record:
                generation, commit = record.generation, record.commit_id
                record.replace_derived(rows)
                assert (record.generation, record.commit_id != commit) == (generation + 1, True)
            assert dump(path) == whole, sql
            assert not problems(examine(path)[0])


def test_what_is_lost_is_said_with_what_to_do(template: Path) -> None:
    for check, advice, statements in [
        (
            "vectors",
            "mara doctor --reembed",
            ["DELETE FROM names WHERE name = 'ostra'", "DELETE FROM facts WHERE rowid = 1"],
        ),
        (
            "passages",
            "mara index",
            [
                "UPDATE passages SET triples = '[' WHERE id = 'ab'",
                "UPDATE passages SET triples = replace(triples, '0.7', '0.8')",
            ],
        ),
        ("record settings", "backup", ["DELETE FROM meta WHERE key = 'workspace_id'"]),
    ]:
        for sql in statements:
            with damaged(template, sql) as path:
                findings, _ = examine(path)
            repairable = problems(findings)
            assert repairable.pop(check) is False, sql
            assert False not in repairable.values(), sql
            assert advice in next(finding.advice for finding in findings if finding.check == check)


def test_broken_vectors_are_found(template: Path) -> None:
    for vector in (
        np.zeros(DIMENSION, dtype=np.float32),
        np.full(DIMENSION, 0.25, dtype=np.float32),
        np.full(DIMENSION, np.nan, dtype=np.float32),
    ):
        for table in ("passages", "names", "facts"):
            with damaged(template, f"UPDATE {table} SET vector = ? WHERE rowid = 2", vector.tobytes()) as path:
                findings, rows = examine(path)
            assert problems(findings) == {"vectors": False}, (table, vector)
            assert rows is None
            assert "mara doctor --reembed" in findings[-1].advice


def test_a_page_of_rubbish(path: Path) -> None:
    damage(path, "UPDATE passages SET text = ? WHERE id = 'ef'", "long text " * 10_000)
    content = bytearray(path.read_bytes())
    page = content.index(b"long text") // 8192
    content[page * 8192 : (page + 1) * 8192] = b"rubbish!" * 1024
    path.write_bytes(content)
    findings, rows = examine(path)
    assert problems(findings) == {"record file": False}
    assert "backup" in findings[0].advice
    assert rows is None


@pytest.fixture
def past(path: Path) -> Path:
    """The record with versions: one passage changed, and one is gone."""
    with Record(path) as record:
        with record.transaction():
            record.versions.begin(first_moment("2023"))
        record.stand_from(first_moment("2024"))
        changed = passage_of("ab", "Title ab", "Another text of ab")
        write_passages(record, [changed], TRIPLES, HashEmbedder(), removed=["cd"])
    return path


def test_damaged_versions_are_found_and_said_how_to_be_rid_of(past: Path) -> None:
    for sql in (
        "UPDATE past_passages SET text = 'x' WHERE id = 'ab'",
        "DELETE FROM past_facts",
        "UPDATE past_passages SET until = '2025' WHERE id = 'ab'",
    ):
        with damaged(past, sql) as path:
            findings, _ = examine(path)
        assert problems(findings) == {"versions": False}, sql
        assert "keep_versions=false" in next(finding.advice for finding in findings if finding.check == "versions")
