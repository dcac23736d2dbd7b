"""The walks that an explanation compares: the run's own, and the same with less of its β, down to none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from graph.errors import BadInput
from graph.explain.flows import Flows, flows_of
from graph.retrieve.search import factors_for, restart_of, walked_graph
from graph.schema import RelationFactors
from graph.storage.workspace import resolve_workspace
from graph.walk.factors import EdgeFactors, FactorPolicy
from graph.walk.pagerank import Engine, walk
from graph.walk.strengths import UNTUNED, tuned, workspace_tuning
from workflows.explanation.finished_run import Answered
from workflows.explanation.model import Stop
from workflows.states.conversion import beta_of, seeds_of
from workflows.states.shared import State

WITHOUT, WITH, AS_WALKED = "without β", "with β", "as walked"

_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
_TOLERANCE = 1e-3
"""The relative tolerance for a score, beside the run's error: an endpoint's vectors vary a little."""


@dataclass(frozen=True, eq=False)
class ComparedWalks:
    """Some walks from the same seeds.

    Attributes:
        beta: what they differ in; None where the run had none.
        stops: what each is, the run's own last.
        flows: of each.
    """

    beta: RelationFactors | None
    stops: tuple[Stop, ...]
    flows: tuple[Flows, ...]


def compare_walks(answered: Answered) -> ComparedWalks:
    """Walk from the run's seeds, with all of its β and with less, each walk solved by PRPACK.

    Under the policy neutral, λ is scaled; under the others, which know no λ, β is in or out.

    Raises:
        BadInput: the walk does not give the run's scores: it had other settings.
    """
    settings, graph = answered.settings, answered.index.graph
    state = cast(State, answered.result)
    beta = beta_of(state) if settings.beta else None
    restart = restart_of(graph, seeds_of(answered.index, state, settings, answered.selection))
    typed = walked_graph(graph, settings)
    stops = _stops(answered, beta)
    damping = answered.damping

    def flows(stop: Stop) -> Flows:
        factors = _factors(answered, beta, stop)
        found = walk(typed, restart, factors, damping, Engine.IGRAPH)
        return flows_of(typed, found.scores, restart.dense(), factors, damping)

    walked = tuple(flows(stop) for stop in stops)
    _check_scores(answered, walked[-1])
    return ComparedWalks(beta, stops, walked)


def _stops(answered: Answered, beta: RelationFactors | None) -> tuple[Stop, ...]:
    settings = answered.settings
    neutral = settings.policy is FactorPolicy.NEUTRAL
    if beta is None or (neutral and not settings.relation_strength):
        return (Stop(1.0, AS_WALKED),)
    strengths = _QUARTERS if neutral else (0.0, 1.0)
    labels = {0.0: WITHOUT, 1.0: WITH}
    return tuple(
        Stop(strength, labels.get(strength, f"{strength:.0%} of β".replace("%", " %"))) for strength in strengths
    )


def _factors(answered: Answered, beta: RelationFactors | None, stop: Stop) -> EdgeFactors:
    settings = answered.settings
    scaled = replace(settings, relation_strength=settings.relation_strength * stop.strength)
    version = answered.result.get("tuning")
    tuning = workspace_tuning(resolve_workspace(answered.context.workspace), version) if version else UNTUNED
    own = answered.index.graph.own.relation_types
    return tuned(factors_for(beta if stop.strength else None, scaled, own), tuning, own)


def _check_scores(answered: Answered, flows: Flows) -> None:
    graph, report = answered.index.graph, answered.result.get("walk") or {}
    hits = [hit for hit in answered.result["passages"] if "follow_up" not in hit]
    given = np.array([hit["score"] for hit in hits], dtype=np.float64)
    scores = flows.scores[[graph.n_entities + graph.passage_index[hit["id"]] for hit in hits]]
    if (np.abs(given - scores) > report.get("error", 0.0) + _TOLERANCE * scores).any():
        raise BadInput(
            "The walk does not lead to the result's scores: it was made with other settings",
            "Give the context that the question was asked with",
        )
