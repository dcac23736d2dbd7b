"""The third stage: how entities may be written, as the snapshot keeps it, and as a tree of words that finds them.

A dictionary of ten million spellings does not fit into memory. The tree is sorted arrays of numbers: its edges of one
depth are keys (node, word), and whole blocks of text walk down it at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from graph.construction.external.arrays import ArrayWriter, Columns, TextWriter, places

_BLOCK = 4096
NOTHING = -1

Numbers = NDArray[np.int32]


class ListWriter:
    """Writes texts in order, each with a list of numbers: the files of a snapshot's mapping from texts to lists."""

    def __init__(self, folder: Path, name: str) -> None:
        self._texts = TextWriter(folder, name)
        self._starts = ArrayWriter(folder / f"{name}.numbers.starts.npy", np.int32)
        self._values = ArrayWriter(folder / f"{name}.numbers.values.npy", np.int32)
        self._waiting: list[tuple[str, Sequence[int]]] = []
        self._starts.append(np.zeros(1, dtype=np.int32))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._flush()
        for writer in (self._texts, self._starts, self._values):
            writer.__exit__(kind, error, at)

    def append(self, text: str, numbers: Sequence[int]) -> None:
        """Write one text with its numbers."""
        self._waiting.append((text, numbers))
        if len(self._waiting) == _BLOCK:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._texts.append([text for text, _ in waiting])
        self._starts.append(len(self._values) + np.cumsum([len(numbers) for _, numbers in waiting], dtype=np.int64))
        self._values.append(np.fromiter(chain.from_iterable(numbers for _, numbers in waiting), dtype=np.int32))


def write_spellings(pairs: Iterable[tuple[str, int]], folder: Path, tree: Columns) -> None:
    """Write the spellings of a snapshot, and the tree of their words.

    Args:
        pairs: each spelling, tokens joined by spaces, with an entity, in order.
        folder: the generation's.
        tree: where the tree goes.
    """
    words: dict[str, int] = {}
    spelled = ((text, [entity for _, entity in group]) for text, group in groupby(pairs, key=itemgetter(0)))
    with (
        ListWriter(folder, "spellings") as spellings,
        ListWriter(folder, "first_words") as first_words,
        ArrayWriter(tree.folder / "paths.npy", np.int32) as paths,
        ArrayWriter(tree.folder / "path_lengths.npy", np.int32) as lengths,
    ):
        for first, group in groupby(spelled, key=lambda one: one[0].split(" ", 1)[0]):
            of_first: list[list[int]] = []
            for text, entities in group:
                spellings.append(text, entities)
                of_first.append([words.setdefault(word, len(words)) for word in text.split(" ")])
            sizes = [len(path) for path in of_first]
            first_words.append(first, sorted(set(sizes), reverse=True))
            paths.append(np.fromiter(chain.from_iterable(of_first), dtype=np.int32))
            lengths.append(np.array(sizes, dtype=np.int32))
    tree.save_texts("words", words)
    _grow(tree)


def _grow(tree: Columns) -> None:
    """Write the edges of the tree, depth by depth, and which spelling ends at each node.

    Nodes are numbered depth by depth, in the order of their keys.
    """
    paths, lengths = tree.array("paths"), tree.array("path_lengths")
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    node_of = np.zeros(len(lengths), dtype=np.int64)
    keys, ends, first_nodes = [], [], [0]
    spelling = np.arange(len(lengths))
    for depth in range(int(lengths.max(initial=0))):
        longer = lengths[spelling] > depth
        spelling = spelling[longer]
        key = node_of[spelling] << 32 | paths[starts[spelling] + depth]
        distinct, place = np.unique(key, return_inverse=True)
        node_of[spelling] = place + first_nodes[-1]
        end = np.full(len(distinct), NOTHING, dtype=np.int32)
        here = lengths[spelling] == depth + 1
        end[place[here]] = spelling[here]
        keys.append(distinct)
        ends.append(end)
        first_nodes.append(first_nodes[-1] + len(distinct))
    tree.save(
        keys=np.concatenate([*keys, np.zeros(0, dtype=np.int64)]),
        ends=np.concatenate([*ends, np.zeros(0, dtype=np.int32)]),
        first_nodes=np.array(first_nodes, dtype=np.int64),
    )


class Matches(NamedTuple):
    """Spellings that stand in text: the first token of each, how many it has, and its number."""

    starts: NDArray[np.int64]
    lengths: Numbers
    spellings: Numbers


class SpellingTree:
    """Finds the longest known spellings in blocks of text, as a `NameMatcher` does in one text."""

    def __init__(self, columns: Columns) -> None:
        self._words = {word: number for number, word in enumerate(columns.strings("words"))}
        self._keys = columns.array("keys")
        self._ends = columns.array("ends")
        self._first_nodes = columns.array("first_nodes").tolist()

    def numbers(self, words: Iterable[str]) -> Numbers:
        """Return the tree's numbers of words; -1 of those that no spelling has."""
        return places(self._words, words)

    def find(self, tokens: Numbers, bounds: NDArray[np.int64]) -> Matches:
        """Return the longest spellings of each text, from left to right, without overlap.

        Args:
            tokens: numbers of the words of all texts.
            bounds: where each text starts, and the end.
        """
        ends_at = np.repeat(bounds[1:], np.diff(bounds))
        lengths, spellings = self._longest(tokens, ends_at)
        starts = np.flatnonzero(lengths)
        kept = _apart(starts, starts + lengths[starts])
        # Two texts have no token in common: what was found before one does not reach into it.
        return Matches(starts[kept], lengths[starts[kept]], spellings[starts[kept]])

    def _longest(self, tokens: Numbers, ends_at: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
        """Return of each token how many the longest spelling has that starts there, 0 without one, and which it is."""
        lengths = np.zeros(len(tokens), dtype=np.int32)
        spellings = np.full(len(tokens), NOTHING, dtype=np.int32)
        at = np.flatnonzero(tokens >= 0)
        nodes = np.zeros(len(at), dtype=np.int64)
        for depth, (first, last) in enumerate(_pairs(self._first_nodes)):
            here = at + depth
            within = here < ends_at[at]
            at, nodes, here = at[within], nodes[within], here[within]
            known = tokens[here] >= 0
            at, nodes, here = at[known], nodes[known], here[known]
            if not len(at):
                break
            found, place = _search(self._keys[first:last], nodes << 32 | tokens[here])
            at, nodes = at[found], place[found] + first
            end = self._ends[nodes]
            complete = end >= 0
            lengths[at[complete]] = depth + 1
            spellings[at[complete]] = end[complete]
        return lengths, spellings


def _pairs(bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    return pairwise(bounds)


def _search(keys: NDArray[np.int64], sought: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Tell of each number whether it is among ascending keys, and where; in order, so that memory is read in order."""
    distinct, place = np.unique(sought, return_inverse=True)
    at = np.minimum(np.searchsorted(keys, distinct), len(keys) - 1)
    return (keys[at] == distinct)[place], at[place].astype(np.int64)


def _apart(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell which of some stretches are kept where each begins behind the last that was kept; starts ascend."""
    kept = np.zeros(len(starts), dtype=bool)
    free = 0
    for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if start >= free:
            kept[number] = True
            free = end
    return kept
