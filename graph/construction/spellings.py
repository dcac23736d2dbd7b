"""How entities may be written: what corrections make of names, what the snapshot keeps, and what finds them in text."""

from __future__ import annotations

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


def write_spellings(pairs: Iterable[tuple[str, int]], folder: Path) -> None:
    """Write the spellings of a snapshot, and how many tokens those have that begin with a word.

    Args:
        pairs: each spelling, tokens joined by spaces, with an entity, in order.
        folder: the generation's.
    """
    of_first: dict[str, set[int]] = defaultdict(set)

    def spellings() -> Iterator[tuple[str, Sequence[int]]]:
        for text, group in groupby(pairs, key=itemgetter(0)):
            path = text.split(" ")
            of_first[path[0]].add(len(path))
            yield text, [entity for _, entity in group]

    _write_lists(folder, "spellings", spellings())
    _write_lists(folder, "first_words", ((word, sorted(of_first[word], reverse=True)) for word in sorted(of_first)))


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


class Matches(NamedTuple):
    """Spellings that stand in text: the first token of each, how many it has, and its number."""

    starts: Longs
    lengths: Numbers
    spellings: Numbers


class KnownSpellings:
    """Finds the longest known spellings in many texts, as a `NameMatcher` does in one.

    Args:
        columns: of the generation, whose spellings are written.
    """

    def __init__(self, columns: Columns) -> None:
        self._numbers = {text: number for number, text in enumerate(columns.strings("spellings"))}
        starts, values = (columns.array(f"first_words.numbers.{name}").tolist() for name in ("starts", "values"))
        self._lengths = {
            word: values[start:end]
            for word, (start, end) in zip(columns.strings("first_words"), pairwise(starts), strict=True)
        }

    def find(self, words: Sequence[str], bounds: Longs) -> Matches:
        """Return the longest spellings of each text, from left to right, without overlap.

        Args:
            words: the words of all texts.
            bounds: where each text starts, and the end.
        """
        found: list[tuple[int, int, int]] = []
        for start, end in pairwise(bounds.tolist()):
            at = start
            while at < end:
                lengths = (length for length in self._lengths.get(words[at], ()) if at + length <= end)
                spelled = ((length, self._numbers.get(" ".join(words[at : at + length]))) for length in lengths)
                length, number = next((each for each in spelled if each[1] is not None), (1, None))
                if number is not None:
                    found.append((at, length, number))
                at += length
        starts, sizes, numbers = np.array(found, dtype=np.int64).reshape(len(found), 3).T
        return Matches(starts, sizes.astype(np.int32), numbers.astype(np.int32))


def most_given(spellings: Iterable[tuple[int, str, int]]) -> dict[int, str]:
    """Return the text that each entity is given most often; the smallest where several are."""
    counts: dict[int, dict[str, int]] = {}
    for entity, text, count in spellings:
        count_of = counts.setdefault(entity, {})
        count_of[text] = count_of.get(text, 0) + count
    return {entity: min(texts, key=lambda text: (-texts[text], text)) for entity, texts in counts.items()}
