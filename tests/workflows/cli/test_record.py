"""A workspace whose record is in Postgres, by the command line: indexed, asked, joined from a second folder, moved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflows.command_line import Mara

pytestmark = pytest.mark.usefixtures("embedder")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "nissan.txt").write_text("Nissan was founded in Yokohama.")
    (folder / "port.txt").write_text("Yokohama is a port in Japan.")
    return folder


def test_nothing_is_joined_without_a_name_and_an_address(
    mara: Mara, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = mara("doctor", "--join-record", "--record", "team", "-w", tmp_path / "w")
    assert (refused.code, "MARA_RECORD_URL is not set" in refused.err) == (2, True)
    monkeypatch.setenv("MARA_RECORD_URL", "postgresql://db/records")
    refused = mara("doctor", "--join-record", "-w", tmp_path / "w")
    assert (refused.code, "No record is named" in refused.err) == (2, True)
    assert not (tmp_path / "w").exists()
