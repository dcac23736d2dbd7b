"""One short import for callers in Python: `from workflows import ask, Context`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workflows import Context, ask, retrieve, tools


def test_each_name_is_there_whatever_modules_were_imported_before() -> None:
    import workflows.answering
    import workflows.explaining
    import workflows.streaming

    assert {name: getattr(workflows, name).__name__ for name in workflows.__all__} == {
        name: name for name in workflows.__all__
    }
    with pytest.raises(AttributeError, match="nothing"):
        getattr(workflows, "nothing")  # noqa: B009


def test_a_name_is_imported_when_it_is_first_used() -> None:
    show = "import sys, workflows; print({'langgraph', 'numpy'} & set(sys.modules)); from workflows import Context"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_passages_are_ranked_without_an_answer_and_tools_are_made_for_an_agent(small_workspace: Path) -> None:
    context = Context(workspace=str(small_workspace))
    found = retrieve("Where does the Velm flow?", context)
    assert [hit["id"] for hit in found["passages"]] == [
        hit["id"] for hit in ask("Where does the Velm flow?", context)["passages"]
    ]
    assert "answer" not in found
    names = ["find_passages", "ask_documents", "discover_documents", "passage_provenance", "personalized_pagerank"]
    assert [tool.name for tool in tools(context)] == names
    assert [tool.name for tool in tools(Context(workspace=str(small_workspace), mode="dense"))] == names[:-1]
