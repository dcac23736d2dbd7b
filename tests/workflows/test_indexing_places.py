"""Where sources may lie: anywhere for a user, below one folder for the clients of a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, MaraError
from workflows.access.source_paths import resolve_source
from workflows.answering import ask
from workflows.context import Context
from workflows.indexing import graph
from workflows.settings.indexing import IndexingContext


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a server's clients may have indexed."""
    folder = tmp_path / "base"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("not to be had")
    monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
    monkeypatch.setenv("MARA_SOURCES", str(folder))
    return folder


def test_in_a_server_paths_lie_below_its_folder(base: Path) -> None:
    for name in ("deep", "deep/notes.txt", "./deep", ".", "missing"):
        assert resolve_source(name) == base / name


def test_in_a_server_nothing_else_can_be_named(base: Path) -> None:
    for name in [
        "",
        "/etc/hosts",
        "..",
        "../secret.txt",
        "deep/../../secret.txt",
        "\\\\host\\x",
        "deep\\..\\..\\x",
    ]:
        with pytest.raises(BadInput, match="MARA_SOURCES"):
            resolve_source(name)


def test_in_a_server_hidden_files_are_not_to_be_had(base: Path) -> None:
    for name in (".env", ".git/config.json", "deep/.hidden.txt"):
        with pytest.raises(BadInput, match="below the folder"):
            resolve_source(name)


def test_in_a_server_links_lead_nowhere_else(base: Path, tmp_path: Path) -> None:
    (base / "out.txt").symlink_to(tmp_path / "secret.txt")
    (base / "up").symlink_to(tmp_path)
    (base / "loop").symlink_to(base / "loop")
    (base / "within").symlink_to(base / "deep")
    for name in ("out.txt", "up", "up/secret.txt", "loop"):
        with pytest.raises(BadInput):
            resolve_source(name)
    assert resolve_source("within") == base / "within"


class TestRunsOfClients:
    """The indexing workflow as a server runs it, with what a client may send."""

    @pytest.fixture(autouse=True)
    def served(self, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server with a workspace and a document."""
        (base / "deep" / "notes.txt").write_text("Marn is a town in Ostra.")
        (base / "deep" / "broken.pdf").write_text("no pdf")
        (base / "deep" / "mail.msg").write_text("Subject: Marn")
        monkeypatch.setenv("MARA_WORKSPACE", str(tmp_path / "spaces" / "default"))

    def run(self, **given: Any) -> dict[str, Any]:
        """Index as a client asks for it, and return the report."""
        context = IndexingContext(**given.pop("context", {}))
        asked: Any = {"sources": ["deep"], **given}
        result = graph.invoke(asked, context=context)
        report: dict[str, Any] = result["report"]
        return report

    def test_the_report_names_no_folder_of_the_machine(self, tmp_path: Path) -> None:
        report = self.run()
        assert (report["workspace"], report["passages"], report["refused_count"]) == ("default", 1, 1)
        assert report["refused"][0]["source"] == "deep/broken.pdf"
        reason = "deep/mail.msg is of a kind that is not read (.msg)"
        assert report["skipped"] == [{"source": "deep/mail.msg", "reason": reason}]
        assert tmp_path.name not in json.dumps(report)

    def test_what_is_refused_is_said_without_folders_and_leaves_nothing(self, tmp_path: Path) -> None:
        unusable: list[dict[str, Any]] = [
            {"context": {"workspace": "other"}},
            {"context": {"workspace": "../base"}},
            {"context": {"replace_all": True}, "sync": True},
            {"sources": ["missing"]},
            {"sources": ["deep/broken.pdf"]},
            {"triples": "missing.json"},
        ]
        for request in unusable:
            with pytest.raises(MaraError) as refused:
                self.run(**request)
            assert tmp_path.name not in str(refused.value), request
            assert not (tmp_path / "spaces").exists(), request

    def test_a_question_to_what_is_no_workspace_is_refused_without_folders(self, tmp_path: Path) -> None:
        self.run()
        for name in ("nobody", "x" * 300, "a\0b", "default\n", ".hid", "a\\b", "..", "../base", "/etc"):
            with pytest.raises(MaraError) as refused:
                ask("Where is Marn?", Context(workspace=name))
            assert tmp_path.name not in str(refused.value)
        assert [folder.name for folder in (tmp_path / "spaces").iterdir()] == ["default"]
