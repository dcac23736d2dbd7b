"""The columns of a snapshot that are neither texts nor facts: edges, types of entities, lists of numbers by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import CHECKED_TO, IntLists, SortedMapping, TextTable, check_range, load_array
from graph.construction.edges import EDGE_TYPES, Edges, kinds_with
from graph.own_types import OwnTypes


def load_entity_types(folder: Path, n_entities: int, own: OwnTypes, *, thorough: bool) -> NDArray[np.uint8]:
    """Read the types of entities: none where no own types of them are used. Raises OSError or ValueError."""
    if not own.entities:
        return np.zeros(0, dtype=np.uint8)
    types = load_array(folder / "entity_types.npy", np.uint8, (n_entities,))
    return check_range(types, len(own.entities) + 1, thorough=thorough)


def load_edges(folder: Path, n_edges: int, n_entities: int, n_nodes: int, own: OwnTypes, *, thorough: bool) -> Edges:
    """Read the edges. Raises OSError or ValueError when they are damaged."""
    columns = {name: load_array(folder / f"edge_{name}.npy", kind, (n_edges,)) for name, kind in EDGE_TYPES.items()}
    n_kinds = len(kinds_with(own.relation_types))
    for name, limit in (("source", n_entities), ("target", n_nodes), ("kind", n_kinds)):
        check_range(columns[name], limit, thorough=thorough)
    if (thorough or n_edges <= CHECKED_TO) and (columns["source"][1:] < columns["source"][:-1]).any():
        raise ValueError("the edges are not in the order of their sources")
    return Edges(**columns)


def save_lists(lists: Mapping[str, Sequence[int]], folder: Path, name: str) -> None:
    """Write lists of numbers by name into an existing folder."""
    keys = sorted(lists)
    TextTable.of(((key,) for key in keys), 1).save(folder, name)
    IntLists.of(lists[key] for key in keys).save(folder, f"{name}.numbers")


def load_lists(folder: Path, name: str, limit: int, *, thorough: bool) -> SortedMapping[Sequence[int]]:
    """Read lists of numbers from 0 to limit - 1 by name. Raises OSError or ValueError when they are damaged."""
    table = TextTable.load(folder, name, 1, thorough=thorough)
    lists = IntLists.load(folder, f"{name}.numbers", len(table), limit, thorough=thorough)
    return SortedMapping(table.column(0), lists)
