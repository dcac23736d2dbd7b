"""Checks of the record: SQLite can read it, its rows have the right shape, and they fit together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, Json, ValidationError

from graph.checks.findings import Finding, judged, lost, sound
from graph.construction.edge_weights import PASSAGE_CLASSES, PassageClasses
from graph.corrections.apply import Corrections, Stated
from graph.errors import MaraError, WorkspaceDamaged
from graph.moments import ALWAYS, FOREVER
from graph.own_types import OWN_TYPES
from graph.schema import RelationType
from graph.storage.entry import Entry, facts_of, names_of
from graph.storage.record import RecordReader, declared_types
from graph.storage.record_tables import HELD_BY, RESTORE, Corrected, DerivedRows
from graph.storage.synonym_pairs import SYNONYM_COSINE, are_left_to_build

MENDED = {
    *("record file", "synonyms", "corrected passages"),
    *(f"{kind} of {table}" for kind in ("texts", "links") for table in HELD_BY),
}
"""Checks whose problems `Record.replace_derived` solves."""

_COSINE_TOLERANCE = 1e-5
_REEMBED = "Run `mara reembed`: it embeds again the texts, which the record still holds"
_INDEX_AGAIN = "Index their sources again (`mara index` or `mara sync`), which replaces them, or restore a backup"
_NO_VERSIONS = "Restore the record from a backup, or erase all versions: `mara index SOURCE --no-versions`"
_SAMPLED_NAMES = 256
_DERIVED_TABLES = {*(f"passage_{table}" for table in HELD_BY), "synonyms", "corrected"}

Pair = tuple[str, str]


class _NameVectors:
    """The vectors of all names; ``rows`` tells the row of each id."""

    def __init__(self, record: RecordReader) -> None:
        ids, _, self.vectors = record.names()
        self.rows = {key: row for row, key in enumerate(ids)}

    def of(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of some names, in the order given."""
        return self.vectors[np.array([self.rows[key] for key in ids], dtype=np.intp)]


def examine_record(record: RecordReader) -> tuple[list[Finding], DerivedRows | None]:
    """Return what is right and wrong with a record, and the rows that it should hold; None where they cannot be told.

    What rests on something broken is not looked at.
    """
    findings: list[Finding] = []
    try:
        for check in (_check_file, _check_settings, _check_passages):
            findings.append(check(record))
            if not findings[-1].ok and not findings[-1].repairable:
                return findings, None
        entries = list(record.entries())
        corrections = Corrections(record.corrections())
        stated = [(entry, corrections.stated(entry.passage, entry.extraction)) for entry in entries]
        texts, links = _held_by(stated)
        findings += [_check_fingerprints(record, entries), _check_versions(record)]
        findings += [*_check_lacking(record, texts), _check_vectors(record)]
        if not findings[-1].ok:
            return findings, None
        vectors = _NameVectors(record)
        corrected = {e.passage.id: Corrected(says.fingerprint(e.fingerprint), says.by) for e, says in stated if says.by}
        rows = DerivedRows(texts, links, _synonyms(record, vectors), corrected)
        return [*findings, *_check_rows(record, rows), _check_synonyms_lacking(record, vectors)], rows
    except MaraError as fault:
        return [*findings, lost("record file", fault.message, fault.hint)], None


def _held_by(
    stated: Iterable[tuple[Entry, Stated]],
) -> tuple[dict[str, dict[str, str]], dict[str, set[Pair]]]:
    """Return the texts of names and facts that passages hold, and which passage holds which."""
    texts: dict[str, dict[str, str]] = {table: {} for table in HELD_BY}
    links: dict[str, set[Pair]] = {table: set() for table in HELD_BY}
    for entry, says in stated:
        own = {"names": names_of(says), "facts": facts_of(says)}
        for table, held in own.items():
            texts[table].update(held)
            links[table].update((entry.passage.id, key) for key in held)
    return texts, links


