"""The callers of the LangGraph server, and the owners of its threads, assistants, crons and stored items.

langgraph.json names ``auth``. Without ``MARA_AUTH`` everybody may do all but index, for which ``MARA_SOURCES`` has to
be set. With it each request shows a key or a token, and what it makes belongs to its identity. The graphs themselves
see to it that a user reads no passages that they may not see: `workflows.runtime.access`.
"""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

from langgraph_sdk import Auth

from graph.errors import MaraError, NoAccess
from graph.server_clients import told
from workflows.access.identity import TOKEN_PREFIX, Identity, Keyring, authorization_of
from workflows.runtime.access import IDENTITY, check_clients_may_index, identity_of_user

OWNER = "mara_owner"
"""The key of metadata that says whose something is; clients cannot set it."""

MADE_BY = "created_by"
"""The key of metadata by which the platform knows the assistants that it made itself, one a graph."""

INDEXING = "indexing"
_WRITING = ("create", "update", "create_run")
_GRAPHS = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The namespace from which the platform derives the id of a graph's own assistant."""

_LOG = logging.getLogger(__name__)

auth = Auth()


@auth.authenticate
def authenticate(headers: dict[bytes, bytes]) -> Any:
    """Return the user of a request: by ``Authorization: Bearer``, or by ``X-Api-Key`` as chat interfaces send it."""
    try:
        identity = Keyring.of_environment().identity_of(_shown(headers))
    except NoAccess as refusal:
        raise _refused(refusal) from None
    except MaraError as fault:
        _LOG.critical("No client is let in: %s", fault)
        raise _refused(NoAccess("The server cannot read its keys", "Tell its operator")) from None
    return {"identity": identity.name, IDENTITY: identity.to_json() if identity.name.startswith(TOKEN_PREFIX) else ""}


@auth.on
async def authorize(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> Any:
    """Let an identity work with what is theirs, and read the assistants of the graphs."""
    try:
        identity, is_open = await to_thread(_asking, ctx.user)
        if ctx.resource == "assistants" and _is_of_indexing(value):
            check_clients_may_index()
            identity.check_may_index()
        if is_open:
            return None
        if ctx.resource == "crons" and ctx.action == "create" and identity.name.startswith(TOKEN_PREFIX):
            raise NoAccess("A token cannot schedule runs: it will have expired", "Schedule them with a key")
    except NoAccess as refusal:
        raise _refused(refusal) from None
    if ctx.resource == "store":
        value["namespace"] = _within(value.get("namespace"), identity)
        return None
    mine = {OWNER: identity.owner}
    if ctx.action in _WRITING:
        _own(value, mine)
    if ctx.resource == "assistants" and ctx.action in ("read", "search"):
        return {"$or": [mine, {MADE_BY: "system"}]}
    return mine


def _asking(user: Any) -> tuple[Identity, bool]:
    """Return the caller, and whether no key is needed. The file of keys is looked at: not in the event loop."""
    return identity_of_user(user), Keyring.of_environment().is_open


def _shown(headers: Mapping[bytes, bytes]) -> str | None:
    text = {name: headers[name].decode("latin-1") for name in (b"authorization", b"x-api-key") if name in headers}
    return authorization_of(text.get(b"authorization"), text.get(b"x-api-key"))


def _refused(refusal: NoAccess) -> Auth.exceptions.HTTPException:
    challenge = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
    return Auth.exceptions.HTTPException(status_code=refusal.status, detail=told(str(refusal)), headers=challenge)


def _is_of_indexing(value: Mapping[str, Any]) -> bool:
    """Tell whether an assistant that is to be read or made is one of graph ``indexing``."""
    own = str(uuid5(_GRAPHS, INDEXING))
    return value.get("graph_id") == INDEXING or str(value.get("assistant_id")) == own


def _own(value: dict[str, Any], mine: Mapping[str, str]) -> None:
    """Write whose it is into the metadata of what is made or changed, over whatever a client wrote there."""
    metadata = value.get("metadata")
    if metadata is None:
        metadata = value["metadata"] = {}
    metadata.pop(MADE_BY, None)
    metadata.update(mine)


def _within(namespace: Any, identity: Identity) -> tuple[str, ...]:
    """Return a namespace of the store below the identity's own, whose name holds no character that is refused there."""
    own = sha256(identity.owner.encode()).hexdigest()[:32]
    names = tuple(namespace or ())
    return names if names[:1] == (own,) else (own, *names)
