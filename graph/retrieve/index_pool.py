"""The open indexes of a process: which are kept, and when one that was replaced is closed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graph.construction.knowledge_graph import load_header
from graph.embedding.embeddings import Embedder
from graph.retrieve.open_index import Index, open_index
from graph.storage.workspace import Workspace

_KEPT_OPEN = 2

_Place = tuple[Path, str, str]
"""Whose indexes: a workspace, the embedding model, and the address of Chroma's server."""


def _is_what_stands(workspace: Workspace, index: Index) -> bool:
    """Tell whether an index is of the generation of its number that lies in a workspace, or none of that lies there.

    It is of another one where the workspace was built again, or put back to what it was and written since.
    """
    try:
        header = load_header(workspace.index_folder(index.graph.generation))
    except (OSError, ValueError):
        return True
    return bool(header["commit_id"] == index.graph.commit_id)


@dataclass(frozen=True, slots=True, eq=False)
class _Replaced:
    """An index that newer ones took the place of, and the runs that had begun by then."""

    place: _Place
    index: Index
    awaited: set[object]


class IndexPool:
    """The open indexes of a process: each workspace's newest generation, the one before, and those of runs under way.

    What newer generations replaced is closed once every run that had begun by then has ended: one of them may have
    begun with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[_Place, list[Index]] = {}
        self._counting = threading.Lock()
        self._runs: set[object] = set()
        self._replaced: list[_Replaced] = []

    def get(self, root: Path, embedder: Embedder, generation: int | None = None) -> Index:
        """Return a workspace's index: that of ``generation`` while it is still open, else the newest.

        Raises what `open_index` raises.
        """
        place = (root.absolute(), embedder.model_id, os.environ.get("MARA_CHROMA_URL") or "")
        with self._lock:
            held = self._open.setdefault(place, [])
            workspace = Workspace(root)
            present = [
                index for index in (*reversed(held), *self._replaced_at(place)) if _is_what_stands(workspace, index)
            ]
            for wanted in (generation, workspace.current()):
                for index in present:
                    if index.graph.generation == wanted:
                        return index
            latest = open_index(root, embedder)
            held.append(latest)
            self._replace(place, held[:-_KEPT_OPEN])
            del held[:-_KEPT_OPEN]
        self.close_unused()
        return latest

    @contextmanager
    def run(self) -> Iterator[None]:
        """Keep what a run within the block may have begun with. Waits for nothing, and closes nothing."""
        run = object()
        with self._counting:
            self._runs.add(run)
        try:
            yield
        finally:
            with self._counting:
                self._runs.discard(run)
                for replaced in self._replaced:
                    replaced.awaited.discard(run)

    def let_go(self, root: Path) -> None:
        """Close the indexes of a workspace, each once the runs have ended that may have begun with it."""
        with self._lock:
            for place in [place for place in self._open if place[0] == root.absolute()]:
                self._replace(place, self._open.pop(place))
        self.close_unused()

    def close_unused(self) -> None:
        """Close what was replaced and no run under way can have begun with."""
        with self._counting:
            unused = [replaced for replaced in self._replaced if not replaced.awaited]
            self._replaced = [replaced for replaced in self._replaced if replaced.awaited]
        for replaced in unused:
            replaced.index.close()

    def close(self) -> None:
        """Close every index."""
        with self._lock, self._counting:
            indexes = [index for held in self._open.values() for index in held]
            indexes += [replaced.index for replaced in self._replaced]
            self._open.clear()
            self._replaced.clear()
            for index in indexes:
                index.close()

    def _replace(self, place: _Place, stale: Sequence[Index]) -> None:
        with self._counting:
            self._replaced += [_Replaced(place, index, set(self._runs)) for index in stale]

    def _replaced_at(self, place: _Place) -> list[Index]:
        with self._counting:
            return [replaced.index for replaced in self._replaced if replaced.place == place]
