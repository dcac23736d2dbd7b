"""The rooms of workflows import each other in one direction: from the settings to the command line."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import workflows

ROOT = Path(workflows.__file__).parent

ORDER = (
    "installation",
    "output",
    "settings",
    "context",
    "states",
    "wording",
    "results",
    "access",
    "runtime",
    "nodes",
    *("retrieval", "mara", "ragenta"),
    *("answering", "streaming"),
    *("conversation", "chat"),
    *("discovery", "document_search", "for_agents"),
    *("distributed", "indexing_run", "indexing"),
    *("runs", "evaluation", "tuning"),
    "admin",
    *("explanation", "explaining"),
    "serving",
    "cli",
)
"""The rooms, folders and modules of the root, each of which imports only those before it."""


def room_of(path: Path) -> str:
    """Return the folder of workflows that a file is in, or its own name where it is in none."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_names(path: Path) -> Iterator[list[str]]:
    """Yield the parts of the names below workflows that a module imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name}" for name in names]
        yield from (name.split(".")[1:] for name in names if name.startswith("workflows."))


def test_each_room_imports_only_those_before_it() -> None:
    paths = [path for path in ROOT.rglob("*.py") if room_of(path) not in ("__init__", "sample")]
    assert {room_of(path) for path in paths} == {*ORDER}
    back = {
        f"{path.relative_to(ROOT)} imports {room}"
        for path in paths
        for room, *_ in imported_names(path)
        if ORDER.index(room) > ORDER.index(room_of(path))
    }
    assert not back


def test_no_folders_within_a_room_import_each_other_in_a_circle() -> None:
    folders = {path.parent for path in ROOT.rglob("*.py")} - {ROOT}
    arrows: dict[Path, set[Path]] = defaultdict(set)
    for path in (path for folder in folders for path in folder.glob("*.py")):
        for parts in imported_names(path):
            named = [ROOT.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]
            deepest = max((folder for folder in named if folder in folders), default=path.parent)
            arrows[path.parent] |= {deepest} - {path.parent}
    assert {*TopologicalSorter(arrows).static_order()} <= folders
