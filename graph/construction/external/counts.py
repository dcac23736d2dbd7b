"""The fifth stage: what is counted over all passages: how frequent names are, and how they are written."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.construction.external.arrays import ArrayWriter
from graph.construction.external.layout import Layout


def count(layout: Layout, n_entities: int, folder: Path) -> None:
    """Write of each entity in how many passages and triples it stands, and how its name is written."""
    spelled, in_triples, times, small = (np.zeros(n_entities, dtype=np.int64) for _ in range(4))
    is_title = np.zeros(n_entities, dtype=bool)
    for index in range(len(layout.shards)):
        columns = layout.of_shard(index)
        entities = columns.array("entities")
        _add(spelled, entities)
        _add(in_triples, entities[columns.array("subject_of") + columns.array("object_of") > 0])
        is_title[entities[columns.array("titled")]] = True
        written = columns.array("written_entities")
        times[written] += columns.array("written_times")
        small[written] += columns.array("written_small")
    np.save(folder / "triple_passages.npy", in_triples.astype(np.int32))
    np.save(folder / "name_passages.npy", spelled.astype(np.int32))
    np.save(folder / "name_shares.npy", np.asarray(1 - small / np.maximum(times, 1), dtype=np.float32))
    layout.whole.save(is_title=is_title)


def _add(totals: NDArray[np.int64], entities: NDArray[np.int32]) -> None:
    distinct, times = np.unique(entities, return_counts=True)
    totals[distinct] += times


def count_passages(layout: Layout, folder: Path, dimension: int) -> None:
    """Write the passages' vectors, their lengths, and the share of its title's edge that each has."""
    chunks: list[NDArray[np.uint64]] = []
    whole = layout.whole.folder
    with (
        ArrayWriter(folder / "passage_vectors.npy", np.float32, (dimension,)) as vectors,
        ArrayWriter(whole / "content_lengths.npy", np.int32) as lengths,
    ):
        for shard in layout.shards:
            vectors.append(shard.columns.array("passage_vectors"))
            lengths.append(shard.columns.array("content_lengths"))
            chunks.append(shard.columns.array("chunk_of"))
    layout.whole.save(title_shares=_title_shares(np.concatenate(chunks) if chunks else np.zeros((0, 2), np.uint64)))


def _title_shares(chunk_of: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return of each passage what share of its title's edge it has: one over the root of its document's chunks."""
    is_chunk = chunk_of.any(axis=1)
    _, place, sizes = np.unique(chunk_of, axis=0, return_inverse=True, return_counts=True)
    # Python's power, as where all is in memory: numpy's differs in the last bit.
    share_of = {size: size**-0.5 for size in Counter(sizes.tolist())}
    shares = np.array([share_of[size] for size in sizes.tolist()], dtype=np.float64)
    return np.where(is_chunk, shares[place.reshape(-1)] if len(shares) else 1.0, 1.0)
