"""Growth, measured: `python -m benchmarks.growth run --passages 10000 --folder SCRATCH`, then `... report SCRATCH`.

Each size is a workspace in the scratch folder. A stage runs in a process of its own; its figures go to `figures.json`
beside the workspace as soon as it ends, and it is not run again unless `--again` names it. The record, once written,
is kept. Vectors are mapped at every size.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.growth.measure import Figures, measured
from benchmarks.growth.record import write_record
from benchmarks.growth.report import report
from benchmarks.growth.stages import add_document, ask_questions, publish_record
from benchmarks.machine import describe_machine
from graph.environment import environment, set_variables


def main() -> None:
    """Measure a size, or print the tables of those that were measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure one size")
    run.add_argument("--passages", type=int, required=True)
    run.add_argument("--folder", type=Path, required=True)
    run.add_argument("--again", action="append", default=[], choices=["publish", "ask", "add"])
    run.add_argument("--only", action="append", default=[], choices=["record", "publish", "ask", "add"])
    tables = commands.add_parser("report", help="fit exponents and print Markdown tables")
    tables.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "report":
        print(report(options.folder))
    else:
        _measure(options.folder / str(options.passages), options.passages, options.again, options.only)


def _measure(folder: Path, passages: int, again: list[str], only: list[str]) -> None:
    set_variables({"MARA_VECTORS": environment().mara_vectors or "mapped"})
    folder.mkdir(parents=True, exist_ok=True)
    notes = folder / "figures.json"
    known: Figures = json.loads(notes.read_text()) if notes.exists() else {}
    stages: dict[str, tuple[Callable[..., Figures], tuple[object, ...]]] = {
        "record": (write_record, (folder, passages)),
        "publish": (publish_record, (folder,)),
        "ask": (ask_questions, (folder, passages)),
        "add": (add_document, (folder,)),
    }
    for name, (stage, arguments) in stages.items():
        if (only and name not in only) or (name in known and "error" not in known[name] and name not in again):
            continue
        known[name] = measured(stage, *arguments)
        known |= {"size": passages, "machine": asdict(describe_machine())}
        notes.write_text(json.dumps(known, indent=1))
        print(json.dumps({"passages": passages, "stage": name, **known[name]}), flush=True)


if __name__ == "__main__":
    main()
