"""A question that is refused tells that files could not be read, to whoever may see all of the workspace."""

from __future__ import annotations

import pytest

from agents.offline.extractor import OfflineExtractor
from workflows.answering import ask
from workflows.context import make_context
from workflows.conversation.messages import answer_text
from workflows.indexing import index_sources
from workflows.output.markdown import plain
from workflows.results import refusal_text
from workflows.runtime.resources import OFFLINE
from workflows.settings.enums import Workflow

TOLD = "1 file could not be read when this was indexed: `mara show --skipped` names them"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a file that cannot be read and one of another kind, indexed."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "mill.md").write_text("# Mill\n\nThe mill was built by Ida Brandt in 1874.", encoding="utf-8")
    (folder / "lease.pdf").write_bytes(b"no PDF")
    (folder / "mill.xyz").write_bytes(b"\0")
    root = tmp_path_factory.mktemp("workspace")
    index_sources([folder], root, extractor=OfflineExtractor())
    return str(root)


@pytest.mark.parametrize("workflow", list(Workflow))
def test_a_refusal_tells_how_many_files_could_not_be_read(workspace: str, workflow: Workflow) -> None:
    result = ask("What does the Tolleson lease cost?", make_context(workflow, workspace=workspace, model=OFFLINE))
    assert result["refused"]
    assert plain(TOLD) in refusal_text(result)
    assert plain(TOLD) in answer_text(result)


def test_an_answer_does_not(workspace: str) -> None:
    result = ask("Who built the mill?", make_context(Workflow.MARA, workspace=workspace, model=OFFLINE))
    assert not result["refused"]
    assert TOLD not in [note["message"] for note in result["errors"]]


def test_whoever_sees_a_part_is_not_told(workspace: str) -> None:
    context = make_context(Workflow.MARA, workspace=workspace, model=OFFLINE, where={"file": "mill.md"})
    result = ask("What does the Tolleson lease cost?", context)
    assert result["refused"]
    assert plain(TOLD) not in refusal_text(result)
