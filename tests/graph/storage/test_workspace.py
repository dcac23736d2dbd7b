from __future__ import annotations

import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from graph.errors import BadInput, WorkspaceDamaged, WorkspaceMissing
from graph.storage.record import FORMAT_VERSION, Record
from graph.storage.workspace import Workspace, admitted, check_may_be_written, resolve_workspace
from tests.builders import Child, HashEmbedder, passage_of, publish_workspace, write_passages

HOLD_GENERATION = """
import sys
from collections.abc import Iterable
from pathlib import Path
from graph.storage.workspace import Workspace
hold = Workspace(Path(sys.argv[1])).hold(int(sys.argv[2]))
print("held")
input()
hold.release()
print("released")
input()
"""


def generations(workspace: Workspace) -> set[int]:
    return {int(folder.name) for folder in (workspace.root / "index").iterdir()}


def publish_another(workspace: Workspace, key: str) -> None:
    publish_workspace(workspace.root, [passage_of(key, key, "text")])


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("template") / "workspace"
    return publish_workspace(root, [passage_of("a", "A", "text")]).root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(template, tmp_path / "workspace")))


class TestFiles:
    def test_current_names_the_generation_whose_folder_is_there(self, workspace: Workspace) -> None:
        publish_another(workspace, "b")
        assert workspace.current() == 2
        assert (workspace.index_folder(2) / "snapshot.json").exists()
        for content in (b"", b"two", b"1.5", b"\xff"):
            (workspace.root / "CURRENT").write_bytes(content)
            assert workspace.current() is None, content
        (workspace.root / "CURRENT").unlink()
        assert workspace.current() is None


