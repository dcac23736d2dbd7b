"""From the record to a generation's files, in bounded memory and by one process or several.

Passages are read in shards; names and facts of all shards are numbered by their ids; edges are made in ranges of their
sources. In memory stay a few numbers a name and a fact, and the words of the texts. Only evidence is stored;
what depends on the whole corpus (classes, the cap on synonyms, the cut on frequent names) is derived here, so that a
graph depends on its corpus alone and not on the order in which it was indexed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from graph.construction.bm25 import write_index
from graph.construction.columns import (
    BLOCK,
    ID_TYPE,
    Array,
    ArrayWriter,
    Columns,
    Ids,
    TextWriter,
    find,
    in_blocks,
    joined,
    merged_runs,
    packed,
    rows_of,
    save_run,
    unpacked,
)
from graph.construction.edges import (
    EDGE_TYPES,
    PASSAGE_CLASSES,
    RELATION_KINDS,
    class_cuts,
    fact_edges,
    is_kept,
    join_edges,
    link_terms,
    near_name_edges,
    nearest_pairs,
    passage_edges,
    sort_edges,
    title_shares,
    write_arcs,
)
from graph.construction.knowledge_graph import (
    BUILT_IN,
    KnowledgeGraph,
    SnapshotHeader,
    StoredPassages,
    load,
    table_of_facts,
)
from graph.construction.near_names import KEPT, PAIR, may_have_synonyms, near_pairs
from graph.construction.shards import Shard, keep_smallest, shard_size, shards_of, vectors_made_with
from graph.construction.spellings import CorrectedNames, KnownSpellings, most_given, write_spellings
from graph.corrections.apply import Corrections
from graph.embedding.embeddings import understanding_of
from graph.own_types import OwnTypes
from graph.relations import PassageClasses
from graph.schema import Fact, RelationType
from graph.storage.record import Record, declared_types
from graph.text import findable, normalise_name

LINK = np.dtype([("passage", "i4"), ("weight", "f8"), ("offset", "i4"), ("own", "?"), ("titled", "?"), ("stated", "?")])
"""An entity's link with a passage: its weight, before it is shared among chunks; where the name stands; whether it is
a name of the passage's own, its title, and in one of its triples."""

TRIPLE = np.dtype([("high", "i4"), ("kind", "u1"), ("confidence", "f8")])
"""A triple, by its lower entity: the higher one, the kind of its edge, its confidence."""

SCRATCH = "building"
"""The folder beside a generation's files of what is removed when the build is done."""

