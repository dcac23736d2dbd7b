from __future__ import annotations

import json
import platform
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.machine import Touched, describe_machine, touched_by_matrix, touched_by_push
from benchmarks.synthetic import Counts, synthetic_graph

GRAPH = synthetic_graph(Counts(10, 4, 6, 8, 16), np.random.default_rng(0))
EDGES = 30


def test_a_machine_is_described_without_names_or_paths() -> None:
    described = json.dumps(asdict(describe_machine()))
    assert platform.python_version() in described
    assert not re.search(rf"\b{re.escape(platform.node() or 'no name')}\b", described)
    assert str(Path.home()) not in described


def test_the_matrix_reads_an_end_and_a_weight_an_arc_and_weighs_each_edge() -> None:
    weighing = 2 * EDGES * (1 + 4 + 3 * 4)
    assert touched_by_matrix(GRAPH, 600, 4) == Touched(600 * 8 + weighing, 600 * 4, 600)


def test_numbers_twice_as_wide_leave_the_ends_as_they_are() -> None:
    assert touched_by_matrix(GRAPH, 600, 8) == Touched(600 * 12 + 2 * EDGES * (1 + 4 + 3 * 8), 600 * 8, 600)


def test_push_reads_its_arcs_and_at_the_end_all_nodes() -> None:
    assert touched_by_push(100) == Touched(100 * 9, 100 * 32, 100)
