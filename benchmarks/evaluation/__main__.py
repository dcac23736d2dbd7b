"""All modes on all development sets, and the ablations on the main ones: the figures of the documentation.

    python -m benchmarks.evaluation DATA --out RUNS [--limit N] [--restart]

DATA holds the folders ``musique_train100``, ``hotpot_train100`` and ``mtrag_dev``. Each corpus is indexed into RUNS
without a model, then its questions are asked with retrieval alone. What was interrupted resumes, and what is finished
is not done again: measure other code in a new folder, or with ``--restart``. The figures go to ``figures.jsonl`` beside
this file, and from there into ``README.md`` and the site; with ``--limit`` they are printed alone.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.offline.extractor import OfflineExtractor
from benchmarks.evaluation import tables
from benchmarks.evaluation.sets import QUESTION_SETS, Corpus, QuestionSet, rows_of
from docs.site import sections
from graph.retrieve.modes import Mode
from graph.storage.workspace import write_atomically
from workflows.cli.command import progress_bars
from workflows.context import Context
from workflows.evaluation.compare import less_baseline
from workflows.evaluation.runner import Order, evaluate
from workflows.evaluation.systems import ABLATIONS, is_control
from workflows.indexing import index_sources
from workflows.runs.run_folder import Run, json_lines, rounded
from workflows.runtime.resources import OFFLINE, close_indexes, open_workspace_index

ROOT = Path(__file__).parents[2]
WORKSPACES = "workspaces"
"""The folder, beside the runs, that the corpora are indexed into."""

_DEPTHS = ("2", "5", "10")
_DIFFERENCES = ("recall@5", "all-gold@5")
_BASELINES = ("hybrid", "mara")
_DECIMALS = 6


def main() -> None:
    """Measure, print the tables, and write the figures and the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--out", type=Path, required=True, metavar="RUNS")
    parser.add_argument("--limit", type=int, metavar="N", help="ask N questions of each set, and write no page")
    parser.add_argument("--restart", action="store_true", help="index and ask everything again")
    options = parser.parse_args()
    lacking = sorted({each.corpus.folder for each in QUESTION_SETS if not (options.data / each.corpus.folder).is_dir()})
    if lacking:
        parser.error(f"{options.data} has no folder {', '.join(lacking)}")
    if options.restart:
        shutil.rmtree(options.out / WORKSPACES, ignore_errors=True)
    figures = [
        measure(each, options.data, options.out, options.limit, restart=options.restart) for each in QUESTION_SETS
    ]
    print("\n\n".join(make(figures) for make in tables.SECTIONS.values()))
    if options.limit is None:
        write_pages(figures)


def measure(
    asked: QuestionSet, data: Path, out: Path, limit: int | None = None, *, restart: bool = False
) -> dict[str, Any]:
    """Index a corpus as far as it is not, ask a question set, and return its figures.

    Args:
        asked: what is measured.
        data: the folder of the development sets.
        out: where workspaces and runs are kept.
        limit: how many questions are drawn; None for all.
        restart: whether an earlier run is deleted.
    """
    workspace = index(asked.corpus, data, out)
    rows = rows_of(data / asked.corpus.folder / "questions.jsonl")
    questions = out / f"{asked.name}.jsonl"
    write_atomically(questions, json_lines(row for each in rows if (row := asked.chosen(each)) is not None))
    context = Context(workspace=str(workspace), model=OFFLINE)
    order = Order(
        questions=questions,
        out=out / asked.name,
        systems=[*(mode.value for mode in Mode), *(ABLATIONS if asked.ablated else ())],
        context=context,
        limit=limit,
        retrieval_only=True,
        restart=restart,
    )
    print(f"{asked.heading}:", file=sys.stderr)
    with progress_bars() as progress:
        run = evaluate(order, progress)
    passages = len(open_workspace_index(context).graph.passages)
    close_indexes()
    return {
        "name": asked.name,
        "heading": asked.heading,
        "facts": "imported" if asked.corpus.triples else "extracted without a model",
        "passages": passages,
        "questions": run.settings["questions"]["asked"],
        "systems": figures_of(run),
    }


def index(corpus: Corpus, data: Path, out: Path) -> Path:
    """Index a corpus without a model into a workspace of its own, as far as that is not done; return the workspace."""
    folder, workspace = data / corpus.folder, out / WORKSPACES / corpus.name
    source = folder / "corpus.jsonl"
    if not corpus.titles:
        out.mkdir(parents=True, exist_ok=True)
        untitled = out / f"{corpus.name}-corpus.jsonl"
        write_atomically(untitled, json_lines({**row, "title": ""} for row in rows_of(source)))
        source = untitled
    triples = folder / "openie.jsonl" if corpus.triples else None
    with progress_bars() as progress:
        index_sources([source], workspace, triples, OfflineExtractor(), progress)
    return workspace


def figures_of(run: Run) -> dict[str, Any]:
    """Return recall, all gold and MRR of each system of a run, and its paired differences to each baseline."""
    less = {baseline: less_baseline(run.results, baseline, _DIFFERENCES) for baseline in _BASELINES}
    return {
        system: rounded(
            {
                "control": is_control(run.settings["systems"][system]),
                "recall": {depth: found["recall"][depth] for depth in _DEPTHS},
                "all_gold": {depth: found["all_gold"][depth] for depth in _DEPTHS},
                "mrr": found["mrr"],
                "less": {
                    baseline: {each.metric: (each.difference, each.low, each.high) for each in differences[system]}
                    for baseline, differences in less.items()
                    if system != baseline
                },
            },
            _DECIMALS,
        )
        for system, found in run.metrics["systems"].items()
    }


def write_pages(figures: Sequence[dict[str, Any]]) -> None:
    """Write the figures, and the table of them in the README."""
    write_atomically(tables.FIGURES, json_lines(figures))
    sections.main([str(ROOT / "README.md")])


if __name__ == "__main__":
    main()
