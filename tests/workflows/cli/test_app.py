"""The command line asks, counts and exports: results on standard output, in words or as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agents.offline.extractor import OFFLINE_EXTRACTOR
from tests.cases import mostly_slow
from tests.scripted_server import ScriptedServer
from tests.workflows.command_line import CORPUS, Mara


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


def test_a_question_is_answered_with_its_citation(mara: Mara, workspace: Path) -> None:
    shown = mara("ask", "Into which lake does the Velm flow?", "-w", workspace)
    assert shown.code == 0
    head, _, evidence, *_ = shown.out.splitlines()
    assert head == "Quotes from your documents (not checked by a model):"
    assert "**It flows into Lake Sund.** [1]" in evidence
    assert "● [1] Velm · corpus.jsonl\n" in shown.out
    assert "evidence, no model configured" in shown.out
    verbose = mara("ask", "Into which lake does the Velm flow?", "-w", workspace, "--verbose")
    assert "chat offline, embedding all-MiniLM-L6-v2" in verbose.out


def test_a_question_that_needs_two_passages_finds_both(mara: Mara, workspace: Path) -> None:
    asked = mara("ask", "Where was the engineer born who dammed Lake Sund?", "-w", workspace, "--json")
    result = asked.json
    assert {passage["id"] for passage in result["passages"][:2]} == {"p2", "p3"}
    assert "Karv" in result["answer"]
    assert [seed["text"] for seed in result["seeds"]["entities"]]
    assert result["models"] == {"chat": "offline", "embedding": "all-MiniLM-L6-v2", "store": "embedded"}


def test_every_mode_can_be_asked_for(mara: Mara, workspace: Path) -> None:
    for mode in ["mara", "hipporag2", "mara-matrix", "dense", "sparse", "hybrid"]:
        result = mara(
            "ask", "What flows into Lake Sund?", "-w", workspace, "--mode", mode, "--top-k", "2", "--json"
        ).json
        assert result["mode"] == mode
        assert 1 <= len(result["passages"]) <= 2, mode


def test_conditions_say_which_passages_may_be_seen(mara: Mara, owned: Path) -> None:
    cases: list[tuple[list[str], set[str]]] = [
        (["tenant=007"], {"p1"}),
        (["tenant!=007"], {"p2", "p3"}),
        (["year=1999"], {"p1", "p2"}),
        (["year>=1999", "year<2000"], {"p1", "p2"}),
        (["day>2020", "source = corpus.jsonl"], {"p3"}),
        (["draft=true"], {"p2"}),
    ]
    for conditions, seen in cases:
        options = [part for condition in conditions for part in ("--where", condition)]
        asked = mara("ask", "What flows into Lake Sund?", "-w", owned, *options, "--json").json
        assert {passage["id"] for passage in asked["passages"]} == seen
        assert [told for told in asked["errors"] if told["kind"] != "Evidence"] == [], conditions


def test_conditions_that_no_passage_meets_are_said_on_paper(mara: Mara, owned: Path) -> None:
    shown = mara("ask", "What flows into Lake Sund?", "-w", owned, "--where", "tenant=8")
    assert shown.code == 0
    assert shown.out.startswith("Not found in the documents.")
    assert "No passage meets the conditions" in shown.out


def test_a_key_that_no_passage_has_is_refused_with_those_that_there_are(
    mara: Mara, owned: Path, tmp_path: Path
) -> None:
    for condition in ["yaer=1999", "yaer!=1999", "yaer>1998"]:
        question = "What flows into Lake Sund?"
        for command in (
            ["ask", question],
            ["batch", "--single-question", question, "--out", tmp_path / "out"],
            ["mcp"],
        ):
            as_json = [] if command == ["mcp"] else ["--json"]
            failed = mara(*command, "-w", owned, "--where", condition, "--where", "draft=true", *as_json)
            assert failed.code == 2, condition
            told = " ".join((failed.out + failed.err).split())
            assert "No passage has metadata called `yaer`" in told, condition
            assert "Did you mean `year`? The keys there are: `day`, `draft`, `source`, `tenant`, `year`" in told, (
                condition
            )


@pytest.mark.usefixtures("without_numba")
def test_an_engine_that_is_not_installed_exits_with_2(mara: Mara, workspace: Path) -> None:
    failed = mara("ask", "What flows into Lake Sund?", "-w", workspace, "--engine", "push", "--json")
    assert (failed.code, failed.json["error"]["kind"]) == (2, "DependencyMissing")
    assert "pip install" in failed.json["error"]["hint"]


def test_an_engine_can_be_asked_for_and_is_told(mara: Mara, workspace: Path) -> None:
    for engine in ["igraph", "matrix"]:
        shown = mara("ask", "What flows into Lake Sund?", "-w", workspace, "--engine", engine, "--verbose")
        assert shown.code == 0, engine
        assert f"ranked by walk ({engine})" in shown.out


def test_stats_count_what_the_workspace_holds(mara: Mara, workspace: Path) -> None:
    found = mara("show", "-w", workspace, "--json").json
    assert found["passages"] == 3
    assert found["edges"] == sum(found["edges_by_type"].values())
    assert found["passage_edges_by_link"]["own title"] == 3
    assert found["extractors"] == {OFFLINE_EXTRACTOR: 3}
    assert "passages" in mara("show", "-w", workspace).out


def test_matrices_are_exported_once_and_again(mara: Mara, workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "export"
    shown = mara("graph", "export", "--format", "matrices", folder, "-w", workspace)
    assert (shown.code, shown.err) == (0, "")
    assert "weighted by counts" in shown.out
    again = mara(
        "graph", "export", "--format", "matrices", folder, "-w", workspace, "--weights", "evidence", "--json"
    ).json
    assert (again["weights"], again["n_passages"]) == ("evidence", 3)
    assert len(list(folder.glob("matrix_*.npz"))) == len(again["matrices"]) == 7
    assert (folder / "graph_metadata.json").exists()


def test_an_export_among_other_files_is_refused(mara: Mara, workspace: Path, corpus: Path) -> None:
    for folder, says in ((corpus.parent, "not empty"), (corpus, "is a file"), (workspace / "x", "in the workspace")):
        failed = mara("graph", "export", "--format", "matrices", folder, "-w", workspace, "--json")
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


def test_what_documents_say_cannot_steer_the_terminal(mara: Mara, tmp_path: Path) -> None:
    text = "Karv is a \x1b[31mtown\u202e of :smile: and [bold]root:x:0[/bold] in Ostra."
    (tmp_path / "karv.jsonl").write_text(json.dumps({"id": "k", "title": "Karv", "text": text}), encoding="utf-8")
    mara("index", tmp_path / "karv.jsonl", "-w", tmp_path / "w")
    shown = mara("ask", "What is Karv in Ostra?", "-w", tmp_path / "w").out
    assert "Karv is a [31mtown of :smile: and [bold]root:x:0[/bold] in Ostra." in shown
    assert not {"\x1b", "\u202e"} & set(shown)


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


@pytest.mark.parametrize(
    ("command", "told"),
    mostly_slow([(("show",), ("passages", 3)), (("ask", "What flows into Lake Sund?"), ("workflow", "mara"))], 1),
)
def test_the_installed_command_runs(workspace: Path, command: tuple[str, ...], told: tuple[str, object]) -> None:
    installed = Path(sys.executable).with_name("mara")
    done = subprocess.run([installed, *command, "-w", workspace, "--json"], capture_output=True, text=True, check=True)
    assert told in json.loads(done.stdout).items()
    assert done.stderr == ""
