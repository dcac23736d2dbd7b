"""Field maps: which columns or keys hold a passage's id, title, text and metadata; rows become passages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from graph.errors import BadInput
from graph.metadata_filter import MAX_CHARACTERS, askable_metadata, is_storable, json_number
from graph.schema import MAX_ID, MetadataValue, Passage, stable_id
from graph.sources.loaders.document import short_spaced
from graph.text import has_controls, is_unicode, one_line

ID_KEYS, TEXT_KEYS = ("id", "_id", "idx"), ("text", "passage", "contents", "content", "paragraph_text")
"""Where an entry's id and text are looked for when no field map names them."""

PLACE_KEYS = frozenset(
    {"document", "chunk", "chunks", "start", "end", "section", "page", "page_end", "references", "file"}
)
"""Metadata that say where a passage stands: set by the loaders alone."""

NO_METADATA = "values that are no metadata"
"""The note that counts values which are neither text nor a finite number nor true or false."""

MAX_KEYS = 200
"""Metadata that a passage takes from its file: the search index keeps a row for each, and breaks at some thousands."""

MAX_VALUE = 10_000
"""Characters of one value; a longer one is a text of its own, and no filter compares it."""

OVER_LIMIT = "metadata over the limits"
"""The note that counts values left out as their key or they are too long, or the passage has too many already."""

_SHOWN_COLUMNS = 30
_NAMES = ("id", "title", "text", "metadata")
_LONGEST_NUMBER = 40


@dataclass(frozen=True, slots=True)
class FieldMap:
    """Names of the columns or keys of an entry, for all files that have such.

    Attributes:
        id: of the passage's id; the first of `ID_KEYS` that is there by default, else a hash.
        title: of its title; ``title`` by default.
        text: of its text; the first of `TEXT_KEYS` that is there by default.
        metadata: what else to keep; None for every other scalar.
    """

    id: str | None = None
    title: str | None = None
    text: str | None = None
    metadata: tuple[str, ...] | None = None

    def columns(self) -> list[str]:
        """Return the columns that are mapped for all files."""
        return [name for name in (self.id, self.title, self.text, *(self.metadata or ())) if name is not None]

    def of_file(self, columns: Collection[str], *, is_table: bool = True) -> FieldMap:
        """Return the map of one file: those fields that it has columns for.

        Args:
            columns: those that it has.
            is_table: whether these are all; rows of a corpus may have more keys than the first, its titles among them.
        """
        id, title, text = (name if name in columns else None for name in (self.id, self.title, self.text))
        if not is_table:
            return FieldMap(id, self.title, text, self.metadata)
        kept = None if self.metadata is None else tuple(name for name in self.metadata if name in columns)
        return FieldMap(id, title, text, kept)


def first_columns(columns: Iterable[str]) -> str:
    """Return the names of columns as an error lists them: the first ones of very many."""
    shown = list(islice(columns, _SHOWN_COLUMNS + 1))
    return ", ".join(shown[:_SHOWN_COLUMNS]) + (" …" if len(shown) > _SHOWN_COLUMNS else "")


def parse_fields(texts: Sequence[str]) -> FieldMap:
    """Return the field map of texts such as ``text=body``, ``metadata=year,author``; ``metadata=`` keeps nothing else.

    Raises:
        BadInput: one is no NAME=COLUMN, names another field, or names one twice.
    """
    fields: dict[str, str] = {}
    for text in texts:
        name, sign, column = (part.strip() for part in text.partition("="))
        if not sign or name not in _NAMES or name in fields or not (column or name == "metadata"):
            raise BadInput(
                f"{text!r} maps no field, or one that is mapped already",
                f"Give NAME=COLUMN once for each of {', '.join(_NAMES)}",
            )
        fields[name] = column
    kept = fields.get("metadata")
    metadata = None if kept is None else tuple(column.strip() for column in kept.split(",") if column.strip())
    return FieldMap(fields.get("id"), fields.get("title"), fields.get("text"), metadata)


def parse_metadata(texts: Sequence[str]) -> dict[str, MetadataValue]:
    """Return the metadata of texts such as ``tenant=a``, ``year=1933``; JSON's numbers and truth values are read so.

    Raises:
        BadInput: one is no KEY=VALUE, gives a key twice, or a key that cannot be set.
    """
    metadata: dict[str, MetadataValue] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip() or key.strip() in metadata:
            raise BadInput(f"{text!r} is no metadata, or its key is given twice", "Give KEY=VALUE, each key once")
        metadata[key.strip()] = scalar(value.strip())
    check_metadata(metadata)
    return metadata


def check_metadata(metadata: Mapping[str, object]) -> None:
    """Raise BadInput when a user's metadata hold no scalars, or a key that passages have of their own."""
    for key, value in metadata.items():
        is_key = isinstance(key, str) and is_unicode(key) and not has_controls(key)
        if not is_key or key in PLACE_KEYS or key == "source" or not askable_metadata({key: ""}):
            raise BadInput(f"The metadata {key!r} cannot be set", "The documents set it, or it is reserved: rename it")
        if len(metadata) > MAX_KEYS or not _is_within_limits(key, value) or as_metadata(value) is None:
            raise BadInput(
                f"The metadata {key[:60]!r} cannot be set",
                f"Give at most {MAX_KEYS}, with keys of {MAX_CHARACTERS:,} characters, of texts of {MAX_VALUE:,},"
                " finite numbers, true and false",
            )


