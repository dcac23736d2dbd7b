"""Explanations: from a run's result to what carried the mass to its passages, and to files that show it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graph.environment import refresh_environment
from graph.errors import BadInput
from graph.explain.flow_paths import FlowPath, told_paths
from graph.explain.flows import EdgeFacts, Subgraph, Visible, choose_subgraph, visible_part
from graph.storage.workspace import resolve_workspace, write_atomically
from workflows.context import Context
from workflows.explanation.assembly import Assembly, NodeNames
from workflows.explanation.finished_run import Answered, ComparedWalks, compare_walks, open_answered
from workflows.explanation.graphml import to_graphml
from workflows.explanation.model import Citation, Explanation, Models, ShownFact, WalkedBy
from workflows.runs.run_folder import check_outside
from workflows.states.conversion import facts_of

DEFAULT_NODES = 60
LEAST_NODES, MOST_NODES = 2, 2000

_LONGEST_NAME = 240
"""Bytes of a file's name: the disk's 255 less what stands before and behind it while it is written."""

_NO_WALK = ComparedWalks(None, (), ())


def explain(result: Mapping[str, Any], context: Context, *, max_nodes: int = DEFAULT_NODES) -> Explanation:
    """Explain an answer: walk again as the run did, with less and less of its β, and tell what carried the mass.

    Args:
        result: what `workflows.ask.ask`, or a workflow's ``invoke``, returned.
        context: what the question was asked with.
        max_nodes: how many nodes are shown, 2 to 2000. The returned passages, the entity seeds and the nodes of the
            best paths are shown in any case.

    Raises:
        BadInput: the result is none of a run, is of another context or filter, or its generation is gone; or
            ``max_nodes`` is out of range.
        WorkspaceDamaged: the workspace cannot be read.
    """
    if not LEAST_NODES <= max_nodes <= MOST_NODES:
        raise BadInput(f"An explanation cannot show {max_nodes} nodes", f"Choose from {LEAST_NODES} to {MOST_NODES}")
    refresh_environment()
    answered = open_answered(result, context)
    walks = compare_walks(answered) if answered.walked else _NO_WALK
    graph = answered.index.graph
    facts = EdgeFacts(graph, answered.selection)
    visible = visible_part(graph, answered.selection, facts)
    paths = _paths(answered, walks, visible)
    assembly = Assembly(
        names=NodeNames(graph, answered.selection, visible.nodes, answered.numbers),
        facts=facts,
        visible=visible,
        subgraph=_subgraph(answered, walks, visible, paths, max_nodes),
        flows=walks.flows,
    )
    return _explanation(answered, walks, assembly, paths)


def write_explanation(explanation: Explanation, path: Path) -> None:
    """Write an explanation into a file: a page (.html), JSON (.json) or the graph alone (.graphml).

    Raises:
        BadInput: the file's name ends otherwise, or it cannot be written.
    """
    check_target(path)
    try:
        write_atomically(path.resolve(), _WRITERS[path.suffix.lower()](explanation))
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or fault
        raise BadInput(f"{path} cannot be written ({reason})", "Name another file") from fault


def check_target(path: Path) -> None:
    """Raise BadInput if no explanation can be written into that file: for its ending, or its folder."""
    if path.suffix.lower() not in _WRITERS:
        raise BadInput(f"An explanation cannot be written as {path.name}", f"End the name in {', '.join(_WRITERS)}")
    place = path.resolve()
    if (place.exists() and not place.is_file()) or not os.access(place.parent, os.W_OK):
        raise BadInput(f"{path} cannot be written", "Name a file in a folder that is there and may be written")
    check_outside(place)
    if len(os.fsencode(place.name)) > _LONGEST_NAME:
        raise BadInput(f"The name of {place.name[:40]}… is too long", f"Use {_LONGEST_NAME} bytes at most")


def _page(explanation: Explanation) -> str:
    from workflows.explanation.page import render_page

    return render_page(explanation.to_json())


def _json(explanation: Explanation) -> str:
    return json.dumps(explanation.to_json(), indent=1) + "\n"


_WRITERS: Mapping[str, Callable[[Explanation], str]] = {".html": _page, ".json": _json, ".graphml": to_graphml}


def _paths(answered: Answered, walks: ComparedWalks, visible: Visible) -> list[FlowPath]:
    """Return the paths that are told: to the cited passages, or to the best passage where nothing is cited."""
    if not walks.flows:
        return []
    cited = list(answered.numbers) or [hit["id"] for hit in answered.result["passages"][:1]]
    found = told_paths(walks.flows[-1], _nodes_of(answered, cited), visible.edges, visible.nodes)
    return [path for paths in found for path in paths]


def _subgraph(
    answered: Answered, walks: ComparedWalks, visible: Visible, paths: Sequence[FlowPath], max_nodes: int
) -> Subgraph:
    returned = _nodes_of(answered, [*answered.numbers, *(hit["id"] for hit in answered.result["passages"])])
    if not walks.flows:
        return Subgraph(tuple(dict.fromkeys(returned)), ())
    graph = answered.index.graph
    seeds = [graph.entity_index[seed["id"]] for seed in (answered.result.get("seeds") or {}).get("entities", [])]
    on_paths = [node for path in paths for node in (path.seed, *(step.target for step in path.steps))]
    steps = [step.edge for path in paths for step in path.steps]
    return choose_subgraph(walks.flows, visible, [*returned, *seeds, *on_paths], steps, max_nodes)


def _nodes_of(answered: Answered, passage_ids: Sequence[str]) -> list[int]:
    graph = answered.index.graph
    return [graph.n_entities + graph.passage_index[key] for key in passage_ids]


def _explanation(
    answered: Answered, walks: ComparedWalks, assembly: Assembly, paths: Sequence[FlowPath]
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
        models=Models(**{key: str(result["models"].get(key, "")) for key in ("chat", "embedding", "store")}),
        citations=tuple(
            Citation(mark["number"], mark["passage_id"], mark["start"], mark["end"])
            for mark in result.get("citations") or []
        ),
        facts=tuple(_facts(answered)),
        fact_outcome=result.get("fact_outcome") or "",
        beta=walks.beta,
        passage_weight=result.get("passage_weight") if answered.walked else None,
        damping=answered.damping if answered.walked else None,
        stops=walks.stops,
        nodes=assembly.nodes(),
        edges=assembly.edges(),
        paths=tuple(assembly.path(path) for path in paths),
        shown=assembly.shown(),
        walk=WalkedBy(report["engine"], report["error"]) if report else None,
        own_relations={str(name): told for name, told in answered.index.graph.own.definitions.items()},
    )


def _facts(answered: Answered) -> Iterator[ShownFact]:
    """Return the candidate facts of the result, spelled as the filter lets them be seen."""
    hits = answered.result.get("facts") or []
    found = facts_of(hits, answered.index, answered.selection)
    for hit, (known, score) in zip(hits, found, strict=True):
        fact = known.fact
        yield ShownFact(fact.subject, fact.predicate, fact.object, fact.relation.value, score, hit["kept"])
