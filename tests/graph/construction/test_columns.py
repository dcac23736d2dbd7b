from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.construction import columns
from graph.construction.columns import (
    IntLists,
    LazySequence,
    SortedMapping,
    TextTable,
    expect_scattered_reads,
    load_array,
)
from tests.snapshots import lists_of, save_lists

strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
tables = st.integers(1, 4).flatmap(
    lambda width: st.tuples(st.just(width), st.lists(st.lists(strings, min_size=width, max_size=width), max_size=8))
)
lists_of_numbers = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=8)


class Squares(LazySequence[int]):
    """The squares from 0 on; says which of them were made."""

    def __init__(self, length: int) -> None:
        super().__init__(length, self.square)
        self.made: list[int] = []

    def square(self, index: int) -> int:
        self.made.append(index)
        return index * index


class TestLazySequence:
    @given(st.integers(0, 6), st.slices(6))
    def test_slices_are_those_of_a_tuple(self, length: int, cut: slice) -> None:
        assert Squares(length)[cut] == tuple(n * n for n in range(length))[cut]

    @pytest.mark.parametrize("index", [-4, -1, 0, 3, np.int64(2)])
    def test_an_index_may_count_from_the_end(self, index: int) -> None:
        assert Squares(4)[index] == (0, 1, 4, 9)[index]

    @pytest.mark.parametrize("index", [-5, 4])
    def test_an_index_beyond_the_ends_is_an_error(self, index: int) -> None:
        with pytest.raises(IndexError):
            Squares(4)[index]

    def test_only_what_is_asked_for_is_made(self) -> None:
        squares = Squares(100)
        assert (len(squares), squares[7], squares[-1], squares[3:5]) == (100, 49, 9801, (9, 16))
        assert squares.made == [7, 99, 3, 4]

    def test_it_equals_what_holds_the_same_in_the_same_order(self) -> None:
        assert Squares(3) == Squares(3)
        plain = (0, 1, 4)
        assert Squares(3) == plain
        assert plain == Squares(3)
        assert all(Squares(3) != other for other in (Squares(2), (0, 1), (0, 1, 4, 9), (0, 4, 1), [0, 1, 4], 3))

    def test_it_is_iterated_searched_and_reversed_like_a_tuple(self) -> None:
        squares = Squares(4)
        assert (list(squares), list(reversed(squares))) == ([0, 1, 4, 9], [9, 4, 1, 0])
        assert (4 in squares, 5 in squares, squares.index(9), squares.count(1)) == (True, False, 3, 1)


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

    def test_what_is_no_unicode_text_is_refused(self) -> None:
        with pytest.raises(ValueError, match="surrogate"):
            TextTable.of([["\ud800"]], 1)

    @pytest.mark.parametrize(
        "bounds", [[], [0], [0, 1, 2, 3], [0, 3, 2, 3, 4], [1, 2, 3, 3, 4], [0, 1, 2, 3, 5], [0, 1, 2, 3, 3]]
    )
    def test_bounds_that_do_not_cover_the_block_row_by_row_are_refused(self, bounds: list[int]) -> None:
        with pytest.raises(ValueError, match="bounds"):
            TextTable(np.frombuffer(b"abcd", dtype=np.uint8), np.array(bounds, dtype=np.int64), 2)

    def test_bytes_that_are_no_text_are_told_when_they_are_read(self) -> None:
        table = TextTable(np.frombuffer(b"a\xffb", dtype=np.uint8), np.array([0, 1, 2, 3], dtype=np.int64), 1)
        assert (table.column(0)[0], table.row(2)) == ("a", ["b"])
        for read in (lambda: table.column(0)[1], lambda: table.row(1), lambda: list(table.column(0))):
            with pytest.raises(ValueError, match="utf-8"):
                read()

    @pytest.mark.parametrize(("width", "rows"), [(2, 3), (2, 1), (3, None), (1, 2)])
    def test_another_shape_than_expected_is_refused(self, tmp_path: Path, width: int, rows: int | None) -> None:
        TextTable.of([["a", "b"], ["c", "d"]], 2).save(tmp_path, "t")
        with pytest.raises(ValueError, match="bounds"):
            TextTable.load(tmp_path, "t", width, rows)


