"""Where a generation is built: in memory or on disk, and by how many processes."""

from __future__ import annotations

import os

from graph.environment import environment
from graph.errors import BadInput
from graph.storage.record import Record

PLACE_VARIABLE = "MARA_BUILD"
PROCESSES_VARIABLE = "MARA_BUILD_PROCESSES"

LARGE = 200_000
"""Passages from which on a generation is built on disk: in memory, each takes some 25 kB."""

_PLACES = ("memory", "disk")


def is_built_on_disk(record: Record) -> bool:
    """Tell where the generation of a record is built: where ``MARA_BUILD`` says, else by the number of passages.

    Raises BadInput where the setting is neither ``memory`` nor ``disk``.
    """
    place = environment().mara_build or ""
    if place and place not in _PLACES:
        raise BadInput(f"{PLACE_VARIABLE} is {place!r}", f"Set it to one of {', '.join(_PLACES)}, or leave it out")
    return place == "disk" if place else record.count_passages() >= LARGE


def build_processes() -> int:
    """Return how many processes build beside the one that asks: ``MARA_BUILD_PROCESSES``, else one a core.

    With 1, the one that asks builds alone. Raises BadInput where the setting is no number.
    """
    text = environment().mara_build_processes or str(os.cpu_count() or 1)
    if not text.isdecimal() or not int(text):
        raise BadInput(f"{PROCESSES_VARIABLE} is {text!r}", "Set it to a number of processes, 1 for none beside it")
    return int(text) if int(text) > 1 else 0
