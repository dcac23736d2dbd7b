"""The folder of a run of ``mara eval``: its settings, one row for each system and question, and the figures of all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graph.errors import BadInput
from workflows.runs.run_folder import TIMINGS, Row, RunKind, read_object, read_rows, read_settings

RESULTS = "results.jsonl"
METRICS = "metrics.json"
REPORT = "report.md"

_KEY = ("system", "id")

EVALUATION = RunKind(
    name="run",
    settings="run.json",
    parts=("systems", "questions"),
    row="result",
    key=_KEY,
    files=(RESULTS, METRICS, REPORT),
    finished=lambda folder: read_rows(folder / RESULTS, *_KEY),
)


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        folder: where it is.
        settings: what ``run.json`` holds.
        results: the rows of each system, systems as given, questions as asked.
        timings: likewise.
        metrics: what ``metrics.json`` holds.
    """

    folder: Path
    settings: Row
    results: dict[str, list[Row]]
    timings: dict[str, list[Row]]
    metrics: Row


def load_run(path: Path) -> Run:
    """Read a finished run. Raises BadInput if there is none, it is not finished, or a file is damaged."""
    settings = read_settings(path, EVALUATION)
    if not settings:
        raise BadInput(f"There is no run at {path}", "Name the folder that `mara eval --out` wrote")
    results, timings = (_by_system(settings, path / name) for name in (RESULTS, TIMINGS))
    if any(len(rows) != settings["questions"]["asked"] for rows in results.values()):
        raise BadInput(f"The run at {path} is not finished", "Run the same `mara eval` again: it resumes")
    for system, rows in results.items():
        if [row["id"] for row in rows] != [row["id"] for row in timings[system]]:
            raise BadInput(f"{path / TIMINGS} does not fit {RESULTS} ({system})", "Run it again with --restart")
    return Run(path, settings, results, timings, read_object(path / METRICS))


def _by_system(settings: Row, path: Path) -> dict[str, list[Row]]:
    """Return the rows of each system of a run, in its order."""
    rows: dict[str, list[Row]] = {system: [] for system in settings["systems"]}
    for row in read_rows(path, *_KEY):
        rows.setdefault(row["system"], []).append(row)
    if rows.keys() != settings["systems"].keys():
        raise BadInput(f"{path} holds systems that {EVALUATION.settings} does not name", "Run it again with --restart")
    return rows
