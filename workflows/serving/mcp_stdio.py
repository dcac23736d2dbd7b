"""What the SDK of MCP lacks: an answer to every line over stdio, and forms that ask the user what a question means.

The SDK's transport passes over lines that are no message, such as text with half of a surrogate pair: the client would
wait for ever. Up to protocol 2025-11-25 the server asks its user while the call goes on; since 2026-07-28 the call ends
with what it needs, and comes again with the answer. Imported, with the SDK, when a server is made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from anyio import create_memory_object_stream, create_task_group
from mcp.server.elicitation import AcceptedElicitation, render_elicitation_schema
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
)
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field, ValidationError, create_model

from graph.errors import BadInput

_REFUSAL = "The message cannot be read: send one JSON-RPC message a line, as text without halves of surrogate pairs"

_ANSWERED_ANEW = "2026-07-28"

_KEY = "meaning"

_MESSAGE = "What does the question mean?"


async def serve_stdio(server: MCPServer[None]) -> None:
    """Serve until standard input ends; answer lines that cannot be read with an error."""
    protocol = server._lowlevel_server  # what its own `run_stdio_async` serves
    async with stdio_server() as (messages, replies), create_task_group() as tasks:
        passed_on, readable = create_memory_object_stream[SessionMessage | Exception](0)

        async def refuse_unreadable() -> None:
            async with passed_on:
                async for message in messages:
                    if isinstance(message, Exception) and (refusal := _refusal_of(message)):
                        await replies.send(SessionMessage(refusal))
                    await passed_on.send(message)

        tasks.start_soon(refuse_unreadable)
        await protocol.run(readable, replies, protocol.create_initialization_options())
        tasks.cancel_scope.cancel()


def _refusal_of(fault: Exception) -> JSONRPCError | None:
    """Return the answer to a line that is no message, with the id that it has; none to a blank one."""
    inputs = [each["input"] for each in fault.errors(include_url=False)] if isinstance(fault, ValidationError) else []
    line = inputs[0] if inputs else None
    if isinstance(line, str) and not line.strip():
        return None
    sent = _read_leniently(line) if isinstance(line, str) else next(filter(_has_id, inputs), None)
    key = sent.get("id") if isinstance(sent, dict) else None
    return JSONRPCError(
        jsonrpc="2.0",
        id=key if type(key) is int or (isinstance(key, str) and key.isprintable()) else None,
        error=ErrorData(code=PARSE_ERROR if isinstance(line, str) else INVALID_REQUEST, message=_REFUSAL),
    )


def _read_leniently(line: str) -> Any:
    """Return the JSON of a line, halves of surrogate pairs included; None where it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _has_id(sent: Any) -> bool:
    return isinstance(sent, dict) and "id" in sent


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
