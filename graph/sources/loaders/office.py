"""Word documents and slide decks: mammoth makes a web page of the former, python-pptx reads the latter."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.sources.loaders.document import Document, Heading, TextBuilder, first_heading, sane_title
from graph.sources.loaders.files import read_bytes, readable_path
from graph.sources.loaders.html import NAMED_COLUMNS, TITLE, document_of, read_markup
from graph.sources.loaders.table import row_lines

_OLD_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_STYLES = f"p[style-name='Title'] => p.{TITLE}:fresh\ntable => table.{NAMED_COLUMNS}:fresh"
"""The styles that mammoth reads otherwise than by itself."""

_NOTE_MARKS = re.compile(
    r'<sup><a href="#(?:foot|end)note-[^>]*>[^<]*</a></sup>| ?<a href="#(?:foot|end)note-ref-[^>]*>[^<]*</a>'
)
"""The numbers of notes, and the arrows back to them."""


def office_file(path: Path) -> BytesIO:
    """Return the bytes of an Office document.

    Raises BadInput for one that is encrypted or of the time before 2007, in whose formats encrypted ones are kept.
    """
    content = read_bytes(path, None)
    if content.startswith(_OLD_MAGIC):
        raise BadInput(
            f"{readable_path(path)} is encrypted and needs a password, or of a format before 2007",
            f"Save it as {path.suffix.lower()}, without a password",
        )
    return BytesIO(content)


def load_docx(path: Path, source: str) -> Document:
    """Read a Word document: all text that it shows, text boxes, notes and tracked insertions included.

    Its title is the one among its properties if that is a title, else its paragraph of style Title, else its first
    heading.
    """
    import mammoth

    file, no_picture = office_file(path), mammoth.images.img_element(lambda _: {})
    with zipfile.ZipFile(file) as package:
        named = _properties_title(package)
    page = mammoth.convert_to_html(file, style_map=_STYLES, convert_image=no_picture)
    builder = TextBuilder()
    titled = read_markup(_NOTE_MARKS.sub("", page.value), readable_path(path), builder)
    if not builder.text:
        raise BadInput(
            f"{readable_path(path)} holds no text", "Leave it out, or run its pictures through text recognition"
        )
    return document_of(builder, sane_title(named) or titled or first_heading(builder.headings), source)


def _properties_title(package: zipfile.ZipFile) -> str:
    from lxml import etree

    if "docProps/core.xml" not in package.namelist():
        return ""
    return str(etree.fromstring(package.read("docProps/core.xml")).findtext(_TITLE, ""))


def load_pptx(path: Path, source: str) -> Document:
    """Read a slide deck: each slide is a section and a page; its notes stand at its end.

    Its title is the one among its properties if that is a title, else that of its first slide.
    """
    from pptx import Presentation

    builder, pages, deck = TextBuilder(), list[int](), Presentation(office_file(path))
    for number, slide in enumerate(deck.slides, start=1):
        start = builder.length + 2 * (builder.length > 0)
        pages.append(start)
        title = slide.shapes.title
        named = " ".join(title.text_frame.text.split()) if title is not None else ""
        if named:
            builder.add(named, level=1)
        else:
            builder.headings.append(Heading(start, 1, f"Slide {number}"))
        _give_shapes((each for each in slide.shapes if title is None or each.shape_id != title.shape_id), builder)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            builder.add(slide.notes_slide.notes_text_frame.text)
    properties = sane_title(deck.core_properties.title)
    return replace(document_of(builder, properties or first_heading(builder.headings), source), pages=pages)


def _give_shapes(shapes: Iterable[Any], builder: TextBuilder) -> None:
    for shape in _leaves(shapes):
        if shape.has_text_frame:
            paragraphs = [each for each in shape.text_frame.paragraphs if each.text.strip()]
            sign = "- " if len(paragraphs) > 1 else ""
            for number, paragraph in enumerate(paragraphs):
                links = [(0, run.hyperlink.address) for run in paragraph.runs if run.hyperlink.address]
                builder.add(sign + paragraph.text.replace("\v", "\n"), "\n" if number else "\n\n", links=links)
        elif shape.has_table:
            table, gap = shape.table, "\n\n"
            rows = [[" ".join(cell.text.split()) for cell in row.cells] for row in table.rows]
            for line in row_lines(rows, table.first_row):
                builder.add(line, gap)
                gap = "\n" if line else gap


def _leaves(shapes: Iterable[Any]) -> Iterator[Any]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _leaves(shape.shapes)
        else:
            yield shape
