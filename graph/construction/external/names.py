"""The second stage: the names of all shards become entities, in the order of their ids."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import TextTable
from graph.construction.corrected_names import CorrectedNames
from graph.construction.external.arrays import (
    ID_TYPE,
    ArrayWriter,
    Columns,
    TextWriter,
    join_arrays,
    joined,
    strings_of,
)
from graph.construction.external.layout import Layout, Slice, ids_of, rows_of, slices_of_ids
from graph.embedding.embeddings import understanding_of
from graph.storage.synonym_pairs import may_have_synonyms
from graph.storage.workspace import Workspace
from graph.text import findable

Rows = NDArray[np.intp]

_BLOCK = 4096


def merge_names(layout: Layout, part: int) -> None:
    """Write the entities of a range of ids: names, labels, types, spellings; and of each shard's names, which one."""
    slices = slices_of_ids(layout, "name", part)
    ids = ids_of(slices, "name")
    distinct, first, entity_of = np.unique(ids, return_index=True, return_inverse=True)
    columns = layout.of_part("names", part)
    normal = _normal_forms(slices, first)
    labels = _labels(slices, entity_of, "label")
    types = _labels(slices, entity_of, "type")
    TextTable.of(zip(normal, (labels[n] for n in range(len(first))), strict=True), 2).save(columns.folder, "entities")
    with Workspace(layout.root).open_record() as record:
        understands, corrected = understanding_of(record.embedding_model), CorrectedNames.of(record)
    columns.save(
        eligible=np.array([may_have_synonyms(name, understands) for name in normal], dtype=np.bool_),
        ids=distinct,
        entity_of=entity_of.astype(np.int32),
        starts=np.cumsum([0, *(each.end - each.start for each in slices)]),
        typed=np.array(sorted(types), dtype=np.int32),
    )
    columns.save_texts("types", (types[entity] for entity in sorted(types)))
    _save_spellings(columns, normal, corrected)


def _normal_forms(slices: Sequence[Slice], first: Rows) -> list[str]:
    """Return the names of some rows of slices."""
    starts = np.cumsum([0, *(each.end - each.start for each in slices)])
    found: list[str] = [""] * len(first)
    order = np.argsort(first, kind="stable")
    bounds = np.searchsorted(first[order], starts)
    for number, each in enumerate(slices):
        wanted = order[bounds[number] : bounds[number + 1]]
        if not len(wanted):
            continue
        names = strings_of(each.columns.texts("names"), each.start, each.end)
        for row, place in zip((first[wanted] - starts[number]).tolist(), wanted.tolist(), strict=True):
            found[place] = names[row]
    return found


def _labels(slices: Sequence[Slice], entity_of: Rows, name: str) -> dict[int, str]:
    """Return what most passages say of each entity, of those of which one says anything."""
    counted: dict[tuple[int, str], int] = defaultdict(int)
    start = 0
    for each in slices:
        names = each.columns.array(f"{name}_names")
        rows = rows_of(names, each.start, each.end)
        texts = strings_of(each.columns.texts(f"{name}_texts"), rows.start, rows.stop)
        entities = entity_of[start + names[rows] - each.start].tolist()
        counts = each.columns.array(f"{name}_counts")[rows].tolist()
        for entity, text, count in zip(entities, texts, counts, strict=True):
            counted[entity, text] += count
        start += each.end - each.start
    best: dict[int, tuple[int, str]] = {}
    for (entity, text), count in counted.items():
        rank = (-count, text)
        if entity not in best or rank < best[entity]:
            best[entity] = rank
    return {entity: text for entity, (_, text) in best.items()}


def _save_spellings(columns: Columns, normal: Sequence[str], corrected: CorrectedNames) -> None:
    """Write under which tokens each entity may be found in text, and the aliases that corrections give."""
    forms = [(alias, entity) for entity, name in enumerate(normal) for alias in corrected.aliases(name)]
    spelled = {(findable(form), entity) for form, entity in (*zip(normal, range(len(normal)), strict=True), *forms)}
    save_run(columns, "spelled", {pair for pair in spelled if pair[0]})
    save_run(columns, "alias", set(forms))


