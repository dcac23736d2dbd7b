"""What a visitor of the page may filter by: the keys and values of the passages that they see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from graph.metadata_filter import askable_keys
from graph.retrieve.open_index import Index
from graph.schema import MetadataValue, Passage
from workflows.context import Context
from workflows.runtime.resources import open_workspace_index

VALUES_SHOWN = 200
"""Values told of each key: the most frequent ones."""

KEYS_SHOWN = 100


def known_values(context: Context) -> list[dict[str, Any]]:
    """Return the keys that passages have, with their most frequent values, how many there are, and whether numbers.

    Args:
        context: of whoever asks; passages that its ``where`` hides count for nothing.

    Raises:
        MaraError: the workspace cannot be opened.
    """
    index = open_workspace_index(context)
    if context.where:
        selection = index.select(context.where)
        rows = [] if selection is None else selection.rows.tolist()
        return _values_of(index.graph.passages[row] for row in rows)
    return _all_values(index)


@lru_cache(maxsize=4)
def _all_values(index: Index) -> list[dict[str, Any]]:
    return _values_of(index.graph.passages)


def _values_of(passages: Iterable[Passage]) -> list[dict[str, Any]]:
    found: dict[str, Counter[MetadataValue]] = {}
    for passage in passages:
        for key in askable_keys(passage):
            value = passage.source if key == "source" else passage.metadata[key]
            found.setdefault(key, Counter())[value] += 1
    keys = sorted(found, key=lambda key: (key != "source", key))[:KEYS_SHOWN]
    return [
        {
            "key": key,
            "values": [value for value, _ in found[key].most_common(VALUES_SHOWN)],
            "n_values": len(found[key]),
            "numbers": all(isinstance(value, int | float) and not isinstance(value, bool) for value in found[key]),
        }
        for key in keys
    ]
