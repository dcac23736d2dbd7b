"""From indices and flows to the nodes, with their names, edges and paths of an explanation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph
from graph.explain.flow_paths import FlowPath, FlowStep
from graph.explain.flows import EdgeFacts, Flows, Subgraph, Visible
from graph.relationships.exchange import Element, graphml
from graph.retrieve.selection import Selection
from graph.schema import Passage, entity_id
from workflows.explanation.model import Edge, Explanation, Node, Path, Shown, Step

TEXT_LENGTH = 600
"""Characters of a passage that are shown."""

SHOWN_PREDICATES = 3
"""Different predicates an edge."""


@dataclass(frozen=True, eq=False)
class Assembly:
    """The sources of the parts of an explanation.

    Attributes:
        names: of the nodes.
        facts: of the edges.
        visible: what may be shown.
        subgraph: what is.
        flows: of the walks that are compared, the run's own last; none without a walk.
    """

    names: NodeNames
    facts: EdgeFacts
    visible: Visible
    subgraph: Subgraph
    flows: tuple[Flows, ...]

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes that are shown."""
        others = np.ones(len(self.visible.edges), dtype=bool)
        others[list(self.subgraph.edges)] = False
        hidden = [flow.inflow_over(np.flatnonzero(others)) for flow in self.flows]
        ranks = [_ranks(flow.scores, self.visible.nodes, self.names.graph.n_entities) for flow in self.flows]
        return tuple(self._node(node, hidden, ranks) for node in self.subgraph.nodes)

    def edges(self) -> tuple[Edge, ...]:
        """Return the edges that are shown."""
        return tuple(self._edge(edge) for edge in self.subgraph.edges)

    def path(self, found: FlowPath) -> Path:
        """Return a path along edges that are shown."""
        steps = tuple(self._step(step) for step in found.steps)
        nodes = [found.seed, *(step.target for step in found.steps)]
        return Path(
            passage=self.names.key(found.node),
            number=self.names.number(found.node),
            seed=self.names.key(found.seed),
            mass=found.mass,
            steps=steps,
            words=path_in_words(self.names, nodes, steps),
        )

    def shown(self) -> Shown:
        """Return how much of what may be seen is shown."""
        return Shown(
            nodes=len(self.subgraph.nodes),
            of_nodes=int(self.visible.nodes.sum()),
            edges=len(self.subgraph.edges),
            of_edges=int(self.visible.edges.sum()),
            inflow=self._shown_inflow(),
        )

    def _node(self, node: int, hidden: list[NDArray[np.float64]], ranks: list[Mapping[int, int]]) -> Node:
        passage = self.names.passage(node)
        return Node(
            id=self.names.key(node),
            kind="passage" if passage else "entity",
            ref=self.names.ref(node),
            label=self.names.label(node),
            text=passage.text[:TEXT_LENGTH] if passage else "",
            source=passage.source if passage else "",
            number=self.names.number(node),
            rank=tuple(rank[node] for rank in ranks) if passage else None,
            mass=tuple(flow.scores.item(node) for flow in self.flows),
            restart=tuple(flow.restart.item(node) for flow in self.flows),
            hidden=tuple(inflow.item(node) for inflow in hidden),
            type=self.names.entity_type(node),
        )

    def _edge(self, edge: int) -> Edge:
        graph, facts = self.flows[-1].graph, self.facts.of(edge)
        kind = graph.kinds[graph.kind.item(edge)]
        ends = [self.names.key(graph.source.item(edge)), self.names.key(graph.target.item(edge))]
        carried = [tuple(f.forward.item(edge) for f in self.flows), tuple(f.backward.item(edge) for f in self.flows)]
        if facts and facts[0].subject == graph.target.item(edge):
            ends.reverse()
            carried.reverse()
        return Edge(
            id=self._edge_keys[edge],
            source=ends[0],
            target=ends[1],
            relation=kind.relation.value,
            link=kind.link.value if kind.link else None,
            weight=graph.weight.item(edge),
            predicates=tuple(dict.fromkeys(fact.fact.predicate for fact in facts))[:SHOWN_PREDICATES],
            forward=carried[0],
            backward=carried[1],
        )

    def _step(self, step: FlowStep) -> Step:
        facts = self.facts.of(step.edge)
        along = next((fact for fact in facts if fact.subject == step.source), None)
        told: GraphFact | None = along or next(iter(facts), None)
        return Step(
            from_node=self.names.key(step.source),
            to=self.names.key(step.target),
            edge=self._edge_keys[step.edge],
            predicate=told.fact.predicate if told else "",
            relation=self.flows[-1].graph.kinds[self.flows[-1].graph.kind.item(step.edge)].relation.value,
            reversed=told is not None and along is None,
            share=step.share,
        )

    def _shown_inflow(self) -> float:
        passages = [node for node in self.subgraph.nodes if node >= self.names.graph.n_entities]
        if not self.flows or not (total := float(self.flows[-1].inflow[passages].sum())):
            return 1.0
        over_shown = self.flows[-1].inflow_over(np.array(self.subgraph.edges, dtype=np.intp))
        return float(over_shown[passages].sum()) / total

    @cached_property
    def _edge_keys(self) -> Mapping[int, str]:
        return {edge: f"x{number}" for number, edge in enumerate(self.subgraph.edges)}


