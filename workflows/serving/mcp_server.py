"""Asking and retrieving as tools of the Model Context Protocol: one workspace, for any agent that speaks it.

The official SDK does the protocol; what is here is two functions with described arguments, which it reads: they are no
strings in this module.
"""

from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema, create_model

from agents.roles import Turn
from graph.errors import BadInput, MaraError, needs
from graph.metadata_filter import narrowed
from graph.retrieve.modes import Mode
from graph.server_clients import without_folders
from workflows.context import QUESTION_LIMIT, Context, asking, make_context
from workflows.conversation.session import Conversations, Thread, turns_of_history
from workflows.results import cited_passages, notes_of, refusal_text, understood_as
from workflows.runtime.resources import close_indexes
from workflows.runtime.visibility import check_keys
from workflows.states.records import UsageRecord
from workflows.streaming import Answered, NodeStarted, aask_stream

with needs("mcp", "The MCP server"):
    from mcp.server.mcpserver import Context as Client
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import ToolAnnotations

INSTRUCTIONS = (
    "Answers and passages from one collection of documents. `ask` gives a cited answer, `retrieve` the passages alone."
    " A question may need several documents at once: ask it whole. One that leans on earlier questions ('And who"
    " founded it?') needs their conversation: pass on the id that the last result gave."
)

Asked = Annotated[
    str,
    Field(
        description="A question in plain words, in any language; it may need several documents at once.",
        min_length=1,
        max_length=QUESTION_LIMIT,
    ),
]
Ranking = Annotated[
    Mode,
    Field(
        description="How passages are found: a relation-aware walk over the knowledge graph (mara, the best), the"
        " published baseline (hipporag2), the baseline with relation weights (mara-matrix), or similarity alone"
        " (dense, sparse, hybrid)."
    ),
]
TopK = Annotated[int, Field(description="Number of passages to retrieve.", ge=1, le=200)]
Where = Annotated[
    dict[str, Any],
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "object"]}}),
    Field(
        description="Filter on passage metadata: values, or conditions with $in, $ne, $nin, $gt, $gte, $lt, $lte; all"
        ' must hold. Example: {"source": "report.pdf", "year": {"$gte": 2020}}. Empty: all passages.'
    ),
]
InConversation = Annotated[
    str,
    Field(
        description="Id that the last result gave: the question may then lean on the earlier ones. Empty: a new"
        " conversation.",
        max_length=100,
    ),
]
AsOf = Annotated[
    str,
    Field(
        description="Date as of which to answer, from what stood then alone: ISO 8601, as in 2024-03-31. Empty: now.",
        max_length=40,
    ),
]
_SUPERSEDED = "Asked as of a date: when a newer version superseded the passage; null if none did."


class CitedPassage(BaseModel):
    """A passage that the answer cites."""

    number: int = Field(description="The number in the answer: 1 for [1].")
    passage_id: str
    title: str
    source: str
    quote: str = Field(description="The sentence of the passage that supports the claim, or the whole passage.")
    superseded_at: str | None = Field(default=None, description=_SUPERSEDED)


class Understood(BaseModel):
    """The part of a result that tells how the question was understood, and how to go on."""

    conversation: str = Field(description="Id to ask the next question of this conversation with.")
    understood: str = Field(description="What a question that leans on earlier ones was understood as; else empty.")
    choices: list[str] = Field(
        description="What the question could mean, if that is open: ask your user which, then ask that one."
    )


class AskResult(Understood):
    """A cited answer, or a question back."""

    answer: str = Field(description="The answer, with citations as in [1].")
    answer_kind: str = Field(description="answer, evidence (quotes that no model checked), refusal or clarification.")
    refused: bool = Field(description="Whether the passages lack the answer.")
    citations: list[CitedPassage]
    notes: list[str] = Field(description="Anything retried, dropped or defaulted on the way.")
    usage: UsageRecord = Field(description="Calls of chat models and their tokens; unknown: calls without a count.")


class FoundPassage(BaseModel):
    """A passage that was found, numbered by rank."""

    number: int
    id: str
    title: str
    text: str
    source: str
    metadata: dict[str, Any]
    score: float
    superseded_at: str | None = Field(default=None, description=_SUPERSEDED)


class RetrieveResult(Understood):
    """The passages for a question, the best first."""

    passages: list[FoundPassage]
    ranked_by: str = Field(description="Ranking used: walk, dense, sparse or hybrid; empty if nothing was found.")
    notes: list[str] = Field(description="Anything retried, dropped or defaulted on the way.")


