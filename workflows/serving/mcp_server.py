"""Asking and retrieving as tools of the Model Context Protocol: one workspace, for any agent that speaks it.

The official SDK does the protocol; what is here is two functions with described arguments. The SDK is imported when a
server is made, and reads their annotations: they are no strings in this module.
"""

from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, ValidationError, WithJsonSchema, create_model

from agents.roles import Turn
from graph.errors import BadInput, DependencyMissing, MaraError
from graph.metadata_filter import narrowed
from graph.retrieve.modes import Mode
from graph.server_clients import without_folders
from workflows.context import QUESTION_LIMIT, Context, asking, make_context
from workflows.conversation.session import Conversations, Thread, new_key, turns_of_history
from workflows.results import understood_as
from workflows.runtime.resources import close_indexes
from workflows.runtime.visibility import check_keys
from workflows.settings.problems import problems_of
from workflows.states.records import NO_USAGE, UsageRecord, add_usage
from workflows.streaming import Answered, NodeStarted, aask_stream

if TYPE_CHECKING:
    from mcp.server import mcpserver
    from mcp.server.mcpserver.tools import Tool

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
    answer_kind: str = Field(description="answer, evidence (quotes that nobody judged), refusal or clarification.")
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


def make_server(workspace: Path, where: Mapping[str, Any] | None = None, user: str = "") -> "mcpserver.MCPServer[None]":
    """Return an MCP server over a workspace with the tools ``ask`` and ``retrieve``; it opens nothing before a call.

    Clients choose neither workspace nor models; models are those of the environment.

    Args:
        workspace: the folder.
        where: filter of every call; a client's own filter can only narrow it further.
        user: whose name the conversations stand under in the history; empty: they are in memory alone.

    Raises:
        DependencyMissing: the SDK is not installed.
        BadInput: the filter cannot be used.
    """
    conversations = Conversations()
    try:
        from mcp.server import mcpserver
        from mcp.types import InputRequiredResult

        from workflows.serving.mcp_stdio import ask_for_choice, choice_given, may_be_asked
    except ImportError as fault:
        raise DependencyMissing(
            f"The MCP server needs the package mcp ({fault})", "Install it with: pip install 'mara-rag[mcp]'"
        ) from fault
    settings = partial(_context, workspace, narrowed(where or {}, {}), user)

    async def ask(
        question: Asked,
        client: mcpserver.Context,
        mode: Ranking = Mode.MARA,
        top_k: TopK = 10,
        where: Where = {},  # noqa: B006 - read alone; a default that clients are shown
        conversation: InConversation = "",
        as_of: AsOf = "",
    ) -> AskResult | InputRequiredResult:
        """Answer a question from the documents, with citations; say so if they lack the answer."""
        question, conversation = choice_given(client) or (question, conversation)
        with _told_to_the_client(workspace):
            talk = _Talk(conversations, await to_thread(settings, mode, top_k, where, as_of))
            answer = await _answer(talk, question, conversation, client)
            if not answer.choices or not may_be_asked(client):
                return answer
            choice = await ask_for_choice(client, answer.choices, answer.conversation)
            if isinstance(choice, InputRequiredResult):
                return choice
            return await _answer(talk, choice, answer.conversation, client, answer.usage) if choice else answer

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
            return _found(_Talk(conversations, settings(mode, top_k, where, as_of)), question, conversation)

    return mcpserver.MCPServer(
        "mara",
        version=version("mara-rag"),
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        lifespan=_closing_indexes,
        tools=[_tool(ask, "Ask the documents"), _tool(retrieve, "Find passages")],
    )


def _tool(function: Callable[..., Any], title: str) -> "Tool":
    """Return a read-only tool that refuses arguments unknown to its function."""
    from mcp.server.mcpserver.context import Context as Client
    from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import ToolAnnotations

    class Strict(Tool):
        """Reports invalid arguments in the project's words for invalid settings."""

        async def run(self, arguments: dict[str, Any], context: Client[Any, Any], convert_result: bool = False) -> Any:
            try:
                return await super().run(arguments, context, convert_result)
            except UnexpectedToolError:
                raise
            except ToolError as error:
                if isinstance(error.__cause__, ValidationError):
                    raise ToolError(f"Error executing tool {self.name}: {_refusal(error.__cause__)}") from error
                raise

    annotations = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tool = Strict.from_function(function, title=title, annotations=annotations)
    given = tool.fn_metadata.arg_model
    tool.fn_metadata.arg_model = create_model(given.__name__, __base__=given, __cls_kwargs__={"extra": "forbid"})
    tool.parameters = tool.fn_metadata.arg_model.model_json_schema()
    return tool