def _ranks(scores: NDArray[np.float64], visible: NDArray[np.bool_], first_passage: int) -> Mapping[int, int]:
    """Return the rank of every visible passage, from 1, ties by index."""
    passages = first_passage + np.flatnonzero(visible[first_passage:])
    order = passages[np.argsort(-scores[passages], kind="stable")]
    return {node: rank for rank, node in enumerate(order.tolist(), start=1)}


@dataclass(frozen=True, eq=False)
class NodeNames:
    """Names nodes by their indices in the graph, as the run's filter lets them be seen.

    Attributes:
        visible: which nodes may be seen.
        numbers: of the cited passages, by their ids.
    """

    graph: KnowledgeGraph
    selection: Selection | None
    visible: NDArray[np.bool_]
    numbers: Mapping[str, int]

    @cached_property
    def _place(self) -> NDArray[np.intp]:
        """The places of nodes among what may be seen: one in the whole graph would tell how much is hidden."""
        is_passage = np.arange(self.graph.n_nodes) >= self.graph.n_entities
        return np.where(is_passage, np.cumsum(self.visible & is_passage), np.cumsum(self.visible & ~is_passage)) - 1

    def key(self, node: int) -> str:
        """Return the node's id in the explanation."""
        return f"{'e' if node < self.graph.n_entities else 'p'}{self._place[node]}"

    def passage(self, node: int) -> Passage | None:
        """Return the node's passage; None for entities."""
        entities = self.graph.n_entities
        return self.graph.passages[node - entities] if node >= entities else None

    def ref(self, node: int) -> str:
        """Return the id of the entity or passage."""
        passage = self.passage(node)
        return passage.id if passage else entity_id(self.graph.entity_names[node])

    def label(self, node: int) -> str:
        """Return the entity's name, or the passage's title (its id, where it has none)."""
        passage = self.passage(node)
        if passage:
            return passage.title or passage.id
        return self.graph.entity_labels[node] if self.selection is None else self.selection.label(node)

    def entity_type(self, node: int) -> str:
        """Return an entity's own type; empty without one, and under a filter: hidden passages may have given it."""
        return (self.graph.entity_type(node) or "") if self.selection is None else ""

    def number(self, node: int) -> int | None:
        """Return a cited passage's number in the answer."""
        passage = self.passage(node)
        return self.numbers.get(passage.id) if passage else None

    def spoken(self, node: int) -> str:
        """Return the node as it stands in a sentence, on one line."""
        label, number = " ".join(self.label(node).split()), self.number(node)
        if self.passage(node) is None:
            return label
        return f"passage {label}" if number is None else f"passage [{number}] {label}"


def path_in_words(names: NodeNames, nodes: Sequence[int], steps: Sequence[Step]) -> str:
    """Return a path on one line; a step against its fact's direction has its arrow turned."""
    if not steps:
        return f"the question's words lead straight to {names.spoken(nodes[0])}"
    words = [names.spoken(nodes[0])]
    for node, step in zip(nodes[1:], steps, strict=True):
        predicate, share = " ".join(step.predicate.split()), f"{step.share:.2g}"
        told = f"{predicate} ({step.relation}, {share})" if predicate else f"{step.relation} ({share})"
        words.append(f"←{told}—" if step.reversed else f"—{told}→")
        words.append(names.spoken(node))
    return " ".join(words)


_KEYS = {
    "node": {
        **dict.fromkeys(("kind", "label", "ref", "type"), "string"),
        **dict.fromkeys(("mass", "restart"), "double"),
        "number": "int",
    },
    "edge": {
        **dict.fromkeys(("relation", "link", "predicates"), "string"),
        **dict.fromkeys(("weight", "forward", "backward"), "double"),
    },
}


def to_graphml(explanation: Explanation) -> str:
    """Return the nodes and edges with their numbers at the run's own stop; what one does not have is left out."""
    return "".join(graphml("explanation", _KEYS, _elements(explanation)))


def _elements(explanation: Explanation) -> Iterator[Element]:
    for node in explanation.nodes:
        values = {"kind": node.kind, "label": node.label, "ref": node.ref, "type": node.type or None}
        yield (
            "node",
            {"id": node.id},
            {**values, **_numbers(mass=node.mass, restart=node.restart), "number": node.number},
        )
    for edge in explanation.edges:
        values = {"relation": edge.relation, "link": edge.link, "predicates": "; ".join(edge.predicates) or None}
        flows = _numbers(forward=edge.forward, backward=edge.backward)
        ends = {"id": edge.id, "source": edge.source, "target": edge.target}
        yield "edge", ends, {**values, "weight": edge.weight, **flows}


def _numbers(**by_stop: Sequence[float]) -> dict[str, float | None]:
    return {name: values[-1] if values else None for name, values in by_stop.items()}
