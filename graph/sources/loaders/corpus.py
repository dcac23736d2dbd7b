"""JSON: passages given whole, one an object, rows as of a table, and question files, whose contexts hold passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.schema import Passage
from graph.sources.loaders.document import Loaded
from graph.sources.loaders.fields import TEXT_KEYS, FieldMap, RowReader
from graph.sources.loaders.files import MAX_TEXT_BYTES, parse_json, read_text, readable_path, text_lines
from graph.sources.loaders.table import passages_of_cells

_NO_DOCUMENTS = ("gold_ids", "triples")
"""Keys of the rows of question files and files of triples."""


def load_json_lines(path: Path, source: str, fields: FieldMap) -> Loaded:
    """Read a corpus, an export or a question file of one object a line; the file may be of any size.

    Where the first object has no text, each is read as the row of a table is.

    Raises:
        BadInput: the file cannot be read, or a line is malformed; the message names file and line.
    """
    return _load_rows(json_rows(path), source, fields, readable_path(path))


def load_json(path: Path, source: str, fields: FieldMap) -> Loaded:
    """Read a corpus, a question file or an export: a list of objects, an object of one, or {title: text or sentences}.

    Raises:
        BadInput: the file cannot be read or is of another shape; the message names file and item.
    """
    where = readable_path(path)
    value = parse_json(read_text(path, MAX_TEXT_BYTES), where, "Correct the file; JSON lines need the suffix .jsonl")
    if isinstance(value, list):
        return _load_rows(_items(value, where), source, fields, where)
    if isinstance(value, dict) and _context_of(value, where) is not None:
        return _load_rows(_items([value], where), source, fields, where)
    members = value if isinstance(value, dict) else {}
    exports = {key: rows for key, rows in members.items() if isinstance(rows, list) and dict in map(type, rows)}
    if len(exports) == 1:
        ((key, rows),) = exports.items()
        return _load_rows(_items(rows, f"{where}, {key!r}"), source, fields, where)
    if isinstance(value, dict) and not exports and all(isinstance(body, str | list) for body in value.values()):
        named = ((f"{where}, {title!r}", title, body) for title, body in value.items())
        titled = ((place, {"title": title, "text": _joined(body, place)}) for place, title, body in named)
        return _load_rows(titled, source, FieldMap(), where)
    raise BadInput(f"{where} is no corpus", "Give a list of objects, an object that holds one, or one of title: text")


def _items(rows: list[Any], where: str) -> Iterator[tuple[str, Any]]:
    return ((f"{where}, item {number}", row) for number, row in enumerate(rows, start=1))


def json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (file and line, value) of each line that is not blank, reading line by line. Raises BadInput naming it."""
    where = readable_path(path)
    for number, line in text_lines(path):
        if line.strip():
            place = f"{where}, line {number}"
            yield place, parse_json(line, place, "Correct or remove that line")


def _load_rows(rows: Iterator[tuple[str, Any]], source: str, fields: FieldMap, file: str) -> Loaded:
    loaded = Loaded()
    first = next(rows, None)
    if first is None:
        return loaded
    where, row = first
    if not isinstance(row, Mapping):
        raise _not_an_object(where)
    own = fields.of_file(row, is_table=False)
    reader, checked = RowReader(source, own, loaded.notes), _checked(chain([first], rows), source, fields, own, loaded)
    has_text = own.text is not None or any(key in row for key in TEXT_KEYS)
    if not has_text and _context_of(row, where) is None:
        if not row.keys().isdisjoint(_NO_DOCUMENTS):
            raise BadInput(f"{where}: a question or triples, and no document", "Give it to `mara eval` or --triples")
        hint = f"Give each object its text under one of: {', '.join(TEXT_KEYS)}"
        loaded.passages.extend(passages_of_cells(checked, row, reader, file, hint))
        return loaded
    paragraphs: dict[tuple[str, str], Passage] = {}
    of_context = RowReader(source, FieldMap(), loaded.notes)
    for where, row in checked:
        context = _context_of(row, where) if own.text is None else None
        if context is None:
            loaded.passages.append(reader.passage(row, where))
            continue
        for title, text in context:
            if (title, text) in paragraphs:
                loaded.identical += 1
            elif text.strip():
                paragraphs[title, text] = of_context.passage_of_cells({}, title, text, where)
    loaded.passages.extend(paragraphs.values())
    return loaded


