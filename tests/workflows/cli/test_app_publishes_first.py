"""A command that was killed between its commit and its publication: the next one on the workspace finishes it."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from graph.publish import derive
from graph.storage.record import Record
from graph.storage.synonym_pairs import settle_synonyms
from graph.storage.workspace import Workspace
from tests.builders import HOLD_LOCK, Child, HashEmbedder, passage_of, publish_workspace, write_passages
from tests.damages import damage_record, everything_in, read_at_once
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["stats"],
        ["doctor"],
        ["ask", "What is ab?", "--model", "offline"],
        ["export", "matrices", "matrices"],
        ["remove", "ab"],
        ["remove", "nobody"],
    ],
    ids=" ".join,
)
def test_every_command_publishes_first_and_says_so_once(
    mara: Mara, root: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(root.parent)
    read_at_once(monkeypatch)
    done = mara(*arguments, "-w", root, "--json")
    assert done.err == SAID
    assert done.code == (2 if "nobody" in arguments else 0)
    assert done.json
    assert mara("doctor", "-w", root).err == ""
    close_indexes()


def test_what_is_told_is_what_was_committed(mara: Mara, root: Path) -> None:
    told = mara("stats", "-w", root, "--json").json
    assert (told["passages"], told["generation"], told["record_generation"]) == (2, 2, 2)


def test_a_removal_of_the_last_passage_is_finished_too(mara: Mara, root: Path) -> None:
    mara("stats", "-w", root)
    commit(Workspace(root), removed=["ab", "cd"])
    done = mara("stats", "-w", root)
    assert (done.code, "generation 3" in done.err, "holds no passage" in done.err) == (2, True, True)
    assert mara("doctor", "-w", root).code == 0


def test_what_a_writer_at_work_has_committed_is_his_to_publish(mara: Mara, root: Path) -> None:
    with Child(HOLD_LOCK, root) as writer:
        assert writer.hear() == "locked"
        told = mara("stats", "-w", root, "--json")
    assert (told.err, told.json["passages"], told.json["record_generation"]) == ("", 1, 2)


def test_what_cannot_be_published_is_said_and_the_command_goes_on(mara: Mara, root: Path) -> None:
    metadata = json.dumps({f"k{i}": 1 for i in range(10_000)})
    damage_record(Workspace(root), "UPDATE passages SET metadata = ?, fingerprint = 'older' WHERE id = 'cd'", metadata)
    told = mara("stats", "-w", root, "--json")
    assert (told.code, told.json["passages"]) == (0, 1)
    assert told.err.startswith("What an interrupted command committed cannot be published: The passage 'cd' has 10,002")
    assert mara("remove", "cd", "-w", root).code == 0
    assert mara("doctor", "-w", root).code == 0


@pytest.mark.parametrize("arguments", [["index", "--dry-run"], ["sync", "--dry-run"]], ids=" ".join)
def test_what_writes_nothing_publishes_nothing(mara: Mara, root: Path, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "ab.txt").write_text("Title ab\n\ntext", encoding="utf-8")
    before = everything_in(root / "index")
    assert (
        mara(*arguments, "--replace-all" if "sync" in arguments else "--json", tmp_path / "ab.txt", "-w", root).err
        == ""
    )
    assert everything_in(root / "index") == before
    assert os.listdir(root / "index") == ["1"]


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with no room for a generation: what is derived is left half made."""

    def save(graph: object, folder: Path) -> None:
        (folder / "half.npy").write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(derive, "save", save)


@pytest.mark.usefixtures("full_disk")
def test_on_a_full_disk_questions_are_answered_from_what_is_published_with_a_note(mara: Mara, root: Path) -> None:
    close_indexes()
    asked = mara("ask", "What is ab?", "--model", "offline", "-w", root, "--json")
    assert asked.err.startswith("What an interrupted command committed cannot be published: There is no room left")
    assert (asked.code, [each["id"] for each in asked.json["passages"]]) == (0, ["ab"])
    assert "IndexingUnfinished" in [each["kind"] for each in asked.json["errors"]]
    close_indexes()


@pytest.mark.usefixtures("full_disk")
def test_what_was_left_half_made_gives_its_room_back(mara: Mara, root: Path) -> None:
    mara("stats", "-w", root)
    assert [*(root / "index").rglob("half.npy")] == []


def test_what_a_killed_command_left_half_made_goes_before_anything_is_written(
    mara: Mara, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "index" / "2").mkdir()
    (root / "index" / "2" / "half.npy").write_bytes(b"half")
    seen: list[str] = []

    def settled(record: Record) -> None:
        seen.extend(os.listdir(root / "index"))
        settle_synonyms(record)

    monkeypatch.setattr(derive, "settle_synonyms", settled)
    assert "as generation 3" in mara("stats", "-w", root).err
    assert seen == ["1"]


@pytest.mark.usefixtures("full_disk")
def test_without_anything_published_a_full_disk_is_an_error_of_its_own(mara: Mara, root: Path) -> None:
    (root / "CURRENT").unlink()
    refused = mara("ask", "What is ab?", "--model", "offline", "-w", root, "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (6, "DiskFull")
