"""The open indexes of a process: which are kept, and when one is closed.

Workspaces are opened when they are first asked for. Those that were not asked for the longest are closed for others
where the open ones would take more memory, open files and threads than the process may take. Memory is estimated from
the sizes of a generation's files, which costs no look into them; docs/deploy.md says how far that is off.
"""

from __future__ import annotations

import math
import os
import sys
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock

from pydantic import ByteSize, TypeAdapter, ValidationError

from graph.construction.knowledge_graph import load_header
from graph.embedding.embeddings import Embedder
from graph.environment import environment
from graph.errors import BadInput
from graph.publish.vector_store import OpenCost, Place, size_of, store_named
from graph.retrieve.open_index import Index, OpenFiles, open_index
from graph.storage.workspace import Layer, Workspace

OPEN_BYTES_VARIABLE = "MARA_OPEN_BYTES"
"""Names the memory that the open workspaces of a process may take together."""

_SHARE = 0.5
"""Of the memory, open files and threads that a process may have: what open workspaces may take by default."""

_UNKNOWN_MEMORY = 4 * 2**30
_MOST_THREADS = 16_000
"""Half of what Linux numbers by default: threads of all processes together."""

_CGROUP = Path("/sys/fs/cgroup")

_OWN_BYTES = 300_000
_OWN_FILES = 8
"""Of a generation, however small, beside what follows from the sizes of its files."""

_PER_BYTE = 2.0
"""Of memory for each byte of the other files: mapped pages, and what is derived from them once questions are asked."""

Parts = Mapping[Path, OpenCost]
"""The parts of an open generation, by folder: two generations may lie on one set of vectors, open once."""


def parts_of(folder: Path) -> Parts:
    """Return what an open generation takes, by what it consists of."""
    layer = Layer.load(folder)
    sets = {} if layer is None else {folder: layer.key, folder.parent / str(layer.base): layer.base_key}
    places = [Place(generation, layer.store, key) for generation, key in sets.items()] if layer else []
    own = size_of(folder) - sum(size_of(place.files) for place in places if place.folder == folder)
    costs = {place.files: store_named(place.store).cost(place) for place in places}
    return {folder: OpenCost(_OWN_BYTES + _PER_BYTE * own, files=_OWN_FILES), **costs}


def taken_by(generations: Iterable[Parts]) -> OpenCost:
    """Return what several open generations take together: a part that they share counts once."""
    shared = {folder: cost for parts in generations for folder, cost in parts.items()}
    return sum(shared.values(), OpenCost())


def budget_of_environment(sharing: int = 1) -> OpenCost:
    """Return what the open workspaces of this process may take: ``MARA_OPEN_BYTES``, or half of what there is.

    Args:
        sharing: how many processes share what the machine, or its container, has.

    Raises:
        BadInput: ``MARA_OPEN_BYTES`` is no number of bytes.
    """
    setting = environment().mara_open_bytes
    memory = _bytes_in(setting) if setting else _SHARE * _memory() / sharing
    return OpenCost(memory, _SHARE * _files(), _SHARE * _threads() / sharing)


def _bytes_in(text: str) -> float:
    try:
        return TypeAdapter(ByteSize).validate_python(text)
    except ValidationError as fault:
        hint = "Set it to a number of bytes, such as 2000000000 or 2GiB"
        raise BadInput(f"{OPEN_BYTES_VARIABLE} is {text!r}", hint) from fault


def _memory() -> float:
    """Return the bytes of memory that this process may have: the machine's, or its cgroup's where that is less."""
    try:
        machine = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        machine = _UNKNOWN_MEMORY
    return min(machine, _limit("memory.max"))


def _files() -> float:
    """Return how many files this process may have open."""
    if sys.platform == "win32":
        return math.inf
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _threads() -> float:
    """Return how many threads the processes of this one's cgroup, or of the machine, may have."""
    return min(_MOST_THREADS, _limit("pids.max"))


def _limit(name: str) -> float:
    """Return a limit that the cgroup of this container sets; infinite where none is set."""
    try:
        return float(_CGROUP.joinpath(name).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return math.inf


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
        while self._unreferenced:
            self._close([self._unreferenced.popleft()])

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
        """The bytes that the open indexes take by estimate, those among them that wait to be closed."""
        return taken_by([*self._parts.values()])

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
            indexes = [*reversed(self._open.get(place, ()))]
        workspace = Workspace(place[0])
        return [index for index in indexes if _is_what_stands(workspace, index)]

    def _keep(self, place: _Place, latest: Index) -> None:
        parts = parts_of(latest.files.folder)
        closing = weakref.finalize(latest, self._unreferenced.append, latest.files)
        closing.atexit = False
        with self._lock:
            self._parts[latest.files] = parts
            indexes = self._open.setdefault(place, [])
            self._open.move_to_end(place)
            indexes.append(latest)
            del indexes[:-_KEPT_OPEN]

    def _make_room(self) -> None:
        """Let go of what was used least recently until the rest fits; the workspace that was used last stays."""
        if len(self._open) < 2:
            return
        if self._budget is None:
            self._budget = budget_of_environment(self.sharing)
        staying = dict(self._parts)
        while not taken_by(staying.values()).fits(self._budget) and (index := self._least_used()) is not None:
            del staying[index.files]

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

    def _close(self, files: Iterable[OpenFiles]) -> None:
        for each in files:
            each.close()
            with self._lock:
                self._parts.pop(each, None)