def _checked(
    rows: Iterator[tuple[str, Any]], source: str, fields: FieldMap, own: FieldMap, loaded: Loaded
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield rows, and keep their keys. Raises BadInput for one that is no object or has other mapped keys."""
    for where, row in rows:
        if not isinstance(row, Mapping):
            raise _not_an_object(where)
        loaded.columns.setdefault(source, {}).update(dict.fromkeys(row))
        for name, applied in ((fields.id, own.id), (fields.text, own.text)):
            if name is not None and applied is None and name in row:
                raise BadInput(
                    f"{where}: has {name!r}, and the first row has not", "Give that key to every row or to none"
                )
        yield where, row


def _not_an_object(where: str) -> BadInput:
    return BadInput(f"{where}: not an object", "Give {id, title, text}, or the names and values of a row")


def _context_of(row: Mapping[str, Any], where: str) -> list[tuple[str, str]] | None:
    """Return (title, text) of the paragraphs that a question brings along; None where the row is no such question.

    MuSiQue and HippoRAG write ``paragraphs`` of {title, paragraph_text}, HotpotQA and 2WikiMultihopQA ``context``
    of [title, sentences], and their editions in columns {title: [...], sentences: [...]}. The mark of the
    paragraphs that answer the question is left behind: it is no property of the passage.
    """
    if not isinstance(row.get("question"), str):
        return None
    if any(isinstance(row.get(key), str) for key in TEXT_KEYS):
        return None
    paragraphs, context = row.get("paragraphs"), row.get("context")
    if isinstance(paragraphs, list):
        return [_paragraph(item, f"{where}, paragraph {n}") for n, item in enumerate(paragraphs, start=1)]
    if isinstance(context, Mapping):
        titles, bodies = context.get("title"), context.get("sentences")
        if not isinstance(titles, list) or not isinstance(bodies, list) or len(titles) != len(bodies):
            raise BadInput(f"{where}: its context is malformed", "Give {title: [...], sentences: [...]}")
        context = [list(pair) for pair in zip(titles, bodies, strict=True)]
    if isinstance(context, list):
        return [_titled_sentences(item, f"{where}, context {n}") for n, item in enumerate(context, start=1)]
    return None


def _paragraph(item: Any, where: str) -> tuple[str, str]:
    fields = item if isinstance(item, Mapping) else {}
    title = fields.get("title", "")
    text = next((fields[key] for key in TEXT_KEYS if isinstance(fields.get(key), str)), None)
    if text is None or not isinstance(title, str):
        raise BadInput(f"{where}: malformed", "Give {title, paragraph_text}")
    return title, text


def _titled_sentences(item: Any, where: str) -> tuple[str, str]:
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
        title, sentences = item
        if isinstance(sentences, list) and all(isinstance(sentence, str) for sentence in sentences):
            return title, _spaced(sentences)
    raise BadInput(f"{where}: malformed", "Give [title, [sentences]]")


def _spaced(sentences: list[str]) -> str:
    """Join sentences with one space where neither side has one: HotpotQA writes the space, 2WikiMultihopQA does not."""
    text = ""
    for sentence in sentences:
        glued = text and sentence and not text[-1].isspace() and not sentence[0].isspace()
        text += f" {sentence}" if glued else sentence
    return text


def _joined(body: str | list[Any], where: str) -> str:
    if not all(isinstance(part, str) for part in body):
        raise BadInput(f"{where}: no text", "Give a text, or a list of sentences")
    return "".join(body)
