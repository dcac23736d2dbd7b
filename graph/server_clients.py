"""The clients of a LangGraph server: whether this process serves any, and what of its machine they are told.

It is told that it does by what starts it: the page that langgraph.json names, as the server opens it
(`workflows.serving.page.app`); LangGraph, by what it says of its server with each run (`workflows.runtime.access`); and
``LANGSERVE_GRAPHS``, by which the platform hands the graphs to its server, whatever else its configuration names. A
command serves its user alone.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from graph.environment import environment
from graph.errors import MaraError

_SERVES = False


def serve_clients() -> None:
    """Say that this process serves clients, to its end."""
    global _SERVES
    _SERVES = True


def serves_clients() -> bool:
    """Tell whether names and settings come from the clients of a LangGraph server, rather than from its operator."""
    return _SERVES or bool(environment().langserve_graphs)


def told(text: str) -> str:
    """Return a message or a result as the caller may see it: a client of a server sees names in place of paths."""
    return without_folders(text) if serves_clients() else text


@contextmanager
def told_to_clients() -> Iterator[None]:
    """Let an error of ours that leaves the block name no path to the client of a server."""
    try:
        yield
    except MaraError as fault:
        fault.reword(told)
        raise


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
