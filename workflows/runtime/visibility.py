"""A run's filter: the passages that ``where`` selects, and what a state may hold under it.

A fork may bring another filter than the run it forks from, and a person may write anything into a state: each node
that reads what an earlier one wrote sees no more of it than its own filter lets it. A text written from passages may
repeat any of them, and cannot be taken apart: a run that does not see all of its sources does not go on from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from langgraph.types import Overwrite

from graph.errors import BadInput
from graph.moments import last_moment
from graph.retrieve.filter_keys import unknown_keys
from graph.retrieve.past import superseded_facts, superseded_passages
from graph.retrieve.selection import Selection
from graph.storage.workspace import Workspace, resolve_workspace
from workflows.runtime.resources import OpenRun, open_workspace_index
from workflows.settings.mara import Context
from workflows.states.conversion import fact_hit
from workflows.states.ragenta import add_found, add_judgements
from workflows.states.records import OUTSIDE_FILTER, ErrorRecord, FactHit, Update

RETRIEVED = ("passages", "facts", "seeds", "passage_candidates")
"""The keys of the state that name passages, once they are retrieved: the last nodes of a run read all of them."""

SHOWING = (*RETRIEVED, "judgements", "kept", "written_from")
"""The keys that every node reads that works on judged passages, so that nothing stays that a filter hides."""


def within_filter(
    keys: Sequence[str], state: Mapping[str, Any], run: OpenRun, work: Callable[[Update], Update]
) -> Update:
    """Do a node's work with what of the state's ``keys`` lies within its run's filter; drop the rest, and say how much.

    The last node of a run writes what is left back into the state, and so keeps the result within the filter, too. A
    run that has an answer goes on only where it sees all that the answer was written from: see `check_sources`.
    """
    seen: Update = dict(state)
    selection = run.selection
    if selection is None:
        return work(seen)
    check_sources(written_from(state), run)
    values = {key: state[key] for key in keys if state.get(key)}
    kept = {key: _KEEPERS[key](value, selection) for key, value in values.items()}
    dropped = sum(map(_size, values.values())) - sum(map(_size, kept.values()))
    changed: Update = {key: value for key, value in kept.items() if value != values[key]}
    seen |= changed
    errors: list[ErrorRecord] = []
    if changed:
        message = f"{dropped} entries of the state lie outside `where` and were dropped"
        respelled = "Entries of the state are spelled as `where` lets them be seen"
        errors.append(run.error(OUTSIDE_FILTER, message if dropped else respelled))
        # A refused reply may quote what is hidden now.
        seen |= {key: None for key in seen if key.endswith("_refusal")}
    if "judgements" in changed:
        changed["bars"] = seen["bars"] = []
    update = work(seen)
    added = {key: Overwrite(add(changed[key], update.get(key, []))) for key, add in _ADD.items() if key in changed}
    noted: Update = {"errors": [*errors, *(update.get("errors") or ())]} if errors else {}
    return {**changed, **update, **added, **noted}


_SUPERSEDED = {"passages": superseded_passages, "facts": superseded_facts}


def with_superseded(update: Update, run: OpenRun) -> Update:
    """Return an update of a run asked as of a date, with ``superseded_at`` in its passages and facts.

    It is when a newer version superseded them, None where none did.
    """
    values = {key: update[key] for key in _SUPERSEDED if update.get(key)}
    if not values:
        return update
    moment, where = last_moment(run.context.as_of), run.context.where
    with Workspace(resolve_workspace(run.context.workspace)).open_record() as record:
        for key, hits in values.items():
            ends = _SUPERSEDED[key](record.versions, [hit["id"] for hit in hits], moment, where)
            update = {**update, key: [{**hit, "superseded_at": ends[hit["id"]]} for hit in hits]}
    return update


def written_from(state: Mapping[str, Any]) -> list[str]:
    """Return the ids of the passages that a state's answer was written from; an empty one where it does not hold one.

    Once there is an answer, all that was kept counts: an earlier answer, of which a draft and follow-up questions stay,
    may have been written from more than the last one.
    """
    numbers = state.get("written_from", [])
    ids = {hit["number"]: hit["id"] for hit in state.get("passages", [])}
    earlier = [number for number in state.get("kept", []) if number in ids] if numbers else []
    return [ids.get(number, "") for number in dict.fromkeys([*numbers, *earlier])]


def check_sources(passage_ids: Iterable[str], run: OpenRun) -> None:
    """Raise BadInput where something was written from passages that a run's filter hides, or that are unknown."""
    if not all(sees(passage_id, run) for passage_id in passage_ids):
        message = "The answer so far was written from passages that this run cannot see"
        raise BadInput(message, "Fork before the answer was written, or ask again")


