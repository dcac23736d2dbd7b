"""The sixth stage: names' vectors, the links' cosines and weights, and where classes are cut."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graph.construction.edge_weights import (
    CLASS_QUANTILES,
    PUBLISHED_CUTS,
    PassageClasses,
    PassageLinks,
    is_kept,
    link_terms,
)
from graph.construction.edges import EDGE_KINDS
from graph.construction.external.arrays import ArrayWriter, Columns, join_arrays, read_array, unpacked
from graph.construction.external.layout import Layout
from graph.storage.workspace import Workspace

_BLOCK = 4096
_READ = 2048


def read_vectors(layout: Layout, part: int) -> None:
    """Write the vectors of a range of entities. Raises WorkspaceDamaged where the record lacks one."""
    columns = layout.of_part("names", part)
    ids = columns.array("ids")
    with (
        Workspace(layout.root).open_record() as record,
        ArrayWriter(columns.folder / "vectors.npy", np.float32, (record.dimension,)) as vectors,
    ):
        for start in range(0, len(ids), _READ):
            vectors.append(record.name_vectors(unpacked(ids[start : start + _READ], "entity")))


def join_vectors(layout: Layout, dimension: int) -> None:
    """Write the vectors of all entities as one matrix."""
    parts = [layout.of_part("names", part).folder / "vectors.npy" for part in range(layout.parts)]
    join_arrays(parts, layout.whole.folder / "vectors.npy", np.float32, (dimension,))
    for part in parts:
        part.unlink()


def weigh(layout: Layout, index: int, own_types: Sequence[str]) -> None:
    """Write a shard's links and triples in the order of their entities, the links with their weights.

    Args:
        layout: the build's.
        index: the shard's.
        own_types: the own relation types of the graph.
    """
    own, shard = layout.of_shard(index), layout.shards[index]
    lengths = layout.whole.array("content_lengths")
    links = _links(own, layout)
    cosines = _cosines(links, layout, shard.columns.array("passage_vectors"))
    of_passages = lengths[shard.start : shard.start + shard.size]
    terms = link_terms(links.subject_of, links.object_of, cosines, links.offsets, of_passages[links.passages])
    order = np.argsort(links.entities, kind="stable")
    own.save(
        edge_entities=links.entities[order],
        edge_passages=(links.passages[order] + np.int32(shard.start)).astype(np.int32),
        edge_weights=terms.weight[order],
        edge_titled=links.titled[order],
        edge_in_triples=links.in_triples[order],
        edge_offsets=links.offsets[order],
    )
    _save_triples(own, shard.columns, own_types)


def _links(own: Columns, layout: Layout) -> PassageLinks:
    """Return a shard's links, less the mentions of names that are too frequent to mean anything."""
    entities, is_own = own.array("entities"), own.array("own")
    frequency = read_array(layout.folder / "name_passages.npy")
    kept = is_kept(is_own, frequency[entities], layout.n_passages)
    return PassageLinks(
        passages=own.array("passages")[kept],
        entities=entities[kept],
        subject_of=own.array("subject_of")[kept],
        object_of=own.array("object_of")[kept],
        titled=own.array("titled")[kept],
        offsets=own.array("offsets")[kept],
        cosines=np.zeros(0, dtype=np.float32),
        own=is_own[kept],
    )


def _cosines(links: PassageLinks, layout: Layout, passage_vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    names = layout.whole.array("vectors")
    cosines = np.empty(len(links.entities), dtype=np.float32)
    for start in range(0, len(cosines), _BLOCK):
        block = slice(start, start + _BLOCK)
        # Row by row, so that a cosine does not depend on what else is computed with it.
        cosines[block] = (names[links.entities[block]] * passage_vectors[links.passages[block]]).sum(axis=1)
    return cosines


def _save_triples(own: Columns, said: Columns, own_types: Sequence[str]) -> None:
    entity_of = own.array("entity_of")
    subjects, objects = entity_of[said.array("triple_subjects")], entity_of[said.array("triple_objects")]
    met = [len(EDGE_KINDS) + own_types.index(relation) for relation in said.strings("own_relations")]
    kind_of = np.array([*range(len(EDGE_KINDS)), *met], dtype=np.uint8)
    low = np.minimum(subjects, objects)
    order = np.argsort(low, kind="stable")
    own.save(
        fact_low=low[order],
        fact_high=np.maximum(subjects, objects)[order],
        fact_kinds=kind_of[said.array("triple_kinds")][order],
        fact_confidences=said.array("triple_confidences")[order],
    )


def class_cuts(layout: Layout, classes: PassageClasses) -> tuple[float, float]:
    """Return the least weights of SECONDARY and of PRIMARY: see `PassageClasses`."""
    if classes is not PassageClasses.THIRDS:
        return PUBLISHED_CUTS
    ranked = layout.whole.folder / "ranked.npy"
    with ArrayWriter(ranked, np.float64) as writer:
        for index in range(len(layout.shards)):
            columns = layout.of_shard(index)
            writer.append(columns.array("edge_weights")[~columns.array("edge_titled")])
    # In place in the file, which may be larger than memory.
    weights = np.load(ranked, mmap_mode="r+")
    low, high = np.quantile(weights, CLASS_QUANTILES, overwrite_input=True) if len(weights) else (0.0, 0.0)
    ranked.unlink()
    return float(low), float(high)
