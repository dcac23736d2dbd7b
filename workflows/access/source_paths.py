"""Places of a run's sources: anywhere for its user, below one folder for the clients of a server."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

from graph.environment import environment
from graph.errors import BadInput
from graph.server_clients import serves_clients

SOURCES_VARIABLE = "MARA_SOURCES"
"""Names the folder whose files the clients of a server may have indexed; its working directory by default."""


def resolve_source(name: str) -> Path:
    """Return the path of a source that a caller names.

    In a LangGraph server the name comes from a client: there it is a relative path below the folder of
    ``MARA_SOURCES``, and stays there, through whatever links. Hidden files and folders are not to be had.

    Raises:
        BadInput: a client of a server named something else.
    """
    if not serves_clients():
        return Path(name)
    plain, windows = PurePosixPath(name), PureWindowsPath(name)
    parts = {*plain.parts, *windows.parts}
    if not name or plain.is_absolute() or windows.drive or windows.root or any(part.startswith(".") for part in parts):
        raise _refused(name, "is no path below the folder of sources")
    base = Path(environment().mara_sources or ".")
    path = base / name
    try:
        inside = path.resolve().is_relative_to(base.resolve())
    except (OSError, ValueError, RuntimeError) as fault:
        raise _refused(name, "cannot be followed") from fault
    if not inside:
        raise _refused(name, "leads out of the folder of sources")
    return path


def _refused(name: str, why: str) -> BadInput:
    return BadInput(
        f"{name[:200]!r} {why}",
        f"Give a relative path below the server's {SOURCES_VARIABLE}, without '..' and links out",
    )
