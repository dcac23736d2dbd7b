"""The caller of a server, by the key or token that they send, and what they may see.

The file that ``MARA_AUTH`` names says who is known: see `workflows.access.key_file`. Without it there is one identity,
that of the machine's own user, who may do all.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, TypeVar

from graph.environment import environment
from graph.errors import BadInput, NoAccess
from graph.metadata_filter import canonical, read_conditions
from graph.storage.workspace import check_workspace_name
from workflows.access.key_file import ANY_WORKSPACE, OWN_WORKSPACE, KeyFile, read_key_file
from workflows.access.tokens import filled_in, filled_in_names, is_granted
from workflows.context import make_context
from workflows.settings.enums import Workflow
from workflows.settings.indexing import IndexingContext
from workflows.settings.mara import Context

AUTH_VARIABLE = "MARA_AUTH"
"""Names the file of keys and tokens."""

TOKEN_PREFIX = "token:"
"""Begins the names of who comes with a token, which so cannot be those of who holds a key."""

Settings = TypeVar("Settings", Context, IndexingContext)


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller of a server.

    Attributes:
        name: their name, unique among those that a server knows.
        where: the filter of all they ask; empty: they see every passage.
        workspaces: names of those they may open, the one of who names none first; None: any.
        may_index: whether they may write: index and sync documents.
        may_watch: whether they may read the figures of the server.
    """

    name: str
    where: Mapping[str, Any] = field(default_factory=dict)
    workspaces: tuple[str, ...] | None = (OWN_WORKSPACE,)
    may_index: bool = False
    may_watch: bool = False

    @property
    def owner(self) -> str:
        """Whose conversations these are: a name and its filter, so that another filter does not read what it hides."""
        return f"{self.name}:{sha256(canonical(read_conditions(self.where)).encode()).hexdigest()[:16]}"

    def context(self, workflow: str = Workflow.MARA, **settings: Any) -> Context:
        """Return the settings of a run of theirs, from those that a client gave; None means not given.

        The client's filter can only narrow theirs.

        Raises:
            BadInput: a setting cannot be used, or would replace a condition of theirs.
            NoAccess: they may not open that workspace.
        """
        return self.confine(make_context(workflow, **settings))

    def confine(self, context: Context) -> Context:
        """Return the settings of a run within what they may see. Raises as `context` does.

        Their entries in the history are written under their own name, whatever name they gave.
        """
        confined = self._in_workspace(context).within(self.where)
        if self is LOCAL or not (context.conversation_id or context.user_id):
            return confined
        return confined.in_history(context.conversation_id, self.name)

    def indexing(self, context: IndexingContext) -> IndexingContext:
        """Return the settings of an indexing run of theirs.

        Raises:
            NoAccess: they may not index, or not open that workspace.
        """
        self.check_may_index()
        return self._in_workspace(context)

    def check_may_index(self) -> None:
        """Raise NoAccess where they may not index."""
        if not self.may_index:
            raise NoAccess(
                f"{self.name} may not index documents",
                "Ask the operator of the server to set may_index, or to index them",
            )

    def check_may_watch(self) -> None:
        """Raise NoAccess where they may not read the figures of the server."""
        if not self.may_watch:
            raise NoAccess(
                f"{self.name} may not read the figures of this server", "Ask its operator for a key with may_watch"
            )

    def workspace(self, name: str = "") -> str:
        """Return the workspace that a client's name stands for: a plain name, or empty for the server's own.

        Raises:
            BadInput: it is no such name.
            NoAccess: they may not open it.
        """
        if name:
            check_workspace_name(name)
        if self.workspaces is None:
            return name
        if not name:
            return self.workspaces[0]
        if name not in self.workspaces:
            others = ", ".join(filter(None, self.workspaces))
            hint = f"Name one of {others}" if others else "Leave the workspace out"
            raise NoAccess(f"{self.name} may not open the workspace {name[:64]!a}", hint)
        return name

    def to_json(self) -> str:
        """Return the identity as text, as a run carries it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the identity of such a text."""
        values = json.loads(text)
        names = values.pop("workspaces")
        return cls(workspaces=None if names is None else tuple(names), **values)

    def _in_workspace(self, context: Settings) -> Settings:
        workspace = self.workspace(context.workspace)
        return context if workspace == context.workspace else context.model_copy(update={"workspace": workspace})