def _synonyms(record: RecordReader, vectors: _NameVectors) -> dict[Pair, float]:
    """Return the noted synonyms that are some, with the cosines that they should have."""
    noted = {(a, b): cosine for a, b, cosine in record.synonyms()}
    known = [(a, b) for a, b in noted if a < b and a in vectors.rows and b in vectors.rows]
    left, right = (vectors.of([pair[end] for pair in known]) for end in (0, 1))
    cosines = np.minimum(np.einsum("ij,ij->i", left, right), np.float32(1)).tolist()
    return {
        pair: noted[pair] if _is_near(noted[pair], cosine) else cosine
        for pair, cosine in zip(known, cosines, strict=True)
        if cosine >= SYNONYM_COSINE - _COSINE_TOLERANCE
    }


def _is_near(noted: object, cosine: float) -> bool:
    return isinstance(noted, float) and abs(noted - cosine) <= _COSINE_TOLERANCE


def _check_file(record: RecordReader) -> Finding:
    said, tables = record.faults_of_file()
    if said or tables - _DERIVED_TABLES:
        return lost("record file", "SQLite finds the record damaged", RESTORE, said or tables)
    problem = "Rows of the record refer to rows that are not there"
    return judged("record file", tables, problem, "SQLite finds the record whole")


def _check_settings(record: RecordReader) -> Finding:
    settings = record.settings()
    faults = [name for name in ("workspace_id", "commit_id") if not settings.get(name)]
    faults += [name for name in ("generation", "dimension") if not settings.get(name, "").isdecimal()]
    if settings.get("complete") not in ("0", "1"):
        faults.append("complete")
    if not faults and record.count_passages() and not (settings.get("embedding_model") and record.dimension):
        faults.append("embedding_model")
    if record.note(PASSAGE_CLASSES) not in ("", *PassageClasses):
        faults.append(PASSAGE_CLASSES)
    try:
        declared_types(record)
    except WorkspaceDamaged:
        faults.append(OWN_TYPES)
    if faults:
        return lost("record settings", f"The record does not properly tell {', '.join(faults)}", RESTORE)
    model = record.embedding_model or "no model yet"
    return sound("record settings", f"Generation {record.generation}, vectors of {model}")


class _StoredPassage(BaseModel, strict=True):
    """What a row of the table of passages holds, where it can be read."""

    metadata: Json[dict[str, str | int | float | bool]]
    entities: Json[list[str | tuple[str, str]]]
    triples: Json[list[tuple[str, str, str, RelationType, Annotated[float, Field(ge=0, le=1)]]]]
    notes: Json[dict[str, int]]
    windows: int


def _check_passages(record: RecordReader) -> Finding:
    broken, rows = [], record.raw_passages()
    for row in rows:
        try:
            _StoredPassage.model_validate(row)
        except ValidationError:
            broken.append(row["id"])
    problem = f"What {len(broken)} passages hold cannot be read"
    return judged("passages", broken, problem, f"{len(rows)} passages can be read", _INDEX_AGAIN)


def _check_fingerprints(record: RecordReader, entries: Iterable[Entry]) -> Finding:
    known = record.fingerprints()
    changed = [entry.passage.id for entry in entries if entry.fingerprint != known[entry.passage.id]]
    problem = f"{len(changed)} passages are not what was written: their fingerprints differ"
    return judged("fingerprints", changed, problem, "Every passage is what was written", _INDEX_AGAIN)


def _check_versions(record: RecordReader) -> Finding:
    """Compare past versions with what was written, and look for passages of which two versions stand at once."""
    versions = record.versions
    if not versions.are_kept:
        return sound("versions", "No versions are kept")
    try:
        spans = versions.spans()
        past = [(span, versions.entry(span)) for span in spans if span.version is not None]
    except (ValueError, TypeError) as fault:
        return lost("versions", f"A past version cannot be read ({fault})", _NO_VERSIONS)
    changed = [span.passage_id for span, entry in past if versions.fingerprint(span) != entry.fingerprint]
    stated = Corrections(record.corrections()).stated
    facts = [
        span.passage_id
        for span, entry in past
        if versions.facts(span) != facts_of(stated(entry.passage, entry.extraction)).keys()
    ]
    changed += record.odd_past_vectors()
    last: dict[str, str] = {}
    overlapping = []
    for span in spans:
        if span.since < last.get(span.passage_id, ALWAYS):
            overlapping.append(span.passage_id)
        last[span.passage_id] = span.until or FOREVER
    problem = (
        f"{len(changed)} past versions are not what was written, {len(overlapping)} stand while another one does,"
        f" {len(facts)} hold other facts than are noted"
    )
    fine = f"Each of {len(past)} past versions is what was written, and stands alone in its time"
    return judged("versions", {*changed, *overlapping, *facts}, problem, fine, _NO_VERSIONS)


