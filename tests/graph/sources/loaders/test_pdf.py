from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.sources.documents import read_documents
from graph.sources.loaders import load
from graph.sources.loaders.fields import FieldMap
from graph.sources.loaders.pdf import BLANK_PAGES, BROKEN_PAGES, load_pdf
from tests.graph.sources.loaders.files import passage_of_file, pdf, write


class TestPages:
    def test_the_text_of_all_pages_is_one_document(self, tmp_path: Path) -> None:
        passage = passage_of_file(write(tmp_path / "a.PDF", pdf(["In 1933 (a year).", "It grew."])))
        assert passage.text == "In 1933 (a year).\n\nIt grew."
        assert (passage.source, passage.metadata["file"]) == ("a.PDF", "a.PDF")
        assert (passage.metadata["page"], passage.metadata["page_end"]) == (1, 2)

    def test_pages_without_text_are_counted_and_keep_their_number(self, tmp_path: Path) -> None:
        documents = read_documents([write(tmp_path / "a.pdf", pdf(["", "In 1933.", ""]))])
        (passage,) = documents.passages.values()
        assert passage.metadata["page"] == 2
        assert "page_end" not in passage.metadata
        assert documents.notes == {BLANK_PAGES: 2}

    def test_a_page_that_cannot_be_read_is_counted_and_the_others_are_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from pypdf import PageObject

        whole = PageObject.extract_text

        def failing(self: PageObject, **options: Any) -> str:
            if self.page_number == 0:
                raise ZeroDivisionError("division by zero")
            return whole(self, **options)

        monkeypatch.setattr(PageObject, "extract_text", failing)
        document = load_pdf(write(tmp_path / "a.pdf", pdf(["One.", "Two."])), "a.pdf")
        assert (document.text, document.notes) == ("Two.", {BROKEN_PAGES: 1})
        with pytest.raises(BadInput, match=r"b\.pdf cannot be read as PDF \(division by zero\)"):
            load(write(tmp_path / "b.pdf", pdf(["One."])), "b.pdf", FieldMap())

    @pytest.mark.parametrize("matrix", ["1 0 0 1 {x} {y}", "0 1 -1 0 {turned} {x}"])
    def test_the_cells_of_a_row_are_one_line_though_each_is_drawn_with_a_line_of_its_own(
        self, tmp_path: Path, matrix: str
    ) -> None:
        rows = [["Property", "Value"], ["Flow", "210 l/h"], ["Head", "32 m"]]
        drawn = "".join(
            f"BT {matrix.format(x=72 + 144 * column, y=700 - 18 * row, turned=100 + 18 * row)} Tm"
            f" /F1 10 Tf 12 TL ({cell}) Tj T* ET\n"
            for row, cells in enumerate(rows)
            for column, cell in enumerate(cells)
        )
        text = load_pdf(write(tmp_path / "a.pdf", pdf([drawn], is_drawn=True)), "a").text
        assert text == "Property Value\nFlow 210 l/h\nHead 32 m"


class TestTitle:
    def test_it_is_the_one_among_the_properties_if_it_is_a_title(self, tmp_path: Path) -> None:
        for title, first, expected in [
            ("Nissan: a history", "text", "Nissan: a history"),
            ("Microsoft Word - draft3.doc", "text", ""),
            ("untitled", "text", ""),
        ]:
            assert load_pdf(write(tmp_path / "a.pdf", pdf([first], title)), "a.pdf").title == expected, title


class TestUnreadable:
    def test_it_is_refused_with_the_reason(self, tmp_path: Path) -> None:
        cases = [
            (pdf(["secret"], password="open"), "is encrypted and needs a password"),
            (pdf([""]), r"holds no text \(scanned\?\)"),
            (b"plain text", "cannot be read as PDF"),
            (
                b"%PDF-1.4\n1 0 obj <</Pages 2 0 R>> endobj 2 0 obj <</Kids [2 0 R]>> endobj\ntrailer <</Root 1 0 R>>",
                "cannot be read as PDF",
            ),
        ]
        for number, (content, _) in enumerate(cases):
            write(tmp_path / f"a{number:02}.pdf", content)
        write(tmp_path / "b.txt", "good")
        documents = read_documents([tmp_path])
        assert [p.text for p in documents.passages.values()] == ["good"]
        for (_, complaint), refused in zip(cases, documents.refused, strict=True):
            assert re.search(rf"a\d\d\.pdf.*{complaint}", refused.reason), complaint
            assert re.search(r"pdf .*\. \w", refused.reason), "and what to do"
        with pytest.raises(BadInput, match=cases[0][1]) as failure:
            read_documents([tmp_path / "a00.pdf"])
        assert failure.value.hint
