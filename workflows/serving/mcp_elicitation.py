"""Asking the user of an MCP client what a question means, where the client has forms for that (elicitation).

Up to protocol 2025-11-25 the server asks while the call goes on; since 2026-07-28 the call ends with what it needs, and
comes again with the answer. Imported, with the SDK, when a server is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from mcp.server.elicitation import AcceptedElicitation, render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field, create_model

from graph.errors import BadInput

_ANSWERED_ANEW = "2026-07-28"
_KEY = "meaning"
_MESSAGE = "What does the question mean?"


def may_be_asked(client: Context) -> bool:
    """Tell whether the client shows forms, and was not asked in this call already."""
    if client.input_responses is not None or client.client_capabilities is None:
        return False
    elicitation = client.client_capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def ask_for_choice(client: Context, choices: Sequence[str], conversation: str) -> str | InputRequiredResult:
    """Return the choice of the client's user, empty where there is none, or what the tool has to return to get it.

    Args:
        client: of the call.
        choices: to choose from, two at least.
        conversation: the id of the conversation, for the call that comes with the answer.

    Raises:
        BadInput: the client sent no such choice.
    """
    form = _form(choices)
    if not is_version_at_least(client.protocol_version or "", _ANSWERED_ANEW):
        try:
            outcome = await client.elicit(_MESSAGE, form)
        except ValueError as fault:
            raise BadInput("The client's form gave none of the choices", "Give one as the next question") from fault
        return str(outcome.data.model_dump()[_KEY]) if isinstance(outcome, AcceptedElicitation) else ""
    asked = ElicitRequestFormParams(message=_MESSAGE, requested_schema=render_elicitation_schema(form))
    return InputRequiredResult(input_requests={_KEY: ElicitRequest(params=asked)}, request_state=conversation)


def choice_given(client: Context) -> tuple[str, str] | None:
    """Return the choice of a call that comes again with its user's answer, and the conversation that it is of."""
    answer = (client.input_responses or {}).get(_KEY)
    if not isinstance(answer, ElicitResult) or answer.action != "accept" or not client.request_state:
        return None
    return str((answer.content or {}).get(_KEY, "")), client.request_state


def _form(choices: Sequence[str]) -> type[BaseModel]:
    one_of: Any = Literal[tuple(choices)]
    return create_model("Meaning", meaning=(one_of, Field(title="Meaning", description=_MESSAGE)))
