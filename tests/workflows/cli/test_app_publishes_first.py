"""A command that was killed between its commit and its publication: the next one that indexes or asks finishes it."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from graph.construction import build as construction
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from tests.builders import HOLD_LOCK, Child, HashEmbedder, passage_of, publish_workspace, write_passages
from tests.damages import damage_record, read_at_once
from tests.workflows.command_line import Mara
from workflows.runtime.resources import close_indexes

SAID = "Published what an interrupted command had committed, as generation 2\n"

pytestmark = pytest.mark.usefixtures("embedder")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of two passages, of which the second was committed and never published."""
    root = tmp_path_factory.mktemp("template") / "workspace"
    workspace = publish_workspace(root, [passage_of("ab", "Title ab", "text")], {"ab": [("ab", "is", "text")]})
    commit(workspace, removed=[])
    return root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "workspace"))


def commit(workspace: Workspace, removed: list[str]) -> None:
    with workspace.open_record() as record:
        write_passages(record, [] if removed else [passage_of("cd", "Title cd", "text")], {}, HashEmbedder(), removed)


ASK = ("ask", "What is ab?", "--model", "offline")


def test_a_command_that_indexes_or_asks_publishes_first_and_says_so_once(
    mara: Mara, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root.parent)
    Path("ab.txt").write_text("Title ab\n\ntext", encoding="utf-8")
    read_at_once(monkeypatch)
    for arguments in [
        ["doctor"],
        [*ASK],
        ["batch", "--single-question", "What is ab?", "--model", "offline", "--out", "answers"],
        ["index", "ab.txt"],
    ]:
        place = Path(shutil.copytree(root, root.with_name(arguments[0])))
        done = mara(*arguments, "-w", place, "--json")
        assert (done.err.count(SAID), done.code, bool(done.json)) == (1, 0, True), arguments
        assert mara("doctor", "-w", place).err == "", arguments
        close_indexes()


def test_a_server_publishes_before_it_starts(mara: Mara, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = {"workflows.serving.page.workers.serve": ["serve", "--port", "0"], "anyio.run": ["serve", "mcp"]}
    for number, (start, arguments) in enumerate(commands.items()):
        place = Path(shutil.copytree(root, root.with_name(f"served-{number}")))
        seen: list[int | None] = []
        monkeypatch.setattr(start, lambda *_, place=place, seen=seen: seen.append(Workspace(place).current()))
        assert mara(*arguments, "-w", place).err.count(SAID) == 1, arguments
        assert seen == [2], arguments


def test_another_command_publishes_nothing_and_makes_no_generation(mara: Mara, root: Path) -> None:
    for arguments in [
        ["show"],
        ["show", "--skipped"],
        ["show", "edges", "ab"],
        ["show", "document"],
        ["correct", "review"],
        ["correct", "list"],
        ["remove", "no"],
    ]:
        assert mara(*arguments, "-w", root, "--json").err == ""
        assert os.listdir(root / "index") == ["1"], arguments
        assert Workspace(root).current() == 1, arguments


def test_a_removal_ends_with_what_was_left_committed_and_one_of_the_last_passage_is_finished_too(
    mara: Mara, root: Path
) -> None:
    assert mara("remove", "ab", "-w", root, "--json").json["passages"] == 1
    assert mara("doctor", "-w", root).code == 0
    commit(Workspace(root), removed=["cd"])
    done = mara(*ASK, "-w", root)
    assert (done.code, "Published" in done.err, "holds no passage" in done.err) == (2, True, True)
    assert mara("doctor", "-w", root).code == 0


def test_what_a_writer_at_work_has_committed_is_his_to_publish(mara: Mara, root: Path) -> None:
    with Child(HOLD_LOCK, root) as writer:
        assert writer.hear() == "locked"
        outcome = mara(*ASK, "-w", root, "--json")
    assert (outcome.err, [each["id"] for each in outcome.json["passages"]]) == ("", ["ab"])


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with no room for a generation: what is derived is left half made."""

    def build(record: Record, folder: Path, *_: object, **__: object) -> None:
        (folder / "half.npy").write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(construction, "build_generation", build)


@pytest.mark.usefixtures("full_disk")
def test_on_a_full_disk_questions_are_answered_from_what_is_published_with_a_note(mara: Mara, root: Path) -> None:
    close_indexes()
    asked = mara(*ASK, "-w", root, "--json")
    assert asked.err.startswith("What an interrupted command committed cannot be published: There is no room left")
    assert (asked.code, [each["id"] for each in asked.json["passages"]]) == (0, ["ab"])
    assert "IndexingUnfinished" in [each["kind"] for each in asked.json["errors"]]
    assert [*(root / "index").rglob("half.npy")] == [], "what is half made gives its room back"
    close_indexes()


@pytest.mark.usefixtures("full_disk")
def test_without_anything_published_a_full_disk_is_an_error_of_its_own(mara: Mara, root: Path) -> None:
    (root / "CURRENT").unlink()
    refused = mara(*ASK, "-w", root, "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (6, "DiskFull")


def test_what_cannot_be_published_is_said_and_the_command_goes_on(mara: Mara, root: Path) -> None:
    damage_record(Workspace(root), "UPDATE passages SET triples = '[' WHERE id = 'cd'")
    outcome = mara("doctor", "-w", root, "--json")
    assert (outcome.code, bool(outcome.json["findings"])) == (4, True)
    assert outcome.err.startswith("What an interrupted command committed cannot be published: ")
    assert mara("remove", "cd", "-w", root).code == 0
    assert mara("doctor", "-w", root).code == 0
