"""The sixth stage: names' vectors, the links' cosines and weights, and where classes are cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
_COUNTED = 1 << 22

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class VectorsTask:
    """A task: to read the vectors of the entities of one range."""

    layout: Layout
    part: int
    workspace: Path
    dimension: int


def read_vectors(task: VectorsTask) -> None:
    """Write the vectors of a range of entities. Raises WorkspaceDamaged where the record lacks one."""
    columns = task.layout.of_part("names", task.part)
    ids = columns.array("ids")
    with (
        Workspace(task.workspace).open_record() as record,
        ArrayWriter(columns.folder / "vectors.npy", np.float32, (task.dimension,)) as vectors,
    ):
        for start in range(0, len(ids), _READ):
            vectors.append(record.name_vectors(unpacked(ids[start : start + _READ], "entity")))


def join_vectors(layout: Layout, dimension: int) -> None:
    """Write the vectors of all entities as one matrix."""
    parts = [layout.of_part("names", part).folder / "vectors.npy" for part in range(layout.parts)]
    join_arrays(parts, layout.whole.folder / "vectors.npy", np.float32, (dimension,))
    for part in parts:
        part.unlink()


@dataclass(frozen=True, slots=True)
class WeighTask:
    """A task: to weigh the links of one shard.

    Attributes:
        folder: the generation's.
        own_kinds: the kinds of the graph that stand for own relation types, by the type's name.
    """

    layout: Layout
    shard: int
    folder: Path
    own_kinds: Mapping[str, int]


def weigh(task: WeighTask) -> None:
    """Write a shard's links and triples in the order of their entities, the links with their weights."""
    layout, index = task.layout, task.shard
    own, shard = layout.of_shard(index), layout.shards[index]
    lengths = layout.whole.array("content_lengths")
    links = _links(own, task)
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
    _save_triples(own, shard.columns, task.own_kinds)


def _links(own: Columns, task: WeighTask) -> PassageLinks:
    """Return a shard's links, less the mentions of names that are too frequent to mean anything."""
    entities, is_own = own.array("entities"), own.array("own")
    frequency = read_array(task.folder / "name_passages.npy")
    kept = is_kept(is_own, frequency[entities], task.layout.n_passages)
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


def _save_triples(own: Columns, said: Columns, own_kinds: Mapping[str, int]) -> None:
    entity_of = own.array("entity_of")
    subjects, objects = entity_of[said.array("triple_subjects")], entity_of[said.array("triple_objects")]
    met = [own_kinds[relation] for relation in said.strings("own_relations")]
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
    low, high = quantiles(read_array(ranked), CLASS_QUANTILES)
    ranked.unlink()
    return low, high


def quantiles(values: Doubles, wanted: Sequence[float]) -> list[float]:
    """Return what ``numpy.quantile`` does of non-negative numbers, which may be more than fit into memory; 0 of none.

    A quantile lies between two neighbours in order; each is found by counting, sixteen bits of the number at a time.
    """
    if not len(values):
        return [0.0 for _ in wanted]
    found = []
    for share in wanted:
        place = (len(values) - 1) * share
        before = int(np.floor(place))
        pair = [_ranked(values, rank) for rank in (before, min(before + 1, len(values) - 1))]
        found.append(float(np.quantile(np.array(pair), place - before)))
    return found


def _ranked(values: Doubles, rank: int) -> float:
    """Return the number of that rank, from 0."""
    prefix = 0
    for shift in (48, 32, 16, 0):
        counts = np.zeros(1 << 16, dtype=np.int64)
        for bits in _blocks(values):
            alike = _alike(bits, prefix, shift + 16) if shift < 48 else bits
            counts += np.bincount((alike >> np.uint64(shift)).astype(np.int64) & 0xFFFF, minlength=1 << 16)
        ends = np.cumsum(counts)
        step = int(np.searchsorted(ends, rank, side="right"))
        rank -= int(ends[step] - counts[step])
        prefix = prefix << 16 | step
        if counts[step] <= _COUNTED:
            alike = np.concatenate([_alike(block, prefix, shift) for block in _blocks(values)])
            return float(np.partition(alike, rank)[rank].view(np.float64))
    return float(np.array([prefix], dtype=np.uint64).view(np.float64)[0])


def _blocks(values: Doubles) -> Iterator[NDArray[np.uint64]]:
    for start in range(0, len(values), _COUNTED):
        yield np.ascontiguousarray(values[start : start + _COUNTED]).view(np.uint64)


def _alike(bits: NDArray[np.uint64], prefix: int, shift: int) -> NDArray[np.uint64]:
    """Return the numbers that begin with some bits."""
    found: NDArray[np.uint64] = bits[bits >> np.uint64(shift) == np.uint64(prefix)]
    return found
