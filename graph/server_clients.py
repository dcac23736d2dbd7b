"""The clients of a LangGraph server: tells whether this process has any, and keeps paths of its machine from them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from graph.environment import environment


def serves_clients() -> bool:
    """Tell whether names and settings come from the clients of a LangGraph server, rather than from its operator."""
    return "langgraph_api" in sys.modules


def told(text: str) -> str:
    """Return a message or a result as whoever asked may see it: a client of a server sees names in place of paths."""
    return without_folders(text) if serves_clients() else text


def without_folders(text: str, *folders: Path) -> str:
    """Return a text with names in place of paths.

    Args:
        text: a message or a result.
        folders: whose paths are left out, besides those of the settings, the code and the user.
    """
    for folder in sorted({*folders, *_private_folders()}, key=lambda folder: -len(str(folder))):
        if folder.name:
            place = rf"(?<![\w.-]){re.escape(str(folder))}(?:({re.escape(os.sep)})|(?![\w.-]))"
            text = re.sub(place, partial(_name_of, folder), text)
    return text


def _name_of(folder: Path, place: re.Match[str]) -> str:
    """Return what stands for a folder's path: nothing before the name of what lies in it."""
    return "" if place[1] else folder.name


def _private_folders() -> Iterator[Path]:
    """Yield the folders that paths of this process lie in. Looks at no disk: errors are made in event loops, too."""
    yield Path(environment().mara_workspace or ".").parent
    yield Path(environment().mara_sources or ".")
    yield Path(__file__).parents[1]
    yield Path(sys.prefix)
    yield Path(os.path.expanduser("~"))
