"""What was worked out of collections of ids that are asked about again and again: those of a filter."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

T = TypeVar("T")

_KEPT = 16


class LastAsked(Generic[T]):
    """What was worked out of the last few collections, told apart as objects: comparing them would take as long.

    Safe across threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int], tuple[Collection[str], T]] = OrderedDict()

    def get(self, name: str, ids: Collection[str], work_out: Callable[[], T]) -> T:
        """Return what is kept of some ids of a collection, or work it out."""
        asked = name, id(ids)
        with self._lock:
            kept = self._kept.get(asked)
        # It is kept with the ids, so that no others are at their place in memory meanwhile.
        found = kept[1] if kept is not None and kept[0] is ids else work_out()
        with self._lock:
            self._kept[asked] = ids, found
            self._kept.move_to_end(asked)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found
