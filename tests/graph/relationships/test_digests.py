"""Digests tell which groups changed, whatever the order of their rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graph.relationships.digests import Digests, chained, hashes_of_ids, mixed, summed
from graph.relationships.record import RelationshipRecord
from graph.schema import entity_id

WORDS = st.integers(0, 2**64 - 1)


def numbers(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array(values, dtype=np.uint64)


def test_mixing_is_that_of_split_mix_64() -> None:
    assert mixed(numbers([0]))[0] == 0xE220A8397B1DCDAF


@given(st.lists(st.tuples(WORDS, WORDS), min_size=2, max_size=8, unique=True), st.randoms())
def test_the_order_of_rows_does_not_count_but_that_of_columns_does(rows: list[tuple[int, int]], random: object) -> None:
    shuffled = [*rows]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = (
        summed(chained(*(numbers([row[i] for row in each]) for i in (0, 1))), np.zeros(len(each), dtype=np.intp), 1)
        for each in (rows, shuffled)
    )
    assert one == other
    first, second = (numbers([row[i] for row in rows]) for i in (0, 1))
    if (first != second).any():
        assert (chained(first, second) != chained(second, first)).any()


@given(
    st.dictionaries(WORDS, WORDS, max_size=6),
    st.dictionaries(WORDS, WORDS, max_size=6),
)
def test_what_is_new_changed_and_gone_is_found(before: dict[int, int], after: dict[int, int]) -> None:
    known = Digests.of(numbers(list(before)), numbers(list(before.values())))
    keys = numbers(list(after))
    differing = known.differing(keys, numbers(list(after.values())))
    assert differing.tolist() == [before.get(key) != value for key, value in after.items()]
    assert known.gone(keys).tolist() == sorted(before.keys() - after.keys())


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    with RelationshipRecord.of(tmp_path, create=True) as record:
        assert len(Digests.load(record, "concepts").keys) == 0
        with record.transaction():
            Digests.of(numbers([3, 1]), numbers([30, 10])).save(record, "concepts")
        loaded = Digests.load(record, "concepts")
        assert (loaded.keys.tolist(), loaded.values.tolist()) == ([1, 3], [10, 30])


def test_ids_are_told_apart_by_their_last_digits() -> None:
    ids = [entity_id(name) for name in ("Nissan", "Renault")]
    assert hashes_of_ids(ids).tolist() == [int(key[-16:], 16) for key in ids]
    assert len(hashes_of_ids([])) == 0
