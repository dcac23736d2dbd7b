"""A web service over mara: answers as JSON, and as server-sent events while they are written.

MARA_WORKSPACE=.mara-demo uvicorn --app-dir docs/examples service:app
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from graph.errors import (
    BadInput,
    DependencyMissing,
    EmbeddingMismatch,
    MaraError,
    ServiceUnavailable,
    TransportFault,
    WorkspaceMissing,
)
from graph.retrieve.modes import Mode
from workflows.answering import ask
from workflows.context import make_context
from workflows.results import Result
from workflows.runtime.resources import close_indexes
from workflows.streaming import Event, aask_stream, event_json

STATUSES = {
    WorkspaceMissing: 503,
    EmbeddingMismatch: 500,
    DependencyMissing: 500,
    BadInput: 400,
    ServiceUnavailable: 502,
}
"""The first that an error is one of gives its HTTP status; any other error is 500."""


class Asked(BaseModel):
    """What a client may choose. Workspace, models and tenant are the server's to choose: see `make_context`."""

    question: str = Field(description="A question in plain words, in any language.")
    mode: Mode = Field(Mode.MARA, description="How passages are found.")
    top_k: int = Field(10, ge=1, le=50, description="How many passages are returned.")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Close the indexes that were opened for questions when the server goes down."""
    yield
    close_indexes()


app = FastAPI(title="mara", lifespan=lifespan)


@app.exception_handler(MaraError)
async def tell(request: Request, error: MaraError) -> JSONResponse:
    """Answer with what went wrong and what to do about it."""
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)
    wait = error.retry_after_s if isinstance(error, TransportFault) else None
    return JSONResponse(body_of(error), status, {"Retry-After": str(round(wait))} if wait else None)


@app.post("/ask")
def answer(asked: Asked) -> Result:
    """Answer a question."""
    return ask(asked.question, make_context(mode=asked.mode, top_k=asked.top_k))


@app.get("/ask/stream")
async def stream(asked: Annotated[Asked, Query()]) -> StreamingResponse:
    """Answer a question event by event; a client that goes away stops the work."""
    events = aask_stream(asked.question, make_context(mode=asked.mode, top_k=asked.top_k))
    return StreamingResponse(server_sent(events), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def server_sent(events: AsyncGenerator[Event, None]) -> AsyncIterator[str]:
    """Write events as server-sent ones, named by kind; the last is ``answered``, or ``failed`` with the error."""
    try:
        async with aclosing(events):
            async for event in events:
                yield f"event: {event.kind}\ndata: {json.dumps(event_json(event))}\n\n"
    except Exception as error:
        if not isinstance(error, MaraError):
            logging.getLogger("uvicorn.error").exception("A stream broke off")
        yield f"event: failed\ndata: {json.dumps(body_of(error))}\n\n"


def body_of(error: Exception) -> dict[str, Any]:
    """Return an error as clients see it; of an unforeseen one, only that it happened."""
    if not isinstance(error, MaraError):
        return {"error": {"kind": "InternalError", "message": "The server failed", "hint": "Its log says more"}}
    return {"error": {"kind": error.kind, "message": error.message, "hint": error.hint}}
