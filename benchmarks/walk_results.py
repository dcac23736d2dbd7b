"""All figures of one run of the walk's benchmark."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.fresh import FirstPush, Memory
from benchmarks.machine import Machine, MemorySpeed
from benchmarks.snapshot import SnapshotCost
from benchmarks.walk_costs import BetaCost, Limit
from benchmarks.walk_timing import Table


@dataclass(frozen=True)
class GraphResult:
    """What was measured on one graph.

    Attributes:
        name: ``size 1``, say.
        array_bytes: of all arrays that ``matrix`` and ``push`` read.
        derived_seconds: to derive them from the columns.
        igraph_seconds: to build igraph's object.
        gather_ns: one of many scattered reads of a vector with one number a node, by the number's bits.
        push_floor_ms: walks of ``push`` that follow no arc: what it costs to begin and to end.
        memory: by way.
    """

    name: str
    entities: int
    passages: int
    edges: int
    array_bytes: int
    derived_seconds: float
    igraph_seconds: float
    gather_ns: dict[int, float]
    push_floor_ms: list[float]
    tables: list[Table]
    beta: BetaCost
    limits: list[Limit]
    memory: dict[str, Memory]


@dataclass(frozen=True)
class Results:
    """What one run measured.

    Attributes:
        seed: of everything drawn.
        seconds: the whole run.
        compiling: the first push of a process where nothing was compiled before.
        loading: the first pushes of processes that found it compiled.
        snapshot: of the first size's graph.
    """

    machine: Machine
    memory_speed: MemorySpeed
    seed: int
    seconds: float
    graphs: list[GraphResult]
    compiling: FirstPush
    loading: list[FirstPush]
    snapshot: SnapshotCost

    def write_json(self, path: Path) -> None:
        """Write all figures, those of single questions included."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
