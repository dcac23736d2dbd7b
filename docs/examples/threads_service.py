"""A web service that holds conversations: each user's threads in SQLite, kept by a checkpointer of LangGraph.

MARA_WORKSPACE=.mara-demo USERS='{"a-key": "ada"}' uvicorn --app-dir docs/examples threads_service:app
"""

from __future__ import annotations

import json
import logging
import os
from asyncio import Lock
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import compare_digest
from typing import Annotated, Any
from weakref import WeakValueDictionary

from fastapi import Depends, FastAPI, HTTPException, Path, Request
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import BaseModel, Field

from graph.errors import BadInput, MaraError
from workflows.chat import build
from workflows.runtime.resources import close_indexes

SETTINGS: dict[str, Any] = {"workflow": "mara", "top_k": 10, "list_sources": False}
"""What questions are asked with: the server's to choose, like workspace, models and filter. Sources go as data."""

Thread = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="A name that the client chooses.")]


class Asked(BaseModel):
    """What a user says."""

    text: str = Field(description="A question, or the number of a choice where the last answer asked back.")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the threads, and close what was opened when the server goes down."""
    async with AsyncSqliteSaver.from_conn_string(os.environ.get("THREADS", "threads.sqlite")) as saver:
        await saver.setup()
        app.state.saver = saver
        app.state.chat = build().compile(checkpointer=saver)
        app.state.locks = WeakValueDictionary()
        yield
    close_indexes()


app = FastAPI(title="mara, in conversations", lifespan=lifespan)


def user_of(key: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> str:
    """Return whose key a request brings; put your own sign-in in place of this."""
    users: dict[str, str] = json.loads(os.environ.get("USERS", "{}"))
    found = [user for known, user in users.items() if compare_digest(known.encode(), key.credentials.encode())]
    if not found:
        raise HTTPException(401, "The key is not known")
    return found[0]


def config_of(thread: Thread, user: Annotated[str, Depends(user_of)]) -> dict[str, Any]:
    """Return the config of a user's thread: under its user's name, so that no request can reach another's."""
    return {"configurable": {"thread_id": f"{user}/{thread}"}}


Config = Annotated[dict[str, Any], Depends(config_of)]


@app.post("/threads/{thread}")
async def answer(asked: Asked, config: Config) -> dict[str, Any]:
    """Answer in a thread; the first question begins it."""
    async with lock_of(config):
        state = await app.state.chat.ainvoke(given(asked), config, context=SETTINGS)
    return told(state["messages"][-1])


@app.post("/threads/{thread}/stream")
async def stream(asked: Asked, config: Config) -> StreamingResponse:
    """Answer in a thread, word by word as server-sent events; a client that goes away stops the work."""
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(server_sent(asked, config), media_type="text/event-stream", headers=headers)


@app.get("/threads/{thread}")
async def messages(config: Config) -> list[dict[str, Any]]:
    """Return what was said in a thread."""
    state = await app.state.chat.aget_state(config)
    return [told(message) for message in state.values.get("messages", [])]


@app.delete("/threads/{thread}", status_code=204)
async def forget(config: Config) -> None:
    """Delete a thread."""
    async with lock_of(config):
        await app.state.saver.adelete_thread(config["configurable"]["thread_id"])


@app.exception_handler(MaraError)
async def refuse(request: Request, error: MaraError) -> JSONResponse:
    """Answer with what went wrong and what to do about it; `service.py` tells the kinds of errors apart."""
    return JSONResponse(body_of(error), 400 if isinstance(error, BadInput) else 503)


def lock_of(config: dict[str, Any]) -> Lock:
    """Return the lock of a thread: of two questions at once, the second waits, and knows the first."""
    lock: Lock = app.state.locks.setdefault(config["configurable"]["thread_id"], Lock())
    return lock


def given(asked: Asked) -> dict[str, Any]:
    """Return the graph's input: the new message alone, since the thread has the others."""
    return {"messages": [{"role": "user", "content": asked.text}]}


async def server_sent(asked: Asked, config: dict[str, Any]) -> AsyncIterator[str]:
    """Write the words of an answer as events ``token``, then the whole as ``answered``, or ``failed`` with the error.

    Tokens of another ``message`` begin the answer anew.
    """
    try:
        async with lock_of(config):
            modes = ["messages", "values"]
            state: dict[str, Any] = {}
            async for mode, part in app.state.chat.astream(given(asked), config, context=SETTINGS, stream_mode=modes):
                if mode == "values":
                    state = part
                elif isinstance(part[0], AIMessageChunk) and part[0].text:
                    yield event("token", {"message": part[0].id, "text": part[0].text})
        yield event("answered", told(state["messages"][-1]))
    except Exception as error:
        if not isinstance(error, MaraError):
            logging.getLogger("uvicorn.error").exception("A stream broke off")
        yield event("failed", body_of(error))


def event(name: str, data: dict[str, Any]) -> str:
    """Return one server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def told(message: BaseMessage) -> dict[str, Any]:
    """Return a message as a client sees it; an answer with its sources, and what was understood."""
    about = message.response_metadata.get("mara", {}) if isinstance(message, AIMessage) else {}
    kept = {key: about[key] for key in ("answer_kind", "sources", "understood", "notes") if key in about}
    return {"role": "assistant" if isinstance(message, AIMessage) else "user", "text": message.text, **kept}


def body_of(error: Exception) -> dict[str, Any]:
    """Return an error as clients see it; of an unforeseen one, only that it happened."""
    if not isinstance(error, MaraError):
        return {"error": {"kind": "InternalError", "message": "The server failed", "hint": "Its log says more"}}
    return {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}}
