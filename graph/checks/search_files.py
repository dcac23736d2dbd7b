"""Opening the files of a search index to examine them: nothing is written, and none ends this process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from graph.errors import WorkspaceDamaged
from graph.publish.mapped_store import MappedStore
from graph.publish.search_indexes import SearchIndex, open_layers
from graph.publish.vector_store import VectorStore
from graph.storage.generation import Layer, VectorStoreName
from graph.storage.workspace import Workspace


def open_search_files(workspace: Workspace, generation: int, scratch: Path) -> SearchIndex:
    """Open the search index of a generation's files; of an embedded Chroma a copy, as it writes to what it opens.

    Args:
        workspace: whose generation it is.
        generation: its number.
        scratch: an empty folder for copies.

    Raises:
        WorkspaceDamaged: it cannot be copied or read; another process tries that first, which it may end.
    """
    folder = workspace.index_folder(generation)
    layer, base = Layer.load(folder), None
    if layer is not None and layer.base != generation:
        base = workspace.index_folder(layer.base)
    if layer is not None and layer.store == "mapped":
        return open_layers(_tried(folder), base and _tried(base), layer, MappedStore.open)
    base_copy = base and _copy(base, scratch / "base")
    return open_layers(_copy(folder, scratch / "chroma"), base_copy, layer)


def _tried(folder: Path) -> Path:
    """Return a generation's folder, once its mapped search index could be read."""
    if reason := why_unreadable(folder, "mapped"):
        raise WorkspaceDamaged(f"The search index cannot be read ({reason})")
    return folder


def _copy(folder: Path, copy: Path) -> Path:
    """Return a copy of a generation's search index that can be read."""
    try:
        shutil.copytree(folder / "chroma", copy)
    except (OSError, shutil.Error) as fault:
        raise WorkspaceDamaged(f"The search index cannot be read ({fault})") from fault
    if reason := why_unreadable(copy):
        raise WorkspaceDamaged(f"The search index cannot be read ({reason})")
    return copy


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
