"""A workspace whose record is in Postgres, by the command line: indexed, asked, joined from a second folder, moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.storage.workspace import Workspace
from tests.postgres_server import PASSWORD
from tests.workflows.command_line import Mara

pytestmark = pytest.mark.usefixtures("embedder")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "nissan.txt").write_text("Nissan was founded in Yokohama.")
    (folder / "port.txt").write_text("Yokohama is a port in Japan.")
    return folder


@pytest.mark.slow
def test_what_one_machine_indexes_another_one_joins_asks_and_syncs(
    mara: Mara, documents: Path, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_RECORD_URL", postgres_url)
    one, other = tmp_path / "one", tmp_path / "other"
    assert mara("index", documents, "-w", one).code == 0
    name = mara("show", "-w", one, "--json").json["record_in_postgres"]
    joined = mara("doctor", "--join-record", "--record", name, "-w", other, "--json").json
    assert joined == {"record": name, "generation": 1, "derived": True}
    talk = ("--conversation", "trip", "--user", "mia")
    first, again = (mara("ask", "Where was Nissan founded?", "-w", root, *talk, "--json").json for root in (one, other))
    assert [each["id"] for each in first["passages"]] == [each["id"] for each in again["passages"]]
    (kept,) = mara("history", "-w", one, "--user", "mia", "--json").json["conversations"]
    assert (kept["id"], kept["messages"]) == ("trip", 4)

    with Workspace(one).writing():
        refused = mara("sync", documents, "-w", other)
    assert refused.code == 4
    assert "being written by process" in " ".join(refused.err.split())
    (documents / "kobe.txt").write_text("Kobe is a port, too.")
    assert mara("sync", documents, "-w", other).code == 0
    assert mara("doctor", "--join-record", "-w", one, "--json").json["record"] == name
    assert mara("show", "-w", one, "--json").json["passages"] == 3
    for root in (one, other):
        checked = mara("doctor", "-w", root)
        assert (checked.code, "is in order" in checked.out) == (0, True), checked.out
        for path in root.rglob("*"):
            assert not path.is_file() or PASSWORD.encode() not in path.read_bytes()


def test_nothing_is_joined_without_a_name_and_an_address(
    mara: Mara, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = mara("doctor", "--join-record", "--record", "team", "-w", tmp_path / "w")
    assert (refused.code, "MARA_RECORD_URL is not set" in refused.err) == (2, True)
    monkeypatch.setenv("MARA_RECORD_URL", "postgresql://db/records")
    refused = mara("doctor", "--join-record", "-w", tmp_path / "w")
    assert (refused.code, "No record is named" in refused.err) == (2, True)
    assert not (tmp_path / "w").exists()
