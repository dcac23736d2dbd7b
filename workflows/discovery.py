"""Discovery by the relationship graph: documents to read next, and where a passage comes from.

Both see what a run with the same settings sees: what a filter hides is neither proposed nor named in a reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from graph.errors import BadInput
from graph.relationships.conversation_search import RelevantDocument, conversation_search
from graph.relationships.conversations import check_open_to
from graph.relationships.discovery import PROPOSED, Because, ConceptPath, Discovery, discover
from graph.relationships.history import keep_search, now
from graph.relationships.provenance import account_of, unknown_passage
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import PropertyValue
from graph.relationships.sight import Sight, named_document
from graph.retrieve.modes import Mode
from graph.retrieve.search import rank_passages
from graph.retrieve.selection import Selection
from graph.schema import Passage, entity_id
from graph.storage.versions import Span
from graph.storage.workspace import Workspace, resolve_workspace
from workflows.context import Context, check_question
from workflows.runtime.resources import OpenRun, open_run
from workflows.runtime.visibility import sees

NEAREST = 3
"""Passages whose concepts stand for a topic that names none."""

_POSITION = ("page", "page_end", "section", "start", "end")


def what_to_read(context: Context, topic: str = "", k: int = PROPOSED) -> dict[str, Any]:
    """Return documents one or two concept steps away from a topic, a conversation or a user's history, as JSON.

    The settings name the workspace, the filters, the conversation and the user. A document that the user viewed, or
    that an answer of the conversation cites, is not proposed.

    Args:
        context: the settings.
        topic: words that name what it is to be about; where they name no concept, what the nearest passages are about.
        k: how many documents are proposed at most.

    Raises:
        BadInput: nothing tells what to discover from; there is no relationship graph; a setting cannot be used.
        NoAccess: the conversation is not open to the user.
        WorkspaceMissing: there is no workspace.
    """
    run = open_run(context)
    sight = None if run.selection is None else Sight(run.selection)
    concepts, named = _concepts_of(check_question(topic), run) if topic else ([], True)
    with RelationshipRecord.of(resolve_workspace(context.workspace)) as record:
        check_open_to(record, context.conversation_id, context.user_id, own_only=context.own_only)
        if topic and not (concepts or context.user_id or context.conversation_id):
            return {"documents": []}
        discoveries = discover(
            record,
            user_id=context.user_id,
            conversation_id=context.conversation_id,
            concepts=concepts,
            named=named,
            k=k,
            sight=sight,
        )
        read = sorted({path.document for each in discoveries for path in each.paths if path.document})
        titles = {
            key: named_document(record, key, sight)[1] for key in read if sight is None or sight.sees_document(key)
        }
    return {"documents": [_proposal(each, titles) for each in discoveries]}


def related_documents(context: Context, document_id: str, k: int = PROPOSED) -> list[dict[str, str]]:
    """Return documents one or two concept steps away from what a document explains, and why, as JSON.

    Whether the user viewed them does not matter. As of a date, only what stood then is proposed.

    Args:
        context: the settings.
        document_id: the document; where the settings' filter hides it, nothing is related to it.
        k: how many documents are proposed at most.

    Raises:
        BadInput: there is no relationship graph; a setting cannot be used.
        WorkspaceMissing: there is no workspace.
    """
    run = open_run(context)
    graph, selection = run.index.graph, run.selection
    if selection is None and context.as_of:
        selection = Selection.of(graph, np.arange(len(graph.passages)))
    sight = None if selection is None else Sight(selection)
    with RelationshipRecord.of(resolve_workspace(context.workspace)) as record:
        discoveries = discover(record, document_id=document_id, k=k, sight=sight)
    return [
        {"document": each.id, "path": each.path, "title": each.title, "told": told(each.paths[0])}
        for each in discoveries
    ]


def passage_provenance(context: Context, passage_id: str) -> dict[str, Any]:
    """Return where a passage comes from, what it is about, and which answers cite it, as JSON.

    Args:
        context: the settings.
        passage_id: the passage.

    Raises:
        BadInput: there is no such passage, or the settings' filter hides it; there is no relationship graph.
        WorkspaceMissing: there is no workspace.
    """
    run = open_run(context)
    root = resolve_workspace(context.workspace)
    if not sees(passage_id, run):
        raise unknown_passage()
    with RelationshipRecord.of(root) as record:
        account = account_of(record, passage_id, context.user_id, own_only=context.own_only)
    graph = run.index.graph
    passage = graph.passages[graph.passage_index[passage_id]]
    return {
        "passage": passage_id,
        "title": passage.title,
        "position": _position(passage, account.pop("chunk")),
        **account,
        "concepts": _linked(run, passage_id),
        "versions": _versions(root, run, passage_id),
    }


def _concepts_of(topic: str, run: OpenRun) -> tuple[list[str], bool]:
    """Return the concepts that a topic names; where it names none, those of the passages nearest to it; and which."""
    from graph.relationships.concepts import SpelledConcepts

    extractor = run.context.beside.concept_extractor or SpelledConcepts(run.index.graph)
    if named := list(extractor.concepts_in(topic)):
        return named, True
    if run.selection is not None and run.selection.is_empty:
        return [], False
    nearest = rank_passages(run.index, topic, Mode.DENSE, NEAREST, 1.0, run.selection)
    graph = run.index.graph
    linked = (key for row, _ in nearest for key in _entities_of(run, row) if key in graph.entity_index)
    return list(dict.fromkeys(linked)), False


def _entities_of(run: OpenRun, row: int) -> list[str]:
    """Return the ids of the entities that a passage is linked with."""
    graph = run.index.graph
    return [entity_id(graph.entity_names[entity]) for entity in np.unique(graph.entities_in(row)).tolist()]


def _linked(run: OpenRun, passage_id: str) -> list[dict[str, str]]:
    """Return the concepts that a passage is linked with, by name."""
    graph = run.index.graph
    label = graph.entity_labels.__getitem__ if run.selection is None else run.selection.label
    keys = _entities_of(run, graph.passage_index[passage_id])
    named = ({"id": key, "name": label(graph.entity_index[key])} for key in keys)
    return sorted(named, key=lambda each: (each["name"].casefold(), each["id"]))


def _versions(root: Path, run: OpenRun, passage_id: str) -> list[dict[str, str | None]]:
    """Return since when and until when each version of a passage stood that the settings' filter lets be seen."""
    with Workspace(root).open_record() as record, record.as_it_stands():
        return _times(_seen(record.versions.spans([passage_id]), run))