def within_limits(values: Iterable[tuple[str, MetadataValue]], notes: Counter[str]) -> dict[str, MetadataValue]:
    """Return the metadata that a passage keeps, the first ones of too many; the rest is counted.

    Line ends in a key, as spreadsheets have them in the names of columns, become spaces.
    """
    kept: dict[str, MetadataValue] = {}
    for key, value in values:
        name = " ".join(key.split()) if has_controls(key) else key
        if len(kept) < MAX_KEYS and name not in kept and not has_controls(name) and _is_within_limits(name, value):
            kept[name] = value
        else:
            notes[OVER_LIMIT] += 1
    return kept


def _is_within_limits(key: str, value: object) -> bool:
    return len(key) <= MAX_CHARACTERS and not (isinstance(value, str) and len(value) > MAX_VALUE)


def scalar(text: str) -> MetadataValue:
    """Return the number, true or false that a text is in JSON, else the text: ``007`` and ``1e999`` stay text."""
    if text in ("true", "false"):
        return text == "true"
    number = json_number(text) if len(text) <= _LONGEST_NUMBER else None
    return text if number is None else number


def as_metadata(value: object) -> MetadataValue | None:
    """Return a value that can be stored and asked for, or None where it is none; huge integers become text."""
    if isinstance(value, str):
        return value if is_unicode(value) else None
    if isinstance(value, int | float):
        return value if is_storable(value) else str(value) if isinstance(value, int) else None
    return None


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes passages of the rows of one file.

    Attributes:
        source: the passages' source.
        fields: which key holds what.
        notes: counts what was dropped.
        read: turns a value of a row into metadata.
    """

    source: str
    fields: FieldMap
    notes: Counter[str]
    read: Callable[[Any], Any] = lambda value: value

    def passage(self, row: Mapping[str, Any], where: str) -> Passage:
        """Return the passage of a row that has a text: given whole, with scalars under other keys as metadata.

        Args:
            row: as it was read.
            where: file and line, for errors.

        Raises:
            BadInput: the row has no text, or cannot be used.
        """
        text_key, title_key = _text_key(row, self.fields, where), self.fields.title or "title"
        title, text = row.get(title_key) or "", row[text_key]
        if not isinstance(title, str) or not (title.strip() or text.strip()):
            raise BadInput(f"{where}: empty, or its title is no text", "Correct or remove it")
        return self.passage_of_cells(row, title, text, where, {title_key, text_key})

    def passage_of_cells(
        self, row: Mapping[str, Any], title: str, text: str, where: str, used: Collection[str] = ()
    ) -> Passage:
        """Return the passage of a row whose title and text are given.

        Args:
            row: what the id and the metadata are taken from.
            title: the passage's.
            text: the passage's.
            where: file and line, for errors.
            used: keys that are no metadata, since title and text hold them.

        Raises:
            BadInput: the row cannot be used.
        """
        id_key = _id_key(row, self.fields, where)
        metadata = self._metadata(row, {id_key, *used})
        key = str(row[id_key]) if id_key else stable_id("passage", self.source, f"{title}\n{text}")
        if not is_unicode("\n".join([key, title, text, *metadata, *map(str, metadata.values())])):
            raise BadInput(f"{where}: holds broken Unicode", "Correct the text's escapes")
        if not key.strip() or has_controls(key) or len(key) > MAX_ID:
            raise BadInput(f"{where}: {key[:200]!r} is no id", f"Give 1 to {MAX_ID:,} printable characters, or no id")
        return Passage(key, one_line(title), short_spaced(text), self.source, metadata)

    def _metadata(self, row: Mapping[str, Any], used: Collection[str | None]) -> dict[str, MetadataValue]:
        wanted = row.keys() - used if self.fields.metadata is None else set(self.fields.metadata)
        cells = ((key, self.read(value)) for key, value in row.items() if key in wanted and value is not None)
        metadata: dict[str, MetadataValue] = {}
        for key, value in cells:
            known = value if isinstance(value, str) else as_metadata(value)
            if known is None:
                self.notes[NO_METADATA] += 1
            else:
                metadata[key] = known
        return within_limits(metadata.items(), self.notes)


def _text_key(row: Mapping[str, Any], fields: FieldMap, where: str) -> str:
    if fields.text is not None:
        text = row.get(fields.text)
        if not isinstance(text, str) or not text.strip():
            raise BadInput(f"{where}: no text under {fields.text!r}", "Correct or remove it, or map another field")
        return fields.text
    key = next((key for key in TEXT_KEYS if isinstance(row.get(key), str)), None)
    if key is None:
        raise BadInput(
            f"{where}: no text",
            f"Give the passage under one of: {', '.join(TEXT_KEYS)}; or name its field with --field text=NAME",
        )
    return key


def _id_key(row: Mapping[str, Any], fields: FieldMap, where: str) -> str | None:
    if fields.id is None:
        return next((key for key in ID_KEYS if isinstance(row.get(key), str | int)), None)
    if not isinstance(row.get(fields.id), str | int):
        raise BadInput(f"{where}: no id under {fields.id!r}", "Correct or remove it, or map another field")
    return fields.id
