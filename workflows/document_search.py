"""Searching documents rather than passages: by similarity, and by what a conversation is about."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from graph.errors import BadInput
from graph.relationships.conversation_search import RelevantDocument, conversation_search
from graph.relationships.conversations import check_open_to
from graph.relationships.history import keep_search, now
from graph.relationships.record import RelationshipRecord
from graph.relationships.sight import Sight
from graph.storage.workspace import resolve_workspace
from workflows.context import Context, check_question
from workflows.runtime.resources import OpenRun, open_run

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
