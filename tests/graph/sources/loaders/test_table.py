from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.schema import Passage
from graph.sentences import sentence_spans
from graph.sources.documents import ReadOptions, read_documents
from graph.sources.loaders.fields import FieldMap, scalar
from tests.graph.sources.loaders.files import passage_of_file, passages_of, write, xlsx


def with_fields(path: Path, **fields: Any) -> list[Passage]:
    return list(read_documents([path], ReadOptions(fields=FieldMap(**fields))).passages.values())


class TestRows:
    def test_each_is_a_passage_given_whole(self, tmp_path: Path) -> None:
        path = write(
            tmp_path / "c.csv", 'id,title,text,year\r\n7,Nissan,"In 1933, it\ngrew.",1933\r\n8,Leaf,A car.,\r\n'
        )
        assert passages_of(path) == [
            Passage("7", "Nissan", "In 1933, it\ngrew.", "c.csv", {"year": 1933}),
            Passage("8", "Leaf", "A car.", "c.csv", {}),
        ]

    def test_separators_and_blank_rows(self, tmp_path: Path) -> None:
        for name, content in [
            ("c.csv", "title,text\nA,x y\n"),
            ("c.CSV", "\ufefftitle,text\n\n  \nA,x y"),
            ("c.csv", "title;text\nA;x y\n"),
            ("c.tsv", "title\ttext\nA\tx y\n"),
            ("c.csv", 'text,title\n"x y",A\n'),
        ]:
            (passage,) = passages_of(write(tmp_path / name, content))
            assert (passage.title, passage.text) == ("A", "x y"), name


class TestRowsWithoutText:
    CONTENT = "customer,country,contact\nMuster GmbH,Germany,Eva Moor\nHale Ltd,,Bo Lind\n"

    def test_each_tells_its_cells_under_their_columns_titled_by_the_first(self, tmp_path: Path) -> None:
        first, second = passages_of(write(tmp_path / "c.csv", self.CONTENT))
        assert (first.title, first.text) == (
            "Muster GmbH",
            "customer: Muster GmbH; country: Germany; contact: Eva Moor",
        )
        assert (second.title, second.text) == ("Hale Ltd", "customer: Hale Ltd; contact: Bo Lind")
        assert first.metadata == {"customer": "Muster GmbH", "country": "Germany", "contact": "Eva Moor"}

    def test_the_title_is_a_column_that_is_mapped_or_called_so_and_never_the_id(self, tmp_path: Path) -> None:
        path = write(tmp_path / "c.csv", "id,part,title\n7,bolt,M8\n")
        assert [(each.id, each.title) for each in passages_of(path)] == [("7", "M8")]
        assert [each.title for each in with_fields(path, title="part")] == ["bolt"]
        assert passage_of_file(write(tmp_path / "d.csv", "id,part\n7,bolt\n")).title == "bolt"
        assert passage_of_file(tmp_path / "d.csv").metadata == {"part": "bolt"}

    def test_two_rows_of_one_title_are_two_passages_and_cells_are_typed(self, tmp_path: Path) -> None:
        passages = passages_of(write(tmp_path / "c.csv", 'part;price;note\nbolt;3;"of\nsteel"\nbolt;4.5;\n'))
        assert [each.text for each in passages] == ["part: bolt; price: 3; note: of steel", "part: bolt; price: 4.5"]
        assert [each.metadata["price"] for each in passages] == [3, 4.5]
        passages = passages_of(write(tmp_path / "c.csv", 'name,note\nMoor,"It pays. On time: yes."\n'))
        assert sentence_spans(passages[0].text) == [(0, len(passages[0].text))], "a row is one unit"
        assert passages_of(write(tmp_path / "c.csv", "name,note\n")) == []


class TestFields:
    CONTENT = "key,headline,body,year,author\nk1,Nissan,It grew.,1933,Ida\n"

    def test_the_rest_is_kept_when_no_metadata_are_named(self, tmp_path: Path) -> None:
        (passage,) = with_fields(write(tmp_path / "c.csv", self.CONTENT), text="body")
        assert passage.metadata == {"key": "k1", "headline": "Nissan", "year": 1933, "author": "Ida"}
        (passage,) = with_fields(tmp_path / "c.csv", text="body", metadata=())
        assert passage.metadata == {}


class TestMalformed:
    def test_it_is_named_with_its_place(self, tmp_path: Path) -> None:
        cases: list[tuple[str | bytes, str]] = [
            ("", "has no header"),
            ("text,text\nx,y\n", "two columns named 'text'"),
            ("1933,1934\nx,y\n", r"no column for the text.*--field text=COLUMN: 1933, 1934"),
            ("year,sold\n1933,5\n1934,\n", "no column for the text, and no words in its cells"),
            ("id,text\n1,x\n2\n", "row 3: 1 cells under 2 columns"),
            ("id,text\n1,x\n2,\n", "row 3: no text"),
            ('id,text\n1,"x\n2,y\n', "row 2: malformed"),
        ]
        for content, complaint in cases:
            path = write(tmp_path / "c.csv", content)
            with pytest.raises(BadInput, match=rf"c\.csv.*{complaint}") as failure:
                read_documents([path])
            assert failure.value.hint, content


class TestScalars:
    def test_everything_else_stays_text(self) -> None:
        for text in ["007", "+1", "1.", ".5", "0x1", "1_000", "NaN", "Infinity", "True", "", "9" * 30]:
            assert scalar(text) == text, text


class TestWorkbook:
    def test_rows_are_passages_one_sheet_after_the_other(self, tmp_path: Path) -> None:
        parts: list[list[Any]] = [
            ["Part", "Price", "Since", "In stock"],
            ["bolt", 3, date(2024, 1, 2), True],
            ["nut", 2.5, None, False],
        ]
        path = write(tmp_path / "a.xlsx", xlsx(Parts=parts, People=[["Name", "Town"], ["Ida", "Moor"]], Empty=[]))
        first, second, third = passages_of(path)
        assert first.text == "Part: bolt; Price: 3; Since: 2024-01-02; In stock: true"
        assert first.metadata == {"Part": "bolt", "Price": 3, "Since": "2024-01-02", "In stock": True}
        assert (second.title, second.text) == ("nut", "Part: nut; Price: 2.5; In stock: false")
        assert (third.source, third.text) == ("a.xlsx", "Name: Ida; Town: Moor")

    def test_what_stands_above_the_table_is_a_passage(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.xlsx", xlsx(Parts=[["Prices of 2024"], [], ["Part", "Price"], ["bolt", 3]]))
        above, row = passages_of(path)
        assert (above.title, above.text, row.text) == ("Parts", "Prices of 2024", "Part: bolt; Price: 3")

    def test_a_sheet_that_is_no_table_is_refused_by_name_and_the_others_are_read(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.xlsx", xlsx(Sums=[[1, 2], [3, 4]], People=[["Name"], ["Ida"]]))
        documents = read_documents([path])
        assert [each.text for each in documents.passages.values()] == ["Name: Ida"]
        assert [each.source for each in documents.refused] == [f"{path}, sheet 'Sums'"]
        with pytest.raises(BadInput, match="sheet 'Sums' has no column for the text"):
            read_documents([write(tmp_path / "b.xlsx", xlsx(Sums=[[1, 2], [3, 4]]))])
