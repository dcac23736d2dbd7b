"""What a page serves: its workspaces, its conversations, who may see what of them, and what is told of errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph.errors import BadInput, MaraError, NoAccess
from graph.server_clients import without_folders
from workflows.access.identity import Identity, Keyring
from workflows.conversation.kept import FILE_NAME, Conversations
from workflows.output.printable import visible
from workflows.runtime.access import keeps_history
from workflows.serving.page.documents import Uploads
from workflows.serving.page.workspaces import Workspaces
from workflows.settings.enums import Workflow
from workflows.settings.mara import Context

_SETTINGS = ("workspace", "workflow", "mode", "where", "as_of", "personalise")
"""What a visitor may set."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Site:
    """What a page serves.

    Attributes:
        workspace: the server's own; None for that of ``MARA_WORKSPACE``.
        conversations_file: where conversations are kept; None for a file within that workspace.
        uploads: the folder for documents that visitors add; None where they may not.
        keyring: tells who is known; read for every request.
        keeps_history: tells whether conversations go into the history, each under the name of who asks.
    """

    workspace: Path | None = None
    conversations_file: Path | None = None
    uploads: Path | None = None
    keyring: Callable[[], Keyring] = field(default=Keyring.of_environment)
    keeps_history: Callable[[], bool] = keeps_history

    @property
    def workspaces(self) -> Workspaces:
        """The workspaces that may be chosen."""
        return Workspaces(self.workspace)

    @property
    def conversations(self) -> Conversations:
        """The conversations of all."""
        return Conversations(self.conversations_file or self.workspaces.own / FILE_NAME)

    def told(self, fault: Exception) -> str:
        """Return what visitors are told of an error: of ours the words without folders, of others the kind."""
        if isinstance(fault, MaraError):
            own = self.workspaces.own
            return without_folders(str(fault), own.parent, own.absolute().parent)
        _LOG.exception("The page could not be served", exc_info=fault)
        return f"The server failed ({type(fault).__name__}): its log tells more"

    def may_upload(self, identity: Identity) -> bool:
        """Tell whether somebody may add documents: nobody may who sees only a part of the passages."""
        return self.uploads is not None and identity.may_index and not identity.where

    def uploads_of(self, identity: Identity, workspace: str) -> Uploads:
        """Return where somebody's documents for a workspace go.

        Raises:
            BadInput: nobody may add any.
            NoAccess: they may not.
        """
        if self.uploads is None:
            raise BadInput(
                "Documents cannot be added here", "Whoever runs the server can allow it: `mara serve --uploads FOLDER`"
            )
        identity.check_may_index()
        if identity.where:
            raise NoAccess(
                f"{identity.name} may not add documents, since a filter hides passages from them",
                "Ask whoever runs the server to add them, or for a key without a filter",
            )
        root = Path(self.workspaces.place_of(identity.workspace(workspace)))
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
                "This page keeps no history", "Whoever runs the server can let it keep one: `mara serve --history`"
            )

    def context(self, identity: Identity, settings: Mapping[str, Any], allowed: Sequence[str] = _SETTINGS) -> Context:
        """Return the settings of a question, within what its asker may see. Raises BadInput for others than allowed."""
        unknown = settings.keys() - set(allowed)
        if unknown:
            named = ", ".join(sorted(visible(name[:64]) for name in unknown))
            raise BadInput(f"There is no setting {named} here", f"There are {', '.join(allowed)}")
        given = {"workflow": Workflow.MARA, **settings}
        context = identity.context(**{name: value for name, value in given.items() if value not in ("", None)})
        return context.model_copy(update={"workspace": self.workspaces.place_of(context.workspace)})
