"""A process that is killed while it writes the history leaves whole turns, and the index as it was."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from graph.relationships import conversations as past
from graph.relationships.documents import relate
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from graph.relationships.schema import EdgeType, NodeType
from tests.builders import passage_of, publish_workspace
from tests.killing import KILLED, ForkServer, Step

pytestmark = pytest.mark.slow

KILLS = 100
BUILT = "The Tarn Dam was built by Ada Brandt in 1866."
_USERS = ("ada", "ben")
_WRITER = """
import itertools, sys
from pathlib import Path
from graph.relationships.history import NewTurn, now, record_turn
from graph.relationships.conversations import Cited
from graph.relationships.record import RelationshipRecord
begun = sys.argv[2]
with RelationshipRecord.of(Path(sys.argv[1])) as record:
    for number in itertools.count():
        user = ("ada", "ben")[number % 2]
        said = (f"{begun}-{number}", "Who?" * 50, "Ada [1] [2]." * 50, now(), now(), f"of {user}", user)
        record_turn(record, NewTurn(*said, cited=[Cited(1, "p1"), Cited(2, "p2")]))
        if not number:
            print("writes", flush=True)
"""
_STEPS = (
    Step("graph/storage/database.py", "_make_tables"),
    Step("graph/relationships/history.py", "_create"),
    Step("graph/relationships/history.py", "_append"),
    Step("graph/relationships/history.py", "_append", 2),
    Step("graph/relationships/history.py", "_write_mentions"),
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


def index_of(root: Path) -> dict[Path, bytes]:
    """Return all files of a workspace but those of its relationship graph."""
    files = (path for path in root.rglob("*") if path.is_file() and not path.name.startswith(RELATIONSHIPS_FILE))
    return {path: path.read_bytes() for path in files if path.name != "lock"}


def published(root: Path) -> dict[Path, bytes]:
    """Return the record and the generation that questions read, less what readers note: Chroma, and who holds it."""
    notes = ("chroma", "held.db")
    return {path: content for path, content in index_of(root).items() if not any(each in path.parts for each in notes)}


def check_whole(root: Path) -> int:
    """Check that the history holds whole turns in order; return their number."""
    n_turns = 0
    with RelationshipRecord.of(root) as record:
        assert record.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert record.execute("PRAGMA foreign_key_check").fetchall() == []
        follows = {
            (edge.source[1], edge.target[1])
            for edge in record.edges(EdgeType.FOLLOWS, NodeType.MESSAGE, NodeType.MESSAGE)
        }
        for user in _USERS:
            found = past.messages(record, f"of {user}")
            assert [message.role for message in found] == len(found) // 2 * ["user", "assistant"]
            assert [message.position for message in found] == list(range(len(found)))
            assert {(after.id, before.id) for before, after in pairwise(found)} <= follows
            views = {view.document: view.view_count for view in past.views(record, user)}
            assert views == (dict.fromkeys(("p1", "p2"), len(found) // 2) if found else {})
            n_turns += len(found) // 2
        assert len(follows) == sum(max(0, each.messages - 1) for each in past.conversations(record))
    return n_turns


def test_history_killed_a_hundred_times_while_it_is_written(root: Path) -> None:
    before, chance, n_turns = index_of(root), random.Random(21), 0
    for kill in range(KILLS):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(root), str(kill)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writes\n", writer.communicate()
        threading.Event().wait(chance.uniform(0, 0.15))
        writer.kill()
        writer.communicate()
        assert writer.returncode == KILLED
        written = check_whole(root)
        assert written > n_turns
        n_turns = written
    assert index_of(root) == before


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
    assert len(messages_of(root)) == 2
    assert published(root) == before
    code, out, _ = fork_server.run("doctor", "-w", root, "--json")
    assert (code, json.loads(out)["ok"]) == (0, True)


def messages_of(root: Path) -> list[past.Message]:
    with RelationshipRecord.of(root) as record:
        return past.messages(record, "of ada")