def _seen(spans: Iterable[Span], run: OpenRun) -> list[Span]:
    """Return the times of passages that the settings' filter lets be seen, the earliest first."""
    from graph.metadata_filter import meets, read_conditions

    conditions = read_conditions(run.context.where)
    return sorted(
        (span for span in spans if meets(conditions, span.source, span.metadata)), key=lambda span: span.since
    )


def _times(spans: Iterable[Span]) -> list[dict[str, str | None]]:
    from graph.moments import shown

    return [{"since": shown(span.since), "until": shown(span.until) if span.until else None} for span in spans]


def _position(passage: Passage, number: PropertyValue) -> dict[str, Any]:
    return {"chunk": number, **{key: passage.metadata[key] for key in _POSITION if key in passage.metadata}}


def _proposal(discovery: Discovery, titles: dict[str, str]) -> dict[str, Any]:
    return {
        "document": discovery.id,
        "path": discovery.path,
        "title": discovery.title,
        "relevance": discovery.relevance,
        "reasons": [_reason(path, titles) for path in discovery.paths],
    }


def _reason(path: ConceptPath, titles: dict[str, str]) -> dict[str, Any]:
    return {
        "told": told(path, titles.get(path.document, "")),
        "because": path.because.value,
        "concept": path.seed,
        "read": path.document,
        "steps": [{"relation": step.relation, "concept": step.concept, "name": step.name} for step in path.steps],
    }


def told(path: ConceptPath, read: str = "") -> str:
    """Return a path in words; ``read`` is the title of the document that was read, where that is why."""
    began = {
        Because.ASKED: f"you asked about {path.name}",
        Because.READ: f"you read {read}, which explains {path.name}",
        Because.DOCUMENT: f"this document explains {path.name}",
        Because.CONVERSATION: f"the conversation mentions {path.name}",
        Because.TOPIC: f"the topic is about {path.name}",
        Because.NEAR: f"near to your topic: {path.name}",
    }[path.because]
    return " → ".join([began, *(step.name for step in path.steps)])


FOUND = 5
"""Documents that a search returns unless another number is asked for."""


def search_documents(context: Context, text: str, k: int = FOUND, keep: str = "") -> dict[str, Any]:
    """Return the best documents for a text, by 0.7 x similarity + 0.3 x concepts of the conversation, as JSON.

    The settings name the workspace, the filter, the conversation and the user. The similarity of a document is that of
    its best passage.

    Args:
        context: the settings.
        text: what to search for.
        k: how many documents are returned at most.
        keep: a name under which the text is kept as a Query, with a SIMILARITY edge to each document returned; what was
            kept under it before is replaced. Empty: nothing is written.

    Raises:
        BadInput: there is no relationship graph; a setting cannot be used; a search of a user's is to be kept.
        NoAccess: the conversation is not open to the user.
        WorkspaceMissing: there is no workspace.
    """
    if keep and context.user_id:
        raise BadInput("A search that is kept belongs to no user", "Keep it without a user")
    run = open_run(context)
    sight = None if run.selection is None else Sight(run.selection)
    similarities = _similarities(run, check_question(text))
    with RelationshipRecord.of(resolve_workspace(context.workspace)) as record:
        check_open_to(record, context.conversation_id, context.user_id, own_only=context.own_only)
        documents = conversation_search(record, context.conversation_id, similarities, k, sight)
        if keep:
            keep_search(record, keep, text, {each.id: each.similarity for each in documents}, now())
    return {"documents": [_as_json(each) for each in documents], "kept": keep}


def _similarities(run: OpenRun, text: str) -> dict[str, float]:
    """Return the similarity of each document that the filter selects: that of its best passage."""
    rows = None if run.selection is None else run.selection.rows
    passages = run.index.graph.passages
    best: dict[str, float] = {}
    numbered = np.arange(len(passages)) if rows is None else rows
    for row, score in zip(numbered.tolist(), run.index.score_passages(text, rows).tolist(), strict=True):
        document = passages[row].document
        best[document] = max(score, best.get(document, -1.0))
    return best


def _as_json(document: RelevantDocument) -> dict[str, Any]:
    rounded = {name: round(getattr(document, name), 6) for name in ("similarity", "relevance", "score")}
    return {**asdict(document), **rounded}
