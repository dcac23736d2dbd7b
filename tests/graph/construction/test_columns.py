from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.construction import columns
from graph.construction.columns import IntLists, SortedMapping, TextTable, load_array
from tests.snapshots import lists_of, save_lists

strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
tables = st.integers(1, 4).flatmap(
    lambda width: st.tuples(st.just(width), st.lists(st.lists(strings, min_size=width, max_size=width), max_size=8))
)
lists_of_numbers = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=8)


class TestTextTable:
    @given(tables)
    def test_it_comes_back_as_it_was_saved(self, table: tuple[int, list[list[str]]]) -> None:
        width, rows = table
        with tempfile.TemporaryDirectory() as name:
            TextTable.of(rows, width).save(Path(name), "t")
            again = TextTable.load(Path(name), "t", width, len(rows))
        assert len(again) == len(rows)
        assert [again.row(index) for index in range(len(rows))] == rows
        for column in range(width):
            expected = tuple(row[column] for row in rows)
            assert again.column(column) == expected
            assert tuple(again.column(column)[index] for index in range(len(rows))) == expected
            assert tuple(again.column(column)) == expected
            for text in {*expected, "absent"}:
                places = [place for place, each in enumerate(expected) if each == text]
                assert list(again.column(column).places_of(text)) == places

    def test_bounds_that_do_not_cover_the_block_row_by_row_are_refused(self) -> None:
        for bounds in [[], [0], [0, 1, 2, 3], [0, 3, 2, 3, 4], [1, 2, 3, 3, 4], [0, 1, 2, 3, 5], [0, 1, 2, 3, 3]]:
            with pytest.raises(ValueError, match="bounds"):
                TextTable(np.frombuffer(b"abcd", dtype=np.uint8), np.array(bounds, dtype=np.int64), 2)

    def test_bytes_that_are_no_text_are_told_when_they_are_read(self) -> None:
        table = TextTable(np.frombuffer(b"a\xffb", dtype=np.uint8), np.array([0, 1, 2, 3], dtype=np.int64), 1)
        assert (table.column(0)[0], table.row(2)) == ("a", ["b"])
        with pytest.raises(ValueError, match="surrogate"):
            TextTable.of([["\ud800"]], 1)
        for read in (lambda: table.column(0)[1], lambda: table.row(1), lambda: list(table.column(0))):
            with pytest.raises(ValueError, match="utf-8"):
                read()


class TestIntLists:
    @given(lists_of_numbers)
    def test_they_come_back_as_they_were_saved(self, lists: list[list[int]]) -> None:
        with tempfile.TemporaryDirectory() as name:
            save_lists(lists_of(lists), Path(name), "n")
            again = IntLists.load(Path(name), "n", len(lists), 10)
        assert again == tuple(map(tuple, lists))

    def test_another_count_or_a_number_beyond_the_limits_is_refused(self, tmp_path: Path) -> None:
        for lists, count, limit in (
            ([[0, 9], [4]], 2, 9),
            ([[0, 9], [4]], 3, 10),
            ([[0, 9], [4]], 1, 10),
            ([[0, -1]], 1, 5),
        ):
            save_lists(lists_of(lists), tmp_path, "n")
            with pytest.raises(ValueError, match=r"should be within|holds|from -1 to 0"):
                IntLists.load(tmp_path, "n", count, limit)
        with pytest.raises(ValueError, match="bounds"):
            IntLists(np.array([0, 2, 1, 3], dtype=np.int32), np.zeros(3, dtype=np.int32))


def mapping_of(content: dict[str, int]) -> SortedMapping[int]:
    keys = sorted(content)
    return SortedMapping(TextTable.of(([key] for key in keys), 1).column(0), [content[key] for key in keys])


class TestSortedMapping:
    @given(st.dictionaries(strings, st.integers(), max_size=12), strings, st.sampled_from([0, 4096]))
    def test_it_is_the_mapping_in_the_order_of_its_keys(self, content: dict[str, int], other: str, kept: int) -> None:
        ordered = dict(sorted(content.items()))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "_KEPT_KEYS", kept)
            mapping = mapping_of(content)
            assert mapping == content
            assert list(mapping) == list(ordered)
            assert (list(mapping.items()), list(mapping.values())) == (list(ordered.items()), list(ordered.values()))
            assert all(mapping[key] == value and key in mapping for key, value in content.items())
            assert (mapping.get(other, "none"), other in mapping) == (content.get(other, "none"), other in content)
            assert len(mapping) == len(mapping.values()) == len(mapping.items()) == len(content)

    def test_what_it_does_not_hold_is_an_error(self) -> None:
        mapping = mapping_of({"b": 1, "c": 2})
        for key in ("", "a", "bb", "z", "\ud800"):
            with pytest.raises(KeyError, match=repr(key).replace("\\", "\\\\")):
                mapping[key]
        others: list[object] = [None, 1, b"b", ("b",)]
        assert not any(other in mapping for other in others)
        assert (("b", 1) in mapping.items(), ("b", 2) in mapping.items()) == (True, False)
        assert (2 in mapping.values(), 3 in mapping.values()) == (True, False)


ARRAY = np.arange(5, dtype=np.int32)


class TestLoadingAnArray:
    def test_mapped_or_read_it_is_a_plain_array_that_nobody_can_write(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for mapped_from in [0, 1 << 20]:
            for shape in [(5,), (0,), (0, 4), (2, 3)]:
                monkeypatch.setattr(columns, "_MAPPED_FROM", mapped_from)
                saved = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
                np.save(tmp_path / "a.npy", saved)
                array = load_array(tmp_path / "a.npy", np.float32, shape)
                assert type(array) is np.ndarray, mapped_from
                assert np.array_equal(array, saved), mapped_from
                assert (array.flags.writeable, array.flags.aligned, array.flags.c_contiguous) == (False, True, True), (
                    mapped_from
                )

    def test_another_type_shape_order_or_a_pickle_is_refused(self, tmp_path: Path) -> None:
        path, pickled = tmp_path / "a.npy", np.array([{}], dtype=object)
        cases: list[tuple[Any, Any, tuple[int, ...], str]] = [
            *((ARRAY, np.int32, shape, r"a.npy holds int32 \(5,\)") for shape in ((4,), (5, 1), ())),
            *((ARRAY, other, (5,), r"a.npy holds int32 \(5,\)") for other in (np.int64, np.uint32)),
            (np.asfortranarray(np.zeros((2, 3))), np.float64, (2, 3), "holds"),
            (pickled, object, (1,), "dtype"),
        ]
        for saved, dtype, shape, message in cases:
            np.save(path, saved, allow_pickle=True)
            with pytest.raises(ValueError, match=message):
                load_array(path, dtype, shape)
        path.unlink()
        with pytest.raises(FileNotFoundError):
            load_array(path, np.int32, (5,))

    def test_a_file_cut_short_or_continued_is_refused_wherever(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npy"
        np.save(path, ARRAY)
        whole = path.read_bytes()
        for content in (*(whole[:length] for length in range(len(whole))), whole + b"\x00"):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=r"\w"):
                load_array(path, np.int32, (5,))
