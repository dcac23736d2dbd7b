"""Files that a user gives beside documents: precomputed triples, and types of the user's own.

Triples are HippoRAG's OpenIE JSON, or JSONL of {id, entities, triples}; types are TOML, with the tables
``[relations.NAME]`` and ``[entities.Name]``.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.own_types import NO_TYPES, OwnTypes, own_types_of
from graph.schema import Extraction, Passage, Triple
from graph.sources.loaders.corpus import json_rows
from graph.sources.loaders.files import parse_json, read_text, readable_path
from graph.taxonomy import fact_type_of, type_triple
from graph.text import has_controls, is_unicode


def _parts_of(item: object) -> Sequence[object]:
    """Return the parts of a fact: 3, or 5 with type and confidence; none where it is no list and no object.

    An object has the keys ``subject``, ``predicate`` and ``object``, perhaps ``relation_type`` (or ``relation``) and
    ``confidence``. The parts themselves are not checked.
    """
    if isinstance(item, dict):
        parts = [item.get(key) for key in ("subject", "predicate", "object")]
        relation = item.get("relation_type", item.get("relation"))
        is_short = relation is None and "confidence" not in item
        return parts if is_short else [*parts, relation, item.get("confidence", 1.0)]
    return item if isinstance(item, list) and len(item) in (3, 5) else ()


IMPORTED = "import"
"""The extractor's name of passages whose triples were imported."""


@dataclass(frozen=True, slots=True)
class ImportedTriples:
    """Extractions of a file, by passage id and by passage text; ``rows`` counts them."""

    by_id: Mapping[str, Extraction]
    by_text: Mapping[str, Extraction]
    rows: int

    def of(self, passage: Passage) -> Extraction | None:
        """Return a passage's extraction: by its id, else by its exact text, with or without the title."""
        extraction = self.by_id.get(passage.id)
        return extraction or self.by_text.get(passage.content.strip()) or self.by_text.get(passage.text.strip())


def read_triples(path: Path, own: OwnTypes = NO_TYPES) -> ImportedTriples:
    """Read a file of triples, whose relation types may be a user's own.

    Raises:
        BadInput: the file cannot be read, or is not of a known shape.
    """
    rows = list(json_rows(path)) if path.suffix.lower() == ".jsonl" else _openie(path)
    by_id: dict[str, Extraction] = {}
    by_text: dict[str, Extraction] = {}
    for where, row in rows:
        if not isinstance(row, Mapping):
            raise BadInput(f"{where}: not an object", "Give {id, entities, triples}")
        extraction = _extraction(row, where, own)
        key, body = row.get("id", row.get("idx")), row.get("passage", row.get("text"))
        if key is None and not isinstance(body, str):
            raise BadInput(f"{where}: neither an id nor a passage to match by", "Give an id")
        if has_controls(str(key)):
            raise BadInput(f"{where}: its id {str(key)[:200]!r} holds a control character", "Give the passage's own id")
        if key is not None:
            by_id[str(key)] = extraction
        if isinstance(body, str):
            by_text[body.strip()] = extraction
    return ImportedTriples(by_id, by_text, len(rows))


def _openie(path: Path) -> list[tuple[str, Any]]:
    where = readable_path(path)
    value = parse_json(read_text(path), where, "JSON lines need the suffix .jsonl")
    rows = value.get("docs") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        raise BadInput(f"{where} holds no list of passages", 'Give HippoRAG\'s {"docs": [...]} or a list')
    return [(f"{where}, item {n}", row) for n, row in enumerate(rows, start=1)]


def _extraction(row: Mapping[str, Any], where: str, own: OwnTypes) -> Extraction:
    entities = row.get("entities", row.get("extracted_entities", []))
    triples = row.get("triples", row.get("extracted_triples", []))
    if not isinstance(entities, list) or not isinstance(triples, list):
        raise BadInput(f"{where}: entities and triples are not lists", "Give {id, entities, triples}")
    notes: Counter[str] = Counter()
    typed = [triple for fact in triples if (triple := _triple(fact, notes, own)) is not None]
    names = [name for name in entities if isinstance(name, str) and is_unicode(name)]
    if len(names) < len(entities):
        notes["malformed entities"] += len(entities) - len(names)
    return Extraction(tuple(names), tuple(typed), IMPORTED, dict(notes))


def _triple(fact: Any, notes: Counter[str], own: OwnTypes) -> Triple | None:
    """Return the triple of a fact; a malformed one is dropped, an untyped one typed by rule, both counted."""
    parts = _parts_of(fact)
    names = [part for part in parts[:3] if isinstance(part, str) and is_unicode(part)]
    if len(names) < 3:
        notes["malformed triples"] += 1
        return None
    subject, predicate, object_ = names
    relation = fact_type_of(str(parts[3]), own) if len(parts) == 5 else None
    if relation is None:
        relation, cued = type_triple(subject, predicate, object_, own)
        notes["triples typed by rule"] += 1
        notes["triples without a cue"] += not cued
    return Triple(subject, predicate, object_, relation, _confidence(parts[4] if len(parts) == 5 else 1.0, notes))


def _confidence(value: Any, notes: Counter[str]) -> float:
    """Return a confidence in [0, 1]; 0.5 where none is given that can be read, counted."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if number != number or abs(number) == math.inf:
        notes["confidences defaulted"] += 1
        return 0.5
    return float(min(1.0, max(0.0, number)))


MAX_TYPES_BYTES = 2**20
"""Size of a file of types."""


def read_own_types(path: Path) -> OwnTypes:
    """Read a file of types.

    Raises:
        BadInput: it cannot be read, is no TOML, or states something that is no type; the error says what and where.
    """
    where = readable_path(path)
    try:
        table = tomllib.loads(read_text(path, MAX_TYPES_BYTES))
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise BadInput(f"{where} is no TOML file ({fault})", "docs/indexing.md has a whole example") from fault
    try:
        types = own_types_of(table)
    except ValueError as fault:
        raise BadInput(f"{where}: {fault}", "docs/indexing.md has a whole example") from fault
    if not types:
        raise BadInput(f"{where} declares no type", "Declare types in it: [relations.NAME] or [entities.Name]")
    return types
