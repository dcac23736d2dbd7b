"""Explanations: from a run's result to what carried the mass to its passages, and to files that show it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from graph.environment import refresh_environment
from graph.errors import BadInput
from graph.explain.flow_paths import FlowPath, told_paths
from graph.explain.flows import EdgeFacts, Flows, Subgraph, Visible, choose_subgraph, flows_of, visible_part
from graph.retrieve.modes import WalkSettings
from graph.retrieve.open_index import Index
from graph.retrieve.search import factors_for, restart_of, walked_graph
from graph.retrieve.selection import Selection
from graph.schema import RelationFactors
from graph.storage.workspace import resolve_workspace, write_atomically
from graph.walk.pagerank import walk
from graph.walk.settings import Engine
from graph.walk.strengths import UNTUNED, tuned, workspace_tuning
from workflows.context import Context
from workflows.explanation.model import (
    Assembly,
    Explanation,
    NodeNames,
)
from workflows.explanation.why import why
from workflows.runs.run_folder import check_output
from workflows.runtime.resources import open_workspace_index, selection_of
from workflows.states.conversion import beta_of, facts_of, start_of
from workflows.states.shared import State

DEFAULT_NODES = 60


def explain(result: Mapping[str, Any], context: Context, *, max_nodes: int = DEFAULT_NODES) -> Explanation:
    """Explain an answer: walk again as the run did, without its β and with it, and tell what carried the mass.

    Args:
        result: what `workflows.answering.ask`, or a workflow's ``invoke``, returned.
        context: what the question was asked with.
        max_nodes: how many nodes are shown. The returned passages, the entity seeds and the nodes of the
            best paths are shown in any case.

    Raises:
        BadInput: the result is none of a run, is of another context or filter, or its generation is gone.
        WorkspaceDamaged: the workspace cannot be read.
    """
    refresh_environment()
    answered = open_answered(result, context)
    beta, flows = compare_walks(answered) if answered.walked else (None, ())
    graph = answered.index.graph
    facts = EdgeFacts(graph, answered.selection)
    visible = visible_part(graph, answered.selection, facts)
    paths = _paths(answered, flows, visible)
    assembly = Assembly(
        names=NodeNames(graph, answered.selection, visible.nodes, answered.numbers),
        facts=facts,
        visible=visible,
        subgraph=_subgraph(answered, flows, visible, paths, max_nodes),
        flows=flows,
    )
    explanation = _explanation(answered, beta, assembly, paths)
    return replace(explanation, why=why(result, explanation))


def write_explanation(explanation: Explanation, path: Path) -> None:
    """Write an explanation into a file: a page (.html), or JSON (.json).

    Raises:
        BadInput: the file's name ends otherwise, or it cannot be written.
    """
    check_target(path)
    data = explanation.to_json()
    try:
        if path.suffix.lower() == ".json":
            text = json.dumps(data, indent=1) + "\n"
        else:
            from workflows.explanation.page import render_page

            text = render_page(data)
        write_atomically(path.resolve(), text)
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or fault
        raise BadInput(f"{path} cannot be written ({reason})", "Name another file") from fault


def check_target(path: Path) -> None:
    """Raise BadInput if no explanation can be written into that file: for its ending, or its folder."""
    check_output(path, ".html", ".json")


def _paths(answered: Answered, flows: Sequence[Flows], visible: Visible) -> list[FlowPath]:
    """Return the paths that are told: to the cited passages, or to the best passage where nothing is cited."""
    if not flows:
        return []
    cited = list(answered.numbers) or [hit["id"] for hit in answered.result["passages"][:1]]
    by_passage = told_paths(flows[-1], _nodes_of(answered, cited), visible.edges, visible.nodes)
    return [path for paths in by_passage for path in paths]


def _subgraph(
    answered: Answered, flows: Sequence[Flows], visible: Visible, paths: Sequence[FlowPath], max_nodes: int
) -> Subgraph:
    returned = _nodes_of(answered, [*answered.numbers, *(hit["id"] for hit in answered.result["passages"])])
    if not flows:
        return Subgraph(tuple(dict.fromkeys(returned)), ())
    graph = answered.index.graph
    seeds = [graph.entity_index[seed["id"]] for seed in (answered.result.get("seeds") or {}).get("entities", [])]
    on_paths = [node for path in paths for node in (path.seed, *(step.target for step in path.steps))]
    steps = [step.edge for path in paths for step in path.steps]
    return choose_subgraph(flows, visible, [*returned, *seeds, *on_paths], steps, max_nodes)


def _nodes_of(answered: Answered, passage_ids: Sequence[str]) -> list[int]:
    graph = answered.index.graph
    return [graph.n_entities + graph.passage_index[key] for key in passage_ids]


def _explanation(
    answered: Answered, beta: RelationFactors | None, assembly: Assembly, paths: Sequence[FlowPath]
) -> Explanation:
    result = answered.result
    report = result.get("walk") if answered.walked else None
    return Explanation(
        question=result["question"],
        answer=result.get("answer") or "",
        mode=result["mode"],
        ranked_by=result["ranked_by"],
        workspace=resolve_workspace(answered.context.workspace).absolute().name,
        generation=result["generation"],
        models={key: str(result["models"].get(key, "")) for key in ("chat", "embedding", "store")},
        citations=tuple(result.get("citations") or ()),
        facts=tuple(_facts(answered)),
        fact_outcome=result.get("fact_outcome") or "",
        beta=beta,
        passage_weight=result.get("passage_weight") if answered.walked else None,
        damping=answered.damping if answered.walked else None,
        stops=() if not assembly.flows else (WITHOUT, WITH) if beta else (AS_WALKED,),
        nodes=assembly.nodes(),
        edges=assembly.edges(),
        paths=tuple(assembly.path(path) for path in paths),
        shown=assembly.shown(),
        walk={"engine": report["engine"], "error": report["error"]} if report else None,
        own_relations={str(name): definition for name, definition in answered.index.graph.own.definitions.items()},
    )


def _facts(answered: Answered) -> Iterator[dict[str, Any]]:
    """Return the candidate facts of the result, spelled as the filter lets them be seen."""
    hits = answered.result.get("facts") or []
    scored = facts_of(hits, answered.index, answered.selection)
    for hit, (known, score) in zip(hits, scored, strict=True):
        fact = known.fact
        triple = {"subject": fact.subject, "predicate": fact.predicate, "object": fact.object}
        yield {**triple, "relation": fact.relation.value, "score": score, "kept": hit["kept"]}


_NEEDED = ("question", "mode", "models", "generation", "ranked_by", "passages")
_SAME_CONTEXT = "Give the context that the question was asked with"

WITHOUT, WITH, AS_WALKED = "without β", "with β", "as walked"

_TOLERANCE = 1e-3
"""The relative tolerance for a score, beside the run's error: an endpoint's vectors vary a little."""


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
        """The settings of its walk."""
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
    lacking = [key for key in _NEEDED if result.get(key) is None]
    if lacking:
        raise BadInput(f"This is no result of a question: it lacks {', '.join(lacking)}", "Give what `ask` returned")
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


def compare_walks(answered: Answered) -> tuple[RelationFactors | None, tuple[Flows, ...]]:
    """Walk from the run's seeds, without its β and with it, and return β with the flows of each, the run's own last.

    Each walk is solved by PRPACK.

    Raises:
        BadInput: the walk does not give the run's scores: it had other settings.
    """
    settings, graph = answered.settings, answered.index.graph
    state = cast(State, answered.result)
    beta = beta_of(state) if settings.beta else None
    start, _ = start_of(answered.index, state, settings, answered.selection)
    restart = restart_of(answered.index, start)
    typed = walked_graph(graph, settings)
    damping, own = answered.damping, graph.own.relation_types
    is_tuned = answered.result.get("tuning")
    tuning = workspace_tuning(resolve_workspace(answered.context.workspace)) if is_tuned else UNTUNED
    steers = (None, beta) if beta else (None,)
    factors = [tuned(factors_for(each, settings, own), tuning.strengths, own) for each in steers]

    walked = tuple(
        flows_of(typed, walk(typed, restart, each, damping, Engine.IGRAPH).scores, restart.dense(), each, damping)
        for each in factors
    )
    _check_scores(answered, walked[-1])
    return beta, walked


def _check_scores(answered: Answered, flows: Flows) -> None:
    graph, report = answered.index.graph, answered.result.get("walk") or {}
    hits = [hit for hit in answered.result["passages"] if "follow_up" not in hit]
    hit_scores = np.array([hit.get("pagerank", hit["score"]) for hit in hits], dtype=np.float64)
    scores = flows.scores[[graph.n_entities + graph.passage_index[hit["id"]] for hit in hits]]
    if (np.abs(hit_scores - scores) > report.get("error", 0.0) + _TOLERANCE * scores).any():
        raise BadInput(
            "The walk does not lead to the result's scores: it was made with other settings",
            "Give the context that the question was asked with",
        )
