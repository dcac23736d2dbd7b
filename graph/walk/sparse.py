"""Numbers of a few of many places: where a walk starts, and what it reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """One number for each of many places, of which only some are kept: all others are 0.

    Attributes:
        length: how many places there are.
        places: of the numbers that are kept, in any order, each once.
        values: one for each of these places.
    """

    length: int
    places: NDArray[np.integer[Any]]
    values: NDArray[np.float64]

    @staticmethod
    def of(numbers: NDArray[np.float64]) -> SparseVector:
        """Return those of all numbers that are not 0, in their order."""
        places = np.flatnonzero(numbers)
        return SparseVector(len(numbers), places, numbers[places])

    @staticmethod
    def of_mapping(length: int, numbers: Mapping[int, float]) -> SparseVector:
        """Return the numbers of some places, in the order of these."""
        places = np.fromiter(numbers, np.int64, len(numbers))
        values = np.fromiter(numbers.values(), np.float64, len(numbers))
        order = np.argsort(places)
        return SparseVector(length, places[order], values[order])

    def __bool__(self) -> bool:
        """Whether any number is not 0."""
        return bool(self.values.any())

    def nonzero(self) -> SparseVector:
        """Return what is kept, less zeros."""
        kept = self.values != 0
        return self if kept.all() else SparseVector(self.length, self.places[kept], self.values[kept])

    def at(self, places: Sequence[int]) -> list[float]:
        """Return the numbers of a few places."""
        kept = np.flatnonzero(np.isin(self.places, places))
        numbers = dict(zip(self.places[kept].tolist(), self.values[kept].tolist(), strict=True))
        return [numbers.get(place, 0.0) for place in places]

    def dense(self) -> NDArray[np.float64]:
        """Return all numbers, shape (length,)."""
        numbers = np.zeros(self.length)
        numbers[self.places] = self.values
        return numbers
