from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import pytest

from graph.documents import FieldMap, ReadOptions, parse_fields, parse_metadata, read_documents
from graph.errors import BadInput
from graph.loaders.fields import NO_METADATA, PLACE_KEYS
from graph.schema import Passage
from tests.graph.loaders.files import lines, write


class TestFields:
    @pytest.mark.parametrize(
        ("texts", "fields"),
        [
            ([], FieldMap()),
            (["text=body"], FieldMap(text="body")),
            (
                ["title=headline", " id = key ", "metadata=year, author,"],
                FieldMap("key", "headline", None, ("year", "author")),
            ),
            (["text=a=b"], FieldMap(text="a=b")),
            (["metadata="], FieldMap(metadata=())),
        ],
    )
    def test_they_are_read_from_the_command_line(self, texts: list[str], fields: FieldMap) -> None:
        assert parse_fields(texts) == fields

    @pytest.mark.parametrize(
        ("texts", "complaint"),
        [
            (["body"], "'body' maps no field"),
            (["txt=body"], "'txt=body' maps no field.*id, title, text, metadata"),
            (["text="], "names no column"),
            (["text=a", "text=b"], "'text' is mapped twice"),
            (["=a"], "maps no field"),
        ],
    )
    def test_nonsense_is_an_error(self, texts: list[str], complaint: str) -> None:
        with pytest.raises(BadInput, match=complaint):
            parse_fields(texts)


class TestJsonRows:
    ROW: ClassVar[dict[str, Any]] = {"key": "k1", "headline": "Nissan", "body": "It grew.", "year": 1933, "tags": ["x"]}

    def read(self, tmp_path: Path, row: dict[str, Any], **fields: Any) -> Passage:
        path = write(tmp_path / "c.jsonl", lines({"body": "first", "key": "k0"}, row))
        return list(read_documents([path], ReadOptions(fields=FieldMap(**fields))).passages.values())[1]

    def test_keys_are_mapped(self, tmp_path: Path) -> None:
        passage = self.read(tmp_path, self.ROW, id="key", title="headline", text="body", metadata=("year", "gone"))
        assert passage == Passage("k1", "Nissan", "It grew.", "c.jsonl", {"year": 1933})

    @pytest.mark.parametrize(
        ("row", "fields", "complaint"),
        [
            ({"key": "a"}, {"text": "body"}, "line 2: no text under 'body'"),
            ({"body": " "}, {"text": "body"}, "line 2: no text under 'body'"),
            ({"body": 5}, {"text": "body"}, "line 2: no text under 'body'"),
            ({"body": "x"}, {"text": "body", "id": "key"}, "line 2: no id under 'key'"),
            ({"body": "x", "key": None}, {"text": "body", "id": "key"}, "line 2: no id under 'key'"),
        ],
    )
    def test_a_row_without_what_is_mapped_is_named(
        self, tmp_path: Path, row: dict[str, Any], fields: dict[str, str], complaint: str
    ) -> None:
        with pytest.raises(BadInput, match=rf"c\.jsonl, {complaint}"):
            self.read(tmp_path, row, **fields)

    def test_values_that_are_no_metadata_are_left_out_and_counted(self, tmp_path: Path) -> None:
        row: dict[str, Any] = {
            "text": "x",
            "tags": ["x"],
            "nested": {},
            "none": None,
            "nan": math.nan,
            "inf": math.inf,
            "big": 2**64,
        }
        documents = read_documents([write(tmp_path / "c.jsonl", lines(row))])
        (passage,) = documents.passages.values()
        assert passage.metadata == {"big": str(2**64)}
        assert documents.notes == {NO_METADATA: 4}


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

    @pytest.mark.parametrize("text", ["tenant", "=a", " =a", "#x=1", "mara_fingerprint=1", "chroma:document=1"])
    def test_nonsense_and_reserved_keys_are_errors(self, text: str) -> None:
        with pytest.raises(BadInput):
            parse_metadata([text])

    @pytest.mark.parametrize("key", [*sorted(PLACE_KEYS), "source"])
    def test_what_the_loaders_set_cannot_be_set(self, key: str) -> None:
        with pytest.raises(BadInput, match=f"{key!r} cannot be set"):
            ReadOptions(metadata={key: 1})

    def test_a_key_is_given_once(self) -> None:
        with pytest.raises(BadInput, match="'a' is given twice"):
            parse_metadata(["a=1", "a=2"])

    @pytest.mark.parametrize("value", [None, [], math.nan, math.inf, "\ud800"])
    def test_only_scalars_can_be_given(self, value: Any) -> None:
        with pytest.raises(BadInput, match="no scalar"):
            ReadOptions(metadata={"a": value})

    def test_they_are_given_to_every_passage_and_leave_its_id(self, tmp_path: Path) -> None:
        write(tmp_path / "a.txt", "word " * 400)
        write(tmp_path / "b.jsonl", lines({"id": "x", "text": "y", "tenant": "file", "year": 1}))
        plain = read_documents([tmp_path]).passages
        marked = read_documents([tmp_path], ReadOptions(metadata={"tenant": "a"})).passages
        assert plain.keys() == marked.keys()
        assert {passage.metadata["tenant"] for passage in marked.values()} == {"a"}
        assert marked["x"].metadata["year"] == 1
