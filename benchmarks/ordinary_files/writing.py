"""Writing the files of ``files.yaml`` as an office writes them: Word, Excel, PowerPoint, PDF, mails and text."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

UNREADABLE = {"scanned-contract.pdf": None, "salaries.pdf": "secret"}
"""Files that cannot be read, each with its password: a scan without any text, and an encrypted one."""

_PAGE = "\n---\n"


def write_folder(folder: Path) -> None:
    """Write all files into a folder, those that cannot be read among them."""
    texts = yaml.safe_load(Path(__file__).with_name("files.yaml").read_text(encoding="utf-8"))
    for name, content in texts.items():
        write = _WRITERS.get(Path(name).suffix, str.encode)
        (folder / name).write_bytes(write(content))
    for name, password in UNREADABLE.items():
        (folder / name).write_bytes(_pdf("Salaries" if password else "", password))


def _xlsx(rows: Sequence[Sequence[Any]]) -> bytes:
    from xlsxwriter import Workbook

    content = io.BytesIO()
    with Workbook(content, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    return content.getvalue()


def _docx(text: str) -> bytes:
    from docx import Document

    document, rows = Document(), list[list[str]]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if rows:
            table = document.add_table(len(rows), len(rows[0]))
            for row, cells in zip(table.rows, rows, strict=True):
                for cell, words in zip(row.cells, cells, strict=True):
                    cell.text = words
            rows = []
        if line.startswith("# "):
            document.add_heading(line.removeprefix("# "), 1)
        elif line:
            document.add_paragraph(line)
    content = io.BytesIO()
    document.save(content)
    return content.getvalue()


def _pptx(text: str) -> bytes:
    from pptx import Presentation

    deck, content = Presentation(), io.BytesIO()
    for page in text.strip().split(_PAGE):
        title, _, body = page.partition("\n")
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title.removeprefix("# ")
        slide.placeholders[1].text = body
    deck.save(content)
    return content.getvalue()


def _pdf(text: str, password: str | None = None) -> bytes:
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    names = {"Type": "Font", "Subtype": "Type1", "BaseFont": "Helvetica", "Encoding": "WinAnsiEncoding"}
    font = DictionaryObject({NameObject(f"/{key}"): NameObject(f"/{name}") for key, name in names.items()})
    writer = PdfWriter()
    for lines in text.strip().split(_PAGE):
        page = writer.add_blank_page(612, 792)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        shown = (line.translate({92: "\\\\", 40: "\\(", 41: "\\)"}) for line in lines.splitlines())
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 14 TL 72 720 Td {' '.join(f'({s}) Tj T*' for s in shown)} ET".encode("cp1252"))
        page[NameObject("/Contents")] = writer._add_object(stream)
    if password is not None:
        writer.encrypt(password, owner_password="owner", algorithm="AES-256")
    content = io.BytesIO()
    writer.write(content)
    return content.getvalue()


_WRITERS: dict[str, Callable[[Any], bytes]] = {".xlsx": _xlsx, ".docx": _docx, ".pptx": _pptx, ".pdf": _pdf}
