"""The fourth stage: which entities each passage is linked to: its own names, and those that its text spells out."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import TextTable
from graph.construction.corrected_names import CorrectedNames
from graph.construction.external.arrays import Columns, read_array
from graph.construction.external.layout import Layout
from graph.construction.external.scan import IN_ADDRESS, IN_SMALL_LETTERS
from graph.construction.external.spellings import Matches, SpellingTree
from graph.construction.knowledge_graph import StoredPassages
from graph.storage.workspace import Workspace
from graph.text import Mention

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class _Mentions(NamedTuple):
    """Entities that text spells out, one element each: in which passage, from which token to which, and which."""

    passages: Longs
    starts: Longs
    ends: Longs
    entities: Ints

    def where(self, kept: NDArray[np.bool_]) -> _Mentions:
        return _Mentions(self.passages[kept], self.starts[kept], self.ends[kept], self.entities[kept])


def find_mentions(layout: Layout, index: int) -> None:
    """Write the links of a shard's passages, without cosines, and how often each entity's name is written how."""
    said, own = layout.shards[index].columns, layout.of_shard(index)
    bounds = np.cumsum([0, *said.array("token_counts").tolist()], dtype=np.int64)
    tree = _tree(layout.whole.folder)
    tokens = tree.numbers(said.strings("words"))[said.array("tokens")]
    mentions = _mentions(tree.find(tokens, bounds), bounds, layout.folder)
    mentions = _admitted(mentions, layout, said, bounds)
    marks = said.array("token_marks")
    _save_writings(own, mentions, marks)
    _save_links(own, said, mentions)


@lru_cache(maxsize=1)
def _tree(folder: Path) -> SpellingTree:
    return SpellingTree(Columns(folder))


def forget_tree() -> None:
    """Let go of the tree of spellings that this process keeps between two tasks."""
    _tree.cache_clear()


def _mentions(matches: Matches, bounds: Longs, folder: Path) -> _Mentions:
    """Return one mention for each entity that a found spelling may mean."""
    starts, values = (read_array(folder / f"spellings.numbers.{name}.npy") for name in ("starts", "values"))
    first = starts[matches.spellings].astype(np.int64)
    sizes = starts[matches.spellings + 1] - first
    owner = np.repeat(np.arange(len(first)), sizes)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    passages = np.searchsorted(bounds, matches.starts, side="right") - 1
    ends = matches.starts + matches.lengths
    return _Mentions(passages[owner], matches.starts[owner], ends[owner], values[first[owner] + place])


def _admitted(mentions: _Mentions, layout: Layout, said: Columns, bounds: Longs) -> _Mentions:
    """Return the mentions that corrections let a passage mean."""
    with Workspace(layout.root).open_record() as record:
        corrected = CorrectedNames.of(record)
    forms = corrected.token_forms
    if not forms:
        return mentions
    words, tokens = said.strings("words"), said.array("tokens")
    names = TextTable.load(layout.folder, "entities", 2).column(0)
    passages = StoredPassages(said.texts("passages", StoredPassages.WIDTH))
    kept = np.ones(len(mentions.starts), dtype=bool)
    rows = zip(mentions.passages.tolist(), mentions.starts.tolist(), mentions.ends.tolist(), strict=True)
    for number, (passage, start, end) in enumerate(rows):
        spelled = [words[token] for token in tokens[start:end].tolist()]
        if " ".join(spelled) in forms:
            entity = int(mentions.entities[number])
            mention, name = Mention(0, len(spelled), entity), names.at(entity)
            kept[number] = corrected.admits(spelled, mention, name, passages.at(passage))
    return mentions.where(kept)


def _save_writings(own: Columns, mentions: _Mentions, marks: NDArray[np.uint8]) -> None:
    plain = mentions.where(marks[mentions.starts] & IN_ADDRESS == 0)
    entities, place, times = np.unique(plain.entities, return_inverse=True, return_counts=True)
    is_small = marks[plain.ends - 1] & IN_SMALL_LETTERS > 0
    small = np.bincount(place, is_small, len(entities)).astype(np.int64)
    own.save(written_entities=entities, written_times=times, written_small=small)


def _save_links(own: Columns, said: Columns, mentions: _Mentions) -> None:
    """Write the links that passages hold themselves, and behind them those that their texts merely spell out."""
    passages, entities = said.array("link_passages"), own.array("entity_of")[said.array("link_names")]
    held = np.unique(_key(passages, entities))
    keys, first = np.unique(_key(mentions.passages, mentions.entities), return_index=True)
    first = first[~np.isin(keys, held, assume_unique=True)]
    starts = said.array("token_starts")[mentions.starts[first]]
    none = np.zeros(len(first), dtype=np.int32)
    own.save(
        passages=np.concatenate([passages, mentions.passages[first].astype(np.int32)]),
        entities=np.concatenate([entities, mentions.entities[first].astype(np.int32)]),
        subject_of=np.concatenate([said.array("link_subject_of"), none]),
        object_of=np.concatenate([said.array("link_object_of"), none]),
        titled=np.concatenate([said.array("link_titled"), none.astype(bool)]),
        offsets=np.concatenate([said.array("link_offsets"), starts]),
        own=np.repeat([True, False], [len(passages), len(first)]),
    )


def _key(passages: NDArray[np.integer], entities: Ints) -> Longs:
    return passages.astype(np.int64) << 32 | entities
