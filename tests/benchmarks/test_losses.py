from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.losses import COLUMNS, by_outcome, main, mass_shares
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.schema import RelationType, entity_id
from graph.storage.workspace import Workspace
from tests.builders import passage_of, publish_workspace

PASSAGES = [
    passage_of("long", "", "Marn lies on the Sund. You create a bridge there, and another one, with stones from Marn."),
    passage_of("short", "Sund", "A lake."),
    passage_of("other", "Create", "A verb: to create."),
]


def line_of(system: str, key: str, retrieved: list[str], **more: Any) -> dict[str, Any]:
    return {
        "id": key,
        "question": f"{key}?",
        "system": system,
        "gold_ids": ["long"],
        "retrieved_ids": retrieved,
        "facts": [],
        "seeds": {"entities": [], "passages": []},
        **more,
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    publish_workspace(tmp_path / "workspace", PASSAGES, {"long": [("Marn", "on", "Sund", RelationType.SPATIAL)]})
    return tmp_path / "workspace"


@pytest.fixture
def graph(root: Path) -> KnowledgeGraph:
    workspace = Workspace(root)
    generation = workspace.current()
    assert generation
    return load(workspace.index_folder(generation))


def test_questions_are_lost_level_or_won_by_recall() -> None:
    found, missed = ["long"], ["short"]
    pairs = [
        (line_of("mara", "a", missed), line_of("hybrid", "a", found)),
        (line_of("mara", "b", found), line_of("hybrid", "b", found)),
        (line_of("mara", "c", found), line_of("hybrid", "c", missed)),
    ]
    assert {outcome: [pair[0]["id"] for pair in group] for outcome, group in by_outcome(pairs).items()} == {
        "lost": ["a"],
        "level": ["b"],
        "won": ["c"],
    }


def test_shares_tell_where_the_walk_starts_and_what_comes_first(graph: KnowledgeGraph) -> None:
    entities = [
        {"id": entity_id(name), "text": name, "weight": weight}
        for name, weight in (("Marn", 2.0), ("Sund", 1.0), ("Create", 1.0))
    ]
    line = line_of(
        "mara",
        "a",
        ["long", "short"],
        facts=[{"subject": "Marn", "predicate": "on", "object": "Sund", "score": 0.5, "kept": True}],
        seeds={"entities": entities, "passages": [{"id": "long", "weight": 4.0}]},
    )
    shares = dict(zip(COLUMNS, mass_shares(graph, line), strict=True))
    assert shares == pytest.approx(
        {
            "restart: passages": 0.5,
            "facts": 3 / 8,
            "names": 1 / 8,
            "of those: common words": 1 / 4,
            "hubs": 0.0,
            "first five: long": 0.5,
            "untitled": 0.5,
        }
    )


def test_the_table_and_the_worst_questions_are_printed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = {"entities": [{"id": entity_id("Create"), "text": "Create", "weight": 1.0}], "passages": []}
    lines = [line_of("mara", "a", ["short"], seeds=seeds), line_of("hybrid", "a", ["other", "long"])]
    run = tmp_path / "run"
    run.mkdir()
    (run / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["losses", str(run), "--workspace", str(root)])
    main()
    told = capsys.readouterr().out
    assert "| lost | 1 | 0.00 | 0.00 | 1.00 | 1.00 |" in told
    assert "Create 1.00 (2 passages, written as a name 33%)" in told
    assert "gold passages at none with mara, at 2 with hybrid" in told


def test_a_run_without_the_system_is_told(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results.jsonl").write_text(json.dumps(line_of("mara", "a", [])) + "\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["losses", str(tmp_path), "--workspace", str(root)])
    with pytest.raises(SystemExit, match="nothing of hybrid"):
        main()
