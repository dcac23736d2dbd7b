"""Indexing on the command line: ``index``, ``sync`` and ``remove``, on paper, as JSON and as dry runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.offline.extractor import OFFLINE_EXTRACTOR
from graph.storage.workspace import Workspace
from tests.scripted_server import ScriptedServer
from tests.workflows.command_line import Mara


def passages_in(workspace: Path) -> int:
    with Workspace(workspace).open_record() as record:
        return record.count_passages()


def test_indexing_reports_what_it_did_and_doing_it_again_does_nothing(mara: Mara, corpus: Path, tmp_path: Path) -> None:
    shown = mara("index", corpus, "-w", tmp_path / "paper")
    assert (shown.code, "3 added" in shown.out) == (0, True)
    assert shown.err == "", "no progress bar where there is no terminal"
    first = mara("index", corpus, "--workspace", tmp_path / "w", "--json")
    assert first.code == 0
    assert (tmp_path / "w" / "record.sqlite").stat().st_mode & 0o777 == 0o600
    assert (first.json["passages"], first.json["added"], first.json["refused"]) == (3, 3, [])
    assert first.json["models"] == {"extractor": OFFLINE_EXTRACTOR, "embedding": "all-MiniLM-L6-v2"}
    again = mara("index", corpus, "--workspace", tmp_path / "w", "--json").json
    assert (again["added"], again["unchanged"], again["generation"]) == (0, 3, first.json["generation"])


def test_a_sync_makes_the_workspace_equal_to_the_folder(mara: Mara, tmp_path: Path) -> None:
    folder, root = tmp_path / "documents", tmp_path / "w"
    folder.mkdir()
    (folder / "karv.txt").write_text("Karv is a town in Ostra.", encoding="utf-8")
    (folder / "velm.txt").write_text("Velm is a river in Ostra.", encoding="utf-8")
    assert mara("sync", folder, "-w", root, "--json").json["added"] == 2
    (folder / "velm.txt").unlink()
    planned = mara("sync", folder, "-w", root, "--dry-run")
    assert "1 removed" in planned.out
    assert "removed: velm.txt" in planned.out
    assert passages_in(root) == 2
    done = mara("sync", folder, "-w", root)
    assert "1 removed" in done.out
    assert passages_in(root) == 1
    (folder / "karv.txt").rename(folder / "town.txt")
    refused = mara("sync", folder, "-w", root, "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (2, "BadInput")
    assert "add files with `mara index`, or replace everything with --replace-all" in refused.json["error"]["hint"]
    assert mara("sync", folder, "-w", root, "--replace-all", "--json").json["removed"] == 1


def test_a_dry_run_with_a_model_tells_requests_tokens_and_cost(
    mara: Mara, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer({"extractor": ['{"entities": ["Karv"], "triples": []}']}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        prices = [*("--set", "price_in=1"), *("--set", "price_out=2"), *("--set", "requests_per_minute=600")]
        shown = mara("index", corpus, "-w", tmp_path / "w", "--model", "any", "--dry-run", "--sample", "1", *prices)
        assert len(server.requests_of("extractor")) == 1
    assert "extraction by any#" in shown.out
    assert "2 to ask" in shown.out
    assert "Nothing was written but the replies to the sample" in shown.out
    assert ", cost " in shown.out


def test_what_a_model_took_and_what_failed_is_shown(
    mara: Mara, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer({"extractor": ["No."]}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        shown = mara("index", corpus, "-w", tmp_path / "w", "--model", "any", "--set", "concurrency=1")
    assert shown.code == 0
    assert "nothing could be extracted from 3 passages" in shown.out
    assert "9 requests" in shown.out
    assert "p1: malformed reply" in shown.out


def test_passages_are_removed_by_id_and_source(mara: Mara, corpus: Path, tmp_path: Path) -> None:
    mara("index", corpus, "-w", tmp_path / "w")
    assert mara("remove", "p1", "-w", tmp_path / "w", "--json").json["removed"] == ["p1"]
    shown = mara("remove", "--source", "corpus.jsonl", "-w", tmp_path / "w")
    assert "2 passages removed; 0 left" in shown.out
    asked = mara("ask", "Where is Karv?", "-w", tmp_path / "w", "--json")
    assert (asked.code, asked.json["error"]["kind"]) == (2, "WorkspaceMissing")
    assert "holds no passage" in asked.json["error"]["message"]


class TestSkipped:
    """The files that were not read can be asked for later: ``stats --skipped``."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name in ("docs/karv.txt", "docs/mail/one.msg", "docs/photo.png", "other/velm.txt", "other/two.msg"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{name} tells of Karv.", encoding="utf-8")
        (tmp_path / "docs/bad.txt").write_bytes(b"\xff\xfe\x00")
        return tmp_path

    @staticmethod
    def named(mara: Mara, root: Path) -> dict[str, list[str]]:
        sources = mara("show", "--skipped", "-w", root, "--json").json["sources"]
        return {Path(one["source"]).name: [each["source"] for each in one["files"]] for one in sources}

    def test_they_are_named_with_their_reasons_until_they_are_removed(self, mara: Mara, folder: Path) -> None:
        root = folder / "w"
        mara("index", folder / "docs", "-w", root)
        first, *lines = (" ".join(line.split()) for line in mara("show", "--skipped", "-w", root).out.splitlines())
        assert first.startswith(str(folder / "docs"))
        assert first.endswith("3 files not read")
        assert lines[0].startswith("bad.txt is not UTF-16 text")
        assert lines[1:] == [
            "photo.png is of a kind that is not read (.png)",
            "mail/one.msg is of a kind that is not read (.msg)",
        ]
        assert mara("show", "-w", root, "--json").json["skipped_files"] == 3
        for name in ("mail/one.msg", "bad.txt"):
            assert mara("remove", "--source", name, "-w", root).code == 0
        (left,) = mara("show", "--skipped", "-w", root, "--json").json["sources"]
        assert [each["source"] for each in left["files"]] == ["photo.png"]
        assert (left["count"], left["reasons"]) == (1, {"is of a kind that is not read (.png)": 1})
        assert mara("remove", "--source", "mail/one.msg", "-w", root).code == 2


