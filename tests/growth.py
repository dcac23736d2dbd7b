"""Telling linear from quadratic time by a ratio of processor times, so that a busy machine changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

_TIMES_LONGER = 8
_ALLOWED = 4 * _TIMES_LONGER
_ATTEMPTS = 5
_RESOLUTION_S = 1e-3
_LONGEST = 200_000


def grows_with_length_alone(work: Callable[[int], object], length: int, longest: int = _LONGEST) -> bool:
    """Tell whether eight times the length takes far less than the 64 times that quadratic work would.

    Work that is too quick to be told apart is given more, up to a length of ``longest``: below it, a square would
    hide behind the clock. Each attempt compares two runs of its own; one that keeps the promise is enough.
    """
    while _TIMES_LONGER * 4 * length <= longest and _seconds(work, _TIMES_LONGER * length) < _ALLOWED * _RESOLUTION_S:
        length *= 4
    return any(
        _seconds(work, _TIMES_LONGER * length) <= _ALLOWED * max(_seconds(work, length), _RESOLUTION_S)
        for _ in range(_ATTEMPTS)
    )


def _seconds(work: Callable[[int], object], length: int) -> float:
    start = time.thread_time()
    work(length)
    return time.thread_time() - start
