"""Whatever is written and corrected in whatever order ends as a fresh build with the same corrections."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.build import derive_graph
from graph.corrections.kinds import Apart, Change, Drop, Merge, Pin, Split, Statement, What
from graph.errors import BadInput
from graph.schema import Extraction, Passage, RelationType, Triple
from graph.storage.correcting import plan_corrections, plan_undoing
from graph.storage.record import Record
from graph.storage.record_tables import add_correction, undo_corrections
from graph.storage.writer import Writer
from graph.text import normalise_name
from tests.builders import HashEmbedder
from tests.graph.construction.test_builder_changes import Builds, assert_same, assert_same_terms

NAMES = ["IBM", "I.B.M.", "Big Blue", "Blue", "John Smith", "日産"]
FACTS = [
    ("IBM", "founded", "Blue"),
    ("I.B.M.", "founded", "Big Blue"),
    ("John Smith", "is in", "IBM"),
    ("John Smith", "Is In", "I.B.M."),
    ("日産", "is in", "John Smith"),
]
RELATIONS = [RelationType.TEMPORAL, RelationType.SPATIAL]
PLACES = ["hr.csv", "news.csv", "p1", "p2", "d0"]

names = st.sampled_from(NAMES)
called = st.sampled_from([*NAMES, "Another"])
triples = st.builds(
    lambda parts, relation: Triple(parts[0], parts[1], parts[2], relation, 0.5),
    st.sampled_from(FACTS),
    st.sampled_from(RELATIONS),
)
extractions = st.builds(
    lambda found, entities: Extraction(tuple(entities), tuple(found), "test"),
    st.lists(triples, max_size=3),
    st.lists(names, max_size=2),
)
passages = st.builds(
    lambda key, title, words, document: Passage(
        f"p{key}",
        title,
        " ".join(words),
        "hr.csv" if key % 2 else "news.csv",
        {"document": f"d{key // 2}"} if document else {},
    ),
    st.integers(0, 4),
    st.sampled_from(["", *NAMES]),
    st.lists(st.sampled_from([*NAMES, "the", "by"]), max_size=6),
    st.booleans(),
)
statements = st.builds(
    lambda parts, relation: Statement(parts[0], parts[1], parts[2], relation),
    st.sampled_from([*FACTS, ("Another", "founded", "IBM")]),
    st.sampled_from(["", "", *(each.value for each in RELATIONS)]),
)
places = st.sampled_from([(), (), *((place,) for place in PLACES)])


def different(*some: str) -> bool:
    return len({normalise_name(name) for name in some}) == len(some)


corrections: st.SearchStrategy[What] = st.one_of(
    st.builds(Merge, st.lists(names, min_size=2, max_size=3, unique_by=normalise_name).map(tuple), called),
    st.builds(Apart, st.lists(called, min_size=2, max_size=2, unique_by=normalise_name).map(tuple)),
    st.tuples(names, st.sampled_from(PLACES), called)
    .filter(lambda parts: different(parts[0], parts[2]))
    .map(lambda parts: Split(parts[0], (parts[1],), parts[2])),
    st.tuples(statements, statements, places)
    .filter(lambda parts: parts[0] != parts[1])
    .map(lambda parts: Change(*parts)),
    st.builds(Drop, statements, places),
    st.builds(
        lambda fact, relation, key: Pin(Statement(fact.subject, fact.predicate, fact.object, relation), f"p{key}"),
        statements,
        st.sampled_from([each.value for each in RELATIONS]),
        st.integers(0, 4),
    ),
)
Written = tuple[Sequence[tuple[Passage, Extraction]], set[str]]
batches = st.lists(st.tuples(passages, extractions), max_size=3, unique_by=lambda item: item[0].id)
written = st.tuples(batches, st.sets(st.integers(0, 4).map(lambda key: f"p{key}"), max_size=2))
undone = st.sampled_from([-1, -1, -2, 0, 1])
"""Which of the corrections that stand, counted round."""

first = st.lists(st.tuples(passages, extractions), min_size=3, max_size=5, unique_by=lambda item: item[0].id)
steps = st.one_of(corrections, corrections, undone, undone, written)


class World:
    """A record that is written and corrected, and the corpus that it is of."""

    def __init__(self, record: Record, folder: Path) -> None:
        self.record = record
        self.corpus: dict[str, tuple[Passage, Extraction]] = {}
        self.builds = Builds(folder)
        self._embedder = HashEmbedder()

    def take(self, step: Written | What | int) -> None:
        """Write a batch, make a correction, or undo one; what contradicts others is refused, and changes nothing."""
        if isinstance(step, tuple):
            self._write(*step)
            return
        with suppress(BadInput):
            if not isinstance(step, int):
                plan_corrections(self.record, [(step, "")]).commit(self.record, self._embedder)
            elif standing := [each.id for each in self.record.corrections() if each.stands]:
                undone = [standing[step % len(standing)]]
                plan_undoing(self.record, undone).commit(self.record, self._embedder)

    def _write(self, batch: Sequence[tuple[Passage, Extraction]], removed: set[str]) -> None:
        gone = removed - {passage.id for passage, _ in batch}
        Writer(self.record, self._embedder).write(batch, sorted(gone))
        self.corpus = {key: item for key, item in self.corpus.items() if key not in gone}
        self.corpus |= {passage.id: (passage, extraction) for passage, extraction in batch}

    def built_afresh(self, path: Path) -> Record:
        """Return a new record with the same corrections, in which the corpus was written afterwards."""
        fresh = Record(path, create=True)
        with fresh.transaction():
            for each in self.record.corrections():
                add_correction(fresh._db, each.what, each.note, each.made_at)
                if not each.stands:
                    undo_corrections(fresh._db, [each.id], each.undone_at)
        Writer(fresh, HashEmbedder()).write([self.corpus[key] for key in sorted(self.corpus, reverse=True)])
        return fresh


def rows_of(record: Record) -> dict[str, list[object]]:
    """Return what a record holds, in an order of its own."""
    tables = ("passages", "names", "facts", "passage_names", "passage_facts")
    rows: dict[str, list[object]] = {name: sorted(record._rows(f"SELECT * FROM {name}")) for name in tables}
    return rows | {"corrected": sorted(record.corrected().items(), key=repr)}


def run(place: Path, begun: Sequence[tuple[Passage, Extraction]], sequence: Sequence[Written | What | int]) -> None:
    with TemporaryDirectory(dir=place) as folder, Record(Path(folder) / "a.sqlite", create=True) as record:
        record._db.execute("PRAGMA synchronous = OFF")
        world = World(record, Path(folder))
        for step in ((begun, set[str]()), *sequence):
            world.take(step)
            assert_same(world.builds.build(record), derive_graph(record))
        if not world.corpus:
            return
        with world.built_afresh(Path(folder) / "b.sqlite") as fresh:
            assert rows_of(record) == rows_of(fresh)
            assert [*record.stated_in_order()] == [*fresh.stated_in_order()]
            graph, words = world.builds.build(record), world.builds.terms(record)
            assert_same(graph, world.builds.build(fresh))
            assert_same_terms(words, world.builds.terms(fresh))


SEQUENCES = st.lists(steps, min_size=5, max_size=8)


@settings(max_examples=3, deadline=None)
@given(first, SEQUENCES)
def test_any_sequence_of_sync_change_merge_split_drop_and_pin_ends_as_a_fresh_build(
    tmp_path_factory: pytest.TempPathFactory,
    begun: Sequence[tuple[Passage, Extraction]],
    sequence: Sequence[Written | What | int],
) -> None:
    run(tmp_path_factory.getbasetemp(), begun, sequence)
