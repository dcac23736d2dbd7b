"""The file that tells of which sets the vectors of a generation consist."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

_FILE = "search.json"


@dataclass(frozen=True, slots=True)
class Layer:
    """The sets of a generation's vectors: a set of its own, whole or of what changed since an older one's.

    Attributes:
        base: the generation whose set it lies on; its own number where its set is whole.
        key: its own set's.
        base_key: that of the set that it lies on; its own where its set is whole.
        vectors: the record's ``vectors_id`` when the set was made.
        store: what keeps the sets.
        gone: by collection, rows of the base that are gone, or stand otherwise here.
        new: by collection, rows of this generation that the base lacks, or has otherwise: all that its own set has.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    base: int
    key: str
    base_key: str = ""
    vectors: str = ""
    store: str = "chroma"
    gone: Mapping[str, Sequence[int]] = field(default_factory=dict)
    new: Mapping[str, Sequence[int]] = field(default_factory=dict)

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