def _check_lacking(record: RecordReader, texts: Mapping[str, Mapping[str, str]]) -> list[Finding]:
    findings = []
    for table, needed in texts.items():
        lacking = [needed[key] for key in needed.keys() - record.texts(table).keys()]
        problem = f"{len(lacking)} {table} that passages hold have no vector"
        fine = f"All {len(needed)} {table} that passages hold are there"
        findings.append(judged(table, lacking, problem, fine, _REEMBED))
    return findings


def _check_vectors(record: RecordReader) -> Finding:
    odd = [key for table in ("passages", *HELD_BY) for key in record.odd_vectors(table)]
    problem = f"{len(odd)} vectors are broken: of another length, not finite, or no unit vectors"
    return judged("vectors", odd, problem, f"All vectors are unit vectors of {record.dimension} numbers", _REEMBED)


def _check_rows(record: RecordReader, rows: DerivedRows) -> list[Finding]:
    """Compare the rows that follow from passages and vectors, with what they should be."""
    findings = []
    for table in HELD_BY:
        held, texts = record.texts(table), rows.texts[table]
        unheld = held.keys() - texts.keys()
        respelled = {key for key, text in texts.items() if held.get(key, text) != text}
        problem = f"{len(unheld)} {table} are held by no passage, {len(respelled)} have another text than their own"
        fine = f"Every one of the {table} is held by a passage, and its own"
        findings.append(judged(f"texts of {table}", unheld | respelled, problem, fine))
        links, needed = record.links(table), rows.links[table]
        problem = f"{len(links - needed)} rows of passage_{table} are too many, {len(needed - links)} are missing"
        fine = f"Which passages hold which {table} is as the passages say"
        findings.append(judged(f"links of {table}", [*map(" ".join, links ^ needed)], problem, fine))
    known = record.corrected()
    wrong = {key for key in known.keys() | rows.corrected.keys() if known.get(key) != rows.corrected.get(key)}
    problem = f"{len(wrong)} passages are noted otherwise than the corrections change them"
    fine = f"The corrections change {len(known)} passages, as is noted"
    findings.append(judged("corrected passages", wrong, problem, fine))
    noted = {(a, b): cosine for a, b, cosine in record.synonyms()}
    loose = noted.keys() - rows.synonyms.keys()
    differing = {pair for pair, cosine in rows.synonyms.items() if noted[pair] != cosine}
    problem = f"{len(loose)} synonyms are none, {len(differing)} have another cosine"
    fine = "All synonyms are as near to each other as is noted"
    return [*findings, judged("synonyms", [*map(" ".join, loose | differing)], problem, fine)]


def _check_synonyms_lacking(record: RecordReader, vectors: _NameVectors) -> Finding:
    """Look for neighbours that are not noted as synonyms, of some names and among names that have synonyms.

    Which of the others may have any was the embedding model's to say.
    """
    if are_left_to_build(record):
        return sound(
            "missing synonyms", f"The synonyms of {record.count_names():,} names are found as the graph is built"
        )
    noted = {(a, b) for a, b, _ in record.synonyms()}
    ids = sorted({name for pair in noted for name in pair} & vectors.rows.keys())
    sampled = ids[:: max(1, len(ids) // _SAMPLED_NAMES)]
    near = vectors.of(sampled) @ vectors.of(ids).T >= SYNONYM_COSINE + _COSINE_TOLERANCE
    found = ((sampled[row], ids[column]) for row, column in zip(*np.nonzero(near), strict=True))
    lacking = {(min(a, b), max(a, b)) for a, b in found if a != b} - noted
    problem = f"{len(lacking)} synonyms of {len(sampled)} names are missing"
    fine = f"{len(sampled)} names have all their synonyms"
    return judged("missing synonyms", [*map(" ".join, lacking)], problem, fine, _REEMBED)
