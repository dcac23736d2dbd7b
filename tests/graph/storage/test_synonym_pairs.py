from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.checks.record_checks import examine_record
from graph.construction.build import derive_graph
from graph.construction.edges import IS_SYNONYM_KIND
from graph.schema import entity_id
from graph.storage import synonym_pairs as synonyms
from graph.storage.record import SYNONYMS, Record, RecordReader
from graph.storage.synonym_pairs import are_left_to_build, settle_synonyms
from graph.storage.writer import Writer, reembed
from tests.builders import HashEmbedder, extraction_of, passage_of
from workflows.admin.review import near_names

FEW = 6


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Record]:
    """A record whose synonyms are found by the index from seven names on."""
    monkeypatch.setattr(synonyms, "EXACT_NAMES", FEW)
    with Record(tmp_path / "record.sqlite", create=True) as record:
        yield record


def write(writer: Writer, *numbers: int, removed: tuple[int, ...] = ()) -> None:
    """Write passages of one name each, names near all others of the same parity."""
    batch = [(passage_of(f"p{n}", "", "."), extraction_of((), [f"{['even', 'odd'][n % 2]} {n}"])) for n in numbers]
    writer.write(batch, [f"p{n}" for n in removed])


def pairs_of(*numbers: int) -> list[tuple[str, str]]:
    ids = {n: entity_id(f"{['even', 'odd'][n % 2]} {n}") for n in numbers}
    near = ((ids[a], ids[b]) for a in numbers for b in numbers if a % 2 == b % 2)
    return sorted((a, b) for a, b in near if a < b)


def edges_of(record: Record) -> list[tuple[str, str]]:
    graph = derive_graph(record)
    near = IS_SYNONYM_KIND[graph.edges.kind]
    ids = [entity_id(name) for name in graph.entity_names]
    ends = zip(graph.edges.source[near].tolist(), graph.edges.target[near].tolist(), strict=True)
    return sorted((ids[a], ids[b]) for a, b in ends)


def noted_pairs(record: Record) -> list[tuple[str, str]]:
    return [(a, b) for a, b, _ in record.synonyms()]


def test_up_to_the_number_a_writer_finds_the_pairs_and_the_record_holds_them(record: Record) -> None:
    write(Writer(record, HashEmbedder()), *range(FEW))
    assert not are_left_to_build(record)
    assert noted_pairs(record) == pairs_of(*range(FEW)) == edges_of(record)


def test_above_it_the_record_holds_none_and_the_graph_has_them_all_the_same(record: Record) -> None:
    writer = Writer(record, HashEmbedder())
    write(writer, *range(FEW))
    write(writer, FEW)
    assert are_left_to_build(record)
    assert record.synonyms() == []
    assert edges_of(record) == pairs_of(*range(FEW + 1))


def test_a_first_batch_above_it_finds_none(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "graph.storage.synonym_pairs.NameVectors.add", lambda *_: pytest.fail("compared each with each")
    )
    write(Writer(record, HashEmbedder()), *range(FEW + 3))
    assert edges_of(record) == pairs_of(*range(FEW + 3))


def test_a_writer_above_it_keeps_no_names_in_memory(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    write(Writer(record, HashEmbedder()), *range(FEW + 1))
    monkeypatch.setattr(record, "names", lambda: pytest.fail("read every name"))
    write(Writer(record, HashEmbedder()), 20, 21)


@pytest.mark.parametrize("same_writer", [True, False])
def test_below_it_again_all_pairs_are_found_before_they_are_published(record: Record, same_writer: bool) -> None:
    writer = Writer(record, HashEmbedder())
    write(writer, *range(FEW + 2))
    writer = writer if same_writer else Writer(record, HashEmbedder())
    write(writer, removed=(0, 1))
    write(writer, 0, removed=(2,))
    before = record.generation
    settle_synonyms(record)
    left = 0, *range(3, FEW + 2)
    assert not are_left_to_build(record)
    assert record.generation == before
    assert noted_pairs(record) == pairs_of(*left) == edges_of(record)
    write(writer, removed=(0,))
    write(writer, 1)
    assert noted_pairs(record) == pairs_of(1, *range(3, FEW + 2))


def test_a_record_that_grew_above_it_by_other_ways_gives_its_pairs_up(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synonyms, "EXACT_NAMES", 100)
    write(Writer(record, HashEmbedder()), *range(FEW + 1))
    assert record.synonyms()
    monkeypatch.setattr(synonyms, "EXACT_NAMES", FEW)
    settle_synonyms(record)
    assert are_left_to_build(record)
    assert record.synonyms() == []


def test_settling_twice_changes_nothing_more(record: Record) -> None:
    for numbers in (range(FEW), range(FEW + 1)):
        write(Writer(record, HashEmbedder()), *numbers)
        settle_synonyms(record)
        once = (record.note(SYNONYMS), record.synonyms())
        settle_synonyms(record)
        assert (record.note(SYNONYMS), record.synonyms()) == once


@pytest.mark.parametrize("names", [FEW, FEW + 1])
def test_embedding_anew_leaves_them_to_the_same(record: Record, names: int) -> None:
    write(Writer(record, HashEmbedder("old")), *range(names))
    reembed(record, HashEmbedder("new"))
    assert are_left_to_build(record) == (names > FEW)
    assert edges_of(record) == pairs_of(*range(names))


def test_the_doctor_misses_no_pairs_where_there_are_none_to_be_held(record: Record, tmp_path: Path) -> None:
    write(Writer(record, HashEmbedder()), *range(FEW + 1))
    with RecordReader(tmp_path / "record.sqlite") as reader:
        findings, _ = examine_record(reader)
    assert all(finding.ok for finding in findings)
    assert "0 synonyms" in next(each.message for each in findings if each.check == "derived rows")


def test_a_review_of_names_takes_the_pairs_of_the_graph_then(record: Record) -> None:
    write(Writer(record, HashEmbedder()), *range(FEW))
    held = near_names(record, derive_graph(record))
    write(Writer(record, HashEmbedder()), FEW)
    found = near_names(record, derive_graph(record))
    assert sorted(pair[:2] for pair in found) == pairs_of(*range(FEW + 1))
    assert {pair[:2]: pair[2] for pair in found}.items() >= {
        (a, b): pytest.approx(cosine, abs=1e-6) for a, b, cosine in held
    }.items()
