"""Rows and folders of runs as ``mara eval`` writes them, for what reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.workflows.small_world import write_lines
from workflows.evaluation.runner import run_metrics
from workflows.evaluation.systems import Control
from workflows.runs.run_folder import Run, load_run


def row(id_: str, retrieved: str, gold: str = "a b", **other: Any) -> dict[str, Any]:
    """Return a row of results; passages are named by words."""
    unmeasured = (
        *("answer", "refused", "em", "f1", "relation_factors", "passage_weight", "judge_outcome", "written_from"),
        *("citation_recall", "citation_precision", "gold_citation_recall", "gold_citation_precision"),
        *("claims", "coverage", "follow_ups", "model_calls", "failed"),
    )
    return {
        **dict.fromkeys(unmeasured),
        **{"id": id_, "question": f"What is {id_}?", "type": "bridge", "hops": 2},
        **{"system": "mara", "mode": "mara", "workflow": "mara"},
        **{"gold_ids": gold.split(), "gold_answers": [], "retrieved_ids": retrieved.split(), "retrieved_scores": []},
        **{"ranked_by": "walk", "citations": [], "fact_outcome": "kept", "facts": [], "errors": []},
        "seeds": {"entities": [], "passages": []},
        **other,
    }


def write_run(
    folder: Path,
    systems: Mapping[str, Sequence[Mapping[str, Any]]],
    **settings: Any,
) -> Run:
    """Write the folder of a finished run, and return it as read."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {name: [{**each, "system": name} for each in own] for name, own in systems.items()}
    nodes = {"encode_question": 4.0, "walk_graph": 6.0}
    counts = {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "unknown": 0}
    timings = {
        name: [
            {"id": each["id"], "system": name, "total_ms": 12.0, "timings_ms": nodes, "usage": counts} for each in own
        ]
        for name, own in rows.items()
    }
    asked = max(len(own) for own in rows.values())
    about = {"file": "questions.jsonl", "sha256": "c0ffee", "count": asked, "asked": asked, "seed": 0, "limit": None}
    about |= {"unresolved_gold": 0, "without_gold": 0, **settings.pop("questions", {})}
    run: dict[str, Any] = {
        **{"format_version": 1, "workspace_id": "w1", "generation": 3, "retrieval_only": True, "top_k": 20},
        "systems": {name: _described(name) for name in rows},
        "models": {"chat": "offline", "embedding": "small", "store": "embedded"},
        "versions": {"python": "3.11"},
        **settings,
        "questions": about,
    }
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    for name, lines in (("results.jsonl", rows), ("timings.jsonl", timings)):
        write_lines(folder / name, [each for own in lines.values() for each in own])
    (folder / "metrics.json").write_text(json.dumps(run_metrics(run, rows, timings)), encoding="utf-8")
    return load_run(folder)


def _described(name: str) -> dict[str, Any]:
    mode, *switches = name.split("+")
    controls = [switch for switch in switches if switch in list(Control)]
    return {"mode": mode, "controls": controls, "walk": {"beta": "+no-beta" not in name}}
