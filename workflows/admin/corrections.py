"""Correcting the graph of a workspace: corrections proposed, made, undone, listed, exported and imported."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from graph.construction.edges import IS_SYNONYM_KIND
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.corrections import kinds
from graph.corrections.apply import Corrections, Stated
from graph.embedding.embeddings import configured_embedder
from graph.environment import refresh_environment
from graph.errors import BadInput
from graph.publish.derive import publish
from graph.review.proposals import LEAST_SCORE, Review
from graph.schema import ENTITY_RELATIONS, Fact, entity_id
from graph.storage.correcting import Plan, Restated, plan_corrections, plan_undoing
from graph.storage.record import Record, declared_types
from graph.storage.workspace import Workspace
from graph.taxonomy import fact_type_of, type_triple
from workflows.admin.inspection import published_graph
from workflows.indexing_run.relating import related_if_there

_EXAMPLES = 10
_NAMED = 10
_KEPT_APART = ("id", "note", "made_at", "undone_at")
"""Keys of an exported correction that do not say what it is."""


def correct(root: Path, wanted: Sequence[kinds.What], note: str = "", *, dry_run: bool = False) -> dict[str, Any]:
    """Make corrections, and publish the graph with them. Only the passages concerned are written.

    Args:
        root: the workspace.
        wanted: what they say; each comes after those before it.
        note: why, in the user's words.
        dry_run: whether to tell alone what would change.

    Returns:
        The corrections with the number of passages that each changes, and examples; docs/corrections.md has the keys.

    Raises:
        BadInput: one contradicts a correction that stands, names a place that is not there, or the note is too long.
        EmbeddingMismatch: another embedding model wrote the workspace.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceLocked: another process is writing.
    """
    if len(note) > kinds.MAX_NOTE:
        raise BadInput(f"The note has {len(note):,} characters", f"Give {kinds.MAX_NOTE:,} at most")

    def plan(record: Record) -> Plan:
        _check_places(record, wanted)
        return plan_corrections(record, [(what, note) for what in wanted])

    return _carry_out(root, plan, dry_run=dry_run)


def undo(root: Path, ids: Sequence[int], *, dry_run: bool = False) -> dict[str, Any]:
    """Undo corrections, and publish the graph without them. They stay listed. Returns as `correct`.

    Raises:
        BadInput: there is no such correction, or it was undone before.
        EmbeddingMismatch: another embedding model wrote the workspace.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceLocked: another process is writing.
    """
    return _carry_out(root, lambda record: plan_undoing(record, ids), dry_run=dry_run)


def list_corrections(root: Path) -> dict[str, Any]:
    """Return all corrections of a workspace, those that were undone among them, with the passages that each changes.

    Raises:
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: it cannot be read.
    """
    refresh_environment()
    with Workspace(root).open_record() as record:
        Workspace(root).check_passages(record)
        changed = Counter(id for each in record.corrected().values() for id in each.by)
        listed = [{**each.to_json(), "passages": changed[each.id]} for each in record.corrections()]
    return {"workspace": str(root), "corrections": listed}


def export_corrections(root: Path, path: Path) -> dict[str, Any]:
    """Write all corrections of a workspace into a file, one JSON object a line.

    Raises:
        WorkspaceMissing: there is no workspace, or it is empty.
    """
    with Workspace(root).open_record() as record:
        Workspace(root).check_passages(record)
        corrections = record.corrections()
    lines = [json.dumps(each.to_json(), ensure_ascii=False) + "\n" for each in corrections]
    path.write_text("".join(lines), encoding="utf-8")
    standing = sum(each.stands for each in corrections)
    return {"workspace": str(root), "file": str(path), "standing": standing, "undone": len(corrections) - standing}


def import_corrections(root: Path, path: Path, *, dry_run: bool = False) -> dict[str, Any]:
    """Make the corrections of an exported file that stand, in its order. Returns as `correct`, and ``left_out``.

    One that the workspace has already changes nothing. One that is about passages that are not there waits for them.

    Raises:
        BadInput: the file cannot be read, or a line is no correction; then none is made.
        EmbeddingMismatch: another embedding model wrote the workspace.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceLocked: another process is writing.
    """
    rows = _read_rows(path)
    wanted = [(kinds.what_from_json(_said(row)), str(row.get("note", ""))) for row in rows if not row.get("undone_at")]
    done = _carry_out(root, lambda record: plan_corrections(record, wanted), dry_run=dry_run)
    return {**done, "left_out": len(rows) - len(wanted)}


def read_statement(root: Path, text: str, relation: str = "") -> kinds.Statement:
    """Return the fact that a text names: its id, or subject, predicate and object between bars.

    Args:
        root: the workspace, where an id and the user's own relation types are looked up.
        text: such as ``Nissan | founded in | 1933``.
        relation: its relation type, in any case; empty for whichever.

    Raises:
        BadInput: it is neither, or no passage states a fact of that id.
        WorkspaceMissing: there is no workspace.
    """
    with Workspace(root).open_record() as record:
        kind = _relation(record, relation)
        parts = [part.strip() for part in text.split("|")]
        if len(parts) == 3:
            return kinds.Statement(parts[0], parts[1], parts[2], kind)
        if not text.startswith("fact-"):
            hint = 'Give three parts, "SUBJECT | PREDICATE | OBJECT", or the id of a fact'
            raise BadInput(f"{text[:200]!r} names no fact", hint)
        corrections = Corrections(record.corrections())
        for entry in record.entries(record.passages_with("facts", [text])):
            for t in corrections.stated(entry.passage, entry.extraction).triples:
                if Fact(t.subject, t.predicate, t.object, t.relation).id == text:
                    return kinds.Statement(t.subject, t.predicate, t.object, kind or t.relation.value)
    raise BadInput(f"No passage states the fact {text[:200]!r}", "`mara ask --verbose --json` shows the ids of facts")


def pinned(root: Path, text: str, passage: str, relation: str = "") -> kinds.Pin:
    """Return the correction that pins a fact in a passage; without a relation type, of the one that its words tell.

    Raises as `read_statement`.
    """
    fact = read_statement(root, text, relation)
    if not fact.relation:
        with Workspace(root).open_record() as record:
            relation_type, _ = type_triple(fact.subject, fact.predicate, fact.object, declared_types(record))
        fact = replace(fact, relation=relation_type.value)
    return kinds.Pin(fact, passage)


def review_names(root: Path, limit: int = 20, least: float = LEAST_SCORE) -> dict[str, Any]:
    """Return proposals to merge names, the likeliest first; nothing is written.

    Pairs that are kept apart are left out; merged ones are one name already.

    Args:
        root: the workspace.
        limit: how many, at most.
        least: the score from which on a pair is proposed, 0 to 1.

    Raises:
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: it cannot be read.
        WorkspaceLocked: no generation can be read, and another process is writing.
    """
    refresh_environment()
    with published_graph(root) as (record, graph):
        corrections = Corrections(record.corrections())
        review = Review(graph, _near_names(graph), corrections.kept_apart())
        merges = review.merges(least)
        return {
            "workspace": str(root),
            "generation": graph.generation,
            "merges": [asdict(each) for each in merges[:limit]],
            "of_merges": len(merges),
        }


def _carry_out(root: Path, plan_of: Callable[[Record], Plan], *, dry_run: bool) -> dict[str, Any]:
    refresh_environment()
    workspace = Workspace(root)
    if dry_run:
        with workspace.open_record() as record:
            workspace.check_passages(record)
            return _told(root, record, plan_of(record), dry_run=True)
    with workspace.writing() as lock, workspace.open_record(lock) as record:
        workspace.check_passages(record)
        plan = plan_of(record)
        relationships: dict[str, Any] = {}
        if plan.made or plan.undone:
            plan.commit(record, configured_embedder())
            publish(workspace, record)
            relationships = related_if_there(workspace, record)
        problem = {key: relationships[key] for key in relationships.keys() & {"problem"}}
        return {**_told(root, record, plan, dry_run=False), "relationships": problem}


def _told(root: Path, record: Record, plan: Plan, *, dry_run: bool) -> dict[str, Any]:
    made = Counter(id for each in plan.restated for id in each.after.by)
    undone = Counter(id for each in plan.restated for id in each.before.by)
    return {
        "workspace": str(root),
        "generation": record.generation,
        "dry_run": dry_run,
        "made": [{**each.to_json(), "passages": made[each.id]} for each in plan.made],
        "undone": [{**each.to_json(), "passages": undone[each.id]} for each in plan.undone],
        "known": [each.to_json() for each in plan.known],
        "passages": len(plan.restated),
        "examples": [_difference(each) for each in plan.restated[:_EXAMPLES]],
        "relationships": {},
    }


def _difference(each: Restated) -> dict[str, Any]:
    """Return what a passage does not state any more, and what it states now."""
    was, now = _lines(each.before), _lines(each.after)
    return {
        "passage": each.entry.passage.id,
        "was": [line for line in was if line not in now],
        "now": [line for line in now if line not in was],
    }


def _lines(stated: Stated) -> list[str]:
    names = dict.fromkeys(name for name in (stated.topic, *stated.entities) if name)
    facts = [str(kinds.Statement(t.subject, t.predicate, t.object, t.relation.value)) for t in stated.triples]
    return [*names, *facts]


def _check_places(record: Record, wanted: Iterable[kinds.What]) -> None:
    """Raise BadInput where a correction names a place that no passage lies in."""
    for what in wanted:
        if isinstance(what, kinds.Pin) and not record.states([what.passage]):
            hint = "A fact is pinned in one passage: give its id (`mara ask --verbose`)"
            raise BadInput(f"{what.passage!r} is no passage", hint)
    named = {place for what in wanted for place in getattr(what, "places", ())}
    if not named:
        return
    sources = record.sources()
    known = sources.keys() | set(sources.values()) | set(record.documents().values())
    if unknown := sorted(named - known):
        raise BadInput(
            f"The workspace holds no source, document or passage {', '.join(map(repr, unknown[:_NAMED]))}",
            "Name one as passages name it: `mara ask --verbose` shows ids, `mara show` sources",
        )


def _relation(record: Record, name: str) -> str:
    """Return the value of a relation type that is named in any case. Raises BadInput for one that no fact can have."""
    if not name:
        return ""
    own = declared_types(record)
    relation_type = fact_type_of(name, own)
    if relation_type is None:
        known = ", ".join([*(relation.value for relation in ENTITY_RELATIONS), *own.relation_types])
        raise BadInput(f"{name[:60]!r} is no relation type of a fact", f"Give one of {known}")
    return relation_type.value


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in (*_KEPT_APART, "passages")}


def _read_rows(path: Path) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("it is no object")
            kinds.what_from_json(_said(row))
        except (ValueError, RecursionError) as fault:
            message = fault.message if isinstance(fault, BadInput) else str(fault)
            hint = "Give a file as `mara correct list --out` writes it; none was imported"
            raise BadInput(f"{path.name}, line {number}: {message}", hint) from fault
        rows.append(row)
    return rows


def _near_names(graph: KnowledgeGraph) -> list[tuple[str, str, float]]:
    """Return (name id, name id, cosine) of names with near vectors."""
    ids = [entity_id(name) for name in graph.entity_names]
    edges = graph.edges
    near = IS_SYNONYM_KIND[edges.kind]
    columns = (column[near].tolist() for column in (edges.source, edges.target, edges.weight))
    return [(ids[a], ids[b], weight) for a, b, weight in zip(*columns, strict=True)]
