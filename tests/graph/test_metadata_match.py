"""Conditions hold of a passage where the search index says that they do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.metadata_filter import meets, read_conditions
from graph.retrieve.open_index import Index, open_index
from graph.schema import Passage
from tests.builders import HashEmbedder, publish_workspace

VALUES: tuple[Any, ...] = (None, 0, 1, 2, -3, 1.0, 1.5, 2.5, -3.5, "1", "a", "2020", "2020-05-31", True, False)
OPERANDS = st.sampled_from([value for value in VALUES if value is not None])
SIZES = st.sampled_from([0, 1, 2, -3, 1.0, 1.5, 2.5, -3.5, "2020", "2020-05", "2020-05-31T12:00Z"])
CONDITIONS = st.one_of(
    OPERANDS,
    st.builds(lambda operator, value: {operator: value}, st.sampled_from(["$eq", "$ne"]), OPERANDS),
    st.builds(lambda operator, value: {operator: value}, st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), SIZES),
    st.builds(
        lambda operator, values: {operator: values}, st.sampled_from(["$in", "$nin"]), st.lists(OPERANDS, min_size=1)
    ),
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Passages with every pair of values under two keys."""
    passages = [
        Passage(f"p{number}", "", f"Text {number}", f"s{number % 2}", {k: v for k, v in pair if v is not None})
        for number, values in enumerate(product(VALUES, repeat=2))
        for pair in [tuple(zip("ab", values, strict=True))]
    ]
    workspace = publish_workspace(tmp_path_factory.mktemp("all") / "workspace", passages)
    index = open_index(workspace.root, HashEmbedder())
    yield index
    index.close()


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), CONDITIONS, min_size=1, max_size=3))
def test_of_every_passage(index: Index, where: dict[str, Any]) -> None:
    selection = index.select(where)
    assert selection is not None
    conditions = read_conditions(where)
    held = [meets(conditions, passage.source, passage.metadata) for passage in index.graph.passages]
    assert held == selection.passages.tolist()


def test_of_sources_and_of_nothing(index: Index) -> None:
    selection = index.select({"source": "s1"})
    assert selection is not None
    conditions = read_conditions({"source": "s1"})
    assert [meets(conditions, p.source, p.metadata) for p in index.graph.passages] == selection.passages.tolist()
    assert meets((), "s1", {})
