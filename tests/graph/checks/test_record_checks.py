"""A record that is damaged row by row: what is found, what is mended, and what is said to be lost."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.checks.findings import Finding
from graph.checks.record_checks import examine_record
from graph.errors import WorkspaceDamaged
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


def test_an_empty_record_is_in_order(tmp_path: Path) -> None:
    Record(tmp_path / "record.sqlite", create=True).close()
    assert not problems(examine(tmp_path / "record.sqlite")[0])


MISFITS = {
    "a name that nobody holds": (
        "INSERT INTO names SELECT 'entity-0', 'nobody', vector FROM names LIMIT 1", "derived rows"),
    "a fact that nobody holds": (
        "INSERT INTO facts SELECT 'fact-0', 'nothing', vector FROM facts LIMIT 1", "derived rows"),
    "a name of another text": ("UPDATE names SET name = 'ostro' WHERE name = 'ostra'", "derived rows"),
    "a fact of another text": ("UPDATE facts SET text = 'x' WHERE text = 'lake velm lies in ostra'", "derived rows"),
    "a lost link of a name": ("DELETE FROM passage_names WHERE passage_id = 'cd'", "derived rows"),
    "a lost link of a fact": ("DELETE FROM passage_facts WHERE passage_id = 'cd'", "derived rows"),
    "a link too many": ("INSERT INTO passage_names SELECT 'ef', id FROM names WHERE name = 'ostra'", "derived rows"),
    "a fact's link too many": ("INSERT INTO passage_facts SELECT 'ef', id FROM facts LIMIT 1", "derived rows"),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "check"), MISFITS.values(), ids=MISFITS)
def test_what_follows_from_the_passages_is_found_and_mended(path: Path, sql: str, check: str) -> None:
    whole = dump(path)
    damage(path, sql)
    findings, rows = examine(path)
    assert problems(findings) == {check: True}
    assert next(finding for finding in findings if finding.check == check).examples
    assert rows
    with Record(path) as record:
        generation, commit = record.generation, record.commit_id
        record.replace_derived(rows)
        assert (record.generation, record.commit_id != commit) == (generation + 1, True)
    assert dump(path) == whole
    assert not problems(examine(path)[0])


def test_rows_that_refer_to_nothing_are_found_and_mended(path: Path) -> None:
    whole = dump(path)
    damage(path, "INSERT INTO passage_facts VALUES ('gone', 'fact-0')")
    findings, rows = examine(path)
    assert problems(findings) == {"record file": True, "derived rows": True}
    assert findings[0].examples == ("passage_facts",)
    assert rows is not None
    with Record(path) as record:
        record.replace_derived(rows)
    assert dump(path) == whole


def test_pairs_of_names_that_an_earlier_release_kept_and_that_refer_to_nothing_go(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE synonyms (a TEXT REFERENCES names(id), b TEXT REFERENCES names(id), cosine REAL)")
        db.execute("INSERT INTO synonyms VALUES ('entity-0', 'entity-1', 0.9)")
    findings, rows = examine(path)
    assert problems(findings) == {"record file": True}
    assert findings[0].examples == ("synonyms",)
    assert rows is not None
    with Record(path) as record:
        record.replace_derived(rows)
    assert not problems(examine(path)[0])


LOST = {
    "a name's vector": ("DELETE FROM names WHERE name = 'ostra'", "vectors", "mara doctor --reembed"),
    "a fact's vector": ("DELETE FROM facts WHERE rowid = 1", "vectors", "mara doctor --reembed"),
    "triples that are no JSON": ("UPDATE passages SET triples = '[' WHERE id = 'ab'", "passages", "mara index"),
    "triples of four parts": (
        """UPDATE passages SET triples = '[["a", "b", "c", "SPATIAL"]]' WHERE id = 'ab'""", "passages", "mara index"),
    "an unknown relation": (
        """UPDATE passages SET triples = '[["a", "b", "c", "odd", 1.0]]' WHERE id = 'ab'""", "passages", "mara index"),
    "a confidence over 1": (
        """UPDATE passages SET triples = '[["a", "b", "c", "SPATIAL", 2]]'""", "passages", "mara index"),
    "metadata that are no mapping": ("UPDATE passages SET metadata = '[]' WHERE id = 'ab'", "passages", "mara index"),
    "another text": ("UPDATE passages SET text = 'Text of aB' WHERE id = 'ab'", "passages", "mara index"),
    "another triple": (
        "UPDATE passages SET triples = replace(triples, '0.7', '0.8')", "passages", "mara index"),
    "a setting": ("DELETE FROM meta WHERE key = 'workspace_id'", "record settings", "backup"),
    "own types": ("INSERT INTO meta VALUES ('note:own_types', '{')", "record settings", "backup"),
    "the generation": ("UPDATE meta SET value = 'x' WHERE key = 'generation'", "record settings", "backup"),
    "the model": ("UPDATE meta SET value = '' WHERE key = 'embedding_model'", "record settings", "backup"),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "check", "advice"), LOST.values(), ids=LOST)
def test_what_is_lost_is_said_with_what_to_do(path: Path, sql: str, check: str, advice: str) -> None:
    damage(path, sql)
    findings, _ = examine(path)
    found = problems(findings)
    assert found.pop(check) is False
    assert not any(repairable is False for repairable in found.values())
    assert advice in next(finding.advice for finding in findings if finding.check == check)


@pytest.mark.parametrize("table", ["passages", "names", "facts"])
@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(DIMENSION, dtype=np.float32),
        np.full(DIMENSION, 0.25, dtype=np.float32),
        np.full(DIMENSION, np.nan, dtype=np.float32),
        np.full(DIMENSION // 2, (2 / DIMENSION) ** 0.5, dtype=np.float32),
        np.full(DIMENSION * 4, 1 / (2 * DIMENSION**0.5), dtype=np.float32),
    ],
    ids=["zero", "too long", "no number", "half", "four times"],
)
def test_broken_vectors_are_found(path: Path, table: str, vector: NDArray[np.float32]) -> None:
    damage(path, f"UPDATE {table} SET vector = ? WHERE rowid = 2", vector.tobytes())
    findings, rows = examine(path)
    assert problems(findings) == {"vectors": False}
    assert rows is None
    assert "mara doctor --reembed" in findings[-1].advice


class TestTheFile:
    def test_a_page_of_rubbish(self, path: Path) -> None:
        damage(path, "UPDATE passages SET text = ? WHERE id = 'ef'", "long text " * 10_000)
        content = bytearray(path.read_bytes())
        page = content.index(b"long text") // 8192
        content[page * 8192 : (page + 1) * 8192] = b"rubbish!" * 1024
        path.write_bytes(content)
        findings, rows = examine(path)
        assert problems(findings) == {"record file": False}
        assert "backup" in findings[0].advice
        assert rows is None

    @pytest.mark.parametrize("content", [b"", b"rubbish!" * 1024, None])
    def test_what_cannot_be_opened_at_all(self, path: Path, content: bytes | None) -> None:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if content is None else content)
        with pytest.raises(WorkspaceDamaged, match="backup"):
            examine(path)

    def test_a_lost_table(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("DROP TABLE facts")
        assert problems(examine(path)[0])["record file"] is False

    def test_text_that_is_no_unicode(self, path: Path) -> None:
        damage(path, "UPDATE passages SET title = CAST(X'ff' AS TEXT) WHERE id = 'ab'")
        assert problems(examine(path)[0])["record file"] is False


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


def test_versions_are_in_order_as_they_are_written(past: Path) -> None:
    findings, _ = examine(past)
    assert problems(findings) == {}
    told = {finding.check: finding.message for finding in findings}
    assert told["versions"] == "Each of 2 past versions is what was written, and stands alone in its time"


VERSIONS_LOST = {
    "another text": "UPDATE past_passages SET text = 'x' WHERE id = 'ab'",
    "metadata that are no JSON": "UPDATE past_passages SET metadata = '{' WHERE id = 'ab'",
    "triples that are none": "UPDATE past_passages SET triples = '[[1]]' WHERE id = 'cd'",
    "a vector of another length": "UPDATE past_passages SET vector = x'00' WHERE id = 'ab'",
    "facts that it does not hold": "DELETE FROM past_facts",
    "a time that is another one's, too": "UPDATE past_passages SET until = '2025' WHERE id = 'ab'",
}


@pytest.mark.parametrize("sql", VERSIONS_LOST.values(), ids=VERSIONS_LOST)
def test_damaged_versions_are_found_and_said_how_to_be_rid_of(past: Path, sql: str) -> None:
    damage(past, sql)
    findings, _ = examine(past)
    assert problems(findings) == {"versions": False}
    assert "keep_versions=false" in next(finding.advice for finding in findings if finding.check == "versions")
