"""Files for tests of reading: written as users write them, or as they never should be."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graph.schema import Passage
from graph.sources.documents import read_documents

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"


def write(path: Path, content: str | bytes) -> Path:
    """Write a file, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(*rows: Any) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def passages_of(*paths: Path) -> list[Passage]:
    """Return the passages of files and folders."""
    return list(read_documents(paths).passages.values())


def passage_of_file(path: Path) -> Passage:
    """Return the one passage of a file."""
    (passage,) = passages_of(path)
    return passage


def pdf(pages: Sequence[str], title: str = "", password: str | None = None, *, is_drawn: bool = False) -> bytes:
    """Return a PDF with a line of text for each line of each page, or drawn by it; an empty page holds no text."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
            NameObject("/Encoding"): NameObject("/WinAnsiEncoding"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(612, 792)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): font})}
        )
        shown = (line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in text.split("\n"))
        stream = DecodedStreamObject()
        lines = f"BT /F1 12 Tf 14 TL 72 720 Td {' '.join(f'({s}) Tj T*' for s in shown)} ET"
        stream.set_data((text if is_drawn else lines).encode("cp1252"))
        if text:
            page[NameObject("/Contents")] = writer._add_object(stream)
    if title:
        writer.add_metadata({"/Title": title})
    if password is not None:
        writer.encrypt(password, owner_password="owner", algorithm="AES-256")
    content = io.BytesIO()
    writer.write(content)
    return content.getvalue()


def docx(
    body: str, styles: str = "", title: str = "", parts: Mapping[str, str | bytes] | None = None, relations: str = ""
) -> bytes:
    """Return a Word document with that XML between ``<w:body>`` and its end.

    Args:
        body: of the document.
        styles: the elements of its styles.
        title: among its properties.
        parts: others, by name; they replace those of the same name.
        relations: further relations of the document.
    """
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    core = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
    names = f'xmlns:w="{W}" xmlns:r="{R}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    whole: dict[str, str | bytes] = {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}"/>',
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}">'
        f'<Relationship Id="r1" Type="{kind}/officeDocument" Target="word/document.xml"/>'
        f'<Relationship Id="r2" Type="{core}" Target="docProps/core.xml"/></Relationships>',
        "docProps/core.xml": '<c:core xmlns:c="c" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:creator>Ida</dc:creator><dc:title>{title}</dc:title></c:core>",
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{_RELATIONS}">'
        f'<Relationship Id="s1" Type="{kind}/styles" Target="styles.xml"/>{relations}</Relationships>',
        "word/styles.xml": f"<w:styles {names}>{styles}</w:styles>",
        "word/document.xml": f'<?xml version="1.0"?><w:document {names}><w:body>{body}</w:body></w:document>',
        **(parts or {}),
    }
    return zipped(whole)


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """Return an archive of parts."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return content.getvalue()


def epub(*pages: str, spine: Sequence[str] = ()) -> bytes:
    """Return an e-book of pages with those bodies; other items of its spine are not there."""
    names = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns="http://www.idpf.org/2007/opf"'
    metadata = "<dc:title>Pumps</dc:title><dc:creator>Ida Berg</dc:creator><dc:language>en</dc:language>"
    numbers = [*range(len(pages))]
    items = "".join(f'<item id="p{n}" href="text/page%20{n}.xhtml"/>' for n in reversed(numbers))
    order = "".join(f'<itemref idref="{key}"/>' for key in [*(f"p{n}" for n in numbers), *spine])
    parts = {
        "META-INF/container.xml": "<container><rootfiles><rootfile full-path='OPS/a.opf'/></rootfiles></container>",
        "OPS/a.opf": f"<package {names}><metadata>{metadata}</metadata><manifest>{items}</manifest>"
        f"<spine>{order}</spine></package>",
    }
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>{}</body></html>'
    return zipped({**parts, **{f"OPS/text/page {n}.xhtml": page.format(pages[n]) for n in numbers}})


def xlsx(**sheets: Sequence[Sequence[Any]]) -> bytes:
    """Return a workbook of sheets with those rows."""
    from xlsxwriter import Workbook

    content = io.BytesIO()
    with Workbook(content, {"default_date_format": "yyyy-mm-dd", "in_memory": True}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
    return content.getvalue()


def pptx(title: str) -> bytes:
    """Return a deck of one slide with a title."""
    from pptx import Presentation

    deck, content = Presentation(), io.BytesIO()
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = title
    deck.save(content)
    return content.getvalue()


def paragraph(text: str, style: str = "") -> str:
    """Return a paragraph of a Word document."""
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{named}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


HEADINGS = "".join(
    f'<w:style w:type="paragraph" w:styleId="H{level}"><w:name w:val="heading {level}"/></w:style>'
    for level in (1, 2, 3)
)
"""Styles of headings in a Word document: ``H1``, ``H2``, ``H3``."""
