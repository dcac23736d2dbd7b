"""The versions of a document as they are shown, and what removing leaves of them: nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, WorkspaceMissing
from tests.builders import HashEmbedder, passage_of, publish_workspace
from tests.workflows.command_line import Mara
from tests.workflows.velmora_shop import STATES, load_history, write_state
from tests.workflows.workspaces import use_embedder
from workflows.admin.inspection import workspace_stats
from workflows.admin.removal import remove_passages
from workflows.admin.versions import document_versions
from workflows.answering import ask
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes
from workflows.settings.indexing import IndexingContext

pytestmark = pytest.mark.usefixtures("embedder")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The papers of the shop, and a workspace that was synced with each of their states."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        load_history(folder / "papers", folder / "workspace")
    return folder


@pytest.fixture
def shop(history: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copytree(history, tmp_path / "shop")) / "workspace"
    close_indexes()


def changes(root: Path, name: str) -> list[tuple[str, dict[str, list[str]]]]:
    kinds = ("added", "changed", "removed", "moved")
    return [
        (version["date"], {kind: [each["text"] for each in version[kind]] for kind in kinds if version[kind]})
        for version in document_versions(root, name)["versions"]
    ]


class TestVersions:
    def test_of_a_row_are_its_texts_and_of_a_source_those_of_all_that_came_from_it(self, shop: Path) -> None:
        assert changes(shop, "lamp") == [
            ("2023-01-01", {"added": ["The Torvik lamp costs 40 euros."]}),
            ("2024-02-01", {"changed": ["The Torvik lamp costs 45 euros."]}),
            ("2025-03-01", {"changed": ["The Torvik lamp costs 52 euros."]}),
        ]
        assert workspace_stats(shop)["past_versions"] == 9
        dates = dict(changes(shop, "prices.csv"))
        assert dates["2024-02-01"] == {
            "added": ["The Mora shelf costs 80 euros."],
            "changed": ["The Torvik lamp costs 45 euros."],
            "removed": ["The Karv stool costs 35 euros."],
        }

    def test_tell_the_facts_that_came_and_went(self, shop: Path) -> None:
        second = document_versions(shop, "lamp")["versions"][1]
        assert second["new_facts"] == ["Torvik lamp | costs | 45 euros"]
        assert second["dropped_facts"] == ["Torvik lamp | costs | 40 euros"]

    def test_of_which_only_metadata_changed_are_moved(self, tmp_path: Path) -> None:
        paper, root = tmp_path / "a.csv", tmp_path / "workspace"
        for date, shelf in (("2023", "a"), ("2024", "b")):
            paper.write_text(f"id,text,shelf\nlamp,The lamp costs 40 euros.,{shelf}\n", encoding="utf-8")
            index_sources([paper], root, settings=IndexingContext(dated=date))
        assert [list(kinds) for _, kinds in changes(root, "lamp")] == [["added"], ["moved"]]

    def test_on_the_command_line(self, shop: Path, mara: Mara) -> None:
        out = mara("show", "document", "lamp", "-w", shop).out
        assert "2024-02-01  1 passage\n" in out
        assert "dropped fact: Torvik lamp | costs | 40 euros" in out
        assert mara("show", "document", "lamp", "-w", shop, "--json").json == document_versions(shop, "lamp")

    def test_unknown_names_are_refused(self, shop: Path, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="no document, passage or source called 'nobody'"):
            document_versions(shop, "nobody")
        with pytest.raises(WorkspaceMissing):
            document_versions(tmp_path / "nowhere", "lamp")

    def test_without_any_kept_what_stands_is_told(self, tmp_path: Path, mara: Mara) -> None:
        write_state(tmp_path / "papers", STATES[0])
        root = tmp_path / "workspace"
        index_sources([tmp_path / "papers"], root, settings=IndexingContext(keep_versions=False))
        (version,) = document_versions(root, "lamp")["versions"]
        assert (version["date"], version["passages"]) == (None, 1)
        assert "keeps no versions" in mara("show", "document", "lamp", "-w", root).out


def bytes_of(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


def asked(root: Path, as_of: str) -> dict[str, Any]:
    return dict(ask("What does the Torvik lamp cost?", Context(workspace=str(root), as_of=as_of)))


class TestErasure:
    def test_removing_leaves_no_byte_of_any_version(self, shop: Path, tmp_path: Path) -> None:
        asked(shop, "2023")
        asked(shop, "2024-06")
        other = Path(shutil.copytree(shop, tmp_path / "other"))
        for root, how, versions in ((shop, {"ids": ["lamp"]}, 2), (other, {"sources": ["prices.csv"]}, 4)):
            assert b"Torvik lamp costs 40" in bytes_of(root)
            assert remove_passages(root, **how)["versions"] == versions
            close_indexes()
            left = bytes_of(root).lower()
            assert not [word for word in (b"torvik", b"40 euros", b"45 euros", b"52 euros") if word in left], how
            assert not any(hit["id"] == "lamp" for hit in asked(root, "2023")["passages"]), how

    def test_so_it_is_where_an_older_generation_has_most_of_the_vectors(
        self, shop: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("graph.publish.generation_vectors._LARGE", 1)
        publish_workspace(shop, [passage_of("new", "New", "text")])
        assert len([*(shop / "index").iterdir()]) == 2, "one lies on the other"
        remove_passages(shop, ["lamp"])
        assert b"torvik lamp" not in bytes_of(shop).lower()

    def test_what_is_there_as_a_past_version_alone_can_be_removed(self, shop: Path) -> None:
        assert b"Karv stool costs 35" in bytes_of(shop), "a sync keeps what it removes"
        assert {hit["id"] for hit in asked(shop, "2023")["passages"]} >= {"stool", "lamp"}
        done = remove_passages(shop, ["stool"])
        assert (done["removed"], done["versions"]) == ([], 1)
        assert b"karv stool" not in bytes_of(shop).lower()
        assert remove_passages(shop, ["stool"]) == done

    def test_a_workspace_that_is_to_keep_none_erases_those_that_it_has(self, shop: Path, mara: Mara) -> None:
        asked(shop, "2023")
        mara("sync", shop.parent / "papers", "-w", shop, "--set", "keep_versions=false")
        close_indexes()
        left = bytes_of(shop).lower()
        assert not [word for word in (b"40 euros", b"karv stool", b"nils aker") if word in left]
        assert b"52 euros" in left
        write_state(shop.parent / "papers", STATES[1])
        mara("sync", shop.parent / "papers", "-w", shop)
        assert b"52 euros" not in bytes_of(shop).lower()
        with pytest.raises(BadInput, match="keeps no versions"):
            asked(shop, "2025")

    def test_a_removal_that_is_broken_off_is_finished_when_it_is_repeated(
        self, shop: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("graph.storage.record.Record.commit", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                remove_passages(shop, ["lamp"])
        done = remove_passages(shop, ["lamp"])
        assert done["removed"] == ["lamp"]
        assert b"torvik lamp costs" not in bytes_of(shop).lower()


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
