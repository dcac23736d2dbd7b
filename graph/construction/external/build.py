"""From the record to a generation's files in bounded memory: what `GraphBuilder` and `save` write, byte for byte.

What is large lies in files: passages are read in shards, entities and facts are merged in ranges of their ids, edges
in ranges of their sources. What stays in memory is a few numbers an entity and passage, and the words of the texts.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.construction.arcs import write_arcs
from graph.construction.builder import PASSAGE_CLASSES
from graph.construction.corrected_names import CorrectedNames
from graph.construction.edge_weights import PassageClasses
from graph.construction.edges import EDGE_KINDS
from graph.construction.external import edges, facts, mentions, names, terms, weights
from graph.construction.external.arrays import ArrayWriter, TextWriter
from graph.construction.external.edges import count_into, write_synonyms
from graph.construction.external.layout import Layout
from graph.construction.external.scan import ScanTask, cuts_of, prune_cache, scan_shard, shards_of
from graph.construction.external.spellings import write_spellings
from graph.construction.external.workers import Workers
from graph.construction.knowledge_graph import SnapshotHeader
from graph.own_types import OwnTypes
from graph.schema import RelationType
from graph.storage.record import Record, declared_types
from graph.storage.workspace import Workspace


def count(layout: Layout, n_entities: int, folder: Path) -> None:
    """Write of each entity in how many passages and triples it stands, and how its name is written."""
    spelled, in_triples, times, small = (np.zeros(n_entities, dtype=np.int64) for _ in range(4))
    is_title = np.zeros(n_entities, dtype=bool)
    for index in range(len(layout.shards)):
        columns = layout.of_shard(index)
        entities = columns.array("entities")
        count_into(spelled, entities)
        count_into(in_triples, entities[columns.array("subject_of") + columns.array("object_of") > 0])
        is_title[entities[columns.array("titled")]] = True
        written = columns.array("written_entities")
        times[written] += columns.array("written_times")
        small[written] += columns.array("written_small")
    np.save(folder / "triple_passages.npy", in_triples.astype(np.int32))
    np.save(folder / "name_passages.npy", spelled.astype(np.int32))
    np.save(folder / "name_shares.npy", np.asarray(1 - small / np.maximum(times, 1), dtype=np.float32))
    layout.whole.save(is_title=is_title)


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


_SCRATCH = "building"


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
    scratch = folder / _SCRATCH
    scratch.mkdir()
    try:
        with Workers(processes) as workers:
            _Build(workspace, record, folder, workers, sizes, on_stage).run()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Build:
    """The state of one build."""

    def __init__(
        self,
        workspace: Workspace,
        record: Record,
        folder: Path,
        workers: Workers,
        sizes: Sizes,
        on_stage: Callable[[str], None],
    ) -> None:
        self._workspace = workspace
        self._record = record
        self._folder = folder
        self._workers = workers
        self._sizes = sizes
        self._begin = on_stage

    @property
    def _cache(self) -> Path:
        """Where what is read and found is kept; what is derived of the past is derived once."""
        return self._folder / _SCRATCH / "read" if self._workspace.is_past else self._workspace.build_cache

    def run(self) -> None:
        """Do one stage after the other."""
        layout = self._scan()
        n_entities = self._merge_names(layout)
        self._find_mentions(layout)
        count(layout, n_entities, self._folder)
        own = self._own_types(layout)
        n_edges = self._make_edges(layout, n_entities, own)
        self._begin("arcs")
        write_arcs(self._folder, n_entities + layout.n_passages)
        n_facts = self._merge_facts(layout, own)
        self._score_terms(layout)
        self._write_texts(layout)
        self._save_types(layout, own, n_entities)
        record = self._record
        SnapshotHeader(
            generation=record.generation,
            commit_id=record.commit_id,
            embedding_model=record.embedding_model,
            passages=layout.n_passages,
            entities=n_entities,
            facts=n_facts,
            edges=n_edges,
            own=own,
        ).save(self._folder)

    def _scan(self) -> Layout:
        self._begin("passages")
        cache = self._cache
        cache.mkdir(exist_ok=True)
        cuts = cuts_of(self._record, self._sizes.shard)
        root = self._workspace.root
        tasks = (ScanTask(root, cut, cache / cut.key) for cut in cuts)
        self._workers.run(scan_shard, tasks)
        shards = shards_of(cuts, cache)
        prune_cache(cache, shards)
        rows = sum(len(shard.columns.array("name_ids")) for shard in shards)
        layout = Layout(self._folder / _SCRATCH, shards, 1 + rows // self._sizes.names)
        layout.save()
        return layout

    def _merge_names(self, layout: Layout) -> int:
        self._begin("names")
        parts, root = range(layout.parts), self._workspace.root
        self._workers.run(names.merge_names, [names.NamesPart(layout, part, root) for part in parts])
        n_entities = names.join_entities(layout, self._folder)
        self._begin("vectors of names")
        dimension = self._record.dimension
        self._workers.run(weights.read_vectors, [weights.VectorsTask(layout, part, root, dimension) for part in parts])
        weights.join_vectors(layout, dimension)
        self._begin("spellings")
        self._workers.run(names.number_names, self._shard_tasks(layout))
        write_spellings(names.merged_runs(layout, "spelled"), self._folder, layout.whole)
        return n_entities

    def _shard_tasks(self, layout: Layout) -> list[names.ShardTask]:
        return [names.ShardTask(layout, index) for index in range(len(layout.shards))]

    def _find_mentions(self, layout: Layout) -> None:
        self._begin("mentions")
        shards, root = range(len(layout.shards)), self._workspace.root
        tasks = [mentions.MentionsTask(layout, index, self._folder, root) for index in shards]
        self._workers.run(mentions.find_mentions, tasks)
        mentions.forget_tree()

    def _own_types(self, layout: Layout) -> OwnTypes:
        """Return the record's own types that its facts and names have."""
        met = {name for shard in layout.shards for name in shard.columns.strings("own_relations")}
        return declared_types(self._record).used([*map(RelationType, met)], {*names.entity_types(layout).values()})

    def _make_edges(self, layout: Layout, n_entities: int, own: OwnTypes) -> int:
        self._begin("weights of links")
        count_passages(layout, self._folder, self._record.dimension)
        kinds = {str(relation): len(EDGE_KINDS) + place for place, relation in enumerate(own.relation_types)}
        shards = range(len(layout.shards))
        self._workers.run(weights.weigh, [weights.WeighTask(layout, index, self._folder, kinds) for index in shards])
        classes = PassageClasses(self._record.note(PASSAGE_CLASSES) or PassageClasses.THIRDS)
        cuts = weights.class_cuts(layout, classes)
        self._begin("synonyms")
        synonyms = write_synonyms(self._record, CorrectedNames.of(self._record).apart, layout, self._cache)
        self._begin("edges")
        bounds = edges.ranges_of_entities(layout, n_entities, synonyms, self._sizes.edges)
        tasks = [
            edges.EdgesTask(layout, self._folder, part, start, end, n_entities, synonyms, cuts)
            for part, (start, end) in enumerate(pairwise(bounds))
        ]
        self._workers.run(edges.far_pairs, tasks)
        edges.join_far(layout, len(tasks))
        self._workers.run(edges.make_edges, tasks)
        return edges.join_edge_parts(layout, self._folder, len(tasks))

    def _merge_facts(self, layout: Layout, own: OwnTypes) -> int:
        self._begin("facts")
        places = {str(relation): place for place, relation in enumerate(own.relation_types)}
        self._workers.run(facts.merge_facts, [facts.FactsTask(layout, part, places) for part in range(layout.parts)])
        return facts.join_facts(layout, self._folder)

    def _score_terms(self, layout: Layout) -> None:
        self._begin("BM25")
        vocabulary = terms.number_terms(layout)
        tasks = terms.terms_tasks(layout)
        self._workers.run(terms.score_terms, tasks)
        terms.join_terms(layout, len(tasks), vocabulary, self._folder / "bm25")

    def _write_texts(self, layout: Layout) -> None:
        self._begin("texts")
        with TextWriter(self._folder, "passages") as passages:
            for shard in layout.shards:
                passages.append_table(shard.columns.texts("passages"))
        names.write_aliases(layout, self._folder)

    def _save_types(self, layout: Layout, own: OwnTypes, n_entities: int) -> None:
        if not own.entities:
            return
        types = np.zeros(n_entities, dtype=np.uint8)
        place = {name: number for number, name in enumerate(own.entity_types, 1)}
        for entity, name in names.entity_types(layout).items():
            types[entity] = place[name]
        np.save(self._folder / "entity_types.npy", types)
