"""Who asks a server, and what they may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workflows.context import make_context
from workflows.settings.enums import Workflow
from workflows.settings.mara import Context

OWN_WORKSPACE = ""
"""Stands for the server's own workspace, that of ``MARA_WORKSPACE``."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who asks a server.

    Attributes:
        name: their name, unique among those that a server knows.
        where: the filter of all they ask; empty: they see every passage.
        workspaces: names of those they may open, the one of who names none first; None: any.
        may_index: whether they may write: index and sync documents.
    """

    name: str
    where: Mapping[str, Any] = field(default_factory=dict)
    workspaces: tuple[str, ...] | None = (OWN_WORKSPACE,)
    may_index: bool = False

    @property
    def owner(self) -> str:
        """Whose conversations these are."""
        return self.name

    def context(self, workflow: str = Workflow.MARA, **settings: Any) -> Context:
        """Return the settings of a run of theirs, from those that a client gave. Raises BadInput."""
        return make_context(workflow, **settings)

    def workspace(self, name: str = "") -> str:
        """Return the workspace that a client's name stands for."""
        return name


LOCAL = Identity("local", workspaces=None, may_index=True)
"""Who asks where no keys are configured: the machine's own user, who may do all."""


@dataclass(frozen=True, slots=True)
class Keyring:
    """Who a server knows: the machine's own user."""

    @classmethod
    def of_environment(cls) -> Keyring:
        """Return the keyring of the environment."""
        return cls()

    @property
    def is_open(self) -> bool:
        """Whether nobody has to show a key."""
        return True

    def identity_of(self, authorization: str | None) -> Identity:
        """Return who sends a header ``Authorization``."""
        return LOCAL