def test_files_that_were_refused_are_told_last_and_have_an_exit_code_of_their_own(mara: Mara, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "good.md").write_text("# Karv\n\nKarv is a town in Ostra.", encoding="utf-8")
    cases = [
        (command, options, says)
        for command in ("index", "sync")
        for options, says in (([], "everything else is done"), (["--dry-run"], "everything else can be indexed"))
    ]
    for command, options, says in cases:
        for name in ("bad.txt", "worse.txt"):
            (folder / name).write_bytes(b"\xff\xfe\x00")
        run = mara(command, folder, "-w", tmp_path / command, *options)
        last = [" ".join(line.split()) for line in run.out.splitlines()[-3:]]
        assert (run.code, last[0]) == (5, f"refused: 2 files; {says}"), (command, options)
        assert ("bad.txt" in last[1], "worse.txt" in last[2]) == (True, True), (command, options)
        (folder / "bad.txt").unlink()
        (folder / "worse.txt").unlink()
        (folder / "photo.png").write_bytes(b"\x89PNG")
        assert mara(command, folder, "-w", tmp_path / command, *options).code == 0, "another kind is skipped"


def test_a_file_of_triples_that_gives_none_is_told(mara: Mara, tmp_path: Path) -> None:
    for rows, is_said in [
        ("", True),
        ('{"id": "nobody", "triples": [["Velm", "is", "river"]]}\n', True),
        ('{"id": "karv", "triples": ["Karv ||| is ||| town"]}\n', False),
    ]:
        corpus, triples = tmp_path / "corpus.jsonl", tmp_path / "triples.jsonl"
        corpus.write_text('{"id": "karv", "text": "Karv is a town."}\n', encoding="utf-8")
        triples.write_text(rows, encoding="utf-8")
        for _ in range(2):  # of a second run, which writes nothing, too
            shown = mara("index", corpus, "--triples", triples, "-w", tmp_path / "w")
            assert shown.out.count(f"no triples imported from {triples}: ") == is_said
        assert "no triples imported" not in mara("index", corpus, "-w", tmp_path / "w").out, rows


class TestDates:
    """From when on what is indexed stands, and whether what it replaces is kept."""

    @pytest.fixture
    def prices(self, tmp_path: Path) -> Path:
        path = tmp_path / "prices.csv"
        path.write_text("id,text\nlamp,The Torvik lamp costs 40 euros.\n", encoding="utf-8")
        return path

    @staticmethod
    def dearer(prices: Path) -> Path:
        prices.write_text(prices.read_text(encoding="utf-8").replace("40", "45"), encoding="utf-8")
        return prices

    def test_states_are_loaded_in_their_order(self, mara: Mara, prices: Path, tmp_path: Path) -> None:
        w = tmp_path / "w"
        mara("index", prices, "-w", w, "--set", "dated=2023")
        mara("sync", self.dearer(prices), "-w", w, "--set", "dated=2024-02-01T12:00+01:00")
        dates = [version["date"] for version in mara("show", "document", "lamp", "-w", w, "--json").json["versions"]]
        assert dates == ["2023-01-01", "2024-02-01T11:00:00Z"]
        for arguments in (["index", prices], ["sync", prices], ["index", prices, "--dry-run"]):
            done = mara(*arguments, "-w", w, "--set", "dated=2024-01-31")
            assert (done.code, "stand, or ended, later than 2024-01-31" in done.err) == (2, True)

    def test_dates_that_cannot_be_are_refused_before_anything_is_written(
        self, mara: Mara, prices: Path, tmp_path: Path
    ) -> None:
        for options, reason in (
            (["--set", "dated=2999"], "lies in the future"),
            (["--set", "dated=soon"], "'soon' is no date"),
            (["--set", "dated=2023", "--set", "keep_versions=false"], "keeps no versions has no dates"),
        ):
            done = mara("index", prices, "-w", tmp_path / "w", *options)
            assert (done.code, reason in done.err) == (2, True), options
            assert not (tmp_path / "w" / "record.sqlite").exists() or passages_in(tmp_path / "w") == 0


def test_a_column_that_no_file_has_ends_the_command_before_anything_is_written(mara: Mara, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "prices.csv").write_text("part,price\nbolt,3\n", encoding="utf-8")
    (folder / "notes.txt").write_text("Karv lies in Ostra.", encoding="utf-8")
    done = mara("sync", folder, "--field", "title=nope", "-w", tmp_path / "workspace")
    assert (done.code, (tmp_path / "workspace").exists()) == (2, False)
    assert "a column 'nope'" in " ".join(done.err.split())
