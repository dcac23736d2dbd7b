"""Which names may be synonyms of each other, how near they have to be, and how many are compared each with each."""

from __future__ import annotations

from collections.abc import Callable

from graph.text import name_length

SYNONYM_COSINE = 0.8
"""Two names are synonyms where the cosine of their vectors is at least this."""

SYNONYM_SHORTEST = 3
"""A synonym edge needs names of at least this many letters or digits."""

SYNONYMS_PER_NAME = 100
"""A pair is kept when it is among so many nearest of at least one of its names."""

EXACT_NAMES = 200_000
"""Of more names, the product of each with each takes minutes and grows with their square: an index finds the pairs."""


def may_have_synonyms(name: str, understands: Callable[[str], bool]) -> bool:
    """Tell whether a name's vector says what else it may be called; ``understands`` is the embedding model's."""
    return name_length(name) >= SYNONYM_SHORTEST and understands(name)
