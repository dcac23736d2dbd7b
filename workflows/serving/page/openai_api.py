"""The chat completions of OpenAI's API over the workspaces of a site, for clients that ask any model in that way.

A model is a workflow on a workspace. The messages of a request are its thread, read as graph ``chat`` reads its own;
nothing of them is kept. Clients drop fields that they do not know, so an answer's sources stand in its text, and are
taken out of it where it comes back in a later request.
"""

from __future__ import annotations

import json
import re
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import StreamingResponse

from agents.leaning import chosen_reading, readings_in
from agents.roles import REFUSAL, Turn
from graph.errors import BadInput
from workflows.access.key_file import OWN_WORKSPACE
from workflows.answering import ask
from workflows.context import check_question
from workflows.conversation.kept import TOUCHED_EVERY_S
from workflows.conversation.messages import (
    METADATA,
    answer_metadata,
    next_question,
    reply_text,
    sources_list,
    spoken,
    text_of,
    without_sources,
)
from workflows.output.markdown import plain
from workflows.output.quoted import pages_of, section_of
from workflows.results import Result, cited_passages, remarks_on, understood_as
from workflows.runtime.own_run import braked
from workflows.runtime.resources import OFFLINE, chat_model_name
from workflows.serving.page.requests import Asked, Reply, status_of
from workflows.settings.enums import ResultKind, Workflow
from workflows.settings.mara import QUESTION_LIMIT, Context
from workflows.settings.problems import problems_of
from workflows.streaming import Answered, Said, aask_with_pauses
from workflows.wording import without_words

BEGUN_AGAIN = "\n\n---\n\n*The answer begins again: what stands above could not be used.*\n\n"
"""Parts the words of a stream that came to nothing from those that count: what was sent cannot be taken back."""

ABOUT_THE_CHAT = "{}"
"""The reply to a client that wants a title, tags or proposals for a chat, in JSON: it gets on without any."""

_UNDERSTOOD = "*Understood as: "
_ESCAPED = re.compile(r"\\(.)")
_EVENTS = {"x-accel-buffering": "no"}
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class UnusableRequest(BadInput):
    """A request of OpenAI's API cannot be answered.

    Attributes:
        param: the field that is to blame.
        status: the HTTP status to answer with.
        code: OpenAI's word for it; None where there is none.
    """

    def __init__(self, message: str, hint: str, param: str, status: int = 400, code: str | None = None) -> None:
        super().__init__(message, hint)
        self.param = param
        self.status = status
        self.code = code


def wording(fault: Exception, status: int, message: str) -> dict[str, Any]:
    """Return what is told of an error, in OpenAI's shape."""
    return {
        "message": message,
        "type": _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error"),
        "param": getattr(fault, "param", None),
        "code": getattr(fault, "code", None) or _CODES.get(status),
    }


class _StreamOptions(BaseModel):
    include_usage: bool | None = None


class _Body(BaseModel):
    """The fields of a request that have a meaning here; any others are ignored."""

    model_config = ConfigDict(strict=True)

    model: str
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    n: Annotated[int, Field(ge=1, le=1)] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


@dataclass(frozen=True)
class _Completion:
    """A question, and how its answer is told.

    Attributes:
        model: the name that it was asked by.
        question: what is asked; empty for a task about the chat itself.
        turns: those before it.
        context: the settings.
        is_streamed: whether the answer is told as it comes.
        tells_usage: whether a stream tells the tokens.
        tells_words: whether the words of a model come as it writes them. Those that checks may still take back do not.
    """

    model: str
    question: str
    turns: tuple[Turn, ...]
    context: Context
    is_streamed: bool
    tells_usage: bool
    tells_words: bool
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def told(self, kind: str, **values: Any) -> dict[str, Any]:
        """Return an object of the completion."""
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, **values}

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **values: Any) -> str:
        """Return the event of a stream that brings something new."""
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _event(self.told("chat.completion.chunk", choices=[choice], **values))

    def words(self, words: str, is_anew: bool) -> str:
        """Return the event that brings words, if any, behind a mark where those before came to nothing."""
        return self.chunk({"content": f"{BEGUN_AGAIN * is_anew}{words}"}) if words else ""


