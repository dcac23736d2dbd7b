"""An index that is killed again and again, at any moment, ends as one that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from graph.construction.knowledge_graph import load
from graph.storage.workspace import Workspace
from tests.killing import arrays_that_differ

DATA = Path(os.environ.get("MARA_DEVELOPMENT_DATA") or "unset")
SAMPLE = Path(__file__).parents[1] / "workflows" / "sample" / "corpus.jsonl"

pytestmark = pytest.mark.slow

_MARA = [sys.executable, "-c", "import sys; from workflows.cli.app import main; sys.exit(main())"]
_TABLES = ("passages", "names", "facts", "passage_names", "passage_facts")
_LONGEST_RUN_S = 3_600.0


def index(arguments: list[str], workspace: Path) -> subprocess.Popen[bytes]:
    """Start `mara index` in a process of its own."""
    return subprocess.Popen(
        [*_MARA, "index", *arguments, "-w", str(workspace), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def dump(workspace: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return everything in the record that does not depend on when it was written."""
    with sqlite3.connect(f"file:{workspace / 'record.sqlite'}?mode=ro", uri=True) as database:
        return {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in _TABLES}


def generations(workspace: Path) -> set[str]:
    """Return the generations whose search index has been begun."""
    return {path.parent.name for path in (workspace / "index").glob("*/chroma")}


def wait_for_chroma(run: subprocess.Popen[bytes], workspace: Path, known: set[str]) -> None:
    """Return when the run begins to write a search index, or has ended."""
    ended = threading.Event()
    while run.poll() is None and not generations(workspace) - known:
        ended.wait(0.005)


def kill_again_and_again(arguments: list[str], workspace: Path, kills: int, seed: int) -> tuple[int, int]:
    """Index and kill at random moments, every third time while Chroma writes; return both counts of kills."""
    chance = random.Random(seed)
    anywhere = in_chroma = 0
    begun = time.monotonic()
    while anywhere + in_chroma < kills:
        assert time.monotonic() - begun < _LONGEST_RUN_S
        known = generations(workspace)
        run = index(arguments, workspace)
        at_chroma = (anywhere + in_chroma) % 3 == 2
        try:
            if at_chroma:
                wait_for_chroma(run, workspace, known)
                run.wait(chance.uniform(0.0, 1.0))
            else:
                run.wait(chance.uniform(0.3, 12.0))
        except subprocess.TimeoutExpired:
            run.kill()
            in_chroma += at_chroma
            anywhere += not at_chroma
        run.communicate()
        if run.returncode == 0:
            # It came to its end before its time: let the next one have something to derive again.
            (workspace / "CURRENT").unlink(missing_ok=True)
        else:
            assert run.returncode == -9, run.returncode
    return anywhere, in_chroma


def assert_undisturbed(arguments: list[str], killed: Path, whole: Path) -> None:
    for workspace in (killed, whole):
        run = index(arguments, workspace)
        out, err = run.communicate()
        assert run.returncode == 0, (out[-500:], err[-2000:])
    assert dump(killed) == dump(whole)
    mine, other = (root / "index" / (root / "CURRENT").read_text().strip() for root in (killed, whole))
    assert arrays_that_differ(mine, other) == []
    assert np.array_equal(load(mine).edges.weight, load(other).edges.weight)
    doctor = subprocess.run([*_MARA, "doctor", "-w", str(killed), "--json"], capture_output=True, text=True)
    found = json.loads(doctor.stdout)
    assert doctor.returncode == 0, found
    Workspace(killed).claim().release()


def test_the_sample_killed_a_few_times(tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    kill_again_and_again([str(SAMPLE)], killed, 6, seed=1)
    assert_undisturbed([str(SAMPLE)], killed, tmp_path / "whole")


@pytest.mark.soak
@pytest.mark.skipif(not DATA.is_dir(), reason="MARA_DEVELOPMENT_DATA names no folder")
def test_the_development_data_killed_fifty_times(tmp_path: Path, soak_share: float) -> None:
    folder = DATA / "musique_train100"
    arguments = [str(folder / "corpus.jsonl"), "--triples", str(folder / "openie.jsonl")]
    killed = tmp_path / "killed"
    kills = round(50 * soak_share)
    anywhere, in_chroma = kill_again_and_again(arguments, killed, kills, seed=2)
    assert anywhere >= kills * 3 // 5
    assert in_chroma >= kills // 5
    assert_undisturbed(arguments, killed, tmp_path / "whole")