class TestIntLists:
    @given(lists_of_numbers)
    def test_they_come_back_as_they_were_saved(self, lists: list[list[int]]) -> None:
        with tempfile.TemporaryDirectory() as name:
            save_lists(lists_of(lists), Path(name), "n")
            again = IntLists.load(Path(name), "n", len(lists), 10)
        assert again == tuple(map(tuple, lists))

    @given(lists_of_numbers, st.sets(st.integers(0, 9)))
    def test_holding_tells_which_hold_a_marked_number(self, lists: list[list[int]], chosen: set[int]) -> None:
        marked = np.isin(np.arange(10), list(chosen))
        assert lists_of(lists).holding(marked).tolist() == [not chosen.isdisjoint(held) for held in lists]

    @pytest.mark.parametrize(("lists", "limit"), [(2, 9), (3, 10), (1, 10)])
    def test_another_count_or_a_number_over_the_limit_is_refused(self, tmp_path: Path, lists: int, limit: int) -> None:
        save_lists(lists_of([[0, 9], [4]]), tmp_path, "n")
        with pytest.raises(ValueError, match=r"should be within|holds"):
            IntLists.load(tmp_path, "n", lists, limit)

    def test_a_negative_number_is_refused(self, tmp_path: Path) -> None:
        save_lists(lists_of([[0, -1]]), tmp_path, "n")
        with pytest.raises(ValueError, match="from -1 to 0"):
            IntLists.load(tmp_path, "n", 1, 5)

    def test_starts_that_do_not_ascend_are_refused(self) -> None:
        with pytest.raises(ValueError, match="bounds"):
            IntLists(np.array([0, 2, 1, 3], dtype=np.int32), np.zeros(3, dtype=np.int32))


def mapping_of(content: dict[str, int]) -> SortedMapping[int]:
    keys = sorted(content)
    return SortedMapping(TextTable.of(([key] for key in keys), 1).column(0), [content[key] for key in keys])


class TestSortedMapping:
    @pytest.fixture(params=[0, 4096], ids=["many", "few"], autouse=True, scope="class")
    @classmethod
    def kept(cls, request: pytest.FixtureRequest) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "_KEPT_KEYS", request.param)
            yield

    @given(st.dictionaries(strings, st.integers(), max_size=12), strings)
    def test_it_is_the_mapping_in_the_order_of_its_keys(self, content: dict[str, int], other: str) -> None:
        mapping = mapping_of(content)
        ordered = dict(sorted(content.items()))
        assert mapping == content
        assert list(mapping) == list(ordered)
        assert (list(mapping.items()), list(mapping.values())) == (list(ordered.items()), list(ordered.values()))
        assert all(mapping[key] == value and key in mapping for key, value in content.items())
        assert (mapping.get(other, "none"), other in mapping) == (content.get(other, "none"), other in content)
        assert len(mapping) == len(mapping.values()) == len(mapping.items()) == len(content)

    @pytest.mark.parametrize("key", ["", "a", "bb", "z", "\ud800"])
    def test_an_unknown_key_is_an_error(self, key: str) -> None:
        mapping = mapping_of({"b": 1, "c": 2})
        with pytest.raises(KeyError, match=repr(key).replace("\\", "\\\\")):
            mapping[key]

    def test_what_is_no_text_is_no_key(self) -> None:
        others: list[object] = [None, 1, b"b", ("b",)]
        assert not any(other in mapping_of({"b": 1}) for other in others)

    def test_views_know_what_they_hold(self) -> None:
        mapping = mapping_of({"b": 1, "c": 2})
        assert ("b", 1) in mapping.items()
        assert ("b", 2) not in mapping.items()
        assert 2 in mapping.values()
        assert 3 not in mapping.values()

    def test_every_key_has_a_value(self) -> None:
        with pytest.raises(ValueError, match="1 keys have 2 values"):
            SortedMapping(TextTable.of([["a"]], 1).column(0), [1, 2])


ARRAY = np.arange(5, dtype=np.int32)


