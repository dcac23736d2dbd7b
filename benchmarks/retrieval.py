"""Recall and latency of the retrieval workflow, modes side by side in one process.

    python -m benchmarks.retrieval QUESTIONS.jsonl --workspace DIR [--mode mara --mode dense ...] [--nodes]

Questions are JSONL of {question, gold_ids}. They are asked in turns of ten, each turn in every mode, so that all modes
have the machine alike; nobody finds a vector that another mode computed. Latency is from the question to ranked
passages, embedding and LangGraph's own share included; the first question of each mode warms up. ``x dense`` is the
median over the questions of each one's own ratio. With ``--nodes``, a second table tells where the time goes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graph.retrieve.modes import Mode, Preset
from workflows.context import Context, Question
from workflows.retrieval import graph
from workflows.runtime.resources import open_workspace_index

_DEPTHS = (2, 5, 10)
_TURN = 10
"""More questions than the embedding model keeps the vectors of."""
_FIGURES = (*map(str, _DEPTHS), "mrr")
_OWN = "LangGraph and what surrounds the nodes"

Row = dict[str, float]


def main() -> None:
    """Measure and print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--workspace", "-w", required=True)
    parser.add_argument("--mode", action="append", type=Mode, choices=list(Mode), help="repeat for several")
    parser.add_argument("--preset", type=Preset, choices=list(Preset), default=Preset.MARA)
    parser.add_argument("--no-beta", action="store_true", help="walk without the manager's β")
    parser.add_argument("--nodes", action="store_true", help="tell the milliseconds of each node, nodes one by one")
    options = parser.parse_args()
    questions = [json.loads(line) for line in options.questions.read_text(encoding="utf-8").splitlines() if line]
    contexts = [
        Context(workspace=options.workspace, mode=mode, preset=options.preset, weigh_relations=not options.no_beta)
        for mode in options.mode or list(Mode)
    ]
    rows = measure(questions, contexts, one_by_one=options.nodes)
    print(latency_table(rows))
    if options.nodes:
        print(f"\n{node_table(rows)}")


def measure(
    questions: Sequence[dict[str, Any]], contexts: Sequence[Context], *, one_by_one: bool
) -> dict[Mode, list[Row]]:
    """Return the figures of each question, by mode."""
    rows: dict[Mode, list[Row]] = {context.mode: [] for context in contexts}
    for context in contexts:
        _ask(questions[0], context, one_by_one=one_by_one)
    for start in range(0, len(questions), _TURN):
        for context in contexts:
            open_workspace_index(context).forget_vectors()
            for question in questions[start : start + _TURN]:
                rows[context.mode].append(_ask(question, context, one_by_one=one_by_one))
    return rows


def _ask(question: dict[str, Any], context: Context, *, one_by_one: bool) -> Row:
    config: Any = {"max_concurrency": 1} if one_by_one else None
    start = time.perf_counter()
    result = graph.invoke(Question(question=question["question"]), config, context=context)
    ms = (time.perf_counter() - start) * 1000
    found = [passage["id"] for passage in result["passages"]]
    gold = set(question["gold_ids"])
    recalls = {str(k): len(gold & set(found[:k])) / len(gold) for k in _DEPTHS}
    ranks = [rank for rank, key in enumerate(found, start=1) if key in gold]
    nodes: Row = result["timings_ms"]
    return {
        **recalls,
        "mrr": 1 / ranks[0] if ranks else 0.0,
        "ms": ms,
        **nodes,
        _OWN: ms - sum(nodes.values()),
    }


def latency_table(rows: dict[Mode, list[Row]]) -> str:
    """Return recall and latency by mode; beside `dense` where that was asked, too."""
    lines = ["| mode | R@2 | R@5 | R@10 | MRR | p50 ms | p95 ms | x dense |", "|---|---|---|---|---|--:|--:|--:|"]
    dense = [row["ms"] for row in rows.get(Mode.DENSE, ())]
    for mode, own in rows.items():
        figures = [f"{np.mean([row[name] for row in own]):.3f}" for name in _FIGURES]
        ms = [row["ms"] for row in own]
        times = [f"{percentile:.1f}" for percentile in np.percentile(ms, [50, 95])]
        ratio = f"{np.median(np.divide(ms, dense)):.2f}" if dense else ""
        lines.append(f"| {' | '.join([mode, *figures, *times, ratio])} |")
    return "\n".join(lines)


def node_table(rows: dict[Mode, list[Row]]) -> str:
    """Return each node's median by mode."""
    names = list(dict.fromkeys(name for own in rows.values() for name in _node_names(own[0])))
    lines = [f"| p50 ms | {' | '.join(rows)} |", "|---" + "|--:" * len(rows) + "|"]
    for name in names:
        medians = [f"{np.median([row[name] for row in own]):.2f}" if name in own[0] else "" for own in rows.values()]
        lines.append(f"| {name} | {' | '.join(medians)} |")
    return "\n".join(lines)


def _node_names(row: Row) -> Iterator[str]:
    return (name for name in row if name not in (*_FIGURES, "ms"))


if __name__ == "__main__":
    main()
