"""Checks of the record: SQLite can read it, it holds what was written, and what follows from that is there."""

from __future__ import annotations

from collections.abc import Sequence

from graph.checks.findings import Finding, judged, lost, sound
from graph.corrections.apply import Corrections, Stated
from graph.errors import MaraError
from graph.moments import ALWAYS, FOREVER
from graph.storage.entry import Entry, facts_of, names_of
from graph.storage.record import RecordReader, declared_types
from graph.storage.record_tables import HELD_BY, RESTORE, Corrected, DerivedRows

MENDED = {"record file", "derived rows"}
"""Checks whose problems `Record.replace_derived` solves."""

_REEMBED = "Run `mara doctor --reembed`: it embeds again the texts, which the record still holds"
_INDEX_AGAIN = "Index their sources again (`mara index` or `mara sync`), which replaces them, or restore a backup"
_NO_VERSIONS = "Restore the record from a backup, or erase all versions: `mara index SOURCE --set keep_versions=false`"
_DERIVED_TABLES = {*(f"passage_{table}" for table in HELD_BY), "synonyms", "corrected"}


def examine_record(record: RecordReader) -> tuple[list[Finding], DerivedRows | None]:
    """Return what is right and wrong with a record, and the rows that it should hold; None where they cannot be told.

    A check that rests on something broken is left out.
    """
    findings: list[Finding] = []
    try:
        for check in (_check_file, _check_settings):
            findings.append(check(record))
            if not findings[-1].ok and not findings[-1].repairable:
                return findings, None
        entries = dict(record.examined())
        whole = [entry for entry in entries.values() if entry is not None]
        broken = [key for key, entry in entries.items() if entry is None]
        problem = f"{len(broken)} passages cannot be read, or are not what was written"
        fine = f"{len(whole)} passages are what was written"
        findings.append(judged("passages", broken, problem, fine, _INDEX_AGAIN))
        if broken:
            return findings, None
        corrections = Corrections(record.corrections())
        rows = _rows_of([(entry, corrections.stated(entry.passage, entry.extraction)) for entry in whole])
        stored = record.derived_rows()
        findings += [_check_versions(record, corrections), _check_vectors(record, rows, stored)]
        if not findings[-1].ok:
            return findings, None
        return [*findings, _check_rows(rows, stored)], rows
    except (MaraError, ValueError, TypeError) as fault:
        return [*findings, lost("record file", f"The record cannot be read ({fault})", RESTORE)], None


def _check_file(record: RecordReader) -> Finding:
    said, tables = record.faults_of_file()
    if said or tables - _DERIVED_TABLES:
        return lost("record file", "SQLite finds the record damaged", RESTORE, said or tables)
    problem = "Rows of the record refer to rows that are not there"
    return judged("record file", tables, problem, "SQLite finds the record whole")


def _check_settings(record: RecordReader) -> Finding:
    check = "record settings"
    try:
        declared_types(record)
        generation, model = record.generation, record.embedding_model
        lacks_model = record.count_passages() and not (model and record.dimension)
        if not (record.workspace_id and record.commit_id) or lacks_model:
            raise ValueError("an id or the model is missing")
    except (MaraError, ValueError) as fault:
        return lost(check, f"The record does not properly tell its settings ({fault})", RESTORE)
    return sound(check, f"Generation {generation}, vectors of {model or 'no model yet'}")


def _rows_of(stated: Sequence[tuple[Entry, Stated]]) -> DerivedRows:
    """Return the rows that follow from passages."""
    rows = DerivedRows({table: {} for table in HELD_BY}, {table: set() for table in HELD_BY}, {})
    for entry, says in stated:
        for table, texts in (("names", names_of(says)), ("facts", facts_of(says))):
            rows.texts[table].update(texts)
            rows.links[table].update((entry.passage.id, key) for key in texts)
        if says.by:
            rows.corrected[entry.passage.id] = Corrected(says.fingerprint(entry.fingerprint), says.by)
    return rows


def _check_versions(record: RecordReader, corrections: Corrections) -> Finding:
    """Compare past versions with what was written, and look for passages of which two versions stand at once."""
    versions = record.versions
    if not versions.are_kept:
        return sound("versions", "No versions are kept")
    wrong = set(record.odd_vectors("past_passages"))
    last: dict[str, str] = {}
    try:
        for span in versions.spans():
            if span.since < last.get(span.passage_id, ALWAYS):
                wrong.add(span.passage_id)
            last[span.passage_id] = span.until or FOREVER
            if span.version is not None:
                entry = versions.entry(span)
                facts = {*facts_of(corrections.stated(entry.passage, entry.extraction))}
                if (versions.fingerprint(span), versions.facts(span)) != (entry.fingerprint, facts):
                    wrong.add(span.passage_id)
    except (ValueError, TypeError) as fault:
        return lost("versions", f"A past version cannot be read ({fault})", _NO_VERSIONS)
    problem = f"Past versions of {len(wrong)} passages are not what was written, or stand while another one does"
    fine = f"Each of {versions.count()} past versions is what was written, and stands alone in its time"
    return judged("versions", wrong, problem, fine, _NO_VERSIONS)


def _check_vectors(record: RecordReader, rows: DerivedRows, stored: DerivedRows) -> Finding:
    lacking = [text for table in HELD_BY for key, text in rows.texts[table].items() if key not in stored.texts[table]]
    odd = [key for table in ("passages", *HELD_BY) for key in record.odd_vectors(table)]
    problem = (
        f"{len(lacking)} names and facts that passages hold have no vector, {len(odd)} vectors are broken: of another"
        " length, not finite, or no unit vectors"
    )
    fine = f"All names and facts of passages are there, and all vectors are unit vectors of {record.dimension} numbers"
    return judged("vectors", lacking + odd, problem, fine, _REEMBED)


def _check_rows(rows: DerivedRows, stored: DerivedRows) -> Finding:
    """Compare the rows that follow from passages with what they should be."""
    wrong = {key for key, _ in rows.corrected.items() ^ stored.corrected.items()}
    for table in HELD_BY:
        wrong |= {key for key, _ in rows.texts[table].items() ^ stored.texts[table].items()}
        wrong |= {" ".join(link) for link in rows.links[table] ^ stored.links[table]}
    problem = f"{len(wrong)} names, facts, links or corrected passages are not what the passages give"
    counts = ", ".join(f"{len(texts):,} {table}" for table, texts in rows.texts.items())
    fine = f"{counts} and their links are what the passages give"
    return judged("derived rows", wrong, problem, fine)
