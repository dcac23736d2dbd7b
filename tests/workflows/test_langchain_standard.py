"""LangChain's own standard tests, of the retriever and of each tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from graph.errors import BadInput
from workflows.context import Context
from workflows.for_agents import (
    MaraRetriever,
    answer_tool,
    discovery_tool,
    provenance_tool,
    retrieval_tool,
    walk_tool,
)
from workflows.indexing import index_sources

QUESTION = "Into which lake does the Velm flow?"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    root = tmp_path_factory.mktemp("standard")
    for name, text in {
        "velm": "Velm is a river in Ostra. It flows into Lake Sund.",
        "sund": "Lake Sund is a lake in Ostra with an area of 12 km2.",
        "karv": "Karv is a town in Ostra on the Velm.",
        "orlen": "Orlen is a mountain in Ostra above Karv.",
    }.items():
        (root / f"{name}.md").write_text(f"# {name.title()}\n\n{text}\n", encoding="utf-8")
    corpus = root / "corpus.jsonl"
    corpus.write_text('{"id": "p1", "title": "Sel", "text": "The Sel flows into the Velm."}\n', encoding="utf-8")
    index_sources([root], root / "workspace")
    return Context(workspace=str(root / "workspace"), model="offline")


@pytest.fixture
def settings(request: pytest.FixtureRequest, context: Context) -> None:
    request.cls.context = context


@pytest.mark.usefixtures("settings")
class TestRetriever(RetrieversIntegrationTests):
    context: Context

    @property
    def retriever_constructor(self) -> type[MaraRetriever]:
        return MaraRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"context": self.context}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


def test_a_number_of_passages_out_of_range_is_refused(context: Context) -> None:
    retriever = MaraRetriever(context=context, k=2)
    assert len(retriever.invoke(QUESTION)) == 2
    with pytest.raises(BadInput, match="top_k"):
        retriever.invoke(QUESTION, k=0)


Example = tuple[Callable[[Context], BaseTool], dict[str, Any]]

TOOLS: list[Example] = [
    (retrieval_tool, {"question": QUESTION}),
    (answer_tool, {"question": QUESTION}),
    (discovery_tool, {"topic": "lakes", "k": 2}),
    (walk_tool, {"question": QUESTION}),
    (provenance_tool, {"passage_id": "p1"}),
]


class _Tools:
    example: Example
    context: Context

    @property
    def tool_constructor(self) -> BaseTool:
        return self.example[0](self.context)

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return self.example[1]


@pytest.fixture(params=TOOLS, ids=lambda example: example[0].__name__)
def example(request: pytest.FixtureRequest, settings: None) -> None:
    request.cls.example = request.param


@pytest.mark.usefixtures("example")
class TestToolsAreDeclared(_Tools, ToolsUnitTests): ...


@pytest.mark.usefixtures("example")
class TestToolsAreCalled(_Tools, ToolsIntegrationTests): ...
