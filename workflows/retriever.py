"""The retrieval workflow for other agents: a LangChain retriever and a tool."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, tool
from pydantic import BaseModel, ConfigDict, Field

from workflows.context import Context, asking
from workflows.retrieval import graph

_OWN_KEYS = ("id", "title", "source", "score")


class MaraRetriever(BaseRetriever):
    """A LangChain retriever over the retrieval workflow.

    Each document's ``page_content`` is the passage's text; its metadata is the passage's with
    ``id``, ``title``, ``source`` and ``score``.
    Raises from ``invoke`` what the workflow raises: BadInput, ModelUnavailable, WorkspaceDamaged.
    """

    model_config = ConfigDict(extra="forbid")

    context: Context = Field(default_factory=Context, description="The settings of every retrieval.")

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        config: Any = {"callbacks": run_manager.get_child()}
        result = graph.invoke(asking(query), config, context=self.context)
        return [
            Document(hit["text"], id=hit["id"], metadata={**hit["metadata"], **{key: hit[key] for key in _OWN_KEYS}})
            for hit in result["passages"]
        ]


class _Asked(BaseModel):
    """What an agent gives the tool: an argument that the tool has not is refused, not ignored."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(description="A question in plain words.")


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
