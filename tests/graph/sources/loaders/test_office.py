from __future__ import annotations

import io
import re
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.sources.documents import read_documents
from graph.sources.loaders import load
from graph.sources.loaders.document import Document, Heading, Loaded
from graph.sources.loaders.fields import FieldMap
from graph.sources.loaders.office import load_docx, load_pptx
from tests.graph.sources.loaders.files import HEADINGS, docx, paragraph, passage_of_file, write

RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TITLE = '<w:style w:type="paragraph" w:styleId="T"><w:name w:val="Title"/></w:style>'


def document_of(folder: Path, content: bytes) -> Document:
    return load_docx(write(folder / "a.docx", content), "a.docx")


def read(folder: Path, content: bytes) -> Document | Loaded:
    return load(write(folder / "a.docx", content), "a.docx", FieldMap())


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def table(*rows: list[str]) -> str:
    cells = ("".join(f"<w:tc>{cell}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


class TestText:
    def test_it_is_what_the_document_shows(self, tmp_path: Path) -> None:
        for body, text in [
            (paragraph("One.") + paragraph("") + paragraph("Two &amp; 日本."), "One.\n\nTwo & 日本."),
            (f"<w:p>{run('a')}<w:r><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p>", "a b\nc"),
            (table([paragraph("1"), paragraph("2") + paragraph("3")], [paragraph(""), paragraph("4")]), "1: 2 3\n4"),
            (paragraph("a") + table([paragraph("1")]) + paragraph("b"), "a\n\n1\n\nb"),
            (table([paragraph("a") + table([paragraph("1"), paragraph("2")]), paragraph("b")]), "a\n\n1 | 2\n\nb"),
        ]:
            assert document_of(tmp_path, docx(body)).text == text, body

    def test_rows_carry_the_names_of_a_header_that_is_marked(self, tmp_path: Path) -> None:
        header = "".join(f"<w:tc>{paragraph(name)}</w:tc>" for name in ("Part", "Made of"))
        rows = table([paragraph("bolt"), paragraph("steel")])[len("<w:tbl>") :]
        body = f"<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr>{header}</w:tr>{rows}"
        assert document_of(tmp_path, docx(body)).text == "Part: bolt; Made of: steel"

    def test_notes_stand_at_the_end(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(io.BytesIO(docx(""))) as archive:
            xml = archive.read("word/document.xml").decode()
        part = xml.replace("<w:body></w:body>", f"<w:footnote w:id='2'>{paragraph('A note.')}</w:footnote>")
        relation = f'<Relationship Id="n" Type="{RELATION}/footnotes" Target="/word/notes.xml"/>'
        body = f"<w:p>{run('Text.')}<w:r><w:footnoteReference w:id='2'/></w:r></w:p>"
        content = docx(body, parts={"word/notes.xml": part}, relations=relation)
        assert document_of(tmp_path, content).text == "Text.\n\n- A note."

    def test_links_are_references(self, tmp_path: Path) -> None:
        body = f"<w:p>{run('see ')}<w:hyperlink r:id='l'>{run('this')}</w:hyperlink></w:p>"
        relation = f'<Relationship Id="l" Type="{RELATION}/hyperlink" Target="https://a.org" TargetMode="External"/>'
        document = document_of(tmp_path, docx(body, relations=relation))
        assert document.links == [(3, "https://a.org/")]
        passage = passage_of_file(tmp_path / "a.docx")
        assert passage.metadata["references"] == "https://a.org/"


class TestTitle:
    def test_it_is_that_of_the_properties_else_of_the_style_else_the_first_heading(self, tmp_path: Path) -> None:
        for named, body, title in [
            ("Nissan", paragraph("Other", "H1"), "Nissan"),
            ("Document1", paragraph("Cover", "H2") + paragraph("The Title", "T"), "The Title"),
            ("Word Document", paragraph("text") + paragraph("Cars", "H2"), "Cars"),
            ("", paragraph("text"), ""),
        ]:
            assert document_of(tmp_path, docx(body, HEADINGS + TITLE, named)).title == title, named


class TestHeadings:
    def test_they_are_found_by_the_names_of_their_styles(self, tmp_path: Path) -> None:
        body = "".join(paragraph(style or "none", style) for style in ("H1", "H2", ""))
        document = document_of(tmp_path, docx(body, HEADINGS))
        assert [(h.text, h.level) for h in document.headings] == [("H1", 1), ("H2", 2)]
        assert all(document.text[h.offset :].startswith(h.text) for h in document.headings)


def entity_bomb() -> bytes:
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    xml = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">{levels}]><x>&l9;</x>'
    return docx("", parts={"word/document.xml": xml.encode("utf-16")})


def with_document_type() -> bytes:
    """An entity that names a file of the machine."""
    xml = '<!DOCTYPE x [<!ENTITY secret SYSTEM "file:///etc/hostname">]><x>&secret;</x>'
    return docx("", parts={"word/document.xml": xml})


def zip_bomb() -> bytes:
    return docx("", parts={"word/document.xml": b" " * (20 * 2**20)})


def encrypted() -> bytes:
    content = docx(paragraph("x"))
    place = content.find(b"PK\x01\x02")
    return content[: place + 8] + b"\x01" + content[place + 9 :]


class TestUnreadable:
    def test_it_is_refused_with_the_reason(self, tmp_path: Path) -> None:
        cases = [
            (zip_bomb(), "cannot be read as DOCX"),
            (entity_bomb(), "cannot be read as DOCX .*amplification"),
            (with_document_type(), "cannot be read as DOCX"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "before 2007.*Save it as .docx"),
            (encrypted(), "is encrypted"),
            (docx(""), "holds no text"),
        ]
        for number, (content, _) in enumerate(cases):
            write(tmp_path / f"a{number:02}.docx", content)
        tracemalloc.start()
        documents = read_documents([tmp_path])
        unpacked = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert unpacked < 2**22, "a bomb is unpacked elsewhere"
        for (_, complaint), refused in zip(cases, documents.refused, strict=True):
            assert re.search(rf"a\d\d\.docx.*{complaint}", refused.reason), complaint
            assert re.search(r"docx .*\. \w", refused.reason), "and what to do"
        with pytest.raises(BadInput, match=cases[0][1]) as failure:
            read_documents([tmp_path / "a00.docx"])
        assert failure.value.hint

    def test_parts_outside_the_package_are_not_reached(self, tmp_path: Path) -> None:
        write(tmp_path / "secret.xml", "secret")
        types = f'<Relationship Id="r" Type="{RELATION}/officeDocument" Target="../../secret.xml"/>'
        part = f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{types}</Relationships>'
        assert document_of(tmp_path, docx(paragraph("inside"), parts={"_rels/.rels": part})).text == "inside"

    def test_deep_nesting_is_refused(self, tmp_path: Path) -> None:
        opened, closed = "<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>"
        assert document_of(tmp_path, docx(opened * 20 + paragraph("deep") + closed * 20)).text == "deep"
        with pytest.raises(BadInput, match="recursion"):
            read(tmp_path, docx(opened * 10_000 + paragraph("deep") + closed * 10_000))


class TestSlides:
    def deck(self, path: Path) -> Path:
        from pptx import Presentation
        from pptx.util import Inches

        deck = Presentation()
        deck.core_properties.title = "PowerPoint Presentation"
        first = deck.slides.add_slide(deck.slide_layouts[1])
        first.shapes.title.text = "Pumps of\nKarv"
        first.placeholders[1].text = "Sales rose\nCosts fell"
        first.notes_slide.notes_text_frame.text = "A note."
        second = deck.slides.add_slide(deck.slide_layouts[6])
        place = [Inches(1)] * 4
        grid = second.shapes.add_table(2, 2, *place).table
        for cell, text in zip(grid.iter_cells(), ("Part", "Price", "bolt", "3"), strict=True):
            cell.text = text
        box = second.shapes.add_group_shape().shapes.add_textbox(*place)
        run = box.text_frame.paragraphs[0].add_run()
        run.text, run.hyperlink.address = "in a group", "https://ex.org/a#b"
        deck.save(str(path))
        return path

    def test_each_is_a_section_and_a_page(self, tmp_path: Path) -> None:
        document = load_pptx(self.deck(tmp_path / "a.pptx"), "a.pptx")
        assert document.title == "Pumps of Karv"
        assert document.text == (
            "Pumps of Karv\n\n- Sales rose\n- Costs fell\n\nA note.\n\nPart: bolt; Price: 3\n\nin a group"
        )
        assert document.headings == [
            Heading(0, 1, "Pumps of Karv"),
            Heading(document.text.index("Part:"), 1, "Slide 2"),
        ]
        assert [document.text[page:][:4] for page in document.pages] == ["Pump", "Part"]
        assert document.links == [(document.text.index("in a group"), "https://ex.org/a")]
