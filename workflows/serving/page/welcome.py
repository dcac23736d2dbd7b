"""The first screen of a workspace: how much of it the visitor sees, and questions that it can answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph
from graph.errors import WorkspaceMissing
from graph.retrieve.selection import Selection
from graph.sources.skipped import REFUSED, skipped_by_source
from graph.storage.workspace import Workspace, resolve_workspace
from graph.text import is_date, normalise_name
from workflows.context import Context
from workflows.runtime.resources import OpenRun, open_run


def welcome(context: Context) -> dict[str, Any]:
    """Return how many passages and documents the settings' filter leaves, files that were not read, and questions.

    Raises MaraError where the workspace cannot be opened; one that does not exist holds nothing.
    """
    try:
        run = open_run(context)
    except WorkspaceMissing:
        return {"passages": 0, "documents": 0, "unread": 0, "questions": []}
    return {**_found(run), "unread": 0 if run.selection else _unread(context)}


def _found(run: OpenRun) -> Mapping[str, Any]:
    graph, selection = run.index.graph, run.selection
    documents = selection.documents if selection else {passage.document for passage in graph.passages}
    return {
        "passages": len(selection.rows) if selection else len(graph.passages),
        "documents": len(documents),
        "questions": suggested(graph, selection),
    }


def _unread(context: Context) -> int:
    with Workspace(resolve_workspace(context.workspace)).open_record() as record:
        return sum(one["reasons"].get(REFUSED, 0) for one in skipped_by_source(record).values())


SUGGESTED = 4

_LOOKED_AT = 20_000
"""Facts that are looked at, of however many: they lie in the order of their ids, which is none of the corpus."""

_LONGEST_NAME = 50

_WAS = r"(?:is |was )?"
_DONE = r"(?:is|was) (?:[^.;]*? )?"
_MADE = (
    "built|composed|created|designed|developed|directed|discovered|edited|founded|invented|painted|produced|published"
)
_AT_A_TIME = (
    "born|built|completed|composed|created|discovered|established|founded|invented|launched|published|rebuilt|released"
    "|signed|written"
)

_QUESTIONS = (
    (rf"{_WAS}({_MADE}) by", "", "Who {0} {name}?", "(?:{done})?{0} by"),
    (rf"{_WAS}written by", "", "Who wrote {name}?", "(?:{done})?written by"),
    (rf"{_WAS}({_AT_A_TIME})(?: in| on)?", "date", "When was {name} {0}?", "{done}{0}"),
    (r"opened(?: in| on)?", "date", "When did {name} open?", "opened"),
    (r"died(?: in| on)?", "date", "When did {name} die?", "died"),
    (rf"{_WAS}(born|buried) (?:in|at|near)", "name", "Where was {name} {0}?", "{done}{0} (?:in|at|near)"),
    (rf"{_WAS}(headquartered|located) (?:in|at|near)", "name", "Where is {name} {0}?", "{done}{0} (?:in|at|near)"),
    (r"(flow|belong|drain|lead)s (into|to)", "name", "What does {name} {0} {1}?", "{0}s {1}"),
    (rf"{_WAS}(?:the )?(capital|county seat) of", "name", "What is {name} the {0} of?", "{done}{0} of"),
)
"""Predicates, the kind of their object, the question that it answers, and how a text says so behind the subject."""

_NAME = re.compile(r"[^\W\d_][\w'’.&-]*(?: [\w'’.&-]+)*")


def suggested(graph: KnowledgeGraph, selection: Selection | None) -> list[str]:
    """Return up to `SUGGESTED` questions; fewer where fewer read well.

    Args:
        graph: of the workspace.
        selection: the passages that the visitor sees; None for all. Whatever a question says stands in one of them.
    """
    rows = range(len(graph.facts)) if selection is None else selection.facts.rows.tolist()
    questions: dict[str, str] = {}
    named: set[str] = set()
    for row in islice(rows, _LOOKED_AT):
        fact = graph.facts.rows[row]
        words, stated = _asked(fact)
        name = _named(graph, selection, fact, stated) if words else ""
        if name and name not in named:
            named.add(name)
            questions.setdefault(words, words.format(name=name))
        if len(questions) == SUGGESTED:
            break
    return [*questions.values()]


def _asked(fact: GraphFact) -> tuple[str, str]:
    """Return the question that a fact answers, for its subject, and how a text says so; empty where none reads well."""
    answer = fact.fact.object
    kind = "date" if is_date(answer) else "name" if answer[:1].isupper() else "other"
    for pattern, wanted, words, stated in _QUESTIONS:
        predicate = re.fullmatch(pattern, normalise_name(fact.fact.predicate))
        if predicate and wanted in ("", kind):
            parts = predicate.groups()
            return words.format(*parts, name="{name}"), stated.format(*parts, done=_DONE)
    return "", ""


def _named(graph: KnowledgeGraph, selection: Selection | None, fact: GraphFact, stated: str) -> str:
    """Return the subject as its own passage, one of the fact's that the visitor sees, writes it where that says so."""
    for place in fact.passages:
        if selection is None or selection.passages[place]:
            name, text = _title(graph, place, fact.subject), graph.passages[place].text
            subject = rf"(?:\b{re.escape(name.removeprefix('the '))}|(?:^|[.;] )(?:it|he|she))"
            beside = r"(?: \([^()]*\)|,[^,.]*,)?,? "
            if name and re.search(rf"{subject}{beside}{stated}\b", text, re.IGNORECASE):
                return name
    return ""


def _title(graph: KnowledgeGraph, place: int, entity: int) -> str:
    """Return an entity's name, with the article that it has, where it is the title of a passage."""
    passage = graph.passages[place]
    name = re.sub(r" \([^()]*\)$", "", passage.title)
    is_plain = _NAME.fullmatch(name) and name[0].isupper() and len(name) <= _LONGEST_NAME
    if not is_plain or normalise_name(name) != graph.entity_names[entity]:
        return ""
    mention = re.search(rf"(\bthe )?{re.escape(name)}\b(?! (?:are|were|have)\b)", passage.text, re.IGNORECASE)
    return f"{'the ' if mention[1] else ''}{name}" if mention else ""
