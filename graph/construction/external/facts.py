"""Facts of all shards, in the order of their ids, with the passages that hold each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graph.construction.evidence import keep_smallest
from graph.construction.external.arrays import ArrayWriter, TextWriter, join_arrays, joined, strings_of, unpacked
from graph.construction.external.layout import Layout, ids_of, rows_of, slices_of_ids
from graph.construction.knowledge_graph import BUILT_IN, table_of_facts
from graph.schema import Fact

_NAME = "facts"


def merge_facts(layout: Layout, part: int, own_types: Sequence[str]) -> None:
    """Write the facts of a range of ids: as they are shown, their ends, their relation types, who holds them.

    Args:
        layout: the build's.
        part: the range's.
        own_types: the own relation types of the graph.
    """
    slices = slices_of_ids(layout, "fact", part)
    ids = ids_of(slices, "fact")
    distinct, first, fact_of = np.unique(ids, return_index=True, return_inverse=True)
    shown: dict[int, Fact] = {}
    ends, relations, held, holders, start = [], [], [], [], 0
    for each in slices:
        size = each.end - each.start
        places = fact_of[start : start + size]
        parts = strings_of(each.columns.texts("statements"), 3 * each.start, 3 * each.end)
        statements = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        keep_smallest(shown, places.tolist(), (Fact(*statement, BUILT_IN[0]) for statement in statements))
        ends.append(layout.of_shard(each.shard).array("entity_of")[each.array("fact_ends")])
        met = [len(BUILT_IN) + own_types.index(name) for name in each.columns.strings("own_relations")]
        relations.append(np.array([*range(len(BUILT_IN)), *met], dtype=np.uint8)[each.array("fact_relations")])
        rows = rows_of(each.columns.array("held_facts"), each.start, each.end)
        held.append(places[each.columns.array("held_facts")[rows] - each.start])
        holders.append(each.columns.array("held_by")[rows] + np.int32(layout.shards[each.shard].start))
        start += size
    order = np.argsort(joined(held, np.int64), kind="stable")
    columns = layout.of_part(_NAME, part)
    keys = unpacked(distinct, "fact")
    table_of_facts(keys, [shown[place] for place in range(len(keys))]).save(columns.folder, _NAME)
    columns.save(
        ends=np.concatenate([*ends, np.zeros((0, 2), dtype=np.int32)])[first],
        relations=joined(relations, np.uint8)[first],
        passages=joined(holders, np.int32)[order],
        counts=np.bincount(joined(held, np.int64), minlength=len(first)),
    )


def join_facts(layout: Layout) -> int:
    """Write the facts of all ranges into the generation's folder; return how many they are."""
    folder = layout.folder
    parts = [layout.of_part(_NAME, part) for part in range(layout.parts)]
    with (
        TextWriter(folder, _NAME) as facts,
        ArrayWriter(folder / "fact_passages.starts.npy", np.int32) as starts,
    ):
        starts.append(np.zeros(1, dtype=np.int32))
        before = 0
        for part in parts:
            facts.append_table(part.texts(_NAME, 4))
            ends = np.cumsum(part.array("counts"), dtype=np.int64) + before
            starts.append(ends)
            before = int(ends[-1]) if len(ends) else before
    for name, target, kind in (
        ("relations", "fact_relations", np.uint8),
        ("passages", "fact_passages.values", np.int32),
    ):
        join_arrays((part.folder / f"{name}.npy" for part in parts), folder / f"{target}.npy", kind)
    return join_arrays((part.folder / "ends.npy" for part in parts), folder / "fact_ends.npy", np.int32, (2,))
