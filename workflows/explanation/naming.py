"""Names of an explanation's nodes, and its paths in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.retrieve.selection import Selection
from graph.schema import Passage, entity_id
from workflows.explanation.model import Step


class NodeNames:
    """Names nodes by their indices in the graph, as the run's filter lets them be seen."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        selection: Selection | None,
        visible: NDArray[np.bool_],
        numbers: Mapping[str, int],
    ) -> None:
        """Take which nodes may be seen, and the numbers of cited passages by their ids."""
        self._graph = graph
        self._selection = selection
        self._numbers = numbers
        is_passage = np.arange(graph.n_nodes) >= graph.n_entities
        # Counted among what may be seen: a place in the whole graph would tell how much is hidden.
        self._place = np.where(is_passage, np.cumsum(visible & is_passage), np.cumsum(visible & ~is_passage)) - 1

    def key(self, node: int) -> str:
        """Return the node's id in the explanation."""
        return f"{'e' if node < self._graph.n_entities else 'p'}{self._place[node]}"

    def passage(self, node: int) -> Passage | None:
        """Return the node's passage; None for entities."""
        entities = self._graph.n_entities
        return self._graph.passages[node - entities] if node >= entities else None

    def ref(self, node: int) -> str:
        """Return the id of the entity or passage."""
        passage = self.passage(node)
        return passage.id if passage else entity_id(self._graph.entity_names[node])

    def label(self, node: int) -> str:
        """Return the entity's name, or the passage's title (its id, where it has none)."""
        passage = self.passage(node)
        if passage:
            return passage.title or passage.id
        return self._graph.entity_labels[node] if self._selection is None else self._selection.label(node)

    def entity_type(self, node: int) -> str:
        """Return an entity's own type; empty without one, and under a filter: hidden passages may have given it."""
        return (self._graph.entity_type(node) or "") if self._selection is None else ""

    def number(self, node: int) -> int | None:
        """Return a cited passage's number in the answer."""
        passage = self.passage(node)
        return self._numbers.get(passage.id) if passage else None

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