class TestLoadingAnArray:
    @pytest.mark.parametrize("mapped_from", [0, 1 << 20])
    @pytest.mark.parametrize("shape", [(5,), (0,), (0, 4), (2, 3)])
    def test_mapped_or_read_it_is_a_plain_array_that_nobody_can_write(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped_from: int, shape: tuple[int, ...]
    ) -> None:
        monkeypatch.setattr(columns, "_MAPPED_FROM", mapped_from)
        saved = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.save(tmp_path / "a.npy", saved)
        array = load_array(tmp_path / "a.npy", np.float32, shape)
        assert type(array) is np.ndarray
        assert np.array_equal(array, saved)
        assert (array.flags.writeable, array.flags.aligned, array.flags.c_contiguous) == (False, True, True)

    def test_the_large_are_mapped_and_the_small_hold_no_file(self, tmp_path: Path) -> None:
        for name, length in (("small", 10), ("large", 1 << 20)):
            np.save(tmp_path / f"{name}.npy", np.zeros(length, dtype=np.uint8))
        assert isinstance(load_array(tmp_path / "large.npy", np.uint8, (None,)).base, np.memmap)
        assert load_array(tmp_path / "small.npy", np.uint8, (None,)).base is None

    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_a_map_is_read_only_and_outlives_its_file(self, tmp_path: Path) -> None:
        saved = np.arange(1 << 20, dtype=np.uint8)
        np.save(tmp_path / "a.npy", saved)
        array = load_array(tmp_path / "a.npy", np.uint8, (None,))
        (line,) = [m for m in Path("/proc/self/maps").read_text().splitlines() if m.endswith(str(tmp_path / "a.npy"))]
        assert line.split()[1] == "r--s"
        shutil.rmtree(tmp_path)
        assert np.array_equal(array, saved)

    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_the_system_is_told_of_scattered_reads_of_a_map(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.zeros((1 << 10, 1 << 10), dtype=np.uint8))
        array = load_array(tmp_path / "a.npy", np.uint8, (None, 1 << 10))

        def flags() -> list[str]:
            maps = Path("/proc/self/smaps").read_text().split("VmFlags:")
            (mine,) = [n for n, text in enumerate(maps) if str(tmp_path / "a.npy") in text]
            return maps[mine + 1].splitlines()[0].split()

        assert "rr" not in flags()
        expect_scattered_reads(array[1:])
        assert "rr" in flags()
        expect_scattered_reads(np.zeros(3))

    @pytest.mark.parametrize(
        ("dtype", "shape"), [(np.int64, (5,)), (np.uint32, (5,)), (np.int32, (4,)), (np.int32, (5, 1)), (np.int32, ())]
    )
    def test_another_type_or_shape_is_refused(self, tmp_path: Path, dtype: Any, shape: Sequence[int]) -> None:
        np.save(tmp_path / "a.npy", ARRAY)
        with pytest.raises(ValueError, match=r"a.npy holds int32 \(5,\)"):
            load_array(tmp_path / "a.npy", dtype, tuple(shape))

    def test_another_order_of_the_elements_is_refused(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.asfortranarray(np.zeros((2, 3))))
        with pytest.raises(ValueError, match="holds"):
            load_array(tmp_path / "a.npy", np.float64, (2, 3))

    def test_nothing_pickled_is_read(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
        with pytest.raises(ValueError, match="dtype"):
            load_array(tmp_path / "a.npy", object, (1,))

    def test_a_file_cut_short_or_continued_is_refused_wherever(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npy"
        np.save(path, ARRAY)
        whole = path.read_bytes()
        for content in (*(whole[:length] for length in range(len(whole))), whole + b"\x00"):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=r"\w"):
                load_array(path, np.int32, (5,))

    @given(st.integers(0, 127), st.integers(0, 255))
    def test_a_damaged_head_is_refused_unless_it_says_the_same(self, place: int, value: int) -> None:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "a.npy"
            np.save(path, ARRAY)
            content = bytearray(path.read_bytes())
            content[place] = value
            path.write_bytes(content)
            with suppress(ValueError):
                assert np.array_equal(load_array(path, np.int32, (5,)), ARRAY)

    def test_no_file_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            load_array(tmp_path / "a.npy", np.int32, (5,))
