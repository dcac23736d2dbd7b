"""Reads all of a search index of files, as a program of its own: damaged files end the process that searches them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from graph.publish.layered_store import SearchIndex
from graph.publish.mapped_store import MappedStore
from graph.publish.vector_store import VectorStore
from graph.storage.generation import VectorStoreName

_SEARCHES = 20
_PAGE = 5_000


def why_unreadable(folder: Path, store: VectorStoreName = "chroma") -> str:
    """Return how a process ended that read a search index; empty where it came to its end.

    Args:
        folder: that of Chroma, or the generation's where the index is mapped.
        store: which of the two.
    """
    command = [sys.executable, "-m", __name__, str(folder.absolute()), store]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    if not ended.returncode:
        return ""
    said = ended.stderr.strip().splitlines()
    return said[-1] if said and ended.returncode > 0 else f"it ends the process that reads it, {ended.returncode}"


def read_everything(folder: Path, store: VectorStoreName = "chroma") -> dict[str, int]:
    """Read every vector, and go through all links between them.

    Args:
        folder: that of Chroma, or the generation's where the index is mapped.
        store: which of the two.

    Returns:
        How many vectors of each collection one search came by.

    Raises:
        WorkspaceDamaged: something cannot be read.
    """
    index: SearchIndex = MappedStore.open(folder) if store == "mapped" else VectorStore.embedded(folder)
    reached: dict[str, int] = {}
    try:
        for name in ("facts", "passages"):
            ids = list(index.fingerprints(name))
            for start in range(0, len(ids), _PAGE):
                index.vectors(name, ids[start : start + _PAGE])
            asked = ids[:: max(1, len(ids) // _SEARCHES)]
            vectors = index.vectors(name, asked)
            for key in asked:
                index.search(name, vectors[key], 1)
            reached[name] = len(index.search(name, vectors[asked[0]], len(ids))) if ids else 0
    finally:
        index.close()
    return reached


if __name__ == "__main__":
    read_everything(Path(sys.argv[1]), "mapped" if sys.argv[2] == "mapped" else "chroma")
