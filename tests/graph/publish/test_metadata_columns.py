"""Columns of metadata select as each passage by itself would be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.metadata_filter import meets, read_conditions
from graph.publish.metadata_columns import MetadataColumns
from graph.schema import MetadataValue, Passage

VALUES = st.one_of(
    st.integers(-3, 3), st.booleans(), st.floats(-3, 3), st.sampled_from(["a", "b", "2020", "2020-05", "ä\0"])
)
HELD = st.dictionaries(st.sampled_from(["k", "l", "date"]), VALUES)
OPERANDS = st.one_of(
    st.tuples(st.sampled_from(["$eq", "$ne"]), VALUES),
    st.tuples(st.sampled_from(["$in", "$nin"]), st.lists(VALUES, min_size=1, max_size=3)),
    st.tuples(
        st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.one_of(st.integers(-3, 3), st.sampled_from(["2020-05"]))
    ),
)
WHERE = st.dictionaries(
    st.sampled_from(["k", "l", "date", "source", "nowhere"]), OPERANDS.map(lambda pair: {pair[0]: pair[1]}), min_size=1
)


def passages_of(held: list[Mapping[str, MetadataValue]]) -> list[Passage]:
    return [Passage(str(row), "t", "x", "ab"[row % 2], metadata) for row, metadata in enumerate(held)]


@given(held=st.lists(HELD, max_size=8), where=WHERE)
def test_they_select_what_meets_the_conditions(
    held: list[Mapping[str, MetadataValue]], where: Mapping[str, object]
) -> None:
    passages, conditions = passages_of(held), read_conditions(where)
    met = MetadataColumns.of(passages).meeting(conditions)
    assert met.tolist() == [meets(conditions, passage.source, passage.metadata) for passage in passages]


def test_they_are_read_as_they_were_written(tmp_path: Path) -> None:
    passages = passages_of([{"k": 1}, {"k": True, "date": "2020"}, {}, {"k": 1.0}])
    MetadataColumns.of(passages).save(tmp_path)
    read = MetadataColumns.load(tmp_path, 4)
    for where in {"k": 1}, {"k": True}, {"date": {"$gte": "2019"}}, {"source": "b"}, {"k": {"$ne": 1}}:
        asked = read_conditions(where)
        assert read.meeting(asked).tolist() == MetadataColumns.of(passages).meeting(asked).tolist()


def test_columns_of_other_passages_are_refused(tmp_path: Path) -> None:
    MetadataColumns.of(passages_of([{"k": 1}, {"k": 2}])).save(tmp_path)
    with pytest.raises(ValueError, match="within"):
        MetadataColumns.load(tmp_path, 1)