@dataclass(frozen=True)
class _Answer:
    """The answer as it is told: its text, which begins with its own words; its sources as data; the tokens it took."""

    text: str
    words: str = ""
    citations: Sequence[Mapping[str, Any]] = ()
    read: int = 0
    written: int = 0

    @property
    def usage(self) -> dict[str, int]:
        """The tokens, in OpenAI's words."""
        total = self.read + self.written
        return {"prompt_tokens": self.read, "completion_tokens": self.written, "total_tokens": total}


def list_models(asked: Asked) -> dict[str, Any]:
    """Return the models that the caller may use."""
    return {"object": "list", "data": [_model(name) for name in _models(asked)]}


def read_model(asked: Asked) -> dict[str, Any]:
    """Return a model. Raises UnusableRequest where there is none of that name."""
    _place_of(asked, asked.path["id"])
    return _model(asked.path["id"])


async def complete(asked: Asked) -> Reply:
    """Answer the question that the messages end with."""
    # The names of workspaces are those of folders.
    completion = await to_thread(_read, asked)
    if completion.is_streamed:
        return StreamingResponse(_stream(asked, completion), 200, _EVENTS, "text/event-stream")
    answer = _Answer(ABOUT_THE_CHAT)
    if completion.question:
        result = await braked(lambda brake: ask(completion.question, completion.context, completion.turns, [brake]))
        asked.service.metrics.answered(result)
        answer = _answer_of(result)
    message = {"role": "assistant", "content": answer.text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return completion.told("chat.completion", choices=[choice], usage=answer.usage, citations=answer.citations)


async def _stream(asked: Asked, completion: _Completion) -> AsyncIterator[str]:
    """Yield the events of an answer; leaving stops its run."""
    yield completion.chunk({"role": "assistant", "content": ""})
    said, answer, service = Said(), _Answer(ABOUT_THE_CHAT), asked.service
    try:
        if completion.question:
            run = aask_with_pauses(completion.question, completion.context, completion.turns, TOUCHED_EVERY_S)
            async with aclosing(run) as events:
                async for event in events:
                    if event is None:
                        yield ": at work\n\n"
                    elif isinstance(event, Answered):
                        service.metrics.answered(event.result)
                        answer = _answer_of(event.result)
                    elif completion.tells_words and (words := completion.words(*said.hear(event))):
                        yield words
    except Exception as fault:
        service.metrics.failed(fault)
        yield _event({"error": wording(fault, status_of(fault), asked.site.told(fault))})
    else:
        yield completion.words(*said.rest_of(answer.text, answer.words))
        yield completion.chunk({}, "stop", citations=answer.citations)
        if completion.tells_usage:
            yield _event(completion.told("chat.completion.chunk", choices=[], usage=answer.usage))
    yield "data: [DONE]\n\n"


def _event(values: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(values)}\n\n"


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "mara"}


def _models(asked: Asked) -> dict[str, tuple[str, Workflow]]:
    """Return {name: (workspace, workflow)} of the models that the caller may use.

    The names of the workflows alone stand for the server's own workspace, or the first that they may open.
    """
    open_to = asked.site.open_to(asked.identity)
    prefixes = {"": OWN_WORKSPACE, **{f"{name}/": name for name in open_to if name != OWN_WORKSPACE}}
    return {f"{prefix}{each}": (name, each) for prefix, name in prefixes.items() for each in Workflow if open_to}


def _place_of(asked: Asked, model: str) -> tuple[str, Workflow]:
    """Return the workspace and the workflow of a model. Raises UnusableRequest where there is none of that name."""
    if model in tuple(Workflow):  # Without a look at every workspace: there may be thousands.
        return OWN_WORKSPACE, Workflow(model)
    models = _models(asked)
    if model not in models:
        raise UnusableRequest(
            f"There is no model {model[:64]!a}",
            "GET /v1/models lists those that there are",
            "model",
            404,
            "model_not_found",
        )
    return models[model]


