"""A refusal says that files could not be read, to a caller who may see all of the workspace."""

from __future__ import annotations

from pathlib import Path

from agents.offline.extractor import OfflineExtractor
from workflows.answering import ask
from workflows.context import make_context
from workflows.conversation.messages import answer_text
from workflows.indexing import index_sources
from workflows.output.markdown import plain
from workflows.results import refusal_text
from workflows.runtime.resources import OFFLINE
from workflows.settings.enums import Workflow

UNREAD = "1 file could not be read when this was indexed: `mara show --skipped` names them"


def test_a_refusal_counts_the_files_that_could_not_be_read(tmp_path: Path) -> None:
    folder, root = tmp_path / "documents", tmp_path / "workspace"
    folder.mkdir()
    (folder / "mill.md").write_text("# Mill\n\nThe mill was built by Ida Brandt in 1874.", encoding="utf-8")
    (folder / "lease.pdf").write_bytes(b"no PDF")
    (folder / "mill.xyz").write_bytes(b"\0")
    index_sources([folder], root, extractor=OfflineExtractor())
    settings = {"workspace": str(root), "model": OFFLINE}
    for workflow in Workflow:
        refused = ask("What does the Tolleson lease cost?", make_context(workflow, **settings))
        assert refused["refused"]
        assert plain(UNREAD) in refusal_text(refused)
        assert plain(UNREAD) in answer_text(refused)
    of_a_part = make_context(Workflow.MARA, where={"file": "mill.md"}, **settings)
    assert plain(UNREAD) not in refusal_text(ask("What does the Tolleson lease cost?", of_a_part))
    answered = ask("Who built the mill?", make_context(Workflow.MARA, **settings))
    assert not answered["refused"]
    assert UNREAD not in [note["message"] for note in answered["errors"]]
