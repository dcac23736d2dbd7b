from __future__ import annotations

import numpy as np

from graph.construction.edges import Edges, sort_edges


def test_edges_are_sorted_by_source_target_and_kind() -> None:
    rows = [(1, 2, 0), (0, 2, 1), (0, 2, 0), (0, 1, 3)]
    source, target, kind = (np.array(column) for column in zip(*rows, strict=True))
    weight, offset = np.arange(4, dtype=np.float32), np.arange(4, dtype=np.int32)
    edges = sort_edges(
        Edges(source.astype(np.int32), target.astype(np.int32), kind.astype(np.uint8), weight, weight, offset)
    )
    assert list(zip(edges.source, edges.target, edges.kind, strict=True)) == sorted(rows)
    assert edges.weight.tolist() == edges.offset.tolist() == [3, 2, 1, 0]
