"""A served page: its workspaces, its conversations, who may see which of them, and the words for errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from graph.errors import BadInput, MaraError, NoAccess
from graph.server_clients import serves_clients, without_folders
from graph.storage.workspace import Workspace, default_workspace, resolve_workspace
from workflows.access.identity import Identity, Keyring
from workflows.access.key_file import OWN_WORKSPACE
from workflows.conversation.kept import Conversations
from workflows.output.printable import visible
from workflows.runtime.access import keeps_history
from workflows.serving.page.documents import Uploads
from workflows.serving.page.runs import Runs
from workflows.settings.enums import Workflow
from workflows.settings.mara import Context

_SETTINGS = ("workspace", "workflow", "mode", "where", "as_of", "personalise", "answer_tokens")
"""The settings that a visitor may change."""

_LOG = logging.getLogger(__name__)


def _is_nameable_workspace(folder: Path) -> bool:
    try:
        resolve_workspace(folder.name)
        return Workspace(folder).record_path.is_file()
    except (BadInput, OSError, ValueError):
        return False


@dataclass(frozen=True)
class Site:
    """The contents of a page.

    Attributes:
        workspace: the server's own; None for that of ``MARA_WORKSPACE``.
        conversations_at: a folder that keeps the conversations in place of that workspace; None for none.
        uploads: the folder for documents that visitors add; None where they may not.
        keyring: tells who is known; read for every request.
        keeps_history: tells whether conversations go into the history, each under the user's name.
    """

    workspace: Path | None = None
    conversations_at: Path | None = None
    uploads: Path | None = None
    keyring: Callable[[], Keyring] = field(default=Keyring.of_environment)
    keeps_history: Callable[[], bool] = keeps_history

    @property
    def own(self) -> Path:
        """Where the server's own workspace is."""
        return self.workspace or default_workspace()

    @property
    def conversations(self) -> Conversations:
        """The conversations of all."""
        return Conversations(self.conversations_at or self.own)

    @cached_property
    def runs(self) -> Runs:
        """The questions that this process answers, and those who follow any."""
        return Runs(self.conversations)

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

    def told(self, fault: Exception) -> str:
        """Return what visitors are told of an error: of ours the words without folders, of others the kind."""
        if isinstance(fault, MaraError):
            own = self.own
            return without_folders(str(fault), own.parent, own.absolute().parent)
        _LOG.exception("The page could not be served", exc_info=fault)
        return f"The server failed ({type(fault).__name__}): its log tells more"

    def may_upload(self, identity: Identity) -> bool:
        """Tell whether somebody may add documents: not a user who sees only a part of the passages."""
        return self.uploads is not None and identity.may_index and not identity.where

    def uploads_of(self, identity: Identity, workspace: str) -> Uploads:
        """Return where somebody's documents for a workspace go.

        Raises:
            BadInput: this server takes none.
            NoAccess: they may not.
        """
        if self.uploads is None:
            raise BadInput(
                "Documents cannot be added here",
                "The operator of the server can allow it: `mara serve --uploads FOLDER`",
            )
        identity.check_may_index()
        if identity.where:
            raise NoAccess(
                f"{identity.name} may not add documents, since a filter hides passages from them",
                "Ask the operator of the server to add them, or for a key without a filter",
            )
        root = Path(self.place_of(identity.workspace(workspace)))
        return Uploads(self.uploads / root.absolute().name, root)

    def in_history(self, context: Context, identity: Identity, conversation: str) -> Context:
        """Return the settings of a question in a conversation of the history, where one is kept; else as they are.

        Raises BadInput for a personal ranking without a history.
        """
        if context.personalise:
            self.check_keeps_history()
        return context.in_history(conversation, identity.name) if self.keeps_history() else context

    def check_keeps_history(self) -> None:
        """Raise BadInput where no history is kept, which is all that tells what somebody read."""
        if not self.keeps_history():
            raise BadInput(
                "This page keeps no history", "The operator of the server can let it keep one: `mara serve --history`"
            )

    def context(self, identity: Identity, settings: Mapping[str, Any], allowed: Sequence[str] = _SETTINGS) -> Context:
        """Return the settings of a question, within what its asker may see. Raises BadInput for others than allowed."""
        unknown = settings.keys() - set(allowed)
        if unknown:
            named = ", ".join(sorted(visible(name[:64]) for name in unknown))
            raise BadInput(f"There is no setting {named} here", f"There are {', '.join(allowed)}")
        values = {"workflow": Workflow.MARA, **settings}
        context = identity.context(**{name: value for name, value in values.items() if value not in ("", None)})
        return context.model_copy(update={"workspace": self.place_of(context.workspace)})
