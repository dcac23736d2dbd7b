"""From the record to a generation's files in bounded memory: what `GraphBuilder` and `save` write, byte for byte.

What is large lies in files: passages are read in shards, entities and facts are merged in ranges of their ids, edges
in ranges of their sources. What stays in memory is a few numbers an entity and passage, and the words of the texts.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.construction.arcs import write_arcs
from graph.construction.builder import PASSAGE_CLASSES
from graph.construction.corrected_names import CorrectedNames
from graph.construction.edge_weights import PassageClasses
from graph.construction.external import edges, facts, mentions, names, terms, weights
from graph.construction.external.arrays import ArrayWriter, TextWriter
from graph.construction.external.edges import count_into
from graph.construction.external.layout import SCRATCH, Layout
from graph.construction.external.scan import prune_cache, scan_shard, shards_of
from graph.construction.external.spellings import write_spellings
from graph.construction.external.workers import Workers
from graph.construction.knowledge_graph import SnapshotHeader
from graph.own_types import OwnTypes
from graph.schema import RelationType
from graph.storage.record import Record, declared_types
from graph.storage.workspace import Workspace


def count(layout: Layout) -> None:
    """Write of each entity in how many passages and triples it stands, and how its name is written."""
    spelled, in_triples, times, small = (np.zeros(layout.n_entities, dtype=np.int64) for _ in range(4))
    is_title = np.zeros(layout.n_entities, dtype=bool)
    for index in range(len(layout.shards)):
        columns = layout.of_shard(index)
        entities = columns.array("entities")
        count_into(spelled, entities)
        count_into(in_triples, entities[columns.array("subject_of") + columns.array("object_of") > 0])
        is_title[entities[columns.array("titled")]] = True
        written = columns.array("written_entities")
        times[written] += columns.array("written_times")
        small[written] += columns.array("written_small")
    np.save(layout.folder / "triple_passages.npy", in_triples.astype(np.int32))
    np.save(layout.folder / "name_passages.npy", spelled.astype(np.int32))
    np.save(layout.folder / "name_shares.npy", np.asarray(1 - small / np.maximum(times, 1), dtype=np.float32))
    layout.whole.save(is_title=is_title)


def count_passages(layout: Layout, dimension: int) -> None:
    """Write the passages' vectors, their lengths, and the share of its title's edge that each has."""
    chunks: list[NDArray[np.uint64]] = []
    whole = layout.whole.folder
    with (
        ArrayWriter(layout.folder / "passage_vectors.npy", np.float32, (dimension,)) as vectors,
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


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is worked on at once.

    Attributes:
        shard: passages that are read together, about.
        names: names of shards that are merged together, about.
        edges: links, triples and pairs that edges are made of together, about.
    """

    shard: int = 4_096
    names: int = 500_000
    edges: int = 1 << 22


_SIZES = Sizes()


def _ignore(_: str) -> None:
    return None


