"""The command line: results on standard output, what went wrong as one message, and an exit code for its kind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agents.offline.extractor import OFFLINE_EXTRACTOR
from graph.workspace import Workspace
from tests.scripted_server import Reply, ScriptedServer
from workflows import cli

CORPUS = """\
{"id": "p1", "title": "Velm", "text": "Velm is a river in Ostra. It flows into Lake Sund."}
{"id": "p2", "title": "Lake Sund", "text": "Lake Sund is a lake in Ostra. It was dammed in 1911 by Ida Brandt."}
{"id": "p3", "title": "Ida Brandt", "text": "Ida Brandt was an engineer. She was born in Karv in 1870."}
"""


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Mara = Callable[..., Outcome]


@pytest.fixture
def mara(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mara:
    """Run the command line in this process; it must never show a traceback."""

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["mara", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Outcome(int(stop.value.code or 0), out, err)

    return run


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "corpus.jsonl"
    path.write_text(CORPUS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def workspace(corpus: Path) -> Path:
    from workflows.indexing import index_sources

    index_sources([corpus], corpus.parent / "workspace")
    return corpus.parent / "workspace"


@pytest.fixture(scope="module")
def owned(corpus: Path) -> Path:
    """The same passages with metadata: two tenants, a year as text and as a number, a day, a flag."""
    from workflows.indexing import index_sources

    extras: list[dict[str, object]] = [
        {"tenant": "007", "year": "1999"},
        {"tenant": 7, "year": 1999, "draft": True, "day": "2020-12-31"},
        {"tenant": "b", "year": "MM", "draft": "yes", "day": "2021-01-01T00:00:00Z"},
    ]
    rows = [{**json.loads(line), **extra} for line, extra in zip(CORPUS.splitlines(), extras, strict=True)]
    path = corpus.parent / "owned" / "corpus.jsonl"
    path.parent.mkdir()
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    index_sources([path], path.parent / "workspace")
    return path.parent / "workspace"


def passages_in(workspace: Path) -> int:
    with Workspace(workspace).open_record() as record:
        return record.count_passages()


def test_indexing_reports_what_it_did_and_doing_it_again_does_nothing(mara: Mara, corpus: Path, tmp_path: Path) -> None:
    first = mara("index", corpus, "--workspace", tmp_path / "w", "--json")
    assert first.code == 0
    assert (first.json["passages"], first.json["added"], first.json["refused"]) == (3, 3, [])
    assert first.json["models"] == {"extractor": OFFLINE_EXTRACTOR, "embedding": "all-MiniLM-L6-v2"}
    again = mara("index", corpus, "--workspace", tmp_path / "w", "--json").json
    assert (again["added"], again["unchanged"], again["generation"]) == (0, 3, first.json["generation"])


def test_indexing_on_paper_names_the_counts(mara: Mara, corpus: Path, tmp_path: Path) -> None:
    shown = mara("index", corpus, "-w", tmp_path / "w")
    assert shown.code == 0
    assert "3 added" in shown.out
    assert shown.err == "", "no progress bar where there is no terminal"


def test_fields_metadata_and_lengths_of_passages_are_options(mara: Mara, tmp_path: Path) -> None:
    rows = [{"key": "a", "body": "Karv is a town. " * 60, "year": 1870}, {"key": "b", "body": "Velm is a river."}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    sentences = (f"In {1800 + n} the harbour of Lisk was dug out once more." for n in range(60))
    (tmp_path / "long.txt").write_text(" ".join(sentences), encoding="utf-8")
    options = ["--field", "id=key", "--field", "text=body", "--metadata", "tenant=a", "--metadata", "year=2000"]
    lengths = ["--chunk-tokens", "50", "--chunk-overlap", "10", "--model", "offline", "--concurrency", "2"]
    report = mara("index", path, tmp_path / "long.txt", *options, *lengths, "-w", tmp_path / "w", "--json").json
    with Workspace(tmp_path / "w").open_record() as record:
        passages = {entry.passage.id: entry.passage for entry in record.entries()}
    assert {"a", "b"} <= passages.keys()
    assert report["passages"] == len(passages) > 8
    assert {(p.metadata["tenant"], p.metadata["year"]) for p in passages.values()} == {("a", 2000)}


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
    assert "--replace-all" in refused.json["error"]["hint"]
    assert mara("sync", folder, "-w", root, "--replace-all", "--json").json["removed"] == 1


def test_a_dry_run_of_index_tells_what_would_change_and_take(mara: Mara, corpus: Path, tmp_path: Path) -> None:
    found = mara("index", corpus, "-w", tmp_path / "w", "--dry-run", "--sample", "2", "--json").json
    assert (found["added"], found["unchanged"]) == (["p1", "p2", "p3"], 0)
    assert found["extraction"]["sample"]["passages"] == 2
    shown = mara("index", corpus, "-w", tmp_path / "w", "--dry-run")
    assert "3 would be added" in shown.out
    assert "Nothing was written" in shown.out
    assert not (tmp_path / "w").exists()


def test_a_dry_run_with_a_model_tells_requests_tokens_and_cost(
    mara: Mara, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer({"extractor": ['{"entities": ["Karv"], "triples": []}']}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        prices = ["--price-in", "1", "--price-out", "2", "--requests-per-minute", "600"]
        shown = mara("index", corpus, "-w", tmp_path / "w", "--model", "any", "--dry-run", "--sample", "1", *prices)
        assert len(server.requests_of("extractor")) == 1
    assert "extraction by any#" in shown.out
    assert "2 to ask" in shown.out
    assert "Nothing was written but the replies to the sample" in shown.out
    assert "cost: about" in shown.out


def test_what_a_model_took_and_what_failed_is_shown(
    mara: Mara, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer({"extractor": ["No."]}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        shown = mara("index", corpus, "-w", tmp_path / "w", "--model", "any", "--concurrency", "1")
    assert shown.code == 0
    assert "nothing could be extracted from 3 passages" in shown.out
    assert "9 requests" in shown.out
    assert "malformed reply 6" in shown.out
    assert "p1: malformed reply" in shown.out


def test_passages_are_removed_by_id_and_source(mara: Mara, corpus: Path, tmp_path: Path) -> None:
    mara("index", corpus, "-w", tmp_path / "w")
    assert mara("remove", "p1", "-w", tmp_path / "w", "--json").json["removed"] == ["p1"]
    shown = mara("remove", "--source", "corpus.jsonl", "-w", tmp_path / "w")
    assert "2 passages removed; 0 left" in shown.out
    asked = mara("ask", "Where is Karv?", "-w", tmp_path / "w", "--json")
    assert (asked.code, asked.json["error"]["kind"]) == (2, "WorkspaceMissing")
    assert "holds no passage" in asked.json["error"]["message"]


def test_a_question_is_answered_with_its_citation(mara: Mara, workspace: Path) -> None:
    shown = mara("ask", "Into which lake does the Velm flow?", "-w", workspace)
    assert shown.code == 0
    assert "It flows into Lake Sund. [1]" in shown.out
    assert "chat offline" in shown.out
    assert "all-MiniLM-L6-v2" in shown.out


def test_a_question_that_needs_two_passages_finds_both(mara: Mara, workspace: Path) -> None:
    asked = mara("ask", "Where was the engineer born who dammed Lake Sund?", "-w", workspace, "--json")
    result = asked.json
    assert {passage["id"] for passage in result["passages"][:2]} == {"p2", "p3"}
    assert "Karv" in result["answer"]
    assert [seed["text"] for seed in result["seeds"]["entities"]]
    assert result["models"] == {"chat": "offline", "embedding": "all-MiniLM-L6-v2", "store": "embedded"}


@pytest.mark.parametrize("mode", ["mara", "hipporag2", "mara-matrix", "dense", "sparse", "hybrid"])
def test_every_mode_can_be_asked_for(mara: Mara, workspace: Path, mode: str) -> None:
    result = mara("ask", "What flows into Lake Sund?", "-w", workspace, "--mode", mode, "--top-k", "2", "--json").json
    assert result["mode"] == mode
    assert 1 <= len(result["passages"]) <= 2


@pytest.mark.parametrize(
    ("conditions", "seen"),
    [
        (["tenant=007"], {"p1"}),
        (["tenant!=007"], {"p2", "p3"}),
        (["year=1999"], {"p1", "p2"}),
        (["year>=1999", "year<2000"], {"p1", "p2"}),
        (["day>2020", "source = corpus.jsonl"], {"p3"}),
        (["draft=true"], {"p2"}),
    ],
)
def test_conditions_say_which_passages_may_be_seen(
    mara: Mara, owned: Path, conditions: list[str], seen: set[str]
) -> None:
    options = [part for condition in conditions for part in ("--where", condition)]
    asked = mara("ask", "What flows into Lake Sund?", "-w", owned, *options, "--json").json
    assert {passage["id"] for passage in asked["passages"]} == seen
    assert asked["errors"] == []


def test_conditions_that_no_passage_meets_are_said_on_paper(mara: Mara, owned: Path) -> None:
    shown = mara("ask", "What flows into Lake Sund?", "-w", owned, "--where", "tenant=8")
    assert shown.code == 0
    assert shown.out.startswith("NOT IN THE PASSAGES")
    assert "ranked by nothing" in shown.out
    assert "No passage meets the conditions" in shown.out


@pytest.mark.parametrize("engine", ["igraph", "matrix", "push"])
def test_an_engine_can_be_asked_for_and_is_told(mara: Mara, workspace: Path, engine: str) -> None:
    shown = mara("ask", "What flows into Lake Sund?", "-w", workspace, "--engine", engine)
    assert shown.code == 0
    assert f"ranked by walk ({engine})" in shown.out


@pytest.mark.usefixtures("without_numba")
def test_an_engine_that_is_not_installed_exits_with_2(mara: Mara, workspace: Path) -> None:
    failed = mara("ask", "What flows into Lake Sund?", "-w", workspace, "--engine", "push", "--json")
    assert (failed.code, failed.json["error"]["kind"]) == (2, "DependencyMissing")
    assert "pip install" in failed.json["error"]["hint"]


def test_the_default_workspace_comes_from_the_environment(
    mara: Mara, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_WORKSPACE", str(workspace))
    assert mara("stats", "--json").json["passages"] == 3


def test_stats_count_what_the_workspace_holds(mara: Mara, workspace: Path) -> None:
    found = mara("stats", "-w", workspace, "--json").json
    assert found["passages"] == 3
    assert found["edges"] == sum(found["edges_by_type"].values())
    assert found["passage_edges_by_link"]["own title"] == 3
    assert found["extractors"] == {OFFLINE_EXTRACTOR: 3}
    assert "passages" in mara("stats", "-w", workspace).out


def test_matrices_are_exported_once_and_again(mara: Mara, workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "export"
    shown = mara("export", "matrices", folder, "-w", workspace)
    assert (shown.code, shown.err) == (0, "")
    assert "weighed by counts" in shown.out
    again = mara("export", "matrices", folder, "-w", workspace, "--weights", "evidence", "--json").json
    assert (again["weights"], again["n_passages"]) == ("evidence", 3)
    assert len(list(folder.glob("matrix_*.npz"))) == len(again["matrices"]) == 7
    assert (folder / "graph_metadata.json").exists()


def test_an_export_among_other_files_is_refused(mara: Mara, workspace: Path, corpus: Path) -> None:
    for folder, says in ((corpus.parent, "not empty"), (corpus, "is a file"), (workspace / "x", "in the workspace")):
        failed = mara("export", "matrices", folder, "-w", workspace, "--json")
        assert (failed.code, failed.json["error"]["kind"]) == (2, "BadInput")
        assert says in failed.json["error"]["message"]
        assert failed.json["error"]["hint"]


@pytest.mark.slow
def test_the_demo_indexes_the_sample_and_answers_its_questions(mara: Mara, tmp_path: Path) -> None:
    shown = mara("demo", "-w", tmp_path / "demo")
    assert shown.code == 0
    assert "When was Nissan founded?" in shown.out
    assert "1933" in shown.out
    assert "20 questions: recall@5" in shown.out


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        (["ask", ""], "BadInput", "empty"),
        (["ask", "   \n "], "BadInput", "empty"),
        (["ask", "q" * 100_000], "BadInput", "100,000 characters"),
        (["ask", "x", "--mode", "bogus"], "BadInput", "bogus"),
        (["ask", "x", "--top-k", "0"], "BadInput", "top_k"),
        (["ask", "x", "--top-k", "many"], "BadInput", "--top-k"),
        (["ask", "x", "--no-such-option"], "BadInput", "--no-such-option"),
        (["ask", "x", "--engine", "fast"], "BadInput", "fast"),
        (["ask", "x", "--where", "tenant"], "BadInput", "'tenant' is no condition"),
        (["ask", "x", "--where", "year>soon"], "BadInput", "no size"),
        (["ask", "x", "--where", "t=a", "--where", "t=b"], "BadInput", "two values"),
        (["ask", "x", "--where", "$or=a"], "BadInput", "reserved"),
        (["ask", "x", "--where", f"t={'a' * 2_000}"], "BadInput", "2,000 characters"),
        (["ask", "x", "--workspace", "/nonexistent/w"], "WorkspaceMissing", "no workspace"),
        (["stats", "--workspace", "/nonexistent/w"], "WorkspaceMissing", "no workspace"),
        (["reembed", "--workspace", "/nonexistent/w"], "WorkspaceMissing", "no workspace"),
        (["export", "matrices"], "BadInput", "dir"),
        (["export", "matrices", "/tmp/x", "--weights", "bogus"], "BadInput", "bogus"),
        (["export", "matrices", "/tmp/x", "--workspace", "/nonexistent/w"], "WorkspaceMissing", "no workspace"),
        (["export", "bogus"], "BadInput", "bogus"),
        (["index", "/nonexistent/documents"], "BadInput", "does not exist"),
        (["index"], "BadInput", "sources"),
        (["index", "x", "--concurrency", "0"], "BadInput", "concurrency"),
        (["index", "x", "--field", "text"], "BadInput", "text"),
        (["index", "x", "--chunk-tokens", "100", "--chunk-overlap", "90"], "BadInput", "100 tokens"),
        (["index", "x", "--price-in", "1"], "BadInput", "one price"),
        (["index", "x", "--metadata", "nothing"], "BadInput", "nothing"),
        (["sync"], "BadInput", "folders"),
        (["sync", "/nonexistent/documents"], "BadInput", "does not exist"),
        (["remove"], "BadInput", "nothing is named"),
        (["remove", "x", "--workspace", "/nonexistent/w"], "WorkspaceMissing", "no workspace"),
    ],
)
def test_bad_input_is_told_in_json_and_exits_with_2(mara: Mara, arguments: list[str], kind: str, says: str) -> None:
    failed = mara(*arguments, "--json")
    assert failed.code == 2
    assert failed.json["error"]["kind"] == kind
    assert says.casefold() in failed.json["error"]["message"].casefold()
    assert failed.json["error"]["hint"]


def test_without_json_the_message_goes_to_standard_error(mara: Mara) -> None:
    failed = mara("ask", "x", "--workspace", "/nonexistent/w")
    assert (failed.code, failed.out) == (2, "")
    assert "mara index" in failed.err


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("broken.jsonl", b'{"text": "fine"}\n{"text": "cut\n', "line 2"),
        ("latin.txt", "caf\u00e9".encode("latin-1"), "not UTF-8"),
        ("twice.jsonl", b'{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n', "two texts"),
        ("empty.txt", b" \n", "no text"),
        ("list.jsonl", b"[1, 2]\n", "not an object"),
        ("other.xyz", b"x", "not read"),
    ],
)
def test_a_bad_file_is_named_and_nothing_indexed_is_lost(
    mara: Mara, corpus: Path, tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    mara("index", corpus, "-w", tmp_path / "w")
    bad = tmp_path / name
    bad.write_bytes(content)
    failed = mara("index", bad, "-w", tmp_path / "w", "--json")
    assert failed.code == 2
    assert says in failed.json["error"]["message"]
    assert passages_in(tmp_path / "w") == 3


def test_in_a_folder_the_good_files_are_indexed_and_the_bad_ones_named(mara: Mara, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "good.md").write_text("# Karv\n\nKarv is a town in Ostra.", encoding="utf-8")
    (folder / "bad.txt").write_bytes(b"\xff\xfe\x00")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    report = mara("index", folder, "-w", tmp_path / "w", "--json").json
    assert report["added"] == 1
    assert "bad.txt" in report["refused"][0]["source"]
    assert report["skipped"] == {".png": 1}


@pytest.mark.parametrize("place", ["a" * 5_000, "\x00"])
def test_a_path_that_no_disk_takes_is_bad_input(mara: Mara, corpus: Path, workspace: Path, place: str) -> None:
    for arguments in (
        ["index", place],
        ["index", corpus, "-w", place],
        ["ask", "x", "-w", place],
        ["export", "matrices", place, "-w", workspace],
        ["export", "matrices", "/tmp/x", "-w", place],
    ):
        failed = mara(*arguments, "--json")
        assert (failed.code, failed.json["error"]["kind"]) in [(2, "BadInput"), (2, "WorkspaceMissing")]


def test_what_documents_say_cannot_steer_the_terminal(mara: Mara, tmp_path: Path) -> None:
    text = "Karv is a \x1b[31mtown\u202e of :smile: and [bold]root:x:0[/bold] in Ostra."
    (tmp_path / "karv.jsonl").write_text(json.dumps({"id": "k", "title": "Karv", "text": text}), encoding="utf-8")
    mara("index", tmp_path / "karv.jsonl", "-w", tmp_path / "w")
    shown = mara("ask", "What is Karv in Ostra?", "-w", tmp_path / "w").out
    assert "Karv is a [31mtown of :smile: and [bold]root:x:0[/bold] in Ostra." in shown
    assert not {"\x1b", "\u202e"} & set(shown)


def test_a_workspace_of_another_format_is_refused_with_what_to_do(mara: Mara, corpus: Path, tmp_path: Path) -> None:
    mara("index", corpus, "-w", tmp_path / "w")
    manifest = tmp_path / "w" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text(encoding="utf-8")), "format_version": 0}))
    for command in (["ask", "x"], ["stats"], ["index", corpus], ["reembed"]):
        failed = mara(*command, "-w", tmp_path / "w", "--json")
        assert (failed.code, failed.json["error"]["kind"]) == (4, "WorkspaceDamaged")
        assert "mara index SOURCE --workspace NEW" in failed.json["error"]["hint"]


def test_another_embedding_model_is_refused_and_reembed_takes_it_up(
    mara: Mara, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mara("index", corpus, "-w", tmp_path / "w")
    with ScriptedServer([""]) as server:
        monkeypatch.setenv("MARA_EMBEDDING_MODEL", "other-model")
        monkeypatch.setenv("MARA_EMBEDDING_BASE_URL", server.base_url)
        failed = mara("ask", "Where is Karv?", "-w", tmp_path / "w", "--json")
        assert (failed.code, failed.json["error"]["kind"]) == (2, "EmbeddingMismatch")
        assert "mara reembed" in failed.json["error"]["hint"]
        done = mara("reembed", "-w", tmp_path / "w", "--json").json
        assert (done["from"], done["to"]) == ("all-MiniLM-L6-v2", "openai:other-model")
        answered = mara("ask", "Where is Karv?", "-w", tmp_path / "w", "--model", "offline", "--json")
        assert answered.json["models"]["embedding"] == "openai:other-model"


@pytest.mark.parametrize(("status", "kind"), [(401, "ModelUnavailable"), (404, "ModelUnavailable")])
def test_a_refusing_chat_endpoint_exits_with_3(
    mara: Mara, workspace: Path, monkeypatch: pytest.MonkeyPatch, status: int, kind: str
) -> None:
    with ScriptedServer([Reply("no", status=status)]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        failed = mara("ask", "Where is Karv?", "-w", workspace, "--json")
    assert (failed.code, failed.json["error"]["kind"]) == (3, kind)


def test_a_chat_model_answers_where_one_is_configured(
    mara: Mara, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = {
        "fact filter": ['{"facts": []}'],
        "manager": ['{"entity_entity": {"SPATIAL": 1}, "entity_passage": {"PRIMARY": 1}, "passage_weight": 0.05}'],
        "answerer": ["Karv [1]"],
    }
    with ScriptedServer(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        result = mara("ask", "Where was Ida Brandt born?", "-w", workspace, "--model", "any-model", "--json").json
    assert result["answer"] == "Karv [1]"
    assert result["models"]["chat"] == "any-model"
    assert result["fact_outcome"] == "nothing relevant"
    assert result["relation_factors"]["entity_entity"]["SPATIAL"] > 0.8


def test_the_installed_command_runs(workspace: Path) -> None:
    command = Path(sys.executable).with_name("mara")
    done = subprocess.run(
        [command, "ask", "What flows into Lake Sund?", "-w", workspace, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["workflow"] == "mara"
    assert done.stderr == ""


def test_two_commands_on_one_workspace_do_not_write_at_once(mara: Mara, corpus: Path, tmp_path: Path) -> None:
    mara("index", corpus, "-w", tmp_path / "w")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from graph.workspace import Workspace\n"
            "with Workspace(Path(sys.argv[1])).writing(): print('held', flush=True); sys.stdin.read()",
            str(tmp_path / "w"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(cli.__file__).parents[1],
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    failed = mara("index", corpus, "-w", tmp_path / "w", "--json")
    asked = mara("ask", "Where is Karv?", "-w", tmp_path / "w", "--json")
    holder.communicate()
    assert (failed.code, failed.json["error"]["kind"]) == (4, "WorkspaceLocked")
    assert str(holder.pid) in failed.json["error"]["message"]
    assert asked.code == 0, "reading goes on while another process writes"
