from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.metadata_filter import MAX_CHARACTERS
from graph.schema import Passage
from graph.sources.documents import ReadOptions, read_documents
from graph.sources.loaders.fields import (
    MAX_KEYS,
    MAX_VALUE,
    NO_METADATA,
    OVER_LIMIT,
    PLACE_KEYS,
    FieldMap,
    parse_fields,
    parse_metadata,
)
from tests.graph.sources.loaders.files import lines, write


class TestFields:
    def test_they_are_read_from_the_command_line(self) -> None:
        for texts, fields in [
            ([], FieldMap()),
            (
                ["title=headline", " id = key ", "metadata=year, author,"],
                FieldMap("key", "headline", None, ("year", "author")),
            ),
            (["metadata="], FieldMap(metadata=())),
        ]:
            assert parse_fields(texts) == fields, texts

    def test_nonsense_is_an_error(self) -> None:
        for texts in (["body"], ["text="], ["text=a", "text=b"]):
            with pytest.raises(BadInput, match=f"'{texts[-1]}' maps no field"):
                parse_fields(texts)


class TestFiles:
    """A folder of tables with columns of their own."""

    @staticmethod
    def read(folder: Path, *fields: str) -> dict[str, Passage]:
        write(folder / "customers.csv", "customer,country\nMoor Ltd,Corland\n")
        write(folder / "sub/prices.csv", "part,price,body\nbolt,3,A bolt of steel.\n")
        write(folder / "more.jsonl", lines({"text": "It rained.", "headline": "Rain"}))
        options = ReadOptions(fields=parse_fields(fields))
        return {passage.source: passage for passage in read_documents([folder], options).passages.values()}

    def test_a_map_applies_to_the_files_that_have_such_a_column(self, tmp_path: Path) -> None:
        passages = self.read(tmp_path, "text=body", "title=headline", "metadata=price,country")
        assert {source: (each.title, each.text) for source, each in passages.items()} == {
            "customers.csv": ("Moor Ltd", "customer: Moor Ltd; country: Corland"),
            "sub/prices.csv": ("", "A bolt of steel."),
            "more.jsonl": ("Rain", "It rained."),
        }
        assert passages["customers.csv"].metadata == {"country": "Corland"}
        assert passages["sub/prices.csv"].metadata == {"price": 3}

    def test_a_column_that_no_file_has_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match=r"No table or corpus has a column 'bdy'.*part, price, body"):
            self.read(tmp_path, "text=bdy")


class TestJsonRows:
    def test_a_row_without_what_is_mapped_is_named(self, tmp_path: Path) -> None:
        path = write(tmp_path / "c.jsonl", lines({"body": "first", "key": "k0"}, {"key": "a"}, {"body": "x"}))
        with pytest.raises(BadInput, match=r"c\.jsonl, line 2: no text under 'body'"):
            read_documents([path], ReadOptions(fields=FieldMap(text="body")))
        path = write(tmp_path / "c.jsonl", lines({"body": "first", "key": "k0"}, {"body": "x", "key": None}))
        with pytest.raises(BadInput, match=r"c\.jsonl, line 2: no id under 'key'"):
            read_documents([path], ReadOptions(fields=FieldMap(text="body", id="key")))

    def test_an_id_with_a_control_character_or_one_too_long_is_named_by_file_and_line(self, tmp_path: Path) -> None:
        for row, fields in (
            ({"id": "a\x00b", "text": "x"}, FieldMap()),
            ({"key": "a\nb", "body": "x"}, FieldMap(id="key", text="body")),
        ):
            path = write(tmp_path / "c.jsonl", lines(row))
            with pytest.raises(BadInput, match=r"c\.jsonl, line 1: 'a\\.*b' is no id"):
                read_documents([path], ReadOptions(fields=fields))
        path = write(tmp_path / "c.jsonl", lines({"id": "k" * 1_000, "text": "x"}, {"id": "k" * 1_001, "text": "x"}))
        with pytest.raises(BadInput, match=r"c\.jsonl, line 2: 'k+' is no id"):
            read_documents([path], ReadOptions())

    def test_values_that_are_no_metadata_are_left_out_and_counted(self, tmp_path: Path) -> None:
        row: dict[str, Any] = {"text": "x", "tags": ["x"], "none": None, "inf": math.inf, "big": 2**64}
        documents = read_documents([write(tmp_path / "c.jsonl", lines(row))])
        (passage,) = documents.passages.values()
        assert passage.metadata == {"big": str(2**64)}
        assert documents.notes == {NO_METADATA: 2}


class TestLimits:
    """Of metadata that a file gives: one row may not cost all others."""

    def read(self, path: Path) -> tuple[Passage, dict[str, int]]:
        documents = read_documents([path])
        (passage,) = documents.passages.values()
        return passage, documents.notes

    def test_the_first_of_too_many_keys_are_kept_and_the_rest_is_counted(self, tmp_path: Path) -> None:
        row = {"text": "x", **{f"k{i}": i for i in range(10_000)}}
        passage, notes = self.read(write(tmp_path / "c.jsonl", lines(row)))
        assert passage.metadata == {f"k{i}": i for i in range(MAX_KEYS)}
        assert notes == {OVER_LIMIT: 10_000 - MAX_KEYS}

    def test_keys_and_values_that_are_too_long_are_left_out_and_counted(self, tmp_path: Path) -> None:
        longest = {"k" * MAX_CHARACTERS: 1, "v": "x" * MAX_VALUE}
        row = {"text": "x", "k" * (MAX_CHARACTERS + 1): 1, "w": "x" * (MAX_VALUE + 1), **longest}
        passage, notes = self.read(write(tmp_path / "c.jsonl", lines(row)))
        assert passage.metadata == longest
        assert notes == {OVER_LIMIT: 2}

    def test_what_is_given_to_every_passage_is_refused_beyond_them(self) -> None:
        no_values: list[Any] = [None, [], math.nan, math.inf, "\ud800", "x" * (MAX_VALUE + 1)]
        cases: list[dict[str, Any]] = [
            {f"k{i}": 1 for i in range(MAX_KEYS + 1)},
            {"k" * (MAX_CHARACTERS + 1): 1},
            *({key: 1} for key in [*sorted(PLACE_KEYS), "source"]),
            *({"a": value} for value in no_values),
        ]
        for metadata in cases:
            with pytest.raises(BadInput, match="cannot be set"):
                ReadOptions(metadata=metadata)


class TestMetadata:
    def test_they_are_read_from_the_command_line_as_json_has_them(self) -> None:
        given = ["tenant=a", "year=1933", "share= 0.5", "draft=false", "code=007", "note=a=b", "empty="]
        assert parse_metadata(given) == {
            "tenant": "a",
            "year": 1933,
            "share": 0.5,
            "draft": False,
            "code": "007",
            "note": "a=b",
            "empty": "",
        }
