"""The open indexes of a process: which are kept, and when one is closed.

Workspaces are opened when they are first asked for. Those that were not asked for the longest are closed for others
where the open ones would take more than the process may take (`graph.retrieve.open_cost`).
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from graph.construction.knowledge_graph import load_header
from graph.embedding.embeddings import Embedder
from graph.environment import environment
from graph.retrieve.open_cost import OpenCost, Parts, Taken, budget_of_environment, parts_of
from graph.retrieve.open_index import Index, OpenFiles, open_index
from graph.storage.workspace import Workspace

_KEPT_OPEN = 2

_Place = tuple[Path, str, str]
"""Whose indexes: a workspace, the embedding model, and the address of Chroma's server."""


def _place_of(root: Path, embedder: Embedder) -> _Place:
    return root.absolute(), embedder.model_id, environment().mara_chroma_url or ""


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
class _Run:
    """A run under way, and the workspaces that it is known to work on."""

    name: str
    places: set[_Place] = field(default_factory=set)


@dataclass(frozen=True, slots=True, eq=False)
class _Replaced:
    """An index that newer ones took the place of, and the runs that had begun by then."""

    place: _Place
    index: Index
    awaited: set[_Run]


class IndexPool:
    """The open indexes of a process: each workspace's newest generation, the one before, and those of runs under way.

    What newer generations replaced is closed once every run that had begun by then has ended: one of them may have
    begun with it. A workspace that makes room for others is none that a run works on, and is closed once nobody refers
    to its indexes any more. Opening one workspace keeps nobody waiting who asks for another.
    """

    def __init__(self, budget: OpenCost | None = None) -> None:
        """``budget`` is what the open indexes may take together; None: what the environment and the machine give."""
        self._budget = budget
        self.sharing = 1
        """How many processes like this one share the machine, where the budget is a share of it."""
        self._lock = Lock()
        self._open: OrderedDict[_Place, list[Index]] = OrderedDict()
        self._opening: weakref.WeakValueDictionary[_Place, Lock] = weakref.WeakValueDictionary()
        self._runs: set[_Run] = set()
        self._replaced: list[_Replaced] = []
        self._parts: dict[OpenFiles, Parts] = {}
        self._taken = Taken()
        self._unreferenced: deque[OpenFiles] = deque()

    def get(self, root: Path, embedder: Embedder, generation: int | None = None, run: str = "") -> Index:
        """Return a workspace's index: that of ``generation`` while it is still open, else the newest.

        Args:
            root: the workspace.
            embedder: the model that encodes questions.
            generation: the one that a run began with.
            run: the name of the run that works on it, which then keeps it from making room for others.

        Raises what `open_index` raises.
        """
        place = _place_of(root, embedder)
        self._note_use(place, run)
        if (index := self._standing(place, generation)) is not None:
            return index
        with self._opening_of(place):
            if (index := self._standing(place, generation)) is not None:
                return index
            latest = open_index(root, embedder)
            self._keep(place, latest)
        self.close_unused()
        return latest

    @contextmanager
    def run(self, name: str = "") -> Iterator[None]:
        """Keep what a run within the block may have begun with. Waits for nothing, and closes nothing.

        Args:
            name: by which `get` tells what the run works on; a run within another one may have the same.
        """
        run = _Run(name)
        with self._lock:
            self._runs.add(run)
        try:
            yield
        finally:
            with self._lock:
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
        """Close what was replaced and no run under way can have begun with, and what has to make room."""
        with self._lock:
            unused = [replaced.index.files for replaced in self._replaced if not replaced.awaited]
            self._replaced = [replaced for replaced in self._replaced if replaced.awaited]
        self._close(unused)
        with self._lock:
            self._make_room()
        self._close(self._take_unreferenced())

    def close(self) -> None:
        """Close every index."""
        with self._lock:
            files = list(self._parts)
            self._open.clear()
            self._replaced.clear()
        self._close(files)

    @property
    def workspaces(self) -> int:
        """How many workspaces are open."""
        return len(self._open)

    @property
    def taken(self) -> OpenCost:
        """What the open indexes take by estimate, those among them that wait to be closed."""
        return self._taken.total

    def _note_use(self, place: _Place, run: str) -> None:
        with self._lock:
            if place in self._open:
                self._open.move_to_end(place)
            for each in self._runs if run else ():
                if each.name == run:
                    each.places.add(place)

    def _opening_of(self, place: _Place) -> Lock:
        """Return what one thread at a time holds that opens a workspace."""
        with self._lock:
            return self._opening.setdefault(place, Lock())

    def _standing(self, place: _Place, generation: int | None) -> Index | None:
        """Return the open index of a generation, else the newest one if that is open."""
        present = self._present(place)
        for wanted in (generation, Workspace(place[0]).current()):
            for index in present:
                if index.graph.generation == wanted:
                    return index
        return None

    def _present(self, place: _Place) -> list[Index]:
        """Return what is open of a workspace as it lies there, the newest first, what was replaced last."""
        with self._lock:
            held = [*reversed(self._open.get(place, ()))]
            held += [replaced.index for replaced in self._replaced if replaced.place == place]
        workspace = Workspace(place[0])
        return [index for index in held if _is_what_stands(workspace, index)]

    def _keep(self, place: _Place, latest: Index) -> None:
        parts = parts_of(latest.files.folder)
        closing = weakref.finalize(latest, self._unreferenced.append, latest.files)
        closing.atexit = False
        with self._lock:
            self._parts[latest.files] = parts
            self._taken.add(parts)
            held = self._open.setdefault(place, [])
            self._open.move_to_end(place)
            held.append(latest)
            self._replace(place, held[:-_KEPT_OPEN])
            del held[:-_KEPT_OPEN]

    def _replace(self, place: _Place, stale: Iterable[Index]) -> None:
        self._replaced += [_Replaced(place, index, set(self._runs)) for index in stale]

    def _make_room(self) -> None:
        """Let go of what was used least recently until the rest fits."""
        if self._budget is None:
            self._budget = budget_of_environment(self.sharing)
        dropped = OpenCost()
        while not (self._taken.total - dropped).fits(self._budget) and (index := self._least_used()) is not None:
            dropped += sum(self._parts[index.files].values(), OpenCost())

    def _least_used(self) -> Index | None:
        """Take an older generation that no run works on out of what is kept, else a workspace's only one.

        The workspace that was used last stays.
        """
        used = set().union(*(run.places for run in self._runs))
        idle = [place for place in [*self._open][:-1] if place not in used]
        with_older = (place for place in idle if len(self._open[place]) > 1)
        place = next(with_older, idle[0] if idle else None)
        if place is None:
            return None
        index = self._open[place].pop(0)
        if not self._open[place]:
            del self._open[place]
        return index

    def _take_unreferenced(self) -> list[OpenFiles]:
        taken: list[OpenFiles] = []
        while self._unreferenced:
            taken.append(self._unreferenced.popleft())
        return taken

    def _close(self, files: Iterable[OpenFiles]) -> None:
        for each in files:
            each.close()
            with self._lock:
                self._taken.remove(self._parts.pop(each, {}))
