"""A run that is over, opened again: its result, its settings, and the index that it was answered from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from graph.errors import BadInput
from graph.retrieve.modes import WalkSettings
from graph.retrieve.open_index import Index
from graph.retrieve.selection import Selection
from workflows.context import Context
from workflows.runtime.resources import open_workspace_index, selection_of
from workflows.settings.problems import problems_of
from workflows.states.shared import Output

_NEEDED = ("question", "mode", "models", "generation", "ranked_by", "passages")
_SAME_CONTEXT = "Give the context that the question was asked with"


@dataclass(frozen=True, eq=False)
class Answered:
    """A finished run.

    Attributes:
        result: what asking gave.
        context: what it was asked with.
        index: the generation that answered.
        selection: what the context's filter selects of it; None without one.
    """

    result: Mapping[str, Any]
    context: Context
    index: Index
    selection: Selection | None

    @property
    def settings(self) -> WalkSettings:
        """What its walk was made of."""
        return self.context.walk_settings()

    @property
    def walked(self) -> bool:
        """Whether a walk ranked the passages."""
        return bool(self.result["ranked_by"] == "walk")

    @property
    def damping(self) -> float:
        """The damping of its walk."""
        return float((self.result.get("walk") or {}).get("damping", self.settings.damping))

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of the cited passages, by their ids, in the order of the numbers."""
        cited = {mark["passage_id"]: mark["number"] for mark in self.result.get("citations") or []}
        return dict(sorted(cited.items(), key=lambda item: item[1]))


def open_answered(result: Mapping[str, Any], context: Context) -> Answered:
    """Open a run again.

    Raises:
        BadInput: the result is none of a run, its generation is gone, or it is of another mode, workspace or filter
            than the context.
    """
    _check_result(result)
    if result["mode"] != context.mode.value:
        raise BadInput(f"The result is of mode {result['mode']}, the context of {context.mode}", _SAME_CONTEXT)
    generation = result["generation"]
    index = open_workspace_index(context, generation)
    if index.graph.generation != generation:
        raise BadInput(
            f"The workspace went from generation {generation} to {index.graph.generation} since", "Ask again"
        )
    answered = Answered(result, context, index, selection_of(context, index))
    outside = sum(not seen for seen in _are_seen(answered))
    if outside:
        raise BadInput(f"{outside} entries of the result lie outside this workspace or `where`", _SAME_CONTEXT)
    return answered


def _check_result(result: Mapping[str, Any]) -> None:
    """Raise BadInput where a result lacks what an explanation reads, or holds something else there."""
    if not isinstance(result, Mapping):
        raise BadInput("This is no result of a question", "Give what `ask` returned")
    lacking = [key for key in _NEEDED if result.get(key) is None]
    if lacking:
        raise BadInput(f"This is no result of a question: it lacks {', '.join(lacking)}", "Give what `ask` returned")
    given = {key: value for key, value in result.items() if value is not None}
    given |= {"timings_ms": {}, "errors": []}
    try:
        _shape().validate_python(given, strict=True)
    except ValidationError as fault:
        raise BadInput(f"This is no result of a question ({problems_of(fault)})", "Give what `ask` returned") from fault


@cache
def _shape() -> TypeAdapter[Output]:
    return TypeAdapter(Output)


def _are_seen(answered: Answered) -> Iterator[bool]:
    """Tell of each passage, fact and seed of the result whether the workspace knows it and the filter shows it."""
    graph, selection, result = answered.index.graph, answered.selection, answered.result
    seeds = result.get("seeds") or {}
    returned = [hit["id"] for hit in result["passages"]]
    for key in (*returned, *(seed["id"] for seed in seeds.get("passages", []))):
        place = graph.passage_index.get(key)
        yield place is not None and (selection is None or bool(selection.passages[place]))
    for seed in seeds.get("entities", []):
        place = graph.entity_index.get(seed["id"])
        yield place is not None and (selection is None or bool(selection.entities[place]))
    for hit in result.get("facts") or []:
        yield hit["id"] in (graph.facts if selection is None else selection.facts)
    yield from (key in returned for key in answered.numbers)
