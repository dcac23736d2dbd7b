"""Opening the files of a search index to examine them: nothing is written, and none ends this process."""

from __future__ import annotations

import shutil
from pathlib import Path

from graph.checks.probe import why_unreadable
from graph.errors import WorkspaceDamaged
from graph.publish.layered_store import SearchIndex, open_layers
from graph.publish.mapped_store import MappedStore
from graph.storage.generation import Layer
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
