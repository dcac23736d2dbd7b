"""`mara graph`: queries that read, files out and in, and a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.chroma_server import free_port
from tests.graph.relationships.small_graph import small_record
from tests.workflows.command_line import Mara


@pytest.fixture
def root(tmp_path: Path) -> Path:
    small_record(tmp_path).close()
    return tmp_path


class TestQuery:
    def test_rows_stand_below_their_columns(self, mara: Mara, root: Path) -> None:
        shown = mara("graph", "query", "MATCH (d:Document) RETURN d.id AS key, d.version ORDER BY key", "-w", root)
        assert (shown.code, shown.err.strip()[:25]) == (0, "The copy for Cypher was b")
        head, first, *_, last = shown.out.splitlines()
        assert (head.split(), first.split(), last) == (["key", "d.version"], ["d-alliance", "1"], "7 rows")

    def test_a_parameter_that_is_none_is_refused(self, mara: Mara, root: Path) -> None:
        for parameter in [["x"], ["=1"], ["a b=1"], ["x=1", "x=2"], ["y=1"]]:
            options = [part for one in parameter for part in ("--param", one)]
            assert mara("graph", "query", "RETURN $x", "-w", root, *options).code == 2, parameter

    def test_rows_and_time_have_limits_and_writing_is_refused(self, mara: Mara, root: Path) -> None:
        shown = mara("graph", "query", "MATCH (d:Document) RETURN d.id", "-w", root, "--limit", "2")
        assert shown.out.splitlines()[-1] == "2 rows, and there are more: --limit"
        endless = "UNWIND range(1, 999999) AS a UNWIND range(1, 999999) AS b WITH a, b WHERE a * b < 0 RETURN count(*)"
        shown = mara("graph", "query", endless, "-w", root, "--timeout", "0.2")
        assert (shown.code, "longer than 0.2 s" in shown.err) == (2, True)
        shown = mara("graph", "query", "MATCH (n) DETACH DELETE n", "-w", root, "--json")
        assert (shown.code, shown.json["error"]["kind"]) == (2, "BadInput")


class TestFiles:
    def test_an_export_can_be_imported(self, mara: Mara, root: Path) -> None:
        file, other = root / "out.jsonl", root / "not" / "there"
        wrote = mara("graph", "export", file, "-w", root, "--json").json
        assert wrote["nodes"] > 10
        read = mara("graph", "import", file, "-w", other, "--json").json
        assert (read["nodes"], read["edges"]) == (wrote["nodes"], wrote["edges"])
        mara("graph", "export", root / "again.jsonl", "-w", other)
        assert (root / "again.jsonl").read_bytes() == file.read_bytes()
        assert "does not end in .jsonl" in mara("graph", "export", root / "a.graphml", "-w", root).err

    def test_a_file_that_cannot_be_read_or_written_is_told(self, mara: Mara, root: Path) -> None:
        odd = root / "odd.jsonl"
        odd.write_bytes(b"\xff\xfe")
        assert "not UTF-8" in mara("graph", "import", odd, "-w", root).err
        assert mara("graph", "import", root / "missing", "-w", root).code == 2
        assert "cannot be read or made" in mara("graph", "import", odd, "-w", odd / "below").err
        assert mara("graph", "export", root / "no" / "folder.jsonl", "-w", root).code == 2
        odd.write_text(json.dumps({"node": "Concept", "id": "x", "properties": {}}), encoding="utf-8")
        assert "Concept.name is not as declared" in mara("graph", "import", odd, "-w", root).err


class TestServer:
    def test_it_has_to_be_configured(self, mara: Mara, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for command in [("export",), ("query", "RETURN 1", "--server")]:
            monkeypatch.delenv("MARA_GRAPH_URL", raising=False)
            assert "Set MARA_GRAPH_URL" in mara("graph", *command, "-w", root).err
            monkeypatch.setenv("MARA_GRAPH_URL", f"bolt://127.0.0.1:{free_port()}")
            shown = mara("graph", *command, "-w", root)
            assert (shown.code, "does not answer" in shown.err) == (3, True), command
