from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("faiss")


@pytest.mark.slow
def test_every_stage_of_a_size_is_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.growth", "run", "--passages", "300", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    stages = {figures["stage"]: figures for figures in map(json.loads, done.stdout.splitlines())}
    assert list(stages) == ["record", "publish", "ask", "add"]
    assert all("error" not in figures for figures in stages.values())
    assert {"names", "edges", "search index"} <= stages["publish"]["stages"].keys()


@pytest.mark.slow
def test_the_time_of_an_index_is_divided_into_stages(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"title": "Marn", "text": "Marn lies on Lake Sund."}) + "\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.indexing", str(corpus)], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines() if "%" in line]
    seconds = {" ".join(row[:-3]): float(row[-3]) for row in rows}
    assert all(seconds[stage] > 0 for stage in ("embed", "build graph", "Chroma"))
