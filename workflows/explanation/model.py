"""The data of an explanation: plain values, as the page draws them and as JSON gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from graph.schema import RelationFactors

DIGITS = 10
"""Significant digits of a number in JSON."""

NodeKind = Literal["entity", "passage"]


@dataclass(frozen=True, slots=True)
class Citation:
    """A mark in the answer: the passage's number, its id, and where in its text the words stand, if they were found."""

    number: int
    passage_id: str
    start: int | None
    end: int | None


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A candidate fact; ``kept`` tells whether the walk starts from it."""

    subject: str
    predicate: str
    object: str
    relation: str
    score: float
    kept: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """One walk of those compared: how much of the run's β steers it, from 0 to 1, and that in words."""

    strength: float
    label: str


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
class Shown:
    """The extent of the drawing, relative to all that may be seen.

    Attributes:
        nodes: shown.
        of_nodes: that may be seen.
        edges: shown.
        of_edges: that may be seen.
        inflow: of the mass that flows into the shown passages, the share that shown edges carry; 1 where none flows.
    """

    nodes: int
    of_nodes: int
    edges: int
    of_edges: int
    inflow: float


@dataclass(frozen=True, slots=True)
class Models:
    """The chat model, the embedding model and the vector store that answered."""

    chat: str
    embedding: str
    store: str


@dataclass(frozen=True, slots=True)
class WalkedBy:
    """The engine that computed the run's walk, and the error that it stays within (L1 over all nodes)."""

    engine: str
    error: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """The run of an answer.

    Attributes:
        workspace: its folder's name, without the path.
        beta: None where no β steered the walk.
        passage_weight: of the best passage seed; None without a walk.
        damping: None without a walk.
        stops: the walks that are compared, the run's own last; empty without a walk.
        paths: for each cited passage (the best one, where nothing is cited) at most three, best first, and where none
            of these takes a fact, the best one that does.
        walk: None where the passages were ranked by similarity.
        own_relations: the user's own relation types in the graph, each with what it means.
    """

    question: str
    answer: str
    mode: str
    ranked_by: str
    workspace: str
    generation: int
    models: Models
    citations: tuple[Citation, ...]
    facts: tuple[ShownFact, ...]
    fact_outcome: str
    beta: RelationFactors | None
    passage_weight: float | None
    damping: float | None
    stops: tuple[Stop, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    paths: tuple[Path, ...]
    shown: Shown
    walk: WalkedBy | None
    own_relations: Mapping[str, str] = field(default_factory=dict)

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
        return {str(key): _plain(held) for key, held in value.items()}
    if isinstance(value, tuple):
        return [_plain(held) for held in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