def build_on_disk(
    workspace: Workspace,
    record: Record,
    folder: Path,
    *,
    processes: int = 0,
    sizes: Sizes = _SIZES,
    on_stage: Callable[[str], None] = _ignore,
) -> None:
    """Write the snapshot and the BM25 index of a record's present generation into an existing folder.

    Args:
        workspace: the record's; what shards say is kept in its folder ``build``.
        record: nobody writes to it meanwhile.
        folder: the generation's.
        processes: how many work beside this one; with none, this one works.
        sizes: how much is worked on at once.
        on_stage: called with the name of each stage when it begins.
    """
    scratch = folder / SCRATCH
    scratch.mkdir()
    try:
        with Workers(processes) as workers:
            _Build(workspace, record, folder, workers, sizes, on_stage).run()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Build:
    """One build: see `build_on_disk`."""

    workspace: Workspace
    record: Record
    folder: Path
    workers: Workers
    sizes: Sizes
    begin: Callable[[str], None]

    @property
    def _cache(self) -> Path:
        """Where what is read and found is kept; what is derived of the past is derived once."""
        return self.folder / SCRATCH / "read" if self.workspace.is_past else self.workspace.build_cache

    def run(self) -> None:
        """Do one stage after the other."""
        layout = self._scan()
        parts, shards = range(layout.parts), range(len(layout.shards))
        run, record = self.workers.run, self.record
        self.begin("names")
        run(partial(names.merge_names, layout, part) for part in parts)
        names.join_entities(layout)
        self.begin("vectors of names")
        run(partial(weights.read_vectors, layout, part) for part in parts)
        weights.join_vectors(layout, record.dimension)
        self.begin("spellings")
        run(partial(names.number_names, layout, index) for index in shards)
        write_spellings(names.merged_runs(layout, "spelled"), self.folder, layout.whole)
        self.begin("mentions")
        run(partial(mentions.find_mentions, layout, index) for index in shards)
        mentions.forget_tree()
        count(layout)
        self.begin("weights of links")
        count_passages(layout, record.dimension)
        own = self._own_types(layout)
        relations = [*map(str, own.relation_types)]
        run(partial(weights.weigh, layout, index, relations) for index in shards)
        n_edges = self._make_edges(layout)
        self.begin("arcs")
        write_arcs(self.folder, layout.n_entities + layout.n_passages)
        self.begin("facts")
        run(partial(facts.merge_facts, layout, part, relations) for part in parts)
        n_facts = facts.join_facts(layout)
        self._score_terms(layout)
        self._write_texts(layout)
        self._save_types(layout, own)
        SnapshotHeader(
            generation=record.generation,
            commit_id=record.commit_id,
            embedding_model=record.embedding_model,
            passages=layout.n_passages,
            entities=layout.n_entities,
            facts=n_facts,
            edges=n_edges,
            own=own,
        ).save(self.folder)

    def _scan(self) -> Layout:
        self.begin("passages")
        cache, root = self._cache, self.workspace.root
        cache.mkdir(exist_ok=True)
        shards = shards_of(self.record, self.sizes.shard, cache)
        self.workers.run(partial(scan_shard, root, shard.folder, shard.first, shard.last) for shard in shards)
        prune_cache(cache, shards)
        rows = sum(len(shard.columns.array("name_ids")) for shard in shards)
        layout = Layout(self.folder, root, shards, 1 + rows // self.sizes.names)
        layout.save()
        return layout

    def _own_types(self, layout: Layout) -> OwnTypes:
        """Return the record's own types that its facts and names have."""
        met = {name for shard in layout.shards for name in shard.columns.strings("own_relations")}
        return declared_types(self.record).used([*map(RelationType, met)], {*names.entity_types(layout).values()})

    def _make_edges(self, layout: Layout) -> int:
        """Write the edges; return how many they are."""
        cuts = weights.class_cuts(layout, PassageClasses(self.record.note(PASSAGE_CLASSES) or PassageClasses.THIRDS))
        self.begin("synonyms")
        runs = edges.write_synonyms(self.record, CorrectedNames.of(self.record).apart, layout, self._cache)
        self.begin("edges")
        ranges = edges.ranges_of_entities(layout, runs, self.sizes.edges)
        self.workers.run(partial(edges.far_pairs, layout, runs, part, *each) for part, each in enumerate(ranges))
        edges.join_far(layout, len(ranges))
        self.workers.run(partial(edges.make_edges, layout, runs, cuts, part, *each) for part, each in enumerate(ranges))
        return edges.join_edge_parts(layout, len(ranges))

    def _score_terms(self, layout: Layout) -> None:
        self.begin("BM25")
        vocabulary = terms.number_terms(layout)
        ranges = terms.ranges_of_terms(layout)
        self.workers.run(partial(terms.score_terms, layout, part, *each) for part, each in enumerate(ranges))
        terms.join_terms(layout, len(ranges), vocabulary)

    def _write_texts(self, layout: Layout) -> None:
        self.begin("texts")
        with TextWriter(self.folder, "passages") as passages:
            for shard in layout.shards:
                passages.append_table(shard.columns.texts("passages"))
        names.write_aliases(layout)

    def _save_types(self, layout: Layout, own: OwnTypes) -> None:
        if not own.entities:
            return
        types = np.zeros(layout.n_entities, dtype=np.uint8)
        place = {name: number for number, name in enumerate(own.entity_types, 1)}
        for entity, name in names.entity_types(layout).items():
            types[entity] = place[name]
        np.save(self.folder / "entity_types.npy", types)
