from __future__ import annotations

from pathlib import Path

from graph.sentences import text_units
from tests.graph.sources.loaders.files import HEADINGS, docx, paragraph, passage_of_file, pdf, write

ITEM = "<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>"
ROW = "<w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr>"

UNITS = [
    "Customer: Hale Ltd",
    "Term: two years",
    "Muster GmbH delivers twelve pumps of type P-200, their installation and the training of the staff.",
    "twelve pumps",
    "one spare seal",
]


def rows(*pairs: tuple[str, str]) -> str:
    return f"<w:tbl>{''.join(ROW.format(*map(paragraph, pair)) for pair in pairs)}</w:tbl>"


CONTENTS: dict[str, str | bytes] = {
    "a.md": "# Offer\n\n| | |\n|---|---|\n| Customer | Hale Ltd |\n| Term | two years |\n\n## Scope of supply\n"
    "Muster GmbH delivers twelve pumps of type P-200, their installation\nand the training of the staff.\n"
    "- twelve pumps\n- one spare seal\n",
    "a.html": "<h1>Offer</h1><table><tr><th>Customer<td>Hale Ltd<tr><th>Term<td>two years</table>"
    "<h2>Scope of supply</h2>"
    "<p>Muster GmbH delivers twelve pumps of type P-200, their installation\nand the training of the staff."
    "<ul><li>twelve pumps<li>one spare seal</ul>",
    "a.docx": docx(
        paragraph("Offer", "H1")
        + rows(("Customer", "Hale Ltd"), ("Term", "two years"))
        + paragraph("Scope of supply", "H2")
        + paragraph(
            "Muster GmbH delivers twelve pumps of type P-200, their installation and the training of the staff."
        )
        + ITEM.format("twelve pumps")
        + ITEM.format("one spare seal"),
        styles=HEADINGS,
    ),
    "a.pdf": pdf(
        [
            "Customer: Hale Ltd\nTerm: two years\n1. Scope of supply\n"
            "Muster GmbH delivers twelve pumps of type P-200, their installation\nand the training of the staff.\n"
            "- twelve pumps\n- one spare seal"
        ]
    ),
}


def test_lines_of_lists_and_tables_are_units_in_every_format_and_wrapped_prose_is_one(tmp_path: Path) -> None:
    for name in CONTENTS:
        text = passage_of_file(write(tmp_path / name, CONTENTS[name])).text
        told = [unit for unit in text_units(text) if not unit.is_heading]
        assert [" ".join(text[unit.start : unit.end].split()) for unit in told] == UNITS, name
