"""The data of an explanation, from indices and flows: plain values, as the page draws them and as JSON gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph
from graph.explain.flow_paths import FlowPath, FlowStep
from graph.explain.flows import EdgeFacts, Flows, Subgraph, Visible
from graph.retrieve.selection import Selection
from graph.schema import Passage, RelationFactors, entity_id
from workflows.states.records import CitationMark

DIGITS = 10
"""Significant digits of a number in JSON."""

NodeKind = Literal["entity", "passage"]


@dataclass(frozen=True, slots=True)
class Node:
    """An entity or a passage that is shown.

    Attributes:
        id: "e" or "p" and a number: the node's among all that may be seen.
        ref: the entity's or passage's own id.
        label: the entity's name, or the passage's title (its id, where it has none).
        text: the beginning of a passage; empty for entities.
        source: where a passage comes from; empty for entities.
        number: a cited passage's number in the answer.
        rank: a passage's rank among all that may be seen, from 1, at each stop; None for entities.
        mass: PageRank at each stop.
        restart: what of it starts here.
        hidden: what of it came in over edges that are not shown.
        type: an entity's own type; empty without one, and where a filter hides what it may rest on.
    """

    id: str
    kind: NodeKind
    ref: str
    label: str
    text: str
    source: str
    number: int | None
    rank: tuple[int, ...] | None
    mass: tuple[float, ...]
    restart: tuple[float, ...]
    hidden: tuple[float, ...]
    type: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge that is shown; one of facts goes from the subject to the object of the first of its predicates.

    Attributes:
        id: "x" and a number.
        source: a node's id.
        target: a node's id.
        relation: the relation type.
        link: how the entity stands to the passage; None between entities.
        weight: what the graph gives it, before any factor.
        predicates: of its facts, those that most passages hold first; three at most.
        forward: the mass that it carries from source to target, at each stop.
        backward: the same from target to source.
    """

    id: str
    source: str
    target: str
    relation: str
    link: str | None
    weight: float
    predicates: tuple[str, ...]
    forward: tuple[float, ...]
    backward: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path.

    Attributes:
        from_node: a node's id; "from" in JSON.
        to: a node's id.
        edge: the edge's id.
        predicate: of a fact of the edge; empty where it has none.
        relation: the relation type.
        reversed: whether the step goes from the fact's object to its subject.
        share: of the mass that walks on from the node, the part that takes this edge.
    """

    from_node: str
    to: str
    edge: str
    predicate: str
    relation: str
    reversed: bool
    share: float


@dataclass(frozen=True, slots=True)
class Path:
    """A best path from a seed to a passage, at the run's own stop.

    Attributes:
        passage: the node's id.
        number: the passage's number in the answer.
        seed: the node's id; the passage's own for a path without steps.
        mass: the passage's mass that started at the seed and came along exactly these edges.
        steps: from the seed to the passage.
        words: the path on one line.
    """

    passage: str
    number: int | None
    seed: str
    mass: float
    steps: tuple[Step, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a sentence: words of our own, or of the documents a name, a fact among them, or a quote."""

    text: str
    kind: Literal["", "name", "quote"] = ""


Sentence = tuple[Piece, ...]
"""Words and what they quote, in their order."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The run of an answer.

    Attributes:
        workspace: its folder's name, without the path.
        beta: None where no β steered the walk.
        passage_weight: of the best passage seed; None without a walk.
        damping: None without a walk.
        facts: the candidates, spelled as the filter lets them be seen.
        stops: the walks that are compared, the run's own last; empty without a walk.
        paths: for each cited passage (the best one, where nothing is cited) at most three, best first, and where none
            of these takes a fact, the best one that does.
        shown: how many nodes and edges are shown, and ``of_nodes`` and ``of_edges`` that may be seen.
        walk: the engine that computed the run's walk, and the error that it stays within (L1 over all nodes); None
            where the passages were ranked by similarity.
        own_relations: the user's own relation types in the graph, each with what it means.
        why: all of that in three sentences.
    """

    question: str
    answer: str
    mode: str
    ranked_by: str
    workspace: str
    generation: int
    models: Mapping[str, str]
    citations: tuple[CitationMark, ...]
    facts: tuple[Mapping[str, Any], ...]
    fact_outcome: str
    beta: RelationFactors | None
    passage_weight: float | None
    damping: float | None
    stops: tuple[str, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    paths: tuple[Path, ...]
    shown: Mapping[str, int]
    walk: Mapping[str, Any] | None
    own_relations: Mapping[str, str] = field(default_factory=dict)
    why: tuple[Sentence, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values, keys in the order of the attributes, numbers to `DIGITS` significant digits."""
        plain = _plain(self)
        assert isinstance(plain, dict)
        return plain


_NAMES = {"from_node": "from"}


def _plain(value: object) -> object:
    if is_dataclass(value):
        return {_NAMES.get(field.name, field.name): _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


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

    def path(self, flow_path: FlowPath) -> Path:
        """Return a path along edges that are shown."""
        steps = tuple(self._step(step) for step in flow_path.steps)
        nodes = [flow_path.seed, *(step.target for step in flow_path.steps)]
        return Path(
            passage=self.names.key(flow_path.node),
            number=self.names.number(flow_path.node),
            seed=self.names.key(flow_path.seed),
            mass=flow_path.mass,
            steps=steps,
            words=path_in_words(self.names, nodes, steps),
        )

    def shown(self) -> dict[str, int]:
        """Return how much of what may be seen is shown."""
        return {
            "nodes": len(self.subgraph.nodes),
            "of_nodes": int(self.visible.nodes.sum()),
            "edges": len(self.subgraph.edges),
            "of_edges": int(self.visible.edges.sum()),
        }

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
        named_fact: GraphFact | None = along or next(iter(facts), None)
        return Step(
            from_node=self.names.key(step.source),
            to=self.names.key(step.target),
            edge=self._edge_keys[step.edge],
            predicate=named_fact.fact.predicate if named_fact else "",
            relation=self.flows[-1].graph.kinds[self.flows[-1].graph.kind.item(step.edge)].relation.value,
            reversed=named_fact is not None and along is None,
            share=step.share,
        )

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
        label = f"{predicate} ({step.relation}, {share})" if predicate else f"{step.relation} ({share})"
        words.append(f"←{label}—" if step.reversed else f"—{label}→")
        words.append(names.spoken(node))
    return " ".join(words)
