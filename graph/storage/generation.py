"""What the search index of a generation is laid over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from graph.storage.lock import GenerationHold as GenerationHold

_FILE = "search.json"

VectorStoreName = Literal["chroma", "mapped", "qdrant"]
"""What holds the vectors of a generation."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What holds a generation's vectors, and what an index of its own lies over.

    Attributes:
        base: the generation whose index that is; its own number where it lies on none.
        commit: the record's commit that the base holds.
        vectors: the record's ``vectors_id`` when the base was made.
        removed: by collection, the ids of the base that are gone, or stand otherwise in the layer.
        store: what holds them.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    base: int
    commit: str
    vectors: str = ""
    removed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    store: VectorStoreName = "chroma"

    def save(self, folder: Path) -> None:
        """Write it into a generation's folder."""
        (folder / _FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> Layer | None:
        """Read what a generation's folder says; None where it says nothing that can be read."""
        from pydantic import TypeAdapter

        try:
            return TypeAdapter(Layer).validate_json((folder / _FILE).read_bytes(), strict=True)
        except (OSError, ValueError):
            return None
