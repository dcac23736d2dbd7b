"""``where``: what a condition may be, what it means, and how the command line writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import BadInput
from graph.metadata_filter import (
    MAX_CHARACTERS,
    MAX_CONDITIONS,
    MAX_VALUES,
    askable_metadata,
    canonical,
    date_span,
    meets,
    narrowed,
    parse_where,
    read_conditions,
    where_schema,
)
from graph.publish.metadata_columns import MetadataColumns
from graph.schema import MetadataValue, Passage

DAY_S = 86_400


def chosen(rows: list[dict[str, MetadataValue]], where: Mapping[str, Any]) -> set[int]:
    """The places of the rows that meet the conditions: by column, and each by itself."""
    conditions = read_conditions(where)
    columns = MetadataColumns.of(Passage(str(place), "", "", "a.txt", row) for place, row in enumerate(rows))
    places = {*np.flatnonzero(columns.meeting(conditions)).tolist()}
    assert places == {place for place, row in enumerate(rows) if meets(conditions, "a.txt", row)}
    return places


DATES = st.sampled_from(["1999", "2000", "2000-02", "2000-02-29", "2000-02-29T12:00", "2000-03-01T00:00:00+02:00"])
VALUES = st.one_of(
    st.sampled_from(["a", "b", "", "7", "007"]),
    DATES,
    st.sampled_from([0, 1, 7, 1999, 2000, 7.0, 1999.5, 2**53 + 1, 2**53]),
    st.booleans(),
)
KEYS = st.sampled_from(["tenant", "year"])
CONDITIONS = st.one_of(
    VALUES,
    st.dictionaries(st.sampled_from(["$eq", "$ne"]), VALUES, min_size=1),
    st.dictionaries(st.sampled_from(["$in", "$nin"]), st.lists(VALUES, min_size=1, max_size=4), min_size=1),
    st.dictionaries(
        st.sampled_from(["$gt", "$gte", "$lt", "$lte"]),
        st.one_of(DATES, st.sampled_from([1, 1999, 1999.5, 2000])),
        min_size=1,
    ),
)


class TestMeaning:
    @given(
        rows=st.lists(st.dictionaries(KEYS, VALUES), min_size=1, max_size=8),
        where=st.dictionaries(KEYS, CONDITIONS, min_size=1),
    )
    def test_columns_and_rows_agree(self, rows: list[dict[str, MetadataValue]], where: dict[str, Any]) -> None:
        chosen(rows, where)

    def test_values_compare_by_type_and_numbers_and_dates_by_size(self) -> None:
        values: list[MetadataValue] = ["7", 7, 7.0, True, "2020", "2020-03", 2021, 2**53 + 1]
        rows: list[dict[str, MetadataValue]] = [{}, *({"key": value} for value in values)]
        for condition, selected in [
            ("7", {1}),
            (7, {2, 3}),
            (True, {4}),
            (2**53, set()),
            ({"$ne": 7}, {0, 1, 4, 5, 6, 7, 8}),
            ({"$in": ["7", True]}, {1, 4}),
            ({"$nin": [7, 2**53 + 1, "7"]}, {0, 4, 5, 6, 7}),
            ({"$gt": 7, "$lt": 2022}, {7}),
            ({"$gte": 7, "$lte": 2021}, {2, 3, 7}),
            ({"$gte": "2020"}, {5, 6, 7, 8}),
            ({"$gt": "2020"}, {7, 8}),
            ({"$lt": "2020-03"}, {5}),
            ({"$lte": "2020-03"}, {5, 6}),
            ({"$gt": "2020-02-29T23:59Z"}, {6}),
        ]:
            assert chosen(rows, {"key": condition}) == selected, condition


class TestNarrowing:
    """A server's filter and a client's together."""

    @given(
        rows=st.lists(st.dictionaries(KEYS, VALUES), min_size=1, max_size=8),
        fixed=st.dictionaries(KEYS, CONDITIONS, min_size=1),
        own=st.dictionaries(KEYS, CONDITIONS, min_size=1),
    )
    def test_both_hold_or_are_refused(
        self, rows: list[dict[str, MetadataValue]], fixed: dict[str, Any], own: dict[str, Any]
    ) -> None:
        asked = [{(each.key, each.operator): each.operand for each in read_conditions(one)} for one in (fixed, own)]
        if any(json.dumps(asked[0][each]) != json.dumps(asked[1][each]) for each in asked[0].keys() & asked[1].keys()):
            with pytest.raises(BadInput, match="The server has a condition with"):
                narrowed(fixed, own)
            return
        both = narrowed(fixed, own)
        assert chosen(rows, both) == chosen(rows, fixed) & chosen(rows, own)

    def test_what_is_no_filter_or_makes_too_many_conditions_is_refused(self) -> None:
        most = {f"k{n}": n for n in range(MAX_CONDITIONS)}
        assert narrowed(most, {}) == narrowed(most, most)
        with pytest.raises(BadInput, match="51 conditions"):
            narrowed(most, {"one more": 1})
        wrong: list[Any] = [{"$or": [{"tenant": "a"}]}, {"tenant": {"$or": ["a"]}}, {"tenant": {}}, []]
        for own in wrong:
            with pytest.raises(BadInput):
                narrowed({"tenant": "a"}, own)


class TestDates:
    def test_a_date_begins_and_lasts(self) -> None:
        for text, first, length in [
            ("2000", datetime(2000, 1, 1, tzinfo=UTC), 366 * DAY_S),
            ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC), DAY_S),
            ("2020-05-31T23:59:59.25Z", datetime(2020, 5, 31, 23, 59, 59, 250_000, tzinfo=UTC), 0),
            ("2020-05-31T00:00-0130", datetime(2020, 5, 31, 1, 30, tzinfo=UTC), 0),
        ]:
            assert date_span(text) == (first.timestamp(), first.timestamp() + length)

    def test_what_is_no_iso_date(self) -> None:
        wrong = "20 99999 0000 -2020 2020-13 2021-02-29 2020-5-1 2020-W01 20200501 2020-05-01T10 2020-05-01T25:00"
        for text in ("", *wrong.split(), "2020-05-01T10:00:00Z ", "May 2020", "\u0662\u0660\u0662\u0660"):
            assert date_span(text) is None, text

    def test_reserved_keys_cannot_be_forged(self) -> None:
        forged: dict[str, MetadataValue] = {"": 1, "#a": 1, "$in": 1, "chroma:document": 1, "mara_date:date": 5.0}
        assert askable_metadata({**forged, "mara_fingerprint": "x", "kept": 1}) == {"kept": 1}


def nested(depth: int) -> dict[str, Any]:
    where: dict[str, Any] = {}
    for _ in range(depth):
        where = {"$eq": where}
    return where


UNUSABLE: list[Any] = [
    *(None, {}, {"$contains": "a"}, {"$in": []}, {"$in": ["a", {"$eq": 1}]}, {"$gte": True}, {"$lt": "soon"}),
    *(2**63, float("nan"), "x" * (MAX_CHARACTERS + 1), "\ud800", {"$ne": [1]}, {"$gt": 1, "$eq": None}),
]
REFUSED: list[tuple[Any, str]] = [
    ([], "type list"),
    *(({key: 1}, "cannot ask for") for key in ("", "mara_fingerprint", "$or", "k" * (MAX_CHARACTERS + 1), "\ud800", 7)),
    *(({"year": condition}, "'year' cannot be used.*2020-05-31") for condition in UNUSABLE),
    ({f"k{i}": {"$gt": 1, "$lt": 2} for i in range(26)}, "52 conditions"),
    ({f"k{i}": {"$in": ["a"] * 500} for i in range(3)}, "1,500 values"),
]


class TestReading:
    def test_what_is_no_filter_is_refused_with_what_is_allowed(self) -> None:
        for where, says in [
            *REFUSED,
            (nested(100_000), "cannot ask for"),
            ({"tenant": nested(100_000)}, "cannot be used"),
        ]:
            with pytest.raises(BadInput, match=says) as failure:
                read_conditions(where)
            assert failure.value.hint
            assert len(str(failure.value)) < 500

    def test_the_same_conditions_have_the_same_canonical_text(self) -> None:
        one = read_conditions({"a": {"$gte": 1, "$lt": 2}, "b": "x"})
        other = read_conditions({"b": {"$eq": "x"}, "a": {"$lt": 2, "$gte": 1}})
        assert canonical(one) == canonical(other)
        distinct = [{"a": 1}, {"a": "1"}, {"a": True}, {"a": {"$ne": 1}}, {"b": 1}, {"a": {"$in": [1]}}]
        assert len({canonical(read_conditions(where)) for where in distinct}) == len(distinct)


def test_the_schema_names_every_operator_and_every_limit() -> None:
    schema = where_schema()
    condition = schema["additionalProperties"]["anyOf"][1]
    assert condition["properties"].keys() == {"$eq", "$ne", "$in", "$nin", "$gt", "$gte", "$lt", "$lte"}
    assert (schema["maxProperties"], condition["properties"]["$in"]["maxItems"]) == (MAX_CONDITIONS, MAX_VALUES)


class TestCommandLine:
    def test_conditions_are_read_as_numbers_and_as_text(self) -> None:
        for texts, where in [
            (["tenant=a"], {"tenant": {"$in": ["a"]}}),
            (["year=1999"], {"year": {"$in": ["1999", 1999]}}),
            (["tenant=007"], {"tenant": {"$in": ["007"]}}),
            (["draft=false"], {"draft": {"$in": ["false", False]}}),
            (["tenant!=a", "tenant!=b"], {"tenant": {"$nin": ["a", "b"]}}),
            (["year>=2000", "year<2010"], {"year": {"$gte": "2000", "$lt": "2010"}}),
            (["pages>12", "pages<=300"], {"pages": {"$gt": 12, "$lte": 300}}),
        ]:
            parsed = parse_where(texts)
            assert parsed == where
            assert repr(parsed) == repr(where), "types count, too"
            read_conditions(parsed)

    def test_what_is_no_condition_is_refused(self) -> None:
        for texts, says in [
            *(([text], "no condition") for text in ("", "=a", " >= 3", "tenant==a", "year=>2000", "x" * 100_000)),
            (["year>soon"], "no size.*2020-05-31"),
            (["tenant=a", "tenant=b"], r"'tenant' is to be = two values.*\$in"),
        ]:
            with pytest.raises(BadInput, match=says) as failure:
                parse_where(texts)
            assert failure.value.hint
            assert len(str(failure.value)) < 300