def save_run(columns: Columns, name: str, pairs: set[tuple[str, int]]) -> None:
    """Write some texts with their entities, in order."""
    ordered = sorted(pairs)
    columns.save_texts(f"{name}_texts", (text for text, _ in ordered))
    columns.save(**{f"{name}_entities": np.array([entity for _, entity in ordered], dtype=np.int32)})


def join_entities(layout: Layout) -> None:
    """Write the entities of all ranges into the generation's folder, and where each range starts."""
    parts = [layout.of_part("names", part) for part in range(layout.parts)]
    whole = layout.whole
    whole.save(entity_starts=np.cumsum([0, *(len(part.array("ids")) for part in parts)]))
    join_arrays((part.folder / "ids.npy" for part in parts), whole.folder / "entity_ids.npy", ID_TYPE)
    join_arrays((part.folder / "eligible.npy" for part in parts), whole.folder / "eligible.npy", np.bool_)
    with TextWriter(layout.folder, "entities") as writer:
        for part in parts:
            writer.append_table(part.texts("entities"))


def entity_types(layout: Layout) -> dict[int, str]:
    """Return the entity type of each entity that has one."""
    starts = layout.whole.array("entity_starts").tolist()
    found: dict[int, str] = {}
    for part in range(layout.parts):
        columns = layout.of_part("names", part)
        typed = (columns.array("typed") + starts[part]).tolist()
        found.update(zip(typed, columns.strings("types"), strict=True))
    return found


def number_names(layout: Layout, index: int) -> None:
    """Write of which entity each of a shard's names is, and the shard's aliases as runs."""
    starts = layout.whole.array("entity_starts").tolist()
    found = []
    for part in range(layout.parts):
        columns = layout.of_part("names", part)
        begin, end = columns.array("starts")[index : index + 2].tolist()
        found.append(columns.array("entity_of")[begin:end] + np.int32(starts[part]))
    entity_of = joined(found, np.int32)
    own, said = layout.of_shard(index), layout.shards[index].columns
    own.save(entity_of=entity_of)
    aliases = said.strings("aliases")
    entities = entity_of[said.array("alias_names")].tolist()
    save_run(own, "alias", set(zip(aliases, entities, strict=True)))
    spelled = {(findable(alias), entity) for alias, entity in zip(aliases, entities, strict=True)}
    save_run(own, "spelled", {pair for pair in spelled if pair[0]})


def merged_runs(layout: Layout, name: str) -> Iterator[tuple[str, int]]:
    """Yield the texts of all runs with their entities, in order, each pair once."""
    starts = layout.whole.array("entity_starts").tolist()
    of_names = [_read_run(layout.of_part("names", part), name, starts[part]) for part in range(layout.parts)]
    of_shards = [_read_run(layout.of_shard(index), name, 0) for index in range(len(layout.shards))]
    return (pair for pair, _ in groupby(heapq.merge(*of_names, *of_shards)))


def _read_run(columns: Columns, name: str, start: int) -> Iterator[tuple[str, int]]:
    texts, entities = columns.texts(f"{name}_texts"), columns.array(f"{name}_entities")
    for begin in range(0, len(entities), _BLOCK):
        block = (entities[begin : begin + _BLOCK] + start).tolist()
        yield from zip(strings_of(texts, begin, begin + len(block)), block, strict=True)


def write_aliases(layout: Layout) -> None:
    """Write the full titles, and the names that corrections make another of, each with its entity."""
    folder = layout.folder
    with TextWriter(folder, "aliases") as texts, ArrayWriter(folder / "alias_entities.npy", np.int32) as entities:
        pairs = merged_runs(layout, "alias")
        while block := list(islice(pairs, _BLOCK)):
            texts.append([text for text, _ in block])
            entities.append(np.array([entity for _, entity in block], dtype=np.int32))
