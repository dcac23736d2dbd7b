"""The best paths from seeds to passages: found exactly, told step by step."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.edges import EDGE_KINDS
from graph.explain.flow_paths import FAINTEST, FlowPath, told_paths
from graph.explain.flows import Flows
from graph.schema import ENTITY_RELATIONS
from tests.random_walks import Given, walked, walks
from tests.small_flows import A, B, C, P, Q, best_paths, flows_from, nodes_of
from tests.walking import MENTION, TEMPORAL

Arcs = dict[int, list[tuple[int, float, bool]]]


def arcs_of(flows: Flows) -> Arcs:
    """Return {node: (a neighbour, the share that goes there, whether a fact leads there)}."""
    graph, arcs = flows.graph, defaultdict[int, list[tuple[int, float, bool]]](list)
    for edge in range(len(graph)):
        source, target, fact = graph.source.item(edge), graph.target.item(edge), is_fact(flows, edge)
        arcs[source].append((target, flows.forward_share.item(edge), fact))
        arcs[target].append((source, flows.backward_share.item(edge), fact))
    return arcs


def brute_force(flows: Flows, node: int, *, over_fact: bool = False) -> list[float]:
    """Return the most mass that a path without a cycle brings from each seed to a node, by going all ways there are."""
    arcs = arcs_of(flows)

    def most(here: int, seen: frozenset[int], fact: bool) -> float:
        if here == node:
            return 1.0 if fact or not over_fact else 0.0
        onward = [arc for arc in arcs[here] if arc[0] not in seen and arc[1]]
        brought = (flows.damping * share * most(there, seen | {there}, fact or new) for there, share, new in onward)
        return max(brought, default=0.0)

    seeds = np.flatnonzero(flows.restart).tolist()
    return [flows.restart.item(seed) * most(seed, frozenset({seed}), False) for seed in seeds]


def is_fact(flows: Flows, edge: int) -> bool:
    return EDGE_KINDS[flows.graph.kind.item(edge)].relation in ENTITY_RELATIONS


def over_facts(flows: Flows, path: FlowPath) -> bool:
    return any(is_fact(flows, step.edge) for step in path.steps)


class TestBestPaths:
    def test_a_path_brings_what_starts_at_its_seed_times_damping_and_share_of_every_step(self) -> None:
        flows = flows_from({A: 1.0}, (A, B, TEMPORAL, 3.0), (A, Q, MENTION, 1.0), (B, P, MENTION, 1.0))
        [[path]] = best_paths(flows, [P])
        assert nodes_of(path) == [A, B, P]
        assert [step.share for step in path.steps] == [0.75, 0.25]
        assert path.mass == pytest.approx(flows.restart[A] * 0.5 * 0.75 * 0.5 * 0.25)

    def test_paths_of_next_to_nothing_and_of_nothing_are_left_out(self) -> None:
        flows = flows_from({A: 1.0, B: FAINTEST / 2}, (A, P, MENTION, 1.0), (B, P, MENTION, 1.0))
        [[path]] = best_paths(flows, [P])
        assert path.seed == A
        still = flows_from({A: 1.0, Q: 1.0}, (A, P, MENTION, 1.0), (A, Q, MENTION, 1.0), damping=0.0)
        to_p, to_q = best_paths(still, [P, Q])
        assert (to_p, [path.steps for path in to_q]) == ([], [()])
        assert best_paths(flows_from({A: 1.0}), [P]) == [[]]

    @settings(max_examples=30)
    @given(st.data(), walks())
    def test_no_path_without_a_cycle_brings_more(self, data: st.DataObject, given_walk: Given) -> None:
        flows = walked(*given_walk)
        node = data.draw(st.integers(flows.graph.n_entities, flows.graph.n_nodes - 1))
        [paths] = best_paths(flows, [node])
        best = sorted(filter(None, brute_force(flows, node)), reverse=True)
        masses = [mass for mass in best if mass >= FAINTEST * best[0] * (1 + 1e-9)][:3]
        assert [path.mass for path in paths][: len(masses)] == pytest.approx(masses)
        for path in paths:
            assert all(step.source == node for step, node in zip(path.steps, nodes_of(path), strict=False))
            assert len(set(nodes_of(path))) == len(nodes_of(path))
            for step, (here, there) in zip(path.steps, pairwise(nodes_of(path)), strict=True):
                assert {flows.graph.source.item(step.edge), flows.graph.target.item(step.edge)} == {here, there}


class TestToldPaths:
    def test_a_path_by_a_fact_stands_last_however_little_it_brings(self) -> None:
        flows = flows_from({A: 1.0}, (A, P, MENTION, 1.0), (A, B, TEMPORAL, 1e-6), (B, P, MENTION, 1.0))
        [[best, shown]] = told_paths(flows, [P])
        assert (nodes_of(best), nodes_of(shown)) == ([A, P], [A, B, P])
        assert shown.mass == pytest.approx(flows.restart[A] * 0.5 * 1e-6 * 0.5, rel=1e-3)

    def test_it_takes_no_edge_and_starts_at_no_seed_that_is_ruled_out(self) -> None:
        edges = [(A, P, MENTION, 5.0), (C, P, MENTION, 5.0), (A, B, TEMPORAL, 1.0), (B, P, MENTION, 1.0)]
        flows = flows_from({A: 1.0, C: 1.0}, *edges)
        fact = flows.graph.kind == EDGE_KINDS.index(TEMPORAL)
        assert [len(paths) for paths in told_paths(flows, [P])] == [3]
        assert [over_facts(flows, path) for path in told_paths(flows, [P], edges=~fact)[0]] == [False, False]
        assert [nodes_of(path) for path in told_paths(flows, [P], seeds=np.arange(5) == C)[0]] == [[C, P]]

    @settings(max_examples=30)
    @given(st.data(), walks())
    def test_it_comes_by_a_fact_and_visits_no_node_twice(self, data: st.DataObject, given_walk: Given) -> None:
        flows = walked(*given_walk)
        node = data.draw(st.integers(flows.graph.n_entities, flows.graph.n_nodes - 1))
        [paths], [best] = told_paths(flows, [node]), best_paths(flows, [node])
        assert paths[: len(best)] == best
        most = max(brute_force(flows, node, over_fact=True))
        for shown in paths[len(best) :]:
            assert not any(over_facts(flows, path) for path in best)
            assert shown.node == node
            assert is_fact(flows, shown.steps[-2].edge)
            assert shown.mass <= most * (1 + 1e-9)
            assert len(set(nodes_of(shown))) == len(nodes_of(shown))
