"""The caller of a run, and the settings that hold for them.

In a LangGraph server the run's user says so, whom the server has authenticated (`workflows.serving.auth`): settings,
assistants, states and forks come from clients, and none of them can say more than the user may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime, ServerInfo

from graph.environment import environment
from graph.errors import BadInput, NoAccess
from graph.server_clients import serve_clients, serves_clients
from workflows.access.identity import LOCAL, TOKEN_PREFIX, Identity, Keyring
from workflows.access.source_paths import SOURCES_VARIABLE
from workflows.settings.indexing import IndexingContext
from workflows.settings.mara import Context

HISTORY_VARIABLE = "MARA_HISTORY"
"""Says whether a server may keep a history of its clients: ``on``, or ``off`` by default."""

IDENTITY = "mara_identity"
"""The field of a server's user that holds the identity that a token gave them."""


_OF_THE_SERVER = {"graph_id", "langgraph_auth_user"}


def heed_server(configurable: Mapping[str, Any]) -> None:
    """Note that this process serves clients where LangGraph's server configured a run."""
    if not _OF_THE_SERVER.isdisjoint(configurable):
        serve_clients()


def within_reach(context: Context, info: ServerInfo | None) -> Context:
    """Return a run's settings within what its caller may see.

    Outside of a LangGraph server, and where Python code has confined them already, they are what they are.

    Raises:
        NoAccess: in a LangGraph server, the caller is unknown, or they may not open the workspace.
        BadInput: a filter would replace a condition of theirs.
    """
    if context.is_confined or not serves_clients():
        return context
    check_history(context)
    return identity_of_user(info.user if info else None).confine(context)


def check_history(context: Context) -> None:
    """Raise NoAccess where a client wants a history, and the operator of the server lets it keep none."""
    if (context.conversation_id or context.user_id) and not keeps_history():
        raise NoAccess(
            "This server keeps no history of its clients",
            f"Leave conversation_id and user_id out; its operator may let it: {HISTORY_VARIABLE}=on",
        )


def keeps_history() -> bool:
    """Tell whether the operator lets a server keep a history. Raises BadInput for a setting that is no on or off."""
    setting = environment().mara_history or "off"
    if setting not in ("on", "off"):
        raise BadInput(f"{HISTORY_VARIABLE} is {setting!r}", "Set it to on or off")
    return setting == "on"


def indexing_context_of(runtime: Runtime[IndexingContext]) -> IndexingContext:
    """Return an indexing run's settings; the defaults where plain Python passed none.

    Raises:
        NoAccess: in a LangGraph server, its clients, or the caller, may not index.
    """
    info = runtime.server_info
    if info is not None:
        serve_clients()
    context = runtime.context or IndexingContext()
    if context.is_of_python or not serves_clients():
        return context
    check_clients_may_index()
    return identity_of_user(info.user if info else None).indexing(context)


def check_clients_may_index() -> None:
    """Raise NoAccess where the operator of a server named no folder whose files its clients may have indexed."""
    if not environment().mara_sources:
        raise NoAccess(
            "Clients of this server may not index documents",
            f"Its operator may let them: {SOURCES_VARIABLE} names the folder whose files they may have indexed",
        )


def identity_of_user(user: Any) -> Identity:
    """Return the identity of a LangGraph server's user; where no keys are configured, every user may do all.

    The holder of a key has the rights that the file of keys gives now; the holder of a token, those of the token.

    Raises:
        NoAccess: there is no user, or their key has been withdrawn.
    """
    keyring = Keyring.of_environment()
    if keyring.is_open:
        return LOCAL
    name = user.identity if user is not None else ""
    if not name:
        raise NoAccess("The user is not known", "Ask the server over HTTP, with a key", status=401)
    if not name.startswith(TOKEN_PREFIX):
        return keyring.identity_named(name)
    identity = user.get(IDENTITY)
    if not identity:
        raise NoAccess("What the token allowed is no longer known", "Ask again with a token, or use a key", status=401)
    return Identity.from_json(identity)