def sees(passage_id: str, run: OpenRun) -> bool:
    """Tell whether a run sees a passage: the workspace holds it, and the run's filter, if any, selects it."""
    return _is_selected(run.index.graph.passage_index.get(passage_id), run.selection)


def check_keys(context: Context) -> None:
    """Check that passages have the metadata that a filter asks for; a client learns only of those it may see.

    Raises:
        BadInput: no passage has it.
        WorkspaceMissing: there is no workspace.
    """
    if not context.where:
        return
    index = open_workspace_index(context)
    if unknown_keys(index, context.fixed_where):
        raise BadInput(
            "The server's own filter asks for metadata that no passage has", "Tell the operator of the server"
        )
    unknown = unknown_keys(index, context.where, context.fixed_where)
    if unknown:
        raise BadInput(unknown.message, unknown.hint)


def _is_selected(place: int | None, selection: Selection | None) -> bool:
    return place is not None and (selection is None or bool(selection.passages[place]))


def _keep_facts(hits: list[FactHit], selection: Selection) -> list[FactHit]:
    facts = ((hit, selection.fact(hit["id"])) for hit in hits)
    return [fact_hit(fact, hit["score"], kept=hit["kept"]) for hit, fact in facts if fact]


def _keep_passages(hits: list[Any], selection: Selection, key: str = "id") -> list[Any]:
    place = selection.graph.passage_index
    return [hit for hit in hits if _is_selected(place.get(hit[key]), selection)]


def _keep_seeds(seeds: Mapping[str, Any], selection: Selection) -> Update:
    """Return the seeds of a `SeedSet` that a selection lets be seen, spelled as it shows them."""
    place = selection.graph.entity_index
    entities = [
        {**seed, "text": selection.label(place[seed["id"]])}
        for seed in seeds.get("entities", [])
        if seed["id"] in place and selection.entities[place[seed["id"]]]
    ]
    return {"entities": entities, "passages": _keep_passages(seeds.get("passages", []), selection)}


def _keep_hits(hits: list[Any], selection: Selection) -> list[Any]:
    return [_with_seen_reasons(hit, selection) for hit in _keep_passages(hits, selection)]


def _with_seen_reasons(hit: dict[str, Any], selection: Selection) -> dict[str, Any]:
    """Return a passage with those reasons of its personal place that name nothing a selection hides."""
    if not (place := hit.get("personal")):
        return hit
    reasons = [each for each in place["reasons"] if _sees_reason(each, selection)]
    return {**hit, "personal": {**place, "reasons": reasons}}


def _sees_reason(reason: Mapping[str, str], selection: Selection) -> bool:
    """Whether a reason is about what a selection shows, and spells it as the selection does."""
    if reason["document"] and reason["document"] not in selection.documents:
        return False
    place = selection.graph.entity_index.get(reason["concept"]) if reason["concept"] else None
    if place is None:
        return not reason["concept"]
    return bool(selection.entities[place]) and selection.label(place) in reason["told"]


def _keep_found(searches: list[Any], selection: Selection) -> list[Any]:
    return [{**each, "passages": _keep_hits(each["passages"], selection)} for each in searches]


_KEEPERS: Mapping[str, Callable[[Any, Selection], Any]] = {
    "judgements": partial(_keep_passages, key="passage_id"),
    "found": _keep_found,
    "facts": _keep_facts,
    "passages": _keep_hits,
    "passage_candidates": _keep_passages,
    "seeds": _keep_seeds,
}

NAMING_PASSAGES = frozenset(_KEEPERS)
"""The keys of the state that name passages: a node reads of them what lies within the run's filter."""

_ADD: Mapping[str, Callable[[Any, Any], Any]] = {"judgements": add_judgements, "found": add_found}
"""How the state puts together what of it adds up: what is left of that takes the place of the whole."""


def _size(value: Any) -> int:
    """How many entries a part of the state has."""
    return sum(map(len, value.values())) if isinstance(value, Mapping) else len(value)
