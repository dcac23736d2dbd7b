"""What edges carry: every bit of a walk's mass is accounted for, whatever the factors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.edges import EDGE_KINDS, EdgeKind, TypedGraph
from graph.explain.flows import EDGES_PER_NODE, EdgeFacts, Flows, Visible, choose_subgraph, visible_part
from graph.retrieve.open_index import Index, open_index
from graph.retrieve.selection import Selection
from graph.schema import RelationType, entity_id
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace, typed_graph
from tests.random_walks import Given, walked, walks
from tests.walking import CAUSAL, MENTION, NEUTRAL, TEMPORAL

EXACT = 1e-8

some = settings(max_examples=20)


def edges_of(*edges: tuple[int, int, EdgeKind, float]) -> TypedGraph:
    """Two entities (0, 1) and two passages (2, 3)."""
    return typed_graph(2, 2, list(edges)).typed


def check_all_is_accounted_for(flows: Flows) -> None:
    graph = flows.graph
    inflow = flows.inflow_over(np.arange(len(graph)))
    assert flows.scores == pytest.approx(flows.restart + inflow, abs=EXACT)
    leaving = np.bincount(graph.source, flows.forward, graph.n_nodes)
    leaving += np.bincount(graph.target, flows.backward, graph.n_nodes)
    walks_on = leaving > 0
    assert leaving[walks_on] == pytest.approx(flows.damping * flows.scores[walks_on], abs=EXACT)
    assert flows.restart.sum() + inflow.sum() == pytest.approx(1, abs=EXACT)


class TestAnyWalk:
    @some
    @given(st.data(), walks())
    def test_what_some_edges_and_the_others_carry_is_the_inflow(self, data: st.DataObject, given_walk: Given) -> None:
        flows = walked(*given_walk)
        check_all_is_accounted_for(flows)
        some_edges = np.array([data.draw(st.booleans()) for _ in range(len(flows.graph))], dtype=bool)
        parts = [flows.inflow_over(np.flatnonzero(part)) for part in (some_edges, ~some_edges)]
        assert flows.scores - flows.restart == pytest.approx(parts[0] + parts[1], abs=EXACT)


class TestOneWalk:
    def test_an_edge_carries_its_share_of_what_walks_on(self) -> None:
        graph = edges_of((0, 1, TEMPORAL, 3.0), (0, 2, MENTION, 1.0))
        flows = walked(graph, np.array([1.0, 0, 0, 0]), NEUTRAL, 0.5)
        assert flows.forward_share.tolist() == [0.75, 0.25]
        assert flows.backward_share.tolist() == [1.0, 1.0]
        assert flows.forward == pytest.approx(0.5 * flows.scores[0] * np.array([0.75, 0.25]))
        assert flows.backward == pytest.approx(0.5 * flows.scores[[1, 2]])


SPATIAL = RelationType.SPATIAL
SHARED: TripleParts = ("Velm", "flows into", "Lake Sund", SPATIAL)
TRIPLES: dict[str, list[TripleParts]] = {
    "open-1": [SHARED, ("Velm", "ends in", "Lake Sund", SPATIAL), ("Velm", "floods", "Marn")],
    "open-2": [SHARED, ("Lake Sund", "feeds", "Velm", SPATIAL), ("Velm", "is", "Velm")],
    "closed": [
        ("VELM", "flows into", "LAKE SUND", SPATIAL),
        ("Velm", "drowned", "Lake Sund", RelationType.CAUSALITY),
        ("Velm", "hides", "Karv"),
    ],
}
PASSAGES = [passage_of(key, "", f"Tale of {key}.") for key in TRIPLES]


def all_of(graph: TypedGraph) -> Visible:
    return Visible(np.ones(graph.n_nodes, dtype=bool), np.ones(len(graph), dtype=bool))


def star() -> Flows:
    """Entity 0 between passage 5 and the entities 1 to 4, each nearer than the next."""
    edges: list[tuple[int, int, EdgeKind, float]] = [(0, other, TEMPORAL, 5.0 - other) for other in range(1, 5)]
    restart = np.array([1.0, 0, 0, 0, 0, 0])
    return walked(typed_graph(5, 1, [*edges, (0, 5, MENTION, 1.0)]).typed, restart, NEUTRAL, 0.7)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    place = tmp_path_factory.mktemp("facts") / "workspace"
    opened = open_index(publish_workspace(place, PASSAGES, TRIPLES).root, HashEmbedder())
    yield opened
    opened.close()


def edge_between(index: Index, one: str, other: str, relation: RelationType) -> int:
    edges, place = index.graph.edges, index.graph.entity_index
    low, high = sorted((place[entity_id(one)], place[entity_id(other)]))
    rows = np.flatnonzero((edges.source == low) & (edges.target == high)).tolist()
    [row] = [row for row in rows if EDGE_KINDS[edges.kind[row]].relation == relation]
    return int(row)


class TestChosen:
    def test_first_comes_what_must_be_shown_then_the_nodes_that_send_most_mass_into_it(self) -> None:
        flows = star()
        visible = all_of(flows.graph)
        assert choose_subgraph([flows], visible, [5, 4, 3, 5], [], 2).nodes == (5, 4, 3), "even beyond the limit"
        assert choose_subgraph([flows], visible, [5], [], 4).nodes == (5, 0, 1, 2)
        visible.nodes[1] = False
        visible.edges[flows.graph.target == 1] = False
        assert choose_subgraph([flows], visible, [5], [], 99).nodes == (5, 0, 2, 3, 4), "one may not be named"

    def test_edges_come_the_one_that_carries_most_first_and_stop_where_they_would_hide_each_other(self) -> None:
        pairs = [(a, b, kind, 1.0 + a) for a in range(4) for b in range(a + 1, 4) for kind in (TEMPORAL, CAUSAL)]
        kinds = (EdgeKind(RelationType.SPATIAL), EdgeKind(RelationType.ATTRIBUTION))
        more = [(a, b, kind, 0.1) for a in range(4) for b in range(a + 1, 4) for kind in kinds]
        flows = walked(typed_graph(4, 1, pairs + more).typed, np.array([1.0, 0, 0, 0, 0]), NEUTRAL, 0.7)
        edges = choose_subgraph([flows], all_of(flows.graph), range(4), [], 4).edges
        carried = flows.forward + flows.backward
        assert len(edges) == 4 * EDGES_PER_NODE
        assert [*carried[list(edges)]] == sorted(carried, reverse=True)[: len(edges)]

    def test_an_edge_of_a_path_is_shown_however_little_it_carries(self) -> None:
        pairs = [(a, b, kind, 1.0) for a in range(4) for b in range(a + 1, 4) for kind in (TEMPORAL, CAUSAL)]
        faint = EdgeKind(RelationType.SPATIAL)
        flows = walked(
            typed_graph(4, 1, [*pairs, (2, 3, faint, 1e-6)]).typed, np.array([1.0, 0, 0, 0, 0]), NEUTRAL, 0.7
        )
        [row] = np.flatnonzero(flows.graph.weight < 1e-5).tolist()
        assert row not in choose_subgraph([flows], all_of(flows.graph), range(4), [], 4).edges
        assert row in choose_subgraph([flows], all_of(flows.graph), range(4), [row], 4).edges

    @settings(max_examples=25)
    @given(st.data(), walks(), st.integers(2, 8))
    def test_for_each_shown_passage_what_starts_there_and_shown_and_hidden_inflow_make_up_its_mass(
        self, data: st.DataObject, given_walk: Given, limit: int
    ) -> None:
        flows = walked(*given_walk)
        graph = flows.graph
        visible = all_of(graph)
        visible.edges[:] = [data.draw(st.booleans()) for _ in range(len(graph))]
        must = [data.draw(st.integers(0, graph.n_nodes - 1))]
        chosen = choose_subgraph([flows], visible, must, [], limit)
        shown = np.isin(np.arange(len(graph)), chosen.edges)
        parts = [flows.inflow_over(np.flatnonzero(part)) for part in (shown, ~shown)]
        for node in chosen.nodes:
            assert flows.scores[node] == pytest.approx(flows.restart[node] + parts[0][node] + parts[1][node], abs=1e-8)
        assert len(chosen.nodes) <= limit
        assert set(graph.source[shown]) | set(graph.target[shown]) <= set(chosen.nodes)
        assert visible.edges[shown].all()


class TestFactsOfEdges:
    def test_an_edge_has_its_facts_whichever_way_they_go_those_of_most_passages_first(self, index: Index) -> None:
        facts = EdgeFacts(index.graph).of(edge_between(index, "Velm", "Lake Sund", SPATIAL))
        statements = [(fact.fact.subject, fact.fact.predicate, len(fact.passages)) for fact in facts]
        assert statements[0][1:] == ("flows into", 3)
        assert sorted(statements[1:]) == [("Lake Sund", "feeds", 1), ("Velm", "ends in", 1)]


class TestVisible:
    @pytest.fixture
    def selection(self, index: Index) -> Selection:
        return Selection.of(index.graph, index.graph.passages_of(["open-1", "open-2"]))

    def test_only_what_a_selected_passage_holds_is(self, index: Index, selection: Selection) -> None:
        graph = index.graph
        everything = visible_part(graph, None, EdgeFacts(graph))
        assert everything.nodes.all()
        assert everything.edges.all()
        visible = visible_part(graph, selection, EdgeFacts(graph, selection))
        hidden = np.flatnonzero(~visible.nodes).tolist()
        closed = graph.n_entities + graph.passage_index["closed"]
        assert [*map(graph.entity_names.__getitem__, hidden[:-1]), hidden[-1]] == ["karv", closed]
        assert not visible.edges[graph.edges.target == closed].any()

    def test_an_edge_that_only_a_hidden_passage_states_is_not(self, index: Index, selection: Selection) -> None:
        visible = visible_part(index.graph, selection, EdgeFacts(index.graph, selection))
        assert visible.edges[edge_between(index, "Velm", "Lake Sund", SPATIAL)]
        assert not visible.edges[edge_between(index, "Velm", "Lake Sund", RelationType.CAUSALITY)]
        assert not visible.edges[edge_between(index, "Velm", "Karv", RelationType.ATTRIBUTION)]

    def test_facts_are_spelled_and_counted_as_the_filter_lets_them(self, index: Index, selection: Selection) -> None:
        facts = EdgeFacts(index.graph, selection).of(edge_between(index, "Velm", "Lake Sund", SPATIAL))
        assert (facts[0].fact.subject, len(facts[0].passages)) == ("velm", 2)
        assert {fact.fact.predicate for fact in facts} == {"flows into", "feeds", "ends in"}
