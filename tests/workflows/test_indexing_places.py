"""Where sources may lie: anywhere for a user, below one folder for the clients of a server."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from graph.errors import BadInput
from workflows.indexing_sources import resolve_source


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a server's clients may have indexed."""
    folder = tmp_path / "base"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("not to be had")
    monkeypatch.setitem(sys.modules, "langgraph_api", ModuleType("langgraph_api"))
    monkeypatch.setenv("MARA_SOURCES", str(folder))
    return folder


@pytest.mark.parametrize("name", ["/etc/hosts", "../up", ".", "a/b", ""])
def test_outside_a_server_any_path_is_meant_as_it_is(name: str) -> None:
    assert resolve_source(name) == Path(name)


@pytest.mark.parametrize("name", ["deep", "deep/notes.txt", "./deep", ".", "missing"])
def test_in_a_server_paths_lie_below_its_folder(base: Path, name: str) -> None:
    assert resolve_source(name) == base / name


@pytest.mark.parametrize(
    "name",
    ["", "/etc/hosts", "..", "../secret.txt", "deep/../../secret.txt", "C:\\x", "\\\\host\\x", "deep\\..\\..\\x"],
)
def test_in_a_server_nothing_else_can_be_named(base: Path, name: str) -> None:
    with pytest.raises(BadInput, match="MARA_SOURCES"):
        resolve_source(name)


@pytest.mark.parametrize("name", [".env", ".git/config.json", "deep/.hidden.txt"])
def test_in_a_server_hidden_files_are_not_to_be_had(base: Path, name: str) -> None:
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


def test_the_default_folder_is_the_servers_working_directory(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MARA_SOURCES")
    monkeypatch.chdir(tmp_path)
    assert resolve_source("base") == tmp_path / "base"
    with pytest.raises(BadInput):
        resolve_source("nul\0byte")
