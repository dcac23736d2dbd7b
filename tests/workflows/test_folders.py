"""The rooms of workflows import each other in one direction: from the settings to the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import workflows

ROOT = Path(workflows.__file__).parent

ORDER = (
    "output",
    "settings",
    "context",
    "states",
    "results",
    "access",
    "runtime",
    "nodes",
    *("retrieval", "mara", "ragenta"),
    *("ask", "streaming"),
    *("conversation", "chat"),
    *("discovery", "document_search", "retriever"),
    *("distributed", "indexing_run", "indexing"),
    *("runs", "evaluation", "tuning"),
    "admin",
    *("explanation", "explain"),
    "serving",
    "cli",
)
"""The rooms, folders and modules of the root, each of which imports only those before it."""


def room_of(path: Path) -> str:
    """Return the folder of workflows that a file is in, or its own name where it is in none."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> Iterator[str]:
    """Yield the rooms that a module imports from, also within functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        yield from (name.split(".")[1] for name in names if name.startswith("workflows."))


def test_each_room_imports_only_those_before_it() -> None:
    paths = [path for path in ROOT.rglob("*.py") if room_of(path) not in ("__init__", "sample")]
    assert {room_of(path) for path in paths} == {*ORDER}
    back = {
        f"{path.relative_to(ROOT)} imports {room}"
        for path in paths
        for room in imported_rooms(path)
        if ORDER.index(room) > ORDER.index(room_of(path))
    }
    assert not back