def _read(asked: Asked) -> _Completion:
    """Return what a request asks. Raises BadInput."""
    try:
        body = _Body.model_validate(asked.body)
    except ValidationError as fault:
        param = ".".join(str(part) for part in fault.errors()[0]["loc"])
        raise UnusableRequest(f"The request cannot be used ({problems_of(fault)})", "Correct it", param) from fault
    workspace, workflow = _place_of(asked, body.model)
    try:
        messages = convert_to_messages(body.messages)
    except (KeyError, NotImplementedError, TypeError, ValueError) as fault:
        raise UnusableRequest("The messages cannot be read", "Send texts of roles", "messages") from fault
    last = next((each.content for each in reversed(messages) if isinstance(each, HumanMessage)), "")
    if isinstance(last, list) and any(isinstance(part, dict) and part.get("type") != "text" for part in last):
        raise UnusableRequest("The question holds what is not read", "Send text alone", "messages")
    asking = next_question([*_thread(messages)])
    context = asked.site.context(asked.identity, {"workspace": workspace, "workflow": workflow})
    return _Completion(
        model=body.model,
        question="" if _is_about_the_chat(asking.question) else check_question(asking.question),
        turns=asking.turns,
        context=context,
        is_streamed=bool(body.stream),
        tells_usage=bool(body.stream_options and body.stream_options.include_usage),
        tells_words=workflow is Workflow.MARA and chat_model_name(context) != OFFLINE,
    )


def _thread(messages: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    """Yield messages as those of graph ``chat``: what others than the user and the answers say is left out.

    The notes beside the text of an answer are read from below it. A reply that chooses a reading counts as that.
    """
    asked, choices = "", tuple[str, ...]()
    for message in messages:
        text = text_of(message)
        if isinstance(message, HumanMessage):
            asked = chosen_reading(text, choices) or text
            yield HumanMessage(asked)
        elif isinstance(message, AIMessage) and text:
            answer, understood = _without_below(text)
            choices = readings_in(answer)
            kind = ResultKind.CLARIFICATION if choices else ResultKind.ANSWER
            kind = ResultKind.REFUSAL if answer == REFUSAL else kind
            metadata = {"question": understood or asked, "answer_kind": kind, "sources": []}
            yield AIMessage(answer, response_metadata={METADATA: {**metadata, "understood": {"choices": [*choices]}}})


def _is_about_the_chat(question: str) -> bool:
    """Tell whether a question is a task that Open WebUI makes of a chat by itself, beside its user's questions."""
    return question.startswith("### Task:") and "<chat_history>" in question


def _answer_of(result: Result) -> _Answer:
    first = {source["number"]: source for source in reversed(answer_metadata(result)["sources"])}
    cited = {hit["number"]: hit for _, hit in cited_passages(result)}
    citations = [
        {**first[number], "section": section_of(hit, result["citations"]), "page": pages_of(hit)}
        for number, hit in cited.items()
    ]
    usage = result["usage"]
    text = f"{reply_text(result)}{_below(result)}"
    return _Answer(text, spoken(result), citations, usage["prompt_tokens"], usage["completion_tokens"])


def _below(result: Result) -> str:
    """Return what follows an answer: remarks on it, what its question was understood as, and its sources."""
    words = understood_as(result)
    parts = [f"*{remark}*" for remark in remarks_on(result)]
    parts += [f"{_UNDERSTOOD}{plain(words, 2 * QUESTION_LIMIT)}*"] if words else []
    return "".join(f"\n\n{part}" for part in [*parts, sources_list(result)] if part)


def _without_below(text: str) -> tuple[str, str]:
    """Return an answer of ours, its last attempt alone, and what its question was understood as; maybe nothing."""
    parts = without_sources(text.rpartition(BEGUN_AGAIN)[2].rstrip()).split("\n\n")
    understood = ""
    if parts[-1].startswith(_UNDERSTOOD):
        understood = _ESCAPED.sub(r"\1", parts.pop().removeprefix(_UNDERSTOOD).removesuffix("*"))
    return without_words("\n\n".join(parts)), understood
