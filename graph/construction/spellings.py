"""How entities may be written: what corrections make of names, what the snapshot keeps, and what finds them in text.

A dictionary of ten million spellings does not fit into memory. `SpellingTree` is sorted arrays of numbers: its edges
of one depth are keys (node, word), and whole blocks of text walk down it at once.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import ArrayWriter, Columns, TextWriter, in_blocks
from graph.corrections.apply import Corrections
from graph.schema import Passage, entity_id
from graph.text import normalise_name, tokens

_NOTHING = -1

Numbers = NDArray[np.int32]
Longs = NDArray[np.int64]


class CorrectedNames:
    """The names that corrections make others of; all by their normal forms.

    Attributes:
        forms: those that do not mean the same name in every passage, or another name, by their tokens.
    """

    def __init__(self, corrections: Corrections) -> None:
        self._corrections = corrections
        self._written_as: dict[str, set[str]] = defaultdict(set)
        self.forms: dict[str, list[str]] = defaultdict(list)
        for form in sorted(corrections.forms()):
            self.forms[" ".join(tokens(form))].append(form)
            for _, rename in corrections.transitions(form):
                self._written_as[normalise_name(rename.into)].add(form)

    def aliases(self, name: str) -> set[str]:
        """Return the other forms that mean an entity's name in some passage."""
        return self._written_as.get(name, set()) - {name}

    def admits(self, spelled: str, name: str, passage: Passage) -> bool:
        """Tell whether a passage means an entity's name by the tokens that it spells, joined by spaces."""
        forms = self.forms.get(spelled, ())
        if not any(form == name or form in self._written_as.get(name, ()) for form in forms):
            return True
        return any(normalise_name(self._corrections.meaning(form, passage)) == name for form in forms)

    def apart(self) -> list[tuple[str, str]]:
        """Return the ids of each two entities that no edge of synonymy may join."""
        return [(entity_id(one), entity_id(other)) for one, other in self._corrections.kept_apart()]


def write_spellings(pairs: Iterable[tuple[str, int]], folder: Path, tree: Columns) -> None:
    """Write the spellings of a snapshot, and the tree of their words.

    Args:
        pairs: each spelling, tokens joined by spaces, with an entity, in order.
        folder: the generation's.
        tree: where the tree goes.
    """
    words: dict[str, int] = {}
    paths, lengths = array("i"), array("i")
    of_first: dict[str, set[int]] = defaultdict(set)

    def spellings() -> Iterator[tuple[str, Sequence[int]]]:
        for text, group in groupby(pairs, key=itemgetter(0)):
            path = text.split(" ")
            paths.extend([words.setdefault(word, len(words)) for word in path])
            lengths.append(len(path))
            of_first[path[0]].add(len(path))
            yield text, [entity for _, entity in group]

    _write_lists(folder, "spellings", spellings())
    _write_lists(folder, "first_words", ((word, sorted(of_first[word], reverse=True)) for word in sorted(of_first)))
    tree.save_texts("words", words)
    _grow(tree, np.array(paths, dtype=np.int32), np.array(lengths, dtype=np.int32))


def _write_lists(folder: Path, name: str, lists: Iterable[tuple[str, Sequence[int]]]) -> None:
    """Write texts in order, each with a list of numbers: the files of a snapshot's mapping from texts to lists."""
    with (
        TextWriter(folder, name) as texts,
        ArrayWriter(folder / f"{name}.numbers.starts.npy", np.int32) as starts,
        ArrayWriter(folder / f"{name}.numbers.values.npy", np.int32) as values,
    ):
        starts.append(np.zeros(1, dtype=np.int32))
        for block in in_blocks(lists):
            texts.append(text for text, _ in block)
            starts.append(len(values) + np.cumsum([len(numbers) for _, numbers in block]))
            values.append(np.fromiter(chain.from_iterable(numbers for _, numbers in block), dtype=np.int32))


def _grow(tree: Columns, paths: Numbers, lengths: Numbers) -> None:
    """Write the edges of the tree, depth by depth, and which spelling ends at each node.

    Nodes are numbered depth by depth, in the order of their keys.
    """
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    node_of = np.zeros(len(lengths), dtype=np.int64)
    keys, ends, first_nodes = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int32)], [0]
    spelling = np.arange(len(lengths))
    for depth in range(int(lengths.max(initial=0))):
        spelling = spelling[lengths[spelling] > depth]
        key = node_of[spelling] << 32 | paths[starts[spelling] + depth]
        distinct, place = np.unique(key, return_inverse=True)
        node_of[spelling] = place + first_nodes[-1]
        end = np.full(len(distinct), _NOTHING, dtype=np.int32)
        here = lengths[spelling] == depth + 1
        end[place[here]] = spelling[here]
        keys.append(distinct)
        ends.append(end)
        first_nodes.append(first_nodes[-1] + len(distinct))
    tree.save(keys=np.concatenate(keys), ends=np.concatenate(ends), first_nodes=np.array(first_nodes, dtype=np.int64))


class Matches(NamedTuple):
    """Spellings that stand in text: the first token of each, how many it has, and its number."""

    starts: Longs
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
        return np.array([self._words.get(word, -1) for word in words], dtype=np.int32)

    def find(self, tokens: Numbers, bounds: Longs) -> Matches:
        """Return the longest spellings of each text, from left to right, without overlap.

        Args:
            tokens: numbers of the words of all texts.
            bounds: where each text starts, and the end.
        """
        lengths, spellings = self._longest(tokens, np.repeat(bounds[1:], np.diff(bounds)))
        kept, free = [], 0
        starts = np.flatnonzero(lengths)
        # Two texts have no token in common: what was found before one does not reach into it.
        for start, length in zip(starts.tolist(), lengths[starts].tolist(), strict=True):
            if start >= free:
                kept.append(start)
                free = start + length
        places = np.array(kept, dtype=np.int64)
        return Matches(places, lengths[places], spellings[places])

    def _longest(self, tokens: Numbers, ends_at: Longs) -> tuple[Numbers, Numbers]:
        """Return of each token how many the longest spelling has that starts there, 0 without one, and which it is."""
        lengths = np.zeros(len(tokens), dtype=np.int32)
        spellings = np.full(len(tokens), _NOTHING, dtype=np.int32)
        at = np.arange(len(tokens))
        nodes = np.zeros(len(at), dtype=np.int64)
        for depth, (first, last) in enumerate(pairwise(self._first_nodes)):
            within = at + depth < ends_at[at]
            at, nodes = at[within], nodes[within]
            known = tokens[at + depth] >= 0
            at, nodes = at[known], nodes[known]
            if not len(at):
                break
            # In order, so that the keys are read in order.
            sought, inverse = np.unique(nodes << 32 | tokens[at + depth], return_inverse=True)
            keys = self._keys[first:last]
            place = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
            is_match = (keys[place] == sought)[inverse]
            at, nodes = at[is_match], place[inverse[is_match]] + first
            end = self._ends[nodes]
            complete = end >= 0
            lengths[at[complete]] = depth + 1
            spellings[at[complete]] = end[complete]
        return lengths, spellings


def most_given(spellings: Iterable[tuple[int, str, int]]) -> dict[int, str]:
    """Return the text that each entity is given most often; the smallest where several are."""
    counts: dict[int, dict[str, int]] = {}
    for entity, text, count in spellings:
        count_of = counts.setdefault(entity, {})
        count_of[text] = count_of.get(text, 0) + count
    return {entity: min(texts, key=lambda text: (-texts[text], text)) for entity, texts in counts.items()}
