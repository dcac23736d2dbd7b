"""The workspaces that a visitor of the page may choose: the server's own, and those in the folders beside it."""

from __future__ import annotations

from pathlib import Path

from graph.errors import BadInput
from graph.server_clients import serves_clients
from graph.storage.workspace import Workspace, default_workspace, resolve_workspace
from workflows.access.identity import Identity
from workflows.access.key_file import OWN_WORKSPACE


class Workspaces:
    """The workspaces of a server, by the names that stand for them; an empty one stands for the server's own, too.

    Args:
        own: the server's own; None for that of ``MARA_WORKSPACE``.
    """

    def __init__(self, own: Path | None = None) -> None:
        self._given = own

    @property
    def own(self) -> Path:
        """Where the server's own workspace is."""
        return self._given or default_workspace()

    def open_to(self, identity: Identity) -> dict[str, str]:
        """Return {name: what it is shown as} of the workspaces that somebody may open, their first one first."""
        there = self._named()
        named = {self.own.absolute().name: self.own, **there}
        allowed = there if identity.workspaces is None else identity.workspaces
        return {name: named[name].absolute().name for name in allowed if name in named}

    def place_of(self, name: str) -> str:
        """Return what a run's settings call a workspace that a visitor names. Raises BadInput where there is none."""
        if serves_clients():
            return name
        own = self.own.absolute()
        if name in (OWN_WORKSPACE, own.name):
            return str(self.own)
        place = own.parent / name
        if place.name != name or not _is_nameable_workspace(place):
            raise BadInput(f"There is no workspace {name[:64]!a}", "Choose one of those that the page offers")
        return str(place)

    def _named(self) -> dict[str, Path]:
        own = self.own.absolute()
        beside = resolve_workspace("any").parent if serves_clients() else own.parent
        folders = sorted(beside.iterdir()) if beside.is_dir() else []
        others = {each.name: each for each in folders if each.absolute() != own and _is_nameable_workspace(each)}
        return {OWN_WORKSPACE: self.own, **others}


def _is_nameable_workspace(folder: Path) -> bool:
    try:
        resolve_workspace(folder.name)
        return Workspace(folder).record_path.is_file()
    except (BadInput, OSError, ValueError):
        return False
