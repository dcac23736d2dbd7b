"""The open indexes of a process: which are kept, and when one is closed.

Workspaces are opened when they are first asked for. Those that were not asked for the longest are closed for others
where the open ones would take more than the process may take (`graph.retrieve.open_cost`).
"""

from __future__ import annotations

import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

from graph.construction.knowledge_graph import load_header
from graph.embedding.embeddings import Embedder
from graph.publish.vector_store import OpenCost
from graph.retrieve.open_cost import Parts, Taken, budget_of_environment, parts_of
from graph.retrieve.open_index import Index, OpenFiles, open_index
from graph.storage.workspace import Workspace

_KEPT_OPEN = 2

_Place = tuple[Path, str]
"""Whose indexes: a workspace and the embedding model."""


def _place_of(root: Path, embedder: Embedder) -> _Place:
    return root.absolute(), embedder.model_id


def _is_what_stands(workspace: Workspace, index: Index) -> bool:
    """Tell whether an index is of the generation of its number that lies in a workspace, or none of that lies there.

    It is of another one where the workspace was built again, or put back to what it was and written since.
    """
    try:
        header = load_header(workspace.index_folder(index.graph.generation))
    except (OSError, ValueError):
        return True
    return bool(header["commit_id"] == index.graph.commit_id)


class IndexPool:
    """The open indexes of a process: each workspace's newest generation, the one before, and those that are in use.

    An index that newer generations replaced, or that makes room for others, is closed once no reference to it is left:
    a run refers to its index until it ends. A workspace that a run uses makes no room. Opening one workspace does not
    hold up questions to another.
    """

    def __init__(self, budget: OpenCost | None = None) -> None:
        """``budget`` is what the open indexes may take together; None: what the environment and the machine give."""
        self._budget = budget
        self.sharing = 1
        """How many processes like this one share the machine, where the budget is a share of it."""
        self._lock = Lock()
        self._open: OrderedDict[_Place, list[Index]] = OrderedDict()
        self._opening: weakref.WeakValueDictionary[_Place, Lock] = weakref.WeakValueDictionary()
        self._used: Counter[OpenFiles] = Counter()
        self._parts: dict[OpenFiles, Parts] = {}
        self._taken = Taken()
        self._unreferenced: deque[OpenFiles] = deque()

    def get(self, root: Path, embedder: Embedder, generation: int | None = None) -> Index:
        """Return a workspace's index: that of ``generation`` while it is still open, else the newest.

        Args:
            root: the workspace.
            embedder: the model that encodes questions.
            generation: the one that a run began with.

        Raises what `open_index` raises.
        """
        place = _place_of(root, embedder)
        with self._lock:
            if place in self._open:
                self._open.move_to_end(place)
        if (index := self._standing(place, generation)) is not None:
            return index
        with self._opening_of(place):
            if (index := self._standing(place, generation)) is not None:
                return index
            latest = open_index(root, embedder)
            self._keep(place, latest)
        self.close_unused()
        return latest

    def begin_use(self, index: Index) -> None:
        """Keep the workspace of an index from making room for others, until `end_use`."""
        with self._lock:
            self._used[index.files] += 1

    def end_use(self, index: Index) -> None:
        """Let the workspace of an index make room again."""
        with self._lock:
            self._used -= Counter([index.files])

    def let_go(self, root: Path) -> None:
        """Close the indexes of a workspace, each once no reference to it is left."""
        with self._lock:
            for place in [place for place in self._open if place[0] == root.absolute()]:
                del self._open[place]
        self.close_unused()

    def close_unused(self) -> None:
        """Close what has to make room and what was replaced, as far as no reference to it is left."""
        with self._lock:
            self._make_room()
        self._close(self._take_unreferenced())

    def close(self) -> None:
        """Close every index."""
        with self._lock:
            files = list(self._parts)
            self._open.clear()
        self._close(files)

    @property
    def workspaces(self) -> int:
        """How many workspaces are open."""
        return len(self._open)

    @property
    def taken(self) -> OpenCost:
        """What the open indexes take by estimate, those among them that wait to be closed."""
        return self._taken.total

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
        """Return what is open of a workspace as it lies there, the newest first."""
        with self._lock:
            held = [*reversed(self._open.get(place, ()))]
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
            del held[:-_KEPT_OPEN]

    def _make_room(self) -> None:
        """Let go of what was used least recently until the rest fits; the workspace that was used last stays."""
        if len(self._open) < 2:
            return
        if self._budget is None:
            self._budget = budget_of_environment(self.sharing)
        dropped = OpenCost()
        while not (self._taken.total - dropped).fits(self._budget) and (index := self._least_used()) is not None:
            dropped += sum(self._parts[index.files].values(), OpenCost())

    def _least_used(self) -> Index | None:
        """Take an older generation that no run works on out of what is kept, else a workspace's only one."""
        places = [*self._open][:-1]
        idle = [place for place in places if not any(index.files in self._used for index in self._open[place])]
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
