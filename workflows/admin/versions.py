"""The versions of a document: when it changed, and what changed in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graph.corrections.apply import Corrections
from graph.errors import BadInput
from graph.moments import ALWAYS, shown
from graph.schema import Fact
from graph.storage.entry import Entry
from graph.storage.versions import Span, Versions, of_documents
from graph.storage.workspace import Workspace

_EXCERPT = 160


def document_versions(root: Path, name: str) -> dict[str, Any]:
    """Return the versions of a document, the earliest first, as ``--json`` prints them.

    Each tells its date (None for what stood when versions began to be kept), the passages that it added, changed,
    removed and moved (of which only metadata changed), and the facts that it brought and dropped.

    Args:
        root: the workspace.
        name: id of a document or passage, or its source; of a part of a file, the whole file is meant.

    Raises:
        BadInput: the workspace knows nothing of that name.
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: it cannot be read.
    """
    with Workspace(root).open_record() as record, record.as_it_stands():
        versions = record.versions
        spans = _lineage(versions.spans(), name)
        if not spans:
            raise BadInput(
                f"The workspace knows no document, passage or source called {name!r}, now or in the past",
                "Give the id of a passage or document, or a source as results name them",
            )
        return {
            "workspace": str(root),
            "name": name,
            "sources": sorted({span.source for span in spans}),
            "kept_from": shown(versions.kept_from) if versions.are_kept and versions.kept_from else None,
            "keeps_versions": versions.are_kept,
            "versions": list(_changes(versions, spans, Corrections(record.corrections()))),
        }


def _lineage(spans: Sequence[Span], name: str) -> list[Span]:
    """Return the spans of a document; a passage that is a part of a file stands for that file."""
    files = {span.source for span in spans if span.is_part and span.passage_id == name}
    return of_documents(spans, [name], {name, *files})


def _changes(versions: Versions, spans: Sequence[Span], corrections: Corrections) -> Iterator[dict[str, Any]]:
    """Yield what changed at each moment at which something of a document began or ended."""
    entries = {(span.passage_id, span.version): versions.entry(span) for span in spans}
    before: dict[str, Span] = {}
    for moment in sorted({span.since for span in spans} | {span.until for span in spans if span.until is not None}):
        after = {span.passage_id: span for span in spans if span.stands_at(moment)}
        changed = _changed(before, after)
        if any(changed.values()):
            old, new = ([entries[span.passage_id, span.version] for span in side.values()] for side in (before, after))
            yield {
                "date": None if moment == ALWAYS else shown(moment),
                "passages": len(after),
                **{kind: [_named(entries, before, after, key) for key in keys] for kind, keys in changed.items()},
                **_facts(corrections, old, new),
            }
        before = after


def _changed(before: Mapping[str, Span], after: Mapping[str, Span]) -> dict[str, list[str]]:
    both = sorted(before.keys() & after.keys())
    return {
        "added": sorted(after.keys() - before.keys()),
        "changed": [key for key in both if before[key].words != after[key].words],
        "removed": sorted(before.keys() - after.keys()),
        "moved": [
            key for key in both if before[key].words == after[key].words and before[key].content != after[key].content
        ],
    }


def _named(
    entries: Mapping[tuple[str, int | None], Entry], before: Mapping[str, Span], after: Mapping[str, Span], key: str
) -> dict[str, str]:
    """Return what a passage is called, and how it begins: as it stands, or as it stood last."""
    span = after.get(key) or before[key]
    passage = entries[key, span.version].passage
    text = " ".join(passage.text.split())
    return {
        "id": key,
        "title": passage.title,
        "source": passage.source,
        "text": text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…",
    }


def _facts(corrections: Corrections, old: Iterable[Entry], new: Iterable[Entry]) -> dict[str, list[str]]:
    """Return the facts that are new in a version and those that it drops, as `mara correct` takes them."""
    said_before, said = (_said(corrections, entries) for entries in (old, new))
    return {
        "new_facts": sorted(text for key, text in said.items() if key not in said_before),
        "dropped_facts": sorted(text for key, text in said_before.items() if key not in said),
    }


def _said(corrections: Corrections, entries: Iterable[Entry]) -> dict[str, str]:
    """Return {fact id: the fact between bars}, spelled as the first passage that states it has it."""
    said: dict[str, str] = {}
    for entry in entries:
        for each in corrections.stated(entry.passage, entry.extraction).triples:
            fact = Fact(each.subject, each.predicate, each.object, each.relation)
            said.setdefault(fact.id, f"{each.subject} | {each.predicate} | {each.object}")
    return said
