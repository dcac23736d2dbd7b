from __future__ import annotations

import numpy as np

from graph.construction.edges import EDGE_KINDS, IS_PASSAGE_KIND, KIND_INDEX, EdgeKind, Edges, sort_edges
from graph.relations import PassageLink
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationType


class TestKinds:
    def test_every_relation_has_its_kinds_and_all_fit_a_byte(self) -> None:
        assert {kind.relation for kind in EDGE_KINDS} == set(RelationType)
        assert len(set(EDGE_KINDS)) == len(EDGE_KINDS) < 256
        assert [KIND_INDEX[kind] for kind in EDGE_KINDS] == list(range(len(EDGE_KINDS)))
        of_passages = [kind for kind, is_passage in zip(EDGE_KINDS, IS_PASSAGE_KIND, strict=False) if is_passage]
        assert {kind.relation for kind in of_passages} == set(PASSAGE_RELATIONS)
        assert {kind.relation for kind in EDGE_KINDS if kind.link is None} == {*ENTITY_RELATIONS, RelationType.SYNONYMY}
        to_titles = [kind for kind in EDGE_KINDS if kind.link is PassageLink.OWN_TITLE]
        assert to_titles == [EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)]


def test_edges_are_sorted_by_source_target_and_kind() -> None:
    rows = [(1, 2, 0), (0, 2, 1), (0, 2, 0), (0, 1, 3)]
    source, target, kind = (np.array(column) for column in zip(*rows, strict=True))
    weight, offset = np.arange(4, dtype=np.float32), np.arange(4, dtype=np.int32)
    edges = sort_edges(
        Edges(source.astype(np.int32), target.astype(np.int32), kind.astype(np.uint8), weight, weight, offset)
    )
    assert list(zip(edges.source, edges.target, edges.kind, strict=True)) == sorted(rows)
    assert edges.weight.tolist() == edges.offset.tolist() == [3, 2, 1, 0]