LOCAL = Identity("local", workspaces=None, may_index=True, may_watch=True)
"""The caller where no keys are configured: the machine's own user, who may do all."""


@dataclass(frozen=True, slots=True)
class Keyring:
    """The callers that a server knows.

    Attributes:
        known: what the file of keys says; None where there is none, and everybody is the machine's own user.
    """

    known: KeyFile | None = None

    @classmethod
    def of_environment(cls) -> Keyring:
        """Return the keyring of ``MARA_AUTH``; the file is read again when it has changed.

        Raises:
            BadInput: the file cannot be read or used.
        """
        named = environment().mara_auth
        if not named:
            return cls()
        path = Path(named)
        try:
            state = path.stat()
        except OSError as fault:
            raise BadInput(f"{AUTH_VARIABLE} names {named}, which cannot be read ({fault.strerror})") from fault
        return _read_keyring(path, state.st_mtime_ns, state.st_size)

    @property
    def is_open(self) -> bool:
        """Whether no key is needed."""
        return self.known is None

    def identity_of(self, authorization: str | None) -> Identity:
        """Return who sends a header ``Authorization``: ``Bearer`` with a key or a token.

        Raises:
            NoAccess: no caller is known by it (401), or a token lacks what its holder's rights depend on (403).
        """
        if self.known is None:
            return LOCAL
        secret = _secret_in(authorization)
        digest = sha256(secret.encode()).hexdigest()
        # Every key is compared, in constant time, so that the time of an answer tells nothing.
        names = [name for name, key in self.known.digests if hmac.compare_digest(digest, key)]
        if names:
            return self.identity_named(names[0])
        tokens = self.known.tokens
        if tokens is None:
            raise NoAccess("The key is not known", "Ask the operator of the server for one", status=401)
        claims = tokens.claims_of(secret)
        return Identity(
            f"{TOKEN_PREFIX}{claims[tokens.name]}",
            filled_in(tokens.where, claims),
            None if tokens.workspaces == ANY_WORKSPACE else filled_in_names(tokens.workspaces, claims),
            is_granted(tokens.may_index, claims),
        )

    def identity_named(self, name: str) -> Identity:
        """Return who holds a key, by name. Raises NoAccess where there is no such holder."""
        holder = self.known.keys.get(name) if self.known else None
        if holder is None:
            raise NoAccess(f"No user called {name[:64]!a} holds a key", "Ask the operator of the server", status=401)
        workspaces = None if holder.workspaces == ANY_WORKSPACE else tuple(holder.workspaces)
        return Identity(name, holder.where, workspaces, holder.may_index, holder.may_watch)


def authorization_of(authorization: str | None, api_key: str | None) -> str | None:
    """Return what a request shows of its headers ``Authorization`` and, as chat interfaces send it, ``X-Api-Key``."""
    return authorization or (f"Bearer {api_key}" if api_key else None)


@lru_cache(maxsize=1)
def _read_keyring(path: Path, changed_ns: int, size: int) -> Keyring:
    return Keyring(read_key_file(path))


def _secret_in(authorization: str | None) -> str:
    scheme, _, secret = (authorization or "").strip().partition(" ")
    secret = secret.strip()
    if not scheme:
        raise NoAccess("No key was sent", "Send one in the header Authorization: Bearer KEY", status=401)
    if scheme.lower() != "bearer" or not secret or not secret.isascii():
        raise NoAccess("The header Authorization holds no key", "Write it as: Authorization: Bearer KEY", status=401)
    return secret
