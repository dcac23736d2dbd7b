"""A process that is killed while it writes the history leaves whole turns, and the index as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.relationships import conversations as past
from graph.relationships.documents import relate
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from tests.builders import passage_of, publish_workspace
from tests.killing import KILLED, ForkServer, Step

pytestmark = pytest.mark.slow

BUILT = "The Tarn Dam was built by Ada Brandt in 1866."
_STEPS = (
    Step("graph/storage/opening.py", "_make_tables"),
    Step("graph/relationships/history.py", "_create"),
    Step("graph/relationships/history.py", "_append"),
    Step("graph/relationships/history.py", "_append", 2),
    Step("graph/relationships/record.py", "link_all"),
    Step("graph/relationships/history.py", "_write_references"),
    Step("graph/relationships/history.py", "track_user_viewed_document"),
    Step("graph/relationships/record.py", "set_note"),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    passages = [passage_of("p1", "Tarn Dam", BUILT), passage_of("p2", "Ostra", "The Tarn Dam is in Ostra.")]
    workspace = publish_workspace(tmp_path / "workspace", passages)
    with workspace.writing(), workspace.open_record() as record:
        relate(workspace, record)
    return workspace.root


def published(root: Path) -> dict[Path, bytes]:
    """Return the record and the generation that questions read, less the history and notes of readers."""
    notes = ("chroma", "held.db", "lock")
    files = (path for path in root.rglob("*") if path.is_file() and not path.name.startswith(RELATIONSHIPS_FILE))
    return {path: path.read_bytes() for path in files if not any(each in path.parts for each in notes)}


@pytest.fixture(scope="module")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> ForkServer:
    return ForkServer(tmp_path_factory.mktemp("killed-asking"))


@pytest.mark.parametrize("step", _STEPS, ids=lambda step: f"{step.function}-{step.time}")
def test_asking_killed_while_it_writes_leaves_nothing_or_a_whole_turn(
    root: Path, fork_server: ForkServer, step: Step
) -> None:
    before = published(root)
    asking = ("ask", "Who built the Tarn Dam?", "-w", root, "--model", "offline", "--json")
    named = (*asking, "--conversation", "of ada", "--user", "ada")
    killed = fork_server.start(*named, at=step)
    killed.join()
    assert killed.exitcode == KILLED
    with RelationshipRecord.of(root) as record:
        assert record.counts()["Message"] == record.counts()["User"] == 0
    code, out, err = fork_server.run(*named)
    assert code == 0, err
    assert json.loads(out)["recorded"]
    with RelationshipRecord.of(root) as record:
        assert [message.role for message in past.messages(record, "of ada")] == ["user", "assistant"]
    assert published(root) == before
    code, out, _ = fork_server.run("doctor", "-w", root, "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)
