"""The facts of a knowledge graph, kept as a table and columns: each becomes an object when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import IntLists, LazySequence, SortedMapping, TextTable, check_range, load_array
from graph.schema import Fact, RelationType

BUILT_IN = tuple(RelationType)
"""The built-in relation types; a fact stores its type's index in those of its graph, which begin with these."""


@dataclass(frozen=True, slots=True)
class GraphFact:
    """A fact with its place in the graph: node indices of its ends, indices of the passages that hold it."""

    fact: Fact
    subject: int
    object: int
    passages: tuple[int, ...]


class FactTable(SortedMapping[GraphFact]):
    """Facts by their ids, ascending: a table of id, subject, predicate and object, and columns beside it.

    Attributes:
        ends: node indices of subjects and objects, shape (n, 2).
        relations: each fact's relation type, by its place in ``types``.
        types: the built-in relation types, and the own ones of the facts.
        passages: indices of the passages that hold each.
        ids: by their place.
        rows: the facts by their place.
    """

    _WIDTH = 4

    def __init__(
        self,
        table: TextTable,
        ends: NDArray[np.int32],
        relations: NDArray[np.uint8],
        passages: IntLists,
        own: Sequence[RelationType] = (),
    ) -> None:
        self._table = table
        self.ends = ends
        self.relations = relations
        self.types = (*BUILT_IN, *own)
        self.passages = passages
        self.rows = LazySequence(len(table), self._fact)
        self.ids = table.column(0)
        super().__init__(self.ids, self.rows)

    @staticmethod
    def of(facts: Mapping[str, GraphFact]) -> FactTable:
        """Return a table of some facts, whatever their order."""
        keys = sorted(facts)
        held = [facts[key] for key in keys]
        ends = np.array([(fact.subject, fact.object) for fact in held], dtype=np.int32).reshape(len(held), 2)
        return FactTable.of_columns(
            keys,
            [fact.fact for fact in held],
            ends,
            IntLists.of(fact.passages for fact in held),
            sorted({fact.fact.relation for fact in held if fact.fact.relation.is_own}),
        )

    @staticmethod
    def of_columns(
        ids: Sequence[str],
        facts: Sequence[Fact],
        ends: NDArray[np.int32],
        passages: IntLists,
        own: Sequence[RelationType] = (),
    ) -> FactTable:
        """Return the table of facts in the order of their ids, with their ends and the passages that hold them."""
        rows = ((key, f.subject, f.predicate, f.object) for key, f in zip(ids, facts, strict=True))
        place = {relation: index for index, relation in enumerate((*BUILT_IN, *own))}
        relations = np.array([place[fact.relation] for fact in facts], dtype=np.uint8)
        return FactTable(TextTable.of(rows, FactTable._WIDTH), ends, relations, passages, own)

    def save(self, folder: Path) -> None:
        """Write the table into an existing folder."""
        self._table.save(folder, "facts")
        np.save(folder / "fact_ends.npy", self.ends)
        np.save(folder / "fact_relations.npy", self.relations)
        self.passages.save(folder, "fact_passages")

    @staticmethod
    def load(
        folder: Path,
        n_facts: int,
        n_entities: int,
        n_passages: int,
        own: Sequence[RelationType] = (),
        *,
        thorough: bool = True,
    ) -> FactTable:
        """Read a table. Raises OSError or ValueError when it is damaged.

        Without ``thorough``, of what is large only the ends are looked at.
        """
        table = FactTable.load_texts(folder, n_facts, thorough=thorough)
        ends = load_array(folder / "fact_ends.npy", np.int32, (n_facts, 2))
        relations = load_array(folder / "fact_relations.npy", np.uint8, (n_facts,))
        passages = IntLists.load(folder, "fact_passages", n_facts, n_passages, thorough=thorough)
        check_range(relations, len(BUILT_IN) + len(own), thorough=thorough)
        check_range(ends, n_entities, thorough=thorough)
        return FactTable(table, ends, relations, passages, own)

    @staticmethod
    def load_texts(folder: Path, n_facts: int, *, thorough: bool = True) -> TextTable:
        """Read id, subject, predicate and object of each fact alone. Raises and looks as `load` does."""
        return TextTable.load(folder, "facts", FactTable._WIDTH, n_facts, thorough=thorough)

    def _fact(self, place: int) -> GraphFact:
        """Return one fact. Raises ValueError where its text cannot be read."""
        _, subject, predicate, object_ = self._table.row(place)
        fact = Fact(subject, predicate, object_, self.types[self.relations.item(place)])
        return GraphFact(fact, self.ends.item(place, 0), self.ends.item(place, 1), self.passages[place])
