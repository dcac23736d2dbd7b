"""Evaluation: ask every system every question of a file, and resume if interrupted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from statistics import median, pstdev
from typing import Literal

import numpy as np

from agents.answers.citations import strip_citations
from agents.chat.local_model import is_local
from agents.chat.usage import Prices
from graph.errors import BadInput, ServiceUnavailable
from graph.retrieve.modes import Mode
from graph.retrieve.open_index import Index
from workflows.context import Context
from workflows.evaluation import (
    ALL_GOLD_DEPTHS,
    DEPTHS,
    FIRST_PAGE,
    averaged,
    f1_at_k,
    found_all_at_k,
    holds_gold,
    known,
    mean,
    mrr,
    precision_at_k,
    recall_at_k,
)
from workflows.evaluation.ask_system import Asker, GoldQuestion
from workflows.evaluation.attribution import attribution_figures, checking_figures
from workflows.evaluation.compare import Difference, baseline_of, less_baseline
from workflows.evaluation.report import write_report
from workflows.evaluation.systems import parse_systems
from workflows.runs.question_files import AskedQuestion, GoldLookup, draw, read_questions
from workflows.runs.run_folder import (
    EVALUATION,
    FORMAT_VERSION,
    METRICS,
    RESULTS,
    Answered,
    Row,
    Run,
    RunFolder,
    counted,
    dumps,
    json_lines,
    load_run,
    rounded,
    writing,
)
from workflows.runs.runner import (
    Progress,
    Round,
    about_workspace,
    ask_rounds,
    check_place,
    workers,
)
from workflows.runtime.resources import chat_model_name, open_workspace_index
from workflows.runtime.versions import ANSWERING
from workflows.states.records import NO_USAGE, add_usage, usage_of

TOP_K = 20
"""The number of passages that each system returns: the greatest depth of the recall reported."""

CONCURRENCY = 8
"""Questions asked side by side if a chat model on a server answers; one on this machine is asked one by one."""

_CODE = (*ANSWERING, "workflows/evaluation/ask_system.py")


@dataclass(frozen=True, slots=True)
class Order:
    """The plan of an evaluation.

    Attributes:
        questions: the question file.
        out: the run's folder.
        systems: how they are written, see `parse_system`.
        context: the settings that all share; the workspace among them.
        limit: how many questions are drawn; None for all.
        seed: of the draw, and of random β.
        retrieval_only: whether no answers are written.
        concurrency: questions asked side by side; None for `CONCURRENCY` with a chat model on a server, else 1.
        prices: of tokens.
        baseline: the system that the others are compared with; None for hybrid, else the first.
        restart: whether an earlier run in the folder is deleted.
    """

    questions: Path
    out: Path
    systems: Sequence[str] = tuple(Mode)
    context: Context = field(default_factory=Context)
    limit: int | None = None
    seed: int = 0
    retrieval_only: bool = False
    concurrency: int | None = None
    prices: Prices | None = None
    baseline: str | None = None
    restart: bool = False


def evaluate(order: Order, progress: Progress = lambda stage, done, total: None) -> Run:
    """Ask what is still to be asked, write the run's files and return them.

    A question that fails for a reason of its own is recorded as failed. One that a model or a server failed is asked
    again when the run is run again, and several of these in a row stop it.

    Args:
        order: what is to be run.
        progress: is told a system, how many questions it has answered, and how many there are.

    Raises:
        BadInput: the questions, systems or folder cannot be used, or the run began otherwise.
        WorkspaceMissing: there is no workspace, or it is empty.
        ServiceUnavailable: a model or a server does not answer; what was answered is kept.
    """
    shared = order.context.model_copy(update={"top_k": TOP_K})
    asking = parse_systems(order.systems, shared)
    wanted = [system.name for system in asking]
    without_retrieval = [system.name for system in asking if system.given]
    if order.retrieval_only and without_retrieval:
        raise BadInput(f"{without_retrieval[0]!r} retrieves nothing", "Leave it out, or leave out --retrieval-only")
    workspace = check_place(order.out, shared)
    questions = read_questions(order.questions)
    drawn = draw(questions, order.limit, order.seed)
    index = open_workspace_index(shared)
    asked, lacking = _with_gold(drawn, index)
    about = {
        "file": order.questions.name,
        "sha256": hashlib.sha256(order.questions.read_bytes()).hexdigest(),
        "seed": order.seed,
        "limit": order.limit,
        "count": len(questions),
        "asked": len(asked),
        **lacking,
    }
    with writing(order.out, EVALUATION, restart=order.restart) as folder:
        systems = parse_systems(list(dict.fromkeys((*folder.settings.get("systems", ()), *wanted))), shared)
        settings = {
            "format_version": FORMAT_VERSION,
            "systems": {system.name: system.describe() for system in systems},
            "questions": about,
            **about_workspace(workspace, shared, index, _CODE),
            "retrieval_only": order.retrieval_only,
            "top_k": TOP_K,
        }
        baseline = baseline_of(settings["systems"], order.baseline)
        folder.begin(settings)
        askers = [Asker(system, index.graph.generation, order.seed, order.retrieval_only) for system in systems]
        rounds = [_round(asker, asked, folder, order.concurrency) for asker in askers]
        ask_rounds(folder, rounds, progress)
        _finish(folder, rounds, order.prices, baseline)
    run = load_run(order.out)
    write_report(run)
    return run


def _round(
    asker: Asker, questions: Sequence[GoldQuestion], folder: RunFolder, concurrency: int | None
) -> Round[GoldQuestion]:
    """Return the round of one system."""
    system = asker.system

    def ask(question: GoldQuestion) -> tuple[Answered, ServiceUnavailable | None]:
        return asker.ask(question, folder.answered.get((system.name, question.asked.id)))

    return Round(
        system.name,
        {(system.name, question.asked.id): question for question in questions},
        ask,
        side_by_side(system.context, concurrency),
        asker.warm_up,
    )


def side_by_side(context: Context, wanted: int | None) -> int:
    """Return how many questions are asked at once; one of a model on this machine, so that seconds are its own."""
    return workers(context, wanted, 1 if is_local(chat_model_name(context)) else CONCURRENCY)


def _with_gold(drawn: Sequence[AskedQuestion], index: Index) -> tuple[list[GoldQuestion], Row]:
    """Return questions with the ids of their gold passages, and how much of the gold there is not."""
    lookup = GoldLookup(index.graph.passages)
    gold = [lookup.resolve(question) for question in drawn]
    asked = [GoldQuestion(question, each.ids) for question, each in zip(drawn, gold, strict=True)]
    unresolved, without = sum(each.unresolved for each in gold), sum(not each.ids for each in gold)
    return asked, {"unresolved_gold": unresolved, "without_gold": without}


def _finish(folder: RunFolder, rounds: Sequence[Round[GoldQuestion]], prices: Prices | None, baseline: str) -> None:
    """Write all rows in order, with their figures."""
    rows = {each.system: [folder.answered[key] for key in each.questions] for each in rounds}
    results = {system: [one.row for one in own] for system, own in rows.items()}
    timings = {system: [one.timing for one in own] for system, own in rows.items()}
    metrics = run_metrics(folder.settings, results, timings, prices, baseline)
    files = {
        RESULTS: json_lines(row for own in results.values() for row in own),
        METRICS: dumps(metrics, indent=2) + "\n",
    }
    folder.finish([key for each in rounds for key in each.questions], files)


_DECIMALS = 6
_ABOUT_RUN = ("questions", "workspace_id", "generation", "models", "versions", "retrieval_only", "top_k")
"""The settings of a run that its figures repeat."""

_SPENT: tuple[Literal["calls", "prompt_tokens", "completion_tokens"], ...] = (
    "calls",
    "prompt_tokens",
    "completion_tokens",
)


def run_metrics(
    settings: Row,
    results: Mapping[str, Sequence[Row]],
    timings: Mapping[str, Sequence[Row]],
    prices: Prices | None = None,
    baseline: str | None = None,
) -> Row:
    """Return the figures of all systems of a run, beside the settings that they hold for.

    ``differences`` are those of the other systems to the ``baseline``, each with its 95 % bootstrap interval.

    Args:
        settings: what ``run.json`` holds.
        results: the rows of each system.
        timings: the same systems' timings.
        prices: of tokens; None where the user gives none.
        baseline: a system of the run, see `baseline_of`.
    """
    reference = baseline_of(settings["systems"], baseline)
    return {
        "systems": {name: system_metrics(rows, timings[name], prices) for name, rows in results.items()},
        "baseline": reference,
        "differences": {
            name: {each.metric: rounded(_interval(each), _DECIMALS) for each in differences}
            for name, differences in less_baseline(results, reference).items()
        },
        "settings": settings["systems"],
        **{name: settings[name] for name in _ABOUT_RUN},
    }


def system_metrics(rows: Sequence[Row], timings: Sequence[Row], prices: Prices | None = None) -> Row:
    """Return one system's figures; a figure that nothing was measured for is None.

    Questions that failed count: nothing was retrieved, and nothing answered right. Those without gold passages take no
    part in recall, precision, their F1 and MRR, those without gold answers none in EM and F1. The standard deviation is
    that of these questions, not an estimate for others.
    """
    rankings, golds = [row["retrieved_ids"] for row in rows], [row["gold_ids"] for row in rows]
    citations = [citation for row in rows for citation in row["citations"]]
    errors = [error for row in rows for error in row["errors"]]
    f1 = known(rows, "f1")
    usage = reduce(add_usage, (row["usage"] for row in timings), NO_USAGE)
    figures: Row = rounded(
        {
            "questions": len(rows),
            "with_gold": sum(bool(gold) for gold in golds),
            "failed": len(known(rows, "failed")),
            "recall": _by_depth(recall_at_k, DEPTHS, rankings, golds),
            "all_gold": _by_depth(found_all_at_k, ALL_GOLD_DEPTHS, rankings, golds),
            "precision": _by_depth(precision_at_k, DEPTHS, rankings, golds),
            "retrieval_f1": _by_depth(f1_at_k, DEPTHS, rankings, golds),
            "mrr": mrr(rankings, golds),
            "mrr_at_5": mrr(rankings, golds, FIRST_PAGE),
            "em": mean(known(rows, "em")),
            "f1": {"mean": mean(f1), "median": _of(median, f1), "std": _of(pstdev, f1)},
            "gold_in_answer": mean(float(_answer_holds_gold(row)) for row in rows if row["em"] is not None),
            "refusal_rate": mean(map(float, known(rows, "refused"))),
            "citation_support_rate": mean(float(citation["supported"]) for citation in citations),
            "citation_gold_rate": mean(float(citation["gold"]) for citation in citations),
            **attribution_figures(rows),
            **checking_figures(rows),
            "fallbacks": counted(error["node"] for error in errors if error["kind"] == "Fallback"),
            "errors": counted(error["kind"] for error in errors),
            "failures": counted(failed["kind"] for failed in known(rows, "failed")),
            "fact_outcomes": counted(row["fact_outcome"] for row in rows),
            "ranked_by": counted(row["ranked_by"] for row in rows),
            "latency_ms": _latency(timings),
            "usage": usage,
            "usage_per_question": {name: usage[name] / len(rows) if rows else None for name in _SPENT},
            "cost": prices.cost_of(usage_of(usage)) if prices else None,
        },
        _DECIMALS,
    )
    return figures


def _by_depth(
    measure: Callable[..., float],
    depths: Sequence[int],
    rankings: Sequence[Sequence[str]],
    golds: Sequence[Sequence[str]],
) -> Row:
    return {str(k): averaged(partial(measure, k=k), rankings, golds) for k in depths}


def _interval(less: Difference) -> Row:
    return {"questions": less.n, "difference": less.difference, "low": less.low, "high": less.high}


def _answer_holds_gold(row: Row) -> bool:
    """Tell whether a row's answer holds a gold one; a question that failed or was refused has none."""
    said = row["answer"] if row["answer"] and not row["refused"] else ""
    return holds_gold(strip_citations(said), row["gold_answers"])


def _latency(timings: Sequence[Row]) -> Row:
    """Return p50 and p95 of the whole and of each node, over the questions that were answered."""
    answered = [row for row in timings if row["total_ms"] is not None]
    whole = latency_by_node({"total": row["total_ms"]} for row in answered)
    return {"total": whole.get("total"), "nodes": latency_by_node(row["timings_ms"] for row in answered)}


def latency_by_node(timings: Iterable[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return the p50 and p95 of each node's milliseconds, over the questions on which it ran."""
    by_node: dict[str, list[float]] = {}
    for times in timings:
        for node, ms in times.items():
            by_node.setdefault(node, []).append(ms)
    return {node: {f"p{q}": float(np.percentile(ms, q)) for q in (50, 95)} for node, ms in sorted(by_node.items())}


def _of(figure: Callable[[list[float]], float], values: list[float]) -> float | None:
    return figure(values) if values else None