_VECTORS, _PAIRS = 2_048, 1 << 20


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is worked on at once.

    Attributes:
        shard: passages that are read together, about; 0 for what `shard_size` says.
        names: names or facts that are merged together.
        edges: links, triples and pairs that edges are made of together, about.
    """

    shard: int = 0
    names: int = 200_000
    edges: int = 1 << 22


_SIZES = Sizes()


def build_generation(
    record: Record,
    folder: Path,
    cache: Path,
    *,
    sizes: Sizes = _SIZES,
    on_stage: Callable[[str], object] = str,
) -> None:
    """Write the snapshot and the BM25 index of a record's present generation into an existing folder.

    Args:
        record: no other process writes to it meanwhile.
        folder: the generation's.
        cache: the folder of what is kept for the next build: what shards say, and pairs of near names.
        sizes: how much is worked on at once.
        on_stage: called with the name of each stage when it begins.
    """
    n_passages, scratch = record.count_passages(), folder / SCRATCH
    scratch.mkdir()
    cache.mkdir(exist_ok=True)
    try:
        shards = shards_of(record, sizes.shard or shard_size(n_passages), cache)
        Build(record, folder, shards).run(cache, sizes, on_stage)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def derive_graph(record: Record, folder: Path | None = None) -> KnowledgeGraph:
    """Derive the graph of a record from nothing else, into an existing folder, or one that goes away."""
    with TemporaryDirectory() as scratch:
        into = folder or Path(scratch)
        build_generation(record, into, Path(scratch) / "read")
        return load(into)


class Build:
    """One build: its stages, each over shards of passages or ranges of entities."""

    def __init__(self, record: Record, folder: Path, shards: Sequence[Shard]) -> None:
        self.record = record
        self.folder = folder
        self._shards = shards

    def run(self, cache: Path, sizes: Sizes, begin: Callable[[str], object]) -> None:
        """Do one stage after the other."""
        record = self.record
        begin("passages")
        for shard in self._shards:
            if not shard.is_read:
                shard.read(record, self._corrections)
        self._prune(cache)
        begin("names")
        types = self._merge_names(sizes.names)
        own = self._own_types(types)
        begin("vectors of names")
        self._write_vectors()
        begin("links")
        for index in range(len(self._shards)):
            self.link(index)
        self.__dict__.pop("_spellings", None)
        begin("counts")
        self._count()
        begin("synonyms")
        self._write_pairs(cache / KEPT)
        begin("edges")
        n_edges = self._write_edges(sizes.edges)
        begin("arcs, facts and BM25")
        self.merge_facts(sizes.names)
        self.write_terms(sizes.edges)
        write_arcs(self.folder, self._n_entities + self._n_passages)
        begin("texts")
        with TextWriter(self.folder, "passages") as passages:
            for shard in self._shards:
                passages.append_table(shard.said.texts("passages"))
        SnapshotHeader(
            generation=record.generation,
            commit_id=record.commit_id,
            embedding_model=record.embedding_model,
            passages=self._n_passages,
            entities=self._n_entities,
            facts=len(np.load(self.folder / "fact_relations.npy", mmap_mode="r")),
            edges=n_edges,
            own=own,
        ).save(self.folder)

    @property
    def _whole(self) -> Columns:
        """The arrays that stages leave each other on all passages."""
        return Columns(self.folder / SCRATCH)

    def _part(self, stage: str, part: int) -> Columns:
        """Return the arrays that a stage leaves on one shard or range."""
        folder = self.folder / SCRATCH / stage / str(part)
        folder.mkdir(parents=True, exist_ok=True)
        return Columns(folder)

    @cached_property
    def _n_passages(self) -> int:
        return sum(shard.size for shard in self._shards)

    @cached_property
    def _n_entities(self) -> int:
        return len(self._whole.array("entity_ids"))

    @cached_property
    def _corrections(self) -> Corrections:
        return Corrections(self.record.corrections())

    @cached_property
    def _corrected(self) -> CorrectedNames:
        return CorrectedNames(self._corrections)

    @cached_property
    def _spellings(self) -> KnownSpellings:
        return KnownSpellings(Columns(self.folder))

    def _prune(self, cache: Path) -> None:
        """Remove what was read of passages that are no more."""
        used = {KEPT, *(shard.folder.name for shard in self._shards)}
        for folder in cache.iterdir():
            if folder.name not in used:
                shutil.rmtree(folder, ignore_errors=True)

    def _number(self, kind: str) -> Ids:
        """Number the names or facts of all shards by their ids; write which one each is of each shard's."""
        # Copies: a map of each shard's file would take as many open files.
        id_columns = [np.array(shard.said.array(f"{kind}_ids")) for shard in self._shards]
        ids, numbers = np.unique(joined(id_columns, ID_TYPE), return_inverse=True)
        bounds = np.cumsum([0, *map(len, id_columns)]).tolist()
        for index, (start, end) in enumerate(pairwise(bounds)):
            self._part("shards", index).save(**{f"{kind}_of": numbers[start:end].astype(np.int32)})
        return ids

    def _merge_names(self, at_once: int) -> dict[int, str]:
        """Write the entities, their names, labels and spellings; return the own types of those that have one."""
        ids = self._number("name")
        self._whole.save(entity_ids=ids)
        starts = range(0, len(ids), at_once)
        for part, at in enumerate(starts):
            self.read_names(part, at, min(len(ids), at + at_once))
        runs = [self._part("names", part) for part in range(len(starts))]
        with (
            TextWriter(self.folder, "entities") as entities,
            ArrayWriter(self._whole.folder / "eligible.npy", np.bool_) as eligible,
        ):
            for run in runs:
                entities.append_table(run.texts("entities"))
                eligible.append(run.array("eligible"))
        write_spellings(merged_runs(runs, "spelled"), self.folder)
        with (
            TextWriter(self.folder, "aliases") as texts,
            ArrayWriter(self.folder / "alias_entities.npy", np.int32) as of,
        ):
            for block in in_blocks(merged_runs(runs, "aliases")):
                texts.append(text for text, _ in block)
                of.append(np.array([entity for _, entity in block], dtype=np.int32))
        return {entity: text for text, entity in merged_runs(runs, "types")}

    def read_names(self, part: int, start: int, end: int) -> None:
        """Write the names and labels of the entities from one to another, and their types, spellings and aliases."""
        understands = understanding_of(self.record.embedding_model)
        labels = most_given(self._given("labels", start, end))
        names = [(entity, normalise_name(labels[entity])) for entity in range(start, end)]
        aliases = {(alias, entity) for entity, alias, _ in self._given("aliases", start, end)}
        aliases |= {(alias, entity) for entity, name in names for alias in self._corrected.aliases(name)}
        spelled = {(findable(name), entity) for name, entity in (*aliases, *((n, e) for e, n in names))}
        own = self._part("names", part)
        own.save_texts("entities", (text for entity, name in names for text in (name, labels[entity])))
        own.save(eligible=np.array([may_have_synonyms(name, understands) for _, name in names], dtype=np.bool_))
        save_run(
            own, "types", {(text, entity) for entity, text in most_given(self._given("types", start, end)).items()}
        )
        save_run(own, "spelled", {pair for pair in spelled if pair[0]})
        save_run(own, "aliases", aliases)

    def _given(self, what: str, start: int, end: int) -> Iterator[tuple[int, str, int]]:
        """Yield (entity, text, how often it is given) of the entities from one to another."""
        for index, shard in enumerate(self._shards):
            name_of, spellings = self._part("shards", index).array("name_of"), shard.said.array(f"{what}.names")
            names = rows_of(name_of, start, end)
            rows = rows_of(spellings["name"], names.start, names.stop)
            entities, counts = name_of[spellings["name"][rows]].tolist(), spellings["count"][rows].tolist()
            yield from zip(entities, shard.said.strings(what, rows.start, rows.stop), counts, strict=True)

    def _own_types(self, types: dict[int, str]) -> OwnTypes:
        """Return the record's own types that its facts and names have, and write those of the entities."""
        met = {name for shard in self._shards for name in shard.said.strings("own_relations")}
        own = declared_types(self.record).used([*map(RelationType, met)], {*types.values()})
        if own.entities:
            places = np.zeros(self._n_entities, dtype=np.uint8)
            places[[*types]] = [own.entity_types.index(name) + 1 for name in types.values()]
            np.save(self.folder / "entity_types.npy", places)
        self._whole.save_texts("own_relations", map(str, own.relation_types))
        return own

    def _relations_of(self, shard: Shard) -> NDArray[np.uint8]:
        """Return of each relation type of a shard its place among those of the graph."""
        own = self._whole.strings("own_relations")
        met = [len(BUILT_IN) + own.index(name) for name in shard.said.strings("own_relations")]
        return np.array([*range(len(BUILT_IN)), *met], dtype=np.uint8)

    def _write_vectors(self) -> None:
        """Write the vectors of names and passages. Raises WorkspaceDamaged where the record lacks one."""
        ids, dimension = self._whole.array("entity_ids"), self.record.dimension
        with ArrayWriter(self._whole.folder / "vectors.npy", np.float32, (dimension,)) as vectors:
            for start in range(0, len(ids), _VECTORS):
                vectors.append(self.record.name_vectors(unpacked(ids[start : start + _VECTORS], "entity")))
        with ArrayWriter(self.folder / "passage_vectors.npy", np.float32, (dimension,)) as vectors:
            for shard in self._shards:
                vectors.append(shard.said.array("passage_vectors"))

    def link(self, index: int) -> None:
        """Write a shard's links and triples in the order of their entities, and how its text writes names."""
        shard, own = self._shards[index], self._part("shards", index)
        said, name_of = shard.said, own.array("name_of")
        passages, tokens = said.array("passages"), said.array("tokens")
        passage, start, end, entity = self._mentions(said, tokens, np.cumsum([0, *passages["tokens"]], dtype=np.int64))
        plain = ~tokens["in_address"][start]
        written, place = np.unique(entity[plain], return_inverse=True)
        times = np.bincount(place, minlength=len(written))
        small = np.bincount(place, tokens["small"][end[plain] - 1], len(written)).astype(np.int64)
        stored = said.array("links")
        entities = name_of[stored["name"]]
        known = stored["passage"].astype(np.int64) << 32 | entities
        keys, first = np.unique(passage << 32 | entity, return_index=True)
        first = first[~np.isin(keys, known, assume_unique=True)]
        entities = np.concatenate([entities, entity[first]])
        links = np.zeros(len(entities), dtype=stored.dtype)
        links[: len(stored)] = stored
        links["passage"][len(stored) :] = passage[first]
        links["offset"][len(stored) :] = tokens["start"][start[first]]
        vectors = said.array("passage_vectors")
        cosines = self._cosines(entities, vectors, links["passage"])
        terms = link_terms(
            links["subject_of"], links["object_of"], cosines, links["offset"], passages["length"][links["passage"]]
        )
        built = np.zeros(len(links), dtype=LINK)
        built["passage"] = links["passage"] + shard.start
        built["weight"], built["offset"], built["titled"] = terms.weight, links["offset"], links["titled"]
        built["own"][: len(stored)] = True
        built["stated"] = links["subject_of"] + links["object_of"] > 0
        order = np.argsort(entities, kind="stable")
        own.save(link_entities=entities[order], links=built[order], written=np.stack([written, times, small]))
        self._link_ends(shard, own)

    def _mentions(
        self, said: Columns, tokens: Array, bounds: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Return the entities that text spells out: in which passage, from which token to which, and which."""
        words = said.strings("words")
        matches = self._spellings.find([words[word] for word in tokens["word"].tolist()], bounds)
        lists = Columns(self.folder)
        starts, values = (lists.array(f"spellings.numbers.{name}") for name in ("starts", "values"))
        first = starts[matches.spellings].astype(np.int64)
        sizes = starts[matches.spellings + 1] - first
        of = np.repeat(np.arange(len(first)), sizes)
        place = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entity, start = values[first[of] + place], matches.starts[of]
        passage, end = np.searchsorted(bounds, start, side="right") - 1, start + matches.lengths[of]
        kept = np.ones(len(of), dtype=bool)
        if self._corrected.forms:
            names, texts = lists.texts("entities", 2), StoredPassages(said.texts("passages", StoredPassages.WIDTH))
            for number, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
                spelled = " ".join([words[word] for word in tokens["word"][begin:stop].tolist()])
                if spelled in self._corrected.forms:
                    name = names.row(entity.item(number))[0]
                    kept[number] = self._corrected.admits(spelled, name, texts.at(passage.item(number)))
        return passage[kept], start[kept], end[kept], entity[kept]

    def _cosines(
        self, entities: NDArray[np.int32], passage_vectors: Array, passages: NDArray[np.int32]
    ) -> NDArray[np.float32]:
        names = self._whole.array("vectors")
        cosines = np.empty(len(entities), dtype=np.float32)
        for start in range(0, len(cosines), BLOCK):
            block = slice(start, start + BLOCK)
            # Row by row, so that a cosine does not depend on what else is computed with it.
            cosines[block] = (names[entities[block]] * passage_vectors[passages[block]]).sum(axis=1)
        return cosines

    def _link_ends(self, shard: Shard, own: Columns) -> None:
        """Write a shard's triples in the order of their lower entities."""
        said, name_of = shard.said.array("triples"), own.array("name_of")
        subjects, objects = name_of[said["subject"]], name_of[said["object"]]
        low = np.minimum(subjects, objects)
        order = np.argsort(low, kind="stable")
        triples = np.zeros(len(said), dtype=TRIPLE)
        triples["high"], triples["confidence"] = np.maximum(subjects, objects), said["confidence"]
        triples["kind"] = RELATION_KINDS[self._relations_of(shard)[said["relation"]]]
        own.save(triple_entities=low[order], triples=triples[order])

    def _count(self) -> None:
        """Write of each entity in how many passages and triples it stands, and how its name is written."""
        spelled, stated, times, small = (np.zeros(self._n_entities, dtype=np.int64) for _ in range(4))
        is_title = np.zeros(self._n_entities, dtype=bool)
        for index in range(len(self._shards)):
            columns = self._part("shards", index)
            entities, links = columns.array("link_entities"), columns.array("links")
            np.add.at(spelled, entities, 1)
            np.add.at(stated, entities[links["stated"]], 1)
            is_title[entities[links["titled"]]] = True
            written, written_times, written_small = columns.array("written")
            times[written] += written_times
            small[written] += written_small
        np.save(self.folder / "triple_passages.npy", stated.astype(np.int32))
        np.save(self.folder / "name_passages.npy", spelled.astype(np.int32))
        np.save(self.folder / "name_shares.npy", (1 - small / np.maximum(times, 1)).astype(np.float32))
        chunks = [np.array(shard.said.array("chunk_of")) for shard in self._shards]
        self._whole.save(is_title=is_title, title_shares=title_shares(np.concatenate([*chunks, _NO_CHUNKS])))
        self._whole.save(cuts=np.array(self._class_cuts()))

    def _class_cuts(self) -> tuple[float, float]:
        """Return the least weights of SECONDARY and of PRIMARY."""
        classes = PassageClasses(self.record.note(PASSAGE_CLASSES) or PassageClasses.THIRDS)
        ranked = self._whole.folder / "ranked.npy"
        with ArrayWriter(ranked, np.float64) as writer:
            for index in range(len(self._shards)):
                columns = self._part("shards", index)
                entities, links = columns.array("link_entities"), columns.array("links")
                writer.append(links["weight"][self._kept(entities, links) & ~links["titled"]])
        # In place in the file, which may be larger than memory.
        return class_cuts(np.load(ranked, mmap_mode="r+"), classes)

    def _kept(self, entities: NDArray[np.int32], links: Array) -> NDArray[np.bool_]:
        """Tell which links are edges."""
        frequency = Columns(self.folder).array("name_passages")
        return is_kept(links["own"], frequency[entities], self._n_passages)

    def _write_pairs(self, kept: Path) -> None:
        """Write the pairs of near names, less those that no edge may join, smaller entity first."""
        ids, vectors, eligible = map(self._whole.array, ("entity_ids", "vectors", "eligible"))
        apart = self._corrected.apart()
        forbidden = _keys(*(find(ids, packed(ends)) for ends in zip(*apart, strict=True))) if apart else _NO_KEYS
        with ArrayWriter(self._whole.folder / "pairs.npy", PAIR) as pairs:
            for block in _blocks(near_pairs(ids, vectors, eligible, kept, vectors_made_with(self.record))):
                pairs.append(block[~np.isin(_keys(block["first"], block["second"]), forbidden)])
        self._whole.save(near=np.zeros(len(pairs), dtype=bool))

    def _write_edges(self, budget: int) -> int:
        """Write the edges, range of sources by range; return how many they are."""
        weight = np.zeros(self._n_entities, dtype=np.int64)
        for index in range(len(self._shards)):
            for name in ("link_entities", "triple_entities"):
                np.add.at(weight, self._part("shards", index).array(name), 1)
        for block in _blocks(self._whole.array("pairs")):
            for end in _ENDS:
                np.add.at(weight, block[end], 1)
        ranges = _even_ranges(weight, budget)
        for low, high in ranges:
            self.mark_nearest(low, high)
        for part, (low, high) in enumerate(ranges):
            self.make_edges(part, low, high)
        with ExitStack() as stack:
            for name, kind in EDGE_TYPES.items():
                column = stack.enter_context(ArrayWriter(self.folder / f"edge_{name}.npy", kind))
                for part in range(len(ranges)):
                    column.append(self._part("edges", part).array(name))
            return len(column)

    def mark_nearest(self, start: int, end: int) -> None:
        """Mark the pairs of near names that are among the nearest of an end that falls into the range."""
        rows = self._pairs_in(start, end, _ENDS)
        pairs = self._whole.array("pairs")[rows]
        ends = np.column_stack([pairs[end] for end in _ENDS])
        near = np.lib.format.open_memmap(self._whole.folder / "near.npy", mode="r+")
        near[rows[nearest_pairs(ends, pairs["cosine"], start, end)]] = True

    def _pairs_in(self, start: int, end: int, ends: Sequence[str]) -> NDArray[np.int64]:
        """Return the places of the pairs of which one of these ends is in a range."""
        places, at = [], 0
        for block in _blocks(self._whole.array("pairs")):
            within = [(block[name] >= start) & (block[name] < end) for name in ends]
            places.append(at + np.flatnonzero(np.logical_or.reduce(within)))
            at += len(block)
        return joined(places, np.int64)

    def make_edges(self, part: int, start: int, end: int) -> None:
        """Write the edges whose sources fall into the range: of facts, synonyms and links."""
        low, triples = self._rows("triple_entities", "triples", start, end)
        facts = fact_edges(low, triples["high"], triples["kind"], triples["confidence"])
        rows = self._pairs_in(start, end, ["first"])
        rows = rows[self._whole.array("near")[rows]]
        pairs, in_triples = self._whole.array("pairs")[rows], Columns(self.folder).array("triple_passages")
        near = near_name_edges(pairs["first"], pairs["second"], pairs["cosine"], in_triples)
        entities, links = self._rows("link_entities", "links", start, end)
        kept = self._kept(entities, links)
        entities, links = entities[kept], links[kept]
        is_title, shares = self._whole.array("is_title")[entities], self._whole.array("title_shares")
        low_cut, high_cut = self._whole.array("cuts").tolist()
        links_of_passages = passage_edges(entities, links, is_title, shares, self._n_entities, (low_cut, high_cut))
        edges = sort_edges(join_edges([facts, near, links_of_passages]))
        self._part("edges", part).save(**{name: getattr(edges, name) for name in EDGE_TYPES})

    def _rows(self, key: str, name: str, start: int, end: int) -> tuple[Array, Array]:
        """Return the rows of all shards whose key is from ``start`` to ``end``: their keys, and what stands by them."""
        keys, values = [], []
        for index in range(len(self._shards)):
            columns = self._part("shards", index)
            key_column = columns.array(key)
            rows = rows_of(key_column, start, end)
            # Copies: a map of each shard's file would take as many open files.
            keys.append(np.array(key_column[rows]))
            values.append(np.array(columns.array(name)[rows]))
        return joined(keys, np.int32), np.concatenate(values)

    def merge_facts(self, at_once: int) -> None:
        """Write the facts: as they are shown, their ends, their relation types, who holds them."""
        ids, folder = self._number("fact"), self.folder
        with (
            TextWriter(folder, "facts") as texts,
            ArrayWriter(folder / "fact_ends.npy", np.int32, (2,)) as fact_ends,
            ArrayWriter(folder / "fact_relations.npy", np.uint8) as fact_relations,
            ArrayWriter(folder / "fact_passages.starts.npy", np.int32) as starts,
            ArrayWriter(folder / "fact_passages.values.npy", np.int32) as values,
        ):
            starts.append(np.zeros(1, dtype=np.int32))
            for start in range(0, len(ids), at_once):
                some = ids[start : start + at_once]
                shown: dict[int, Fact] = {}
                ends, relations = np.zeros((len(some), 2), dtype=np.int32), np.zeros(len(some), dtype=np.uint8)
                facts, passages = [], []
                for index, shard in enumerate(self._shards):
                    columns, said = self._part("shards", index), shard.said
                    fact_of, statements = columns.array("fact_of"), said.array("held")
                    rows = rows_of(fact_of, start, start + len(some))
                    places, stated = fact_of[rows] - start, said.array("facts")[rows]
                    parts = iter(said.strings("facts", 3 * rows.start, 3 * rows.stop))
                    for place, statement in zip(places.tolist(), zip(parts, parts, parts, strict=True), strict=True):
                        keep_smallest(shown, place, Fact(*statement, BUILT_IN[0]))
                    name_of = columns.array("name_of")
                    ends[places] = np.column_stack([name_of[stated["subject"]], name_of[stated["object"]]])
                    relations[places] = self._relations_of(shard)[stated["relation"]]
                    by = rows_of(statements["fact"], rows.start, rows.stop)
                    facts.append(fact_of[statements["fact"][by]] - start)
                    passages.append(statements["passage"][by] + shard.start)
                fact = joined(facts, np.int64)
                texts.append_table(table_of_facts(unpacked(some, "fact"), [shown[place] for place in range(len(some))]))
                fact_ends.append(ends)
                fact_relations.append(relations)
                starts.append(len(values) + np.cumsum(np.bincount(fact, minlength=len(some))))
                values.append(joined(passages, np.int32)[np.argsort(fact, kind="stable")])

    def write_terms(self, budget: int) -> None:
        """Write the BM25 index: the terms in the order in which they first stand, with the scores of passages."""
        vocabulary: dict[str, int] = {}
        lengths, frequency = [], np.zeros(0, dtype=np.int64)
        for index, shard in enumerate(self._shards):
            postings = np.array(shard.said.array("postings"))
            numbers = [vocabulary.setdefault(term, len(vocabulary)) for term in shard.said.strings("terms")]
            terms = np.array(numbers, dtype=np.int32)[postings["term"]]
            postings["passage"] += shard.start
            order = np.argsort(terms, kind="stable")
            self._part("shards", index).save(posting_terms=terms[order], postings=postings[order])
            frequency = np.pad(frequency, (0, len(vocabulary) - len(frequency)))
            np.add.at(frequency, terms, 1)
            lengths.append(np.array(shard.said.array("passages")["terms"]))
        ranges = (self._rows("posting_terms", "postings", *each) for each in _even_ranges(frequency, budget))
        postings_of = ((terms, term_columns["passage"], term_columns["times"]) for terms, term_columns in ranges)
        write_index(self.folder / "bm25", vocabulary, frequency, joined(lengths, np.int64), postings_of)


def _even_ranges(weights: NDArray[np.int64], budget: int) -> list[tuple[int, int]]:
    """Return the ranges into which a column is cut that have about so much weight each."""
    ends = np.cumsum(weights)
    cut = np.searchsorted(ends, np.arange(budget, int(ends[-1]) if len(ends) else 0, budget))
    return list(pairwise(sorted({0, *cut.tolist(), len(ends)})))


_NO_CHUNKS = np.zeros((0, 2), dtype=np.uint64)
_ENDS = ("first", "second")
_NO_KEYS = np.zeros(0, dtype=np.int64)


def _keys(one: Array, other: Array) -> NDArray[np.int64]:
    keys: NDArray[np.int64] = np.minimum(one, other).astype(np.int64) << 32 | np.maximum(one, other)
    return keys


def _blocks(array: Array) -> Iterator[Array]:
    return (array[start : start + _PAIRS] for start in range(0, len(array), _PAIRS))
