"""Tables, .csv and .tsv: one passage a row, found by the names of the columns; rows of cells from any other file."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.schema import Passage
from graph.sources.loaders.document import Loaded, Refused
from graph.sources.loaders.fields import (
    ID_KEYS,
    TEXT_KEYS,
    FieldMap,
    RowReader,
    first_columns,
    scalar,
)
from graph.sources.loaders.files import MAX_LINE_BYTES, open_file, readable_path, text_lines

MOST_COLUMNS_SPANNED = 100
"""Columns that one cell is taken to span at most."""

_LONGEST_NAME = 60
_VALUE_NAMES = {
    *("value", "values", "details", "description", "entry"),
    *("wert", "werte", "inhalt", "angabe", "angaben", "beschreibung", "eintrag"),
    *("valeur", "valor", "valore"),
}
_STOPS = (".", "!", "?", ";")


def named_cells(names: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row as ``column: value; column: value``, without its empty cells; a column may have no name."""
    pairs = [(_as_name(name), " ".join(cell.split())) for name, cell in zip_longest(names, cells, fillvalue="")]
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs if cell)


def row_lines(rows: Sequence[Sequence[str]], has_header: bool = False) -> list[str]:
    """Return one line for each row of a table.

    Under a header, a row is its cells with the names of their columns, and the header's own line is empty. Two columns
    without one are keys and values. All else stands between bars, as do rows of another length than the header's.

    Args:
        rows: the cells of each row, each on one line.
        has_header: whether the first row is marked as the header; else it is one where it reads like one.
    """
    header, body = rows[0], rows[1:]
    is_named = bool(body) and (has_header or _reads_like_header(header, body))
    if is_named and len(header) == 2 and _as_name(header[1]).lower() in _VALUE_NAMES and _are_pairs(body):
        return ["", *map(_pair, body)]
    if is_named and any(header):
        return ["", *(named_cells(header, row) if len(row) == len(header) else _between_bars(row) for row in body)]
    if len(rows) > 1 and _are_pairs(rows):
        return list(map(_pair, rows))
    return list(map(_between_bars, rows))


def _as_name(cell: str) -> str:
    return " ".join(cell.split()).removesuffix(":").rstrip()


def _pair(row: Sequence[str]) -> str:
    return named_cells(row[:1], row[1:]) if row[1] else row[0]


def _between_bars(row: Sequence[str]) -> str:
    return " | ".join(row)


