"""Reading the vectors of a generation in another process, as damaged files may end the one that reads them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

from graph.construction.knowledge_graph import load
from graph.publish.generation_vectors import open_vectors
from graph.publish.vector_store import COLLECTIONS
from graph.storage.workspace import Workspace

_SEARCHES = 20
_PAGE = 5_000


def why_unreadable(root: Path, generation: int) -> str:
    """Return how a process ended that read a generation's vectors; empty where it came to its end."""
    command = [sys.executable, "-m", __name__, str(root.absolute()), str(generation)]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    if not ended.returncode:
        return ""
    said = ended.stderr.strip().splitlines()
    return said[-1] if said and ended.returncode > 0 else f"it ends the process that reads it, {ended.returncode}"


def read_everything(root: Path, generation: int) -> dict[str, int]:
    """Read every vector, and go through all links between them; nothing is written.

    Returns:
        How many vectors of each collection one search came by.

    Raises:
        WorkspaceDamaged: something cannot be read.
    """
    workspace = Workspace(root)
    reached: dict[str, int] = {}
    with closing(open_vectors(workspace, "", load(workspace.index_folder(generation)), untouched=True)) as vectors:
        for name in COLLECTIONS:
            count = vectors.count(name)
            for start in range(0, count, _PAGE):
                vectors.vectors(name, range(start, min(start + _PAGE, count)))
            asked = vectors.vectors(name, range(0, count, max(1, count // _SEARCHES)))
            found = [vectors.search(name, vector, 1) for vector in asked]
            reached[name] = len(vectors.search(name, asked[0], count)) if found else 0
    return reached


if __name__ == "__main__":
    read_everything(Path(sys.argv[1]), int(sys.argv[2]))
