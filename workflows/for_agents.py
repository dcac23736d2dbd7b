"""For other agents: a LangChain retriever, and tools that find, answer, walk, propose and trace passages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, ToolException, tool
from pydantic import BaseModel, ConfigDict, Field

from graph.errors import BadInput
from graph.relationships.discovery import PROPOSED
from graph.schema import MAX_ID
from graph.server_clients import told_to_clients
from workflows.answering import ask
from workflows.context import Context, asking, make_context
from workflows.conversation.messages import AnswerMetadata, answer_metadata
from workflows.discovery import passage_provenance, what_to_read
from workflows.results import labelled
from workflows.retrieval import graph
from workflows.runtime.own_run import on_its_own
from workflows.runtime.resources import open_run
from workflows.runtime.walk_tool import agent_tool
from workflows.settings.forms import FoundCount
from workflows.settings.mara import QUESTION_LIMIT, QuestionText

Found = TypeVar("Found")

_OWN_KEYS = ("id", "title", "source", "score")


class MaraRetriever(BaseRetriever):
    """A LangChain retriever over the retrieval workflow.

    Each document's ``page_content`` is the passage's text; its metadata is the passage's with
    ``id``, ``title``, ``source`` and ``score``. ``retriever.invoke(question, k=3)`` returns three.
    Raises from ``invoke`` and ``ainvoke`` what the workflow raises: BadInput, ModelUnavailable, WorkspaceDamaged.
    """

    model_config = ConfigDict(extra="forbid")

    context: Context = Field(default_factory=Context, description="The settings of every retrieval.")
    k: FoundCount | None = Field(default=None, description="Number of passages to return; None: the context's.")

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        return _documents(graph.invoke(asking(query), config, context=self._context(k)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        return _documents(await graph.ainvoke(asking(query), config, context=self._context(k)))

    def _context(self, k: int | None) -> Context:
        """Return the settings of one retrieval. Raises BadInput where ``k`` is out of range."""
        wanted = self.k if k is None else k
        if wanted is None:
            return self.context
        checked = make_context(top_k=wanted).top_k
        return self.context.model_copy(update={"top_k": checked})


def _documents(result: Mapping[str, Any]) -> list[Document]:
    return [
        Document(hit["text"], id=hit["id"], metadata={**hit["metadata"], **{key: hit[key] for key in _OWN_KEYS}})
        for hit in result["passages"]
    ]


class _Arguments(BaseModel):
    """The arguments of a tool: an unknown one is refused, not ignored."""

    model_config = ConfigDict(extra="forbid")


class _Asked(_Arguments):
    question: QuestionText = Field(description="A question in plain words.")


def retrieval_tool(context: Context | None = None) -> BaseTool:
    """Return a tool that finds passages for a question, for an agent of one's own.

    The tool's content is the passages with their ids, numbered; its artifact is the list of documents.
    """
    retriever = MaraRetriever(context=context or Context())

    @tool(args_schema=_Asked, response_format="content_and_artifact")
    def find_passages(question: str) -> tuple[str, list[Document]]:
        """Find the passages that together answer a question, even when it takes several of them."""
        documents = retriever.invoke(question)
        shown = [
            f"[{number}] {document.metadata['title']} ({document.id})\n{document.page_content}"
            for number, document in enumerate(documents, start=1)
        ]
        return "\n\n".join(shown) or "No passage was found.", documents

    return find_passages


def answer_tool(context: Context | None = None) -> BaseTool:
    """Return a tool that answers a question with the context's workflow, for an agent of one's own.

    The tool's content is the answer with its numbered sources; its artifact tells of them as the messages of graph
    ``chat`` do (`workflows.conversation.messages.AnswerMetadata`). An agent's thread keeps no more of the workflow.
    """
    asked_with = context or Context()

    @tool(args_schema=_Asked, response_format="content_and_artifact")
    def ask_documents(question: str) -> tuple[str, AnswerMetadata]:
        """Answer a question from the documents, with citations; it may need several documents at once."""
        result = on_its_own(ask, question, asked_with)
        metadata = answer_metadata(result)
        sources = [f"[{each['number']}] {each['title']} ({each['passage_id']})" for each in metadata["sources"]]
        return "\n".join([labelled(result), *sources]), metadata

    return ask_documents


class _Discovering(_Arguments):
    topic: str = Field(
        default="",
        max_length=QUESTION_LIMIT,
        description="What the documents are to be about. Empty: what the user or the conversation is about.",
    )
    k: int = Field(default=PROPOSED, ge=1, le=50, description="How many documents are proposed at most.")


def discovery_tool(context: Context | None = None) -> BaseTool:
    """Return a tool that proposes what to read next, ``discover_documents``, for an agent of one's own.

    The context names the user or the conversation, if any. The tool's content is the documents with the reasons why;
    its artifact is the list that `workflows.discovery.what_to_read` returns.
    """
    asked_with = context or Context()

    @tool(args_schema=_Discovering, response_format="content_and_artifact")
    def discover_documents(topic: str = "", k: int = PROPOSED) -> tuple[str, list[dict[str, Any]]]:
        """Propose documents to read next: one or two concept steps away, and not yet viewed."""
        proposals = _told_to_agent(lambda: what_to_read(asked_with, topic, k))["documents"]
        shown = [f"{each['title']} ({each['document']}): {each['reasons'][0]['told']}" for each in proposals]
        return "\n".join(shown) or "Nothing to propose.", proposals

    discover_documents.handle_tool_error = True
    return discover_documents


class _Tracing(_Arguments):
    passage_id: str = Field(max_length=MAX_ID, description="The id of a passage, as the other tools give it.")


def provenance_tool(context: Context | None = None) -> BaseTool:
    """Return a tool that tells where a passage comes from, ``passage_provenance``, for an agent of one's own.

    The tool's content and artifact are what `workflows.discovery.passage_provenance` returns, as JSON and as it is.
    """
    asked_with = context or Context()

    @tool("passage_provenance", args_schema=_Tracing, response_format="content_and_artifact")
    def trace_passage(passage_id: str) -> tuple[str, dict[str, Any]]:
        """Tell where a passage comes from, what it is about, and which answers cite it."""
        provenance = _told_to_agent(lambda: passage_provenance(asked_with, passage_id))
        return json.dumps(provenance, ensure_ascii=False), provenance

    trace_passage.handle_tool_error = True
    return trace_passage


def _told_to_agent(work: Callable[[], Found]) -> Found:
    """Do a tool's work; what its caller can mend becomes the text of a failed call."""
    try:
        with told_to_clients():
            return work()
    except BadInput as fault:
        if type(fault) is BadInput:  # its subclasses are about the workspace or the installation
            raise ToolException(str(fault)) from fault
        raise


def walk_tool(context: Context | None = None) -> BaseTool:
    """Return the walk alone as a tool, ``personalized_pagerank``, for an agent that chooses seeds and β by itself.

    Each call walks on the workspace's newest generation, within the context's filter; what a call leaves out comes
    from the context. `workflows.runtime.walk_tool.agent_tool` tells of its result, and of what a model gets wrong.

    Raises:
        BadInput: the context's mode ranks by similarity and does not walk.
    """
    walked = context or Context()
    if not walked.mode.walks:
        raise BadInput(f"Mode {walked.mode} does not walk", "Choose mode mara, hipporag2 or mara-matrix")

    return agent_tool(lambda: open_run(walked))


def tools(context: Context | None = None) -> list[BaseTool]:
    """Return all tools of these settings, for an agent of one's own; the walk's where their mode walks."""
    settings = context or Context()
    made = [each(settings) for each in (retrieval_tool, answer_tool, discovery_tool, provenance_tool)]
    return [*made, walk_tool(settings)] if settings.mode.walks else made
