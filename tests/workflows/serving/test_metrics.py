"""The figures of a server, of one process and of several that share a folder."""

from __future__ import annotations

import subprocess
import sys

from workflows.serving.metrics import Metrics, shared_folder


def generations(told: bytes) -> list[str]:
    return [line for line in told.decode().splitlines() if line.startswith("mara_generation{")]


def test_a_workspace_that_is_closed_has_no_generation_until_it_is_opened_again() -> None:
    metrics = Metrics()
    metrics.generation("team", 3)
    metrics.generation("board", 5)
    metrics.closed("team")
    assert generations(metrics.text()) == ['mara_generation{workspace="board"} 5.0']
    metrics.generation("team", 4)
    assert 'mara_generation{workspace="team"} 4.0' in generations(metrics.text())


def test_a_worker_that_closed_a_workspace_does_not_tell_of_an_old_generation() -> None:
    program = "from workflows.serving.metrics import Metrics; metrics = Metrics(); metrics.generation('team', {}); {}"
    ends = ("1", "metrics.closed('team')"), ("2", "print(metrics.text().decode())")
    with shared_folder():
        told = [
            subprocess.run([sys.executable, "-c", program.format(*end)], check=True, capture_output=True).stdout
            for end in ends
        ]
    assert generations(told[1]) == ['mara_generation{workspace="team"} 2.0']