def _refusal(fault: ValidationError) -> str:
    error = BadInput(
        f"The call cannot be used ({problems_of(fault)})", "The input schema has the arguments, with their limits"
    )
    return f"{error.kind}: {error}"


@asynccontextmanager
async def _closing_indexes(server: "mcpserver.MCPServer[None]") -> AsyncIterator[None]:
    yield
    close_indexes()


@contextmanager
def _told_to_the_client(workspace: Path) -> Iterator[None]:
    """Turn errors into the tool's error, without the folders of paths."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        yield
    except MaraError as error:
        raise ToolError(f"{error.kind}: {without_folders(str(error), workspace.parent)}") from error


def _context(
    workspace: Path, fixed: Mapping[str, Any], user: str, mode: Mode, top_k: int, where: Mapping[str, Any], as_of: str
) -> Context:
    given = make_context(workspace=str(workspace), mode=mode, top_k=top_k, where=where, as_of=as_of, user_id=user)
    context = given.within(fixed)
    check_keys(context)
    return context


@dataclass(frozen=True)
class _Talk:
    """The conversations of a server, and the settings of a call."""

    conversations: Conversations
    context: Context

    def read(self, typed: str, key: str) -> tuple[Thread, str, tuple[Turn, ...]]:
        """Return a conversation as it stands, the question to ask in it, and the turns to ask it with."""
        thread = self._thread(key)
        return thread, *thread.read(typed)

    def context_in(self, key: str) -> Context:
        """Return the settings of a question in a conversation: one of the history where somebody is known to ask."""
        return self.context.in_history(key, self.context.user_id) if self.context.user_id else self.context

    def key_of(self, key: str) -> str:
        """Return the key of a conversation; a new one for an empty key where the history needs to know it first."""
        return key or (new_key() if self.context.user_id else "")

    def _thread(self, key: str) -> Thread:
        if self.context.user_id and not self.conversations.holds(key):
            return Thread(turns_of_history(self.context_in(key)))
        return self.conversations.find(key, self.context.where)

    def keep(self, key: str, before: Thread, result: Mapping[str, Any]) -> dict[str, Any]:
        """Add a result to its conversation; return what the client is told of both."""
        understood = result["understood"]
        return {
            "conversation": self.conversations.keep(key, self.context.where, before, result),
            "understood": understood_as(result),
            "choices": list(understood["choices"]) if understood else [],
        }


async def _answer(
    talk: _Talk, typed: str, key: str, client: "mcpserver.Context", used: UsageRecord = NO_USAGE
) -> AskResult:
    """Answer, reporting each node's start as progress; cancelling the call stops the run.

    Args:
        talk: the server's conversations.
        typed: the question, or a choice.
        key: of the conversation.
        client: of the call.
        used: what the call took of models before.
    """
    key = talk.key_of(key)
    before, question, turns = await to_thread(talk.read, typed, key)
    result: Mapping[str, Any] = {}
    begun = 0
    async with aclosing(aask_stream(question, talk.context_in(key), turns)) as events:
        async for event in events:
            if isinstance(event, NodeStarted):
                begun += 1
                await client.report_progress(begun, message=event.node)
            elif isinstance(event, Answered):
                result = event.result
    hits = {hit["number"]: hit for hit in result["passages"]}
    cited = [(mark, hits[mark["number"]]) for mark in result["citations"]]
    return AskResult(
        **talk.keep(key, before, result),
        answer=result["answer"],
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
            for mark, hit in cited
        ],
        notes=_notes(result),
        usage=add_usage(used, result["usage"]),
    )


def _found(talk: _Talk, typed: str, key: str) -> RetrieveResult:
    from workflows.retrieval import graph

    key = talk.key_of(key)
    before, question, turns = talk.read(typed, key)
    result = graph.invoke(asking(question, turns), context=talk.context_in(key))
    return RetrieveResult(
        **talk.keep(key, before, {**result, "answer": "", "citations": []}),
        passages=[FoundPassage.model_validate(hit) for hit in result["passages"]],
        ranked_by=result["ranked_by"],
        notes=_notes(result),
    )


def _notes(result: Mapping[str, Any]) -> list[str]:
    return [f"{record['node']}: {record['kind']}: {record['message']}" for record in result["errors"]]
