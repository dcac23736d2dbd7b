"""The work of a run: wanted passages against the record, without extracting anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graph.schema import Extraction, Passage, Triple
from graph.sources.triples import ImportedTriples
from graph.storage.record import Record
from graph.storage.writer import Writer
from tests.builders import HashEmbedder, passage_of
from workflows.indexing_run.changes import Changes, plan_changes

A, B, C = (passage_of(key, key.upper(), f"text of {key}", year=1900) for key in "abc")
IMPORTED = Extraction((), (Triple("Karv", "lies in", "Ostra"),), "import")


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    """A record of a, extracted by "test", b, which failed, and c, whose triples were imported."""
    with Record(tmp_path / "record.sqlite", create=True) as opened:
        batch = [
            (A, Extraction(("Karv",), (), "test")),
            (B, Extraction((), (), "test", failure="the model was busy")),
            (C, IMPORTED),
        ]
        Writer(opened, HashEmbedder()).write(batch)
        yield opened


def triples_of(extraction: Extraction = IMPORTED) -> ImportedTriples:
    return ImportedTriples({"c": extraction}, {}, 1)


def changes(
    record: Record,
    *passages: Passage,
    extractor: str = "test",
    triples: ImportedTriples | None = None,
    remove_others: bool = False,
    keep: tuple[str, ...] = (),
) -> Changes:
    wanted = {passage.id: passage for passage in passages}
    return plan_changes(record, wanted, extractor, triples, remove_others=remove_others, keep_sources=keep)


def test_a_passage_of_the_same_content_and_extractor_is_unchanged_and_an_unwanted_one_stays(record: Record) -> None:
    plan = changes(record, A)
    assert plan == Changes(added=(), changed=(), removed=(), unchanged=("a",))
    assert not plan
    plan = changes(record, A, replace(A, id="d"))
    assert (plan.added, plan.unchanged, plan.to_write) == (("d",), ("a",), ("d",))
    assert plan


def test_another_content_another_extractor_or_a_failure_before_extracts_again(record: Record) -> None:
    others = [replace(A, title="Another"), replace(A, text="another text"), replace(A, source="moved.txt")]
    others += [replace(A, metadata={"year": year}) for year in (1901, 1900.0)]
    for other in others:
        plan = changes(record, other)
        assert (plan.changed, plan.reread) == (("a",), ()), other
    plan = changes(record, A, extractor="other")
    assert (plan.changed, plan.reread) == (("a",), ("a",))
    assert changes(record, A, B).changed == ("b",)


def test_imported_triples_are_compared_under_any_extractor(record: Record) -> None:
    assert changes(record, C, extractor="other", triples=triples_of()).unchanged == ("c",)
    other = replace(IMPORTED, triples=(Triple("Karv", "lies in", "Belavia"),))
    assert changes(record, C, triples=triples_of(other)).changed == ("c",)
    assert changes(record, C).changed == ("c",), "triples that are no longer imported are extracted"


def test_a_sync_removes_unwanted_passages_but_spares_those_of_unread_files_and_folders(record: Record) -> None:
    below = replace(A, id="d", source="deep/er/d.txt")
    Writer(record, HashEmbedder()).write([(below, Extraction((), (), "test"))])
    plan = changes(record, A, remove_others=True)
    assert (plan.removed, plan.unchanged, plan.spared) == (("b", "c", "d"), ("a",), ())
    cases = [("b.txt", "b"), ("b", ""), ("deep", "d"), ("deep/er", "d"), ("dee", ""), (".", "bcd")]
    for place, spared in cases:
        plan = changes(record, A, remove_others=True, keep=(place,))
        assert plan.spared == tuple(spared), place
        assert plan.removed == tuple(sorted({"b", "c", "d"} - set(spared))), place