def make_server(workspace: Path, where: Mapping[str, Any] | None = None, user: str = "") -> MCPServer[None]:
    """Return an MCP server over a workspace with the tools ``ask`` and ``retrieve``; it opens nothing before a call.

    Clients choose neither workspace nor models; models are those of the environment.

    Args:
        workspace: the folder.
        where: filter of every call; a client's own filter can only narrow it further.
        user: whose name the conversations stand under in the history; empty: they are in memory alone.

    Raises:
        BadInput: the filter cannot be used.
    """
    conversations, fixed = Conversations(), narrowed(where or {}, {})

    def begin(question: str, mode: Mode, top_k: int, where: Mapping[str, Any], key: str, as_of: str) -> _Turn:
        chosen = make_context(workspace=str(workspace), mode=mode, top_k=top_k, where=where, as_of=as_of, user_id=user)
        context = chosen.within(fixed)
        check_keys(context)
        is_new, key = not key, key or token_urlsafe(16)
        context = context.in_history(key, user) if user else context
        thread = conversations.find(key, context.where)
        if thread is None and not (is_new or user):
            raise BadInput(
                "This server knows no such conversation",
                "Begin a new one without `conversation`: old ones are forgotten, all of them with the server, and one"
                " that was begun with another `where` does not go on",
            )
        thread = thread or Thread(turns_of_history(context))
        return _Turn(conversations, key, context, thread, *thread.read(question))

    async def ask(
        question: Asked,
        client: Client,
        mode: Ranking = Mode.MARA,
        top_k: TopK = 10,
        where: Where = {},  # noqa: B006 - read alone; a default that clients are shown
        conversation: InConversation = "",
        as_of: AsOf = "",
    ) -> AskResult:
        """Answer a question from the documents, with citations; say so if they lack the answer."""
        with _told_to_the_client(workspace):
            turn = await to_thread(begin, question, mode, top_k, where, conversation, as_of)
            return await _answer(turn, client)

    def retrieve(
        question: Asked,
        mode: Ranking = Mode.MARA,
        top_k: TopK = 10,
        where: Where = {},  # noqa: B006 - read alone; a default that clients are shown
        conversation: InConversation = "",
        as_of: AsOf = "",
    ) -> RetrieveResult:
        """Find the passages that together answer a question, without writing an answer."""
        with _told_to_the_client(workspace):
            return _found(begin(question, mode, top_k, where, conversation, as_of))

    return MCPServer(
        "mara",
        version=version("mara-rag"),
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        lifespan=_closing_indexes,
        tools=[_tool(ask, "Ask the documents"), _tool(retrieve, "Find passages")],
    )


def _tool(function: Callable[..., Any], title: str) -> Tool:
    """Return a read-only tool that refuses arguments unknown to its function."""
    annotations = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tool = Tool.from_function(function, title=title, annotations=annotations)
    model = tool.fn_metadata.arg_model
    tool.fn_metadata.arg_model = create_model(model.__name__, __base__=model, __cls_kwargs__={"extra": "forbid"})
    tool.parameters = tool.fn_metadata.arg_model.model_json_schema()
    return tool


@asynccontextmanager
async def _closing_indexes(server: MCPServer[None]) -> AsyncIterator[None]:
    yield
    close_indexes()


@contextmanager
def _told_to_the_client(workspace: Path) -> Iterator[None]:
    """Turn errors into the tool's error, without the folders of paths."""
    try:
        yield
    except MaraError as error:
        raise ToolError(f"{error.kind}: {without_folders(str(error), workspace.parent)}") from error


@dataclass(frozen=True)
class _Turn:
    """A question in its conversation: its settings, the conversation as it stands, and the turns to ask it with."""

    conversations: Conversations
    key: str
    context: Context
    thread: Thread
    question: str
    turns: tuple[Turn, ...]

    def keep(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Add a result to the conversation; return what the client is told of both."""
        self.conversations.keep(self.key, self.context.where, self.thread.after(result))
        understood = result["understood"]
        return {
            "conversation": self.key,
            "understood": understood_as(result),
            "choices": list(understood["choices"]) if understood else [],
        }


async def _answer(turn: _Turn, client: Client) -> AskResult:
    """Answer, reporting each node's start as progress; cancelling the call stops the run."""
    result: Mapping[str, Any] = {}
    begun = 0
    async with aclosing(aask_stream(turn.question, turn.context, turn.turns)) as events:
        async for event in events:
            if isinstance(event, NodeStarted):
                begun += 1
                await client.report_progress(begun, message=event.node)
            elif isinstance(event, Answered):
                result = event.result
    return AskResult(
        **turn.keep(result),
        answer=refusal_text(result) if result["refused"] else result["answer"],
        answer_kind=result["answer_kind"],
        refused=result["refused"],
        citations=[
            CitedPassage(
                number=mark["number"],
                passage_id=hit["id"],
                title=hit["title"],
                source=hit["source"],
                quote=hit["text"][mark["start"] : mark["end"]],
                superseded_at=hit.get("superseded_at"),
            )
            for mark, hit in cited_passages(result)
        ],
        notes=notes_of(result),
        usage=result["usage"],
    )


def _found(turn: _Turn) -> RetrieveResult:
    from workflows.retrieval import graph

    result = graph.invoke(asking(turn.question, turn.turns), context=turn.context)
    return RetrieveResult(
        **turn.keep({**result, "answer": "", "citations": []}),
        passages=[FoundPassage.model_validate(hit) for hit in result["passages"]],
        ranked_by=result["ranked_by"],
        notes=notes_of(result),
    )