class TestCreating:
    def test_a_record_that_another_process_made_meanwhile_stays(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link = os.link
        made_meanwhile: dict[type[OSError], str] = {}

        def be_late(fault: type[OSError], made: Path, place: Path) -> None:
            monkeypatch.setattr(os, "link", link)
            with Record(place, create=True) as record:
                made_meanwhile[fault] = record.workspace_id
            raise fault

        for fault in (FileExistsError, PermissionError):
            workspace = Workspace(tmp_path / fault.__name__)
            monkeypatch.setattr(os, "link", partial(be_late, fault))
            workspace.create()
            with workspace.open_record() as record:
                assert record.workspace_id == made_meanwhile[fault]


class TestOpening:
    def test_another_format_is_refused_with_the_way_out(self, workspace: Workspace) -> None:
        for version in [FORMAT_VERSION - 1, FORMAT_VERSION + 1, "x", None]:
            path = workspace.root / "manifest.json"
            path.write_text(json.dumps({"format_version": version}))
            for refuse in (workspace.open_record, workspace.create):
                with pytest.raises(WorkspaceDamaged, match=r"written in format .*mara index SOURCE --workspace NEW"):
                    refuse()

    def test_a_damaged_manifest_is_named_with_what_to_do(self, workspace: Workspace) -> None:
        for content in [b"", b"{", b"[]", b"{}", b"\xff"]:
            (workspace.root / "manifest.json").write_bytes(content)
            with pytest.raises(WorkspaceDamaged, match=r"manifest.json cannot be read.*Delete that file"):
                workspace.open_record()


class TestGenerations:
    def test_the_last_that_was_replaced_stays_until_the_next_publication_where_readers_cannot_be_seen(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MARA_KEEP_REPLACED", "1")
        for key, there in ("b", {1, 2}), ("c", {2, 3}):
            publish_another(workspace, key)
            assert generations(workspace) == there
            assert workspace.stale_folders() == []
        monkeypatch.setenv("MARA_KEEP_REPLACED", "yes")
        with pytest.raises(BadInput, match="MARA_KEEP_REPLACED is 'yes'"):
            publish_another(workspace, "d")
        assert generations(workspace) == {2, 3}
        monkeypatch.setenv("MARA_KEEP_REPLACED", "1")
        with workspace.open_record() as record:
            workspace.withdraw(record)
        assert generations(workspace) == set()

    def test_one_that_another_process_holds_stays_until_it_is_given_back(self, workspace: Workspace) -> None:
        with Child(HOLD_GENERATION, workspace.root, 1) as reader:
            assert reader.hear() == "held"
            before = sorted(path.name for path in workspace.index_folder(1).rglob("*"))
            publish_another(workspace, "b")
            assert generations(workspace) == {1, 2}
            assert sorted(path.name for path in workspace.index_folder(1).rglob("*")) == before
            publish_another(workspace, "c")
            assert generations(workspace) == {1, 3}
            reader.tell()
            assert reader.hear() == "released"
            publish_another(workspace, "d")
            assert generations(workspace) == {4}

    def test_switching_is_one_step_so_that_a_reader_sees_the_old_or_the_new(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A publication that dies while it writes leaves the old generation current, and no half-written file."""

        def die(self: Path, target: Path) -> Path:
            raise KeyboardInterrupt

        with workspace.open_record() as record:
            write_passages(record, [passage_of("b", "B", "text")], {}, HashEmbedder())
            with monkeypatch.context() as patch:
                patch.setattr(Path, "replace", die)
                with pytest.raises(KeyboardInterrupt):
                    workspace.publish(record)
        assert workspace.current() == 1
        assert json.loads((workspace.root / "manifest.json").read_text())["generation"] == 1


class TestResolving:
    def test_in_a_server_a_name_stands_beside_the_default_and_is_no_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
        monkeypatch.setenv("MARA_WORKSPACE", "/data/mara")
        assert resolve_workspace("") == Path("/data/mara")
        for name in ("other", "Other-2", "a.b", "_x", "0", "x" * 64):
            assert resolve_workspace(name) == Path("/data") / name
        for name in [
            *("..", ".", "../other", "/etc", "a/b", "a\\b", "C:x"),
            *(".hidden", "with space", "日本", "a\0b", "a\n", "\ud800", "x" * 65, "a."),
        ]:
            with pytest.raises(BadInput, match=r"is not the name of a workspace") as refused:
                resolve_workspace(name)
            assert len(str(refused.value)) < 300, name
        monkeypatch.delenv("MARA_WORKSPACE")
        monkeypatch.chdir(tmp_path)
        assert resolve_workspace("workflows").absolute().parent not in (tmp_path, *tmp_path.parents)
        assert resolve_workspace("").absolute() == tmp_path / ".mara"


class TestWorkspacesThatClientsMake:
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The folder of the default workspace, which a server's clients may name others beside."""
        monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
        monkeypatch.setenv("MARA_WORKSPACE", str(tmp_path / "default"))
        Workspace(tmp_path / "there").create()
        return tmp_path

    def test_clients_write_what_is_there_and_make_as_many_as_the_operator_says(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("there", "default", ""):
            check_may_be_written(resolve_workspace(name))
        with pytest.raises(WorkspaceMissing, match="There is no workspace other"):
            check_may_be_written(resolve_workspace("other"))
        monkeypatch.setenv("MARA_NEW_WORKSPACES", "many")
        with pytest.raises(BadInput, match="MARA_NEW_WORKSPACES is 'many'"):
            check_may_be_written(resolve_workspace("other"))
        monkeypatch.setenv("MARA_NEW_WORKSPACES", "2")
        check_may_be_written(resolve_workspace("other"))
        Workspace(place / "other").create()
        check_may_be_written(resolve_workspace("other"))
        with pytest.raises(BadInput, match="may make no more"):
            check_may_be_written(resolve_workspace("third"))
        monkeypatch.delenv("LANGSERVE_GRAPHS")
        check_may_be_written(place / "third")

    def test_clients_that_ask_at_once_make_no_more(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MARA_NEW_WORKSPACES", "2")
        together = threading.Barrier(6)

        def make(number: int) -> bool:
            root = resolve_workspace(f"n{number}")
            together.wait()
            try:
                with admitted(root):
                    Workspace(root).create()
            except BadInput:
                return False
            return True

        with ThreadPoolExecutor(6) as clients:
            assert sum(clients.map(make, range(6))) == 1
        assert len([*place.glob("*/record.sqlite")]) == 2

    def test_none_is_made_of_a_folder_that_holds_something_else(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MARA_NEW_WORKSPACES", "9")
        (place / "workflows" / "index").mkdir(parents=True)
        check_may_be_written(resolve_workspace("workflows"))
        (place / "workflows" / "code.py").write_text("")
        with pytest.raises(BadInput, match="holds something else"):
            check_may_be_written(resolve_workspace("workflows"))