def _are_pairs(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether rows are made of a key and a value each."""
    if any(len(row) != 2 for row in rows):
        return False
    keys = [_as_name(row[0]) for row in rows if row[0]]
    return len(keys) == len(set(keys)) and all(_is_key(key) for key in keys) and any(keys)


def _is_key(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_NAME and ":" not in text and not text.endswith(_STOPS)


def are_names(cells: Sequence[str]) -> bool:
    """Tell whether cells may name columns: each is short, holds no digit and stands there once."""
    return len(set(cells)) == len(cells) and all(_is_key(_as_name(cell)) and not _has_digit(cell) for cell in cells)


def _reads_like_header(header: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Tell whether a row of words stands over at least one column of numbers."""
    if len(header) < 3 or not are_names(header) or any(len(row) != len(header) for row in body):
        return False
    columns = ([row[place] for row in body if row[place]] for place in range(len(header)))
    return any(column and all(map(_has_digit, column)) for column in columns)


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


UNNAMED = "cells of columns without a name"
"""The note that counts cells that were left out because their column has no name."""


def load_table(path: Path, source: str, fields: FieldMap) -> Loaded:
    """Read a table of passages; the file may be of any size.

    A passage is taken whole from each row: the text in its column, or, where there is no such column, all cells with
    the names of theirs. In metadata, cells that are numbers, true or false in JSON are read so; empty cells are left
    out.

    Raises:
        BadInput: the file cannot be read, holds no words, or a row is malformed; the message names it.
    """
    loaded = Loaded()
    rows = table_rows(path, loaded.notes)
    columns = next(rows)[1]
    loaded.columns[source] = dict.fromkeys(columns)
    file = readable_path(path)
    own = fields.of_file(columns)
    loaded.passages.extend(_passages(rows, columns, RowReader(source, own, loaded.notes, scalar), file))
    return loaded


def load_workbook(path: Path, source: str, fields: FieldMap) -> Loaded:
    """Read a spreadsheet: each sheet as a table, one after the other.

    A sheet's columns are named by its first row of several cells; what stands above it is a passage of its own. Where
    an id of an earlier sheet stands for another row, the sheet's name is put before it.

    Raises BadInput when it cannot be read.
    """
    from python_calamine import CalamineWorkbook

    loaded, file, faults = Loaded(), readable_path(path), list[BadInput]()
    with open_file(path) as opened:
        book = CalamineWorkbook.from_filelike(opened)
        tables = ((name, book.get_sheet_by_name(name).to_python()) for name in book.sheet_names)
        sheets = {name: _Sheet(rows, f"{file}, sheet {name!r}") for name, rows in tables if rows}
    loaded.columns[source] = {column: None for sheet in sheets.values() for column in sheet.columns}
    known: dict[str, Passage] = {}
    for name, sheet in sheets.items():
        reader = RowReader(source, fields.of_file(sheet.columns), loaded.notes, scalar)
        try:
            passages = [*sheet.passages(reader, name)]
        except BadInput as fault:
            faults.append(fault)
            loaded.refused.append(Refused(sheet.where, str(fault)))
            continue
        for passage in passages:
            other = known.setdefault(passage.id, passage)
            is_other = (other.title, other.text) != (passage.title, passage.text)
            loaded.passages.append(replace(passage, id=f"{name} {passage.id}") if is_other else passage)
    if faults and not loaded.passages:
        raise faults[0]
    return loaded


class _Sheet:
    """A sheet of a spreadsheet: the text above its table, the names of the columns and the rows."""

    def __init__(self, rows: Sequence[Sequence[Any]], where: str) -> None:
        self.where = where
        cells = [[_of_spreadsheet(cell) for cell in row] for row in rows]
        self._start = next((place for place, row in enumerate(cells) if sum(map(bool, row)) > 1), 0)
        self._above = [cell for row in cells[: self._start] for cell in row if cell]
        self._header, self._rows = cells[self._start], cells[self._start + 1 :]
        self.columns = [*filter(None, self._header)]

    def passages(self, reader: RowReader, name: str) -> Iterator[Passage]:
        """Yield the passage of what stands above the table, if anything does, and that of each row."""
        if self._above:
            yield reader.passage_of_cells({}, name, "\n".join(self._above), self.where)
        if any(map(any, self._rows)):
            yield from _passages(self._filled(reader.notes), self.columns, reader, self.where)

    def _filled(self, notes: Counter[str]) -> Iterator[tuple[str, dict[str, str]]]:
        for number, cells in enumerate(self._rows, start=self._start + 2):
            if any(cells):
                yield f"{self.where}, row {number}", _filled(self._header, cells, notes)


def _of_spreadsheet(cell: Any) -> str:
    """Return a value as a user reads it: a whole number without a fraction, a day without an hour."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def _passages(
    rows: Iterator[tuple[str, Mapping[str, Any]]], columns: Collection[str], reader: RowReader, where: str
) -> Iterator[Passage]:
    """Yield the passage of each row of a table: its text, or all of its cells."""
    if reader.fields.text is not None or any(key in columns for key in TEXT_KEYS):
        yield from (reader.passage(row, place) for place, row in rows)
    else:
        hint = f"Name the columns in the first row, or the text's with --field text=COLUMN: {first_columns(columns)}"
        yield from passages_of_cells(rows, columns, reader, where, hint)


def passages_of_cells(
    rows: Iterator[tuple[str, Mapping[str, Any]]], columns: Collection[str], reader: RowReader, file: str, hint: str
) -> Iterator[Passage]:
    """Yield a passage of all cells of each row that has any: texts, numbers, truth values, and lists of them.

    Args:
        rows: (file and row, {column: cell}).
        columns: the names of the columns, as far as they are known before the rows are read.
        reader: of the file.
        file: for the error.
        hint: for the error.

    Raises:
        BadInput: neither the columns nor the rows have words, or a row cannot be used.
    """
    id_column = reader.fields.id or next((key for key in ID_KEYS if key in columns), None)
    usual = ["title"] if "title" in columns else [name for name in columns if name != id_column]
    title_column = reader.fields.title if reader.fields.title in columns else next(iter(usual), None)
    n_rows = n_worded = 0
    for where, row in rows:
        cells = {name: _cell(value) for name, value in row.items()}
        n_rows += 1
        n_worded += _has_letters(cells.values())
        title = " ".join(cells.get(title_column or "", "").split())
        passage = reader.passage_of_cells(row, title, named_cells([*cells], [*cells.values()]), where)
        if passage.text:
            yield passage
    if not _has_letters(columns) or (n_rows and not n_worded):
        raise BadInput(f"{file} has no column for the text, and no words in its cells", hint)


def _cell(value: Any) -> str:
    """Return a value as a table writes it; empty where it is no cell but another table."""
    if isinstance(value, list):
        return ", ".join(filter(None, (_cell(each) for each in value if not isinstance(each, list))))
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, int | float) else ""


def _has_letters(texts: Iterable[str]) -> bool:
    return any(letter.isalpha() for text in texts for letter in text)


def table_rows(path: Path, notes: Counter[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (file and row, {column: cell that is not empty}); the first holds every column, with its own name.

    Rows are numbered as a spreadsheet does: the header is row 1.

    Raises:
        BadInput: the file cannot be read, its header is unusable, or a row has more or fewer cells than the header.
    """
    where = readable_path(path)
    rows = _rows(path, where)
    header = [name.strip() for name in next(rows, (0, []))[1]]
    named = [name for name in header if name]
    if not named:
        raise BadInput(f"{where} has no header", "Name the columns in the first row")
    twice = next((name for name, count in Counter(named).items() if count > 1), None)
    if twice is not None:
        raise BadInput(f"{where} has two columns named {twice!r}", "Rename one")
    yield f"{where}, row 1", {name: name for name in named}
    for number, cells in rows:
        if len(cells) != len(header):
            raise BadInput(
                f"{where}, row {number}: {len(cells)} cells under {len(header)} columns",
                "Correct that row: quote cells that hold the separator",
            )
        yield f"{where}, row {number}", _filled(header, cells, notes)


def _filled(header: Sequence[str], cells: Sequence[str], notes: Counter[str]) -> dict[str, str]:
    """Return {column: cell} of the cells that are not empty; those of columns without a name are counted."""
    filled = [(name, cell) for name, cell in zip(header, cells, strict=True) if cell.strip()]
    notes[UNNAMED] += sum(not name for name, _ in filled)
    return {name: cell for name, cell in filled if name}


def _rows(path: Path, where: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (number, cells) of each row that is not blank."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    lines = (line for _, line in text_lines(path))
    first = next(lines, "")
    number = 0
    try:
        for cells in csv.reader(chain([first], lines), delimiter=_separator(path, first), strict=True):
            number += 1
            if any(cell.strip() for cell in cells):
                yield number, cells
    except csv.Error as fault:
        raise BadInput(f"{where}, row {number + 1}: malformed ({fault})", "Correct that row") from fault


def _separator(path: Path, header: str) -> str:
    """Return the separator of cells: in a .csv the semicolon where the header has one and no comma."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    return ";" if ";" in header and "," not in header else ","
