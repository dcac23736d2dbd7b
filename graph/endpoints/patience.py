"""How long a request may take: seconds without a token, and a time at which it is broken off."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Patience:
    """The time that one request has left; safe to ask at every byte.

    Attributes:
        silence_s: the longest time without a token, in seconds, the first one included.
        ends: when it is broken off whatever comes, as `time.monotonic` tells it; infinity for never.
    """

    def __init__(self, silence_s: float, ends: float = float("inf")) -> None:
        self.silence_s = silence_s
        self.ends = ends
        self.renew()

    def renew(self) -> None:
        """A token came: the seconds without one count anew."""
        self._silent_until = time.monotonic() + self.silence_s

    def left_s(self) -> float:
        """Return how many seconds may still be waited; 0 or less where it is over."""
        return min(self._silent_until, self.ends) - time.monotonic()

    @property
    def is_late(self) -> bool:
        """Whether the time has come at which the request is broken off."""
        return time.monotonic() >= self.ends


_PATIENCE: ContextVar[Patience | None] = ContextVar("patience", default=None)


@contextmanager
def waiting(patience: Patience) -> Iterator[None]:
    """Let every request of this context within the block wait as long as that, and no longer."""
    token = _PATIENCE.set(patience)
    try:
        yield
    finally:
        _PATIENCE.reset(token)


def within_patience(timeout: float | None) -> float:
    """Return a time-out that ends with the patience of the request; at most 0 where that is over already."""
    patience = _PATIENCE.get()
    waits = float("inf") if timeout is None else timeout
    return waits if patience is None else min(waits, patience.left_s())
