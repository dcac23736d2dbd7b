"""What the record keeps of passages that were replaced or removed, and since when what it holds stands."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.moments import ALWAYS, first_moment, last_moment
from graph.schema import Passage
from graph.storage.record import Record
from graph.storage.versions import Span, of_documents
from graph.storage.writer import reembed
from tests.builders import HashEmbedder, TripleParts, passage_of, write_passages

pytestmark = pytest.mark.usefixtures("database")

LAMP = passage_of("lamp", "Lamp", "The lamp costs 40 euros.")
DEARER = passage_of("lamp", "Lamp", "The lamp costs 45 euros.")
DESK = passage_of("desk", "Desk", "The desk costs 210 euros.")
Triples = Mapping[str, Sequence[TripleParts]]
COSTS: Triples = {"lamp": [("lamp", "costs", "40 euros")], "desk": [("desk", "costs", "210 euros")]}
COSTS_MORE: Triples = {"lamp": [("lamp", "costs", "45 euros")]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "record.sqlite"


@pytest.fixture
def record(path: Path) -> Iterator[Record]:
    with Record(path, create=True) as record:
        with record.transaction():
            record.versions.begin(first_moment("2020"))
        yield record


def write(
    record: Record, date: str, *passages: Passage, triples: Triples = COSTS, removed: tuple[str, ...] = ()
) -> None:
    record.stand_from(first_moment(date))
    write_passages(record, passages, triples, HashEmbedder(), removed)


def interrupted(*given: object) -> None:
    raise KeyboardInterrupt


def times(record: Record, key: str) -> list[tuple[str, str | None]]:
    return [(span.since[:10], span.until and span.until[:10]) for span in record.versions.spans([key])]


class TestKeeping:
    def test_what_is_replaced_stands_until_then(self, record: Record) -> None:
        write(record, "2023", LAMP, DESK)
        write(record, "2024", DEARER, triples=COSTS_MORE)
        assert times(record, "lamp") == [("2023-01-01", "2024-01-01"), ("2024-01-01", None)]
        assert times(record, "desk") == [("2023-01-01", None)]
        first, second = record.versions.spans(["lamp"])
        assert record.versions.entry(first).passage == LAMP
        assert record.versions.entry(second).passage == DEARER
        assert record.versions.count() == 1

    def test_another_extraction_a_change_of_the_same_date_or_without_one_is_no_version(self, record: Record) -> None:
        write(record, "2023", LAMP)
        write(record, "2024", LAMP, triples={"lamp": [("lamp", "is", "dear")]})
        write(record, "2023", DEARER, triples=COSTS_MORE)
        assert times(record, "lamp") == [("2023-01-01", None)]
        record.stand_from("")
        write_passages(record, [LAMP], COSTS, HashEmbedder())
        assert record.versions.count() == 0

    def test_an_entry_of_the_past_has_its_extraction_and_vector(self, record: Record) -> None:
        write(record, "2023", LAMP)
        (before,) = record.entries()
        write(record, "2024", DEARER, triples=COSTS_MORE)
        ((entry, model),) = record.versions.past_entries(last_moment("2023"))
        assert (entry.passage, entry.extraction, model) == (before.passage, before.extraction, "hash")
        assert entry.vector.tolist() == before.vector.tolist()
        reembed(record, HashEmbedder("other"))
        assert [model for _, model in record.versions.past_entries(last_moment("2023"))] == ["hash"]

    def test_a_commit_that_fails_keeps_nothing(
        self, record: Record, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(record, "2023", LAMP)
        with pytest.raises(BadInput):
            write(record, "2024", DEARER, passage_of("a\x00b", "T", "T."), triples=COSTS_MORE)

        monkeypatch.setattr(record, "_count_up", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write(record, "2024", DEARER, triples=COSTS_MORE)
        with Record(path) as again:
            assert times(again, "lamp") == [("2023-01-01", None)]


class TestDates:
    def test_what_begins_or_ended_later_is_refused(self, record: Record) -> None:
        write(record, "2023", LAMP, DESK)
        write(record, "2024", removed=("desk",))
        versions, now = record.versions, first_moment("2026")
        versions.check(["lamp", "new"], first_moment("2023"), now)
        with pytest.raises(BadInput, match="1 passages stand, or ended, later than 2022-01-01: 'lamp' on 2023-01-01"):
            versions.check(["lamp", "new"], first_moment("2022"), now)
        with pytest.raises(BadInput, match="'desk' on 2024-01-01"):
            versions.check(["desk"], first_moment("2023-06"), now)

    def test_what_stood_has_one_digest_between_two_changes(self, record: Record) -> None:
        write(record, "2023", LAMP, DESK)
        write(record, "2024", DEARER, triples=COSTS_MORE)
        digests = [record.versions.digest(last_moment(date)) for date in ("2022", "2023-01-01", "2023-12", "2024")]
        assert digests[0] == ""
        assert digests[1] == digests[2] != digests[3]
        assert [record.versions.still_stands(last_moment(date)) for date in ("2023", "2024")] == [False, True]


class TestRecordsFromBefore:
    def test_what_they_held_stands_from_the_first_moment_that_is_known(self, path: Path) -> None:
        with Record(path, create=True) as record:
            write_passages(record, [LAMP], COSTS, HashEmbedder())
            assert (record.versions.are_kept, record.versions.count()) == (False, 0)
            with pytest.raises(BadInput, match="'lamp' on 2026-01-01"):
                record.versions.check(["lamp"], first_moment("2023"), first_moment("2026"))
            with record.transaction():
                record.versions.begin(first_moment("2026"))
            assert record.versions.kept_from == first_moment("2026")
            write(record, "2027", DEARER, triples=COSTS_MORE)
            assert times(record, "lamp") == [("2026-01-01", "2027-01-01"), ("2027-01-01", None)]


class TestErasing:
    @pytest.mark.sqlite_file
    def test_versions_go_with_all_that_is_noted_of_them(self, record: Record, path: Path) -> None:
        write(record, "2023", LAMP, DESK)
        write(record, "2024", DEARER, triples=COSTS_MORE, removed=("desk",))
        state = record.versions.state
        with record.transaction():
            assert record.versions.erase(record.versions.spans(["lamp"])) == 1
        assert record.versions.state != state
        assert [span.passage_id for span in record.versions.spans()] == ["desk", "lamp"]
        record.shorten_log()
        assert b"40 euros" not in path.read_bytes() + path.with_name("record.sqlite-wal").read_bytes()

    @pytest.mark.sqlite_file
    def test_all_of_them_go_where_none_are_to_be_kept(self, record: Record, path: Path) -> None:
        write(record, "2023", LAMP)
        write(record, "2024", DEARER, triples=COSTS_MORE)
        with record.transaction():
            record.versions.end()
        assert not record.versions.are_kept
        record.close()
        assert b"40 euros" not in path.read_bytes()
        with sqlite3.connect(path) as database:
            assert not database.execute("SELECT 1 FROM sqlite_master WHERE name LIKE 'past%'").fetchall()


class TestDocuments:
    @staticmethod
    def span(key: str, document: str, source: str, **metadata: int) -> Span:
        return Span(key, None, ALWAYS, None, source, {"document": document, **metadata}, "", "")

    def test_a_part_of_a_file_stands_for_all_that_ever_came_from_it(self) -> None:
        old = self.span("p1", "hash-1", "a.txt", chunk=0, start=0)
        new = self.span("p2", "hash-2", "a.txt", chunk=0, start=0)
        other = self.span("p3", "hash-3", "b.txt", chunk=0, start=0)
        assert of_documents([old, new, other], ["hash-2"]) == [old, new]
        assert of_documents([old, new, other], ["p2"]) == [new]
        assert of_documents([old, new, other], [], ["b.txt"]) == [other]
        rows = [self.span(key, f"doc-{key}", "rows.csv") for key in "ab"]
        assert of_documents(rows, ["doc-a"]) == rows[:1]
