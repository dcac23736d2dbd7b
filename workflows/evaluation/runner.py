"""Evaluation: ask every system every question of a file, and resume if interrupted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents.chat.local_model import is_local
from agents.chat.usage import Prices
from graph.errors import BadInput, ServiceUnavailable
from graph.retrieve.modes import Mode
from graph.retrieve.open_index import Index
from workflows.context import Context
from workflows.evaluation.aggregate import run_metrics
from workflows.evaluation.ask_system import Asker, GoldQuestion
from workflows.evaluation.compare import baseline_of
from workflows.evaluation.gold import GoldLookup
from workflows.evaluation.report import write_report
from workflows.evaluation.systems import parse_systems
from workflows.runs.question_files import AskedQuestion, draw, read_questions
from workflows.runs.run_folder import (
    EVALUATION,
    FORMAT_VERSION,
    METRICS,
    RESULTS,
    Answered,
    Row,
    Run,
    RunFolder,
    dumps,
    json_lines,
    load_run,
    writing,
)
from workflows.runs.runner import (
    Progress,
    Round,
    about_workspace,
    ask_rounds,
    check_place,
    check_untuned_since,
    workers,
)
from workflows.runtime.resources import chat_model_name, open_workspace_index
from workflows.runtime.versions import ANSWERING

TOP_K = 20
"""The number of passages that each system returns: the greatest depth of the recall reported."""

CONCURRENCY = 8
"""Questions asked side by side if a chat model on a server answers; one on this machine is asked one by one."""

_CODE = (*ANSWERING, "workflows/evaluation/ask_system.py", "workflows/evaluation/controls.py")


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


def evaluate(
    order: Order,
    progress: Progress = lambda stage, done, total: None,
    tell: Callable[[Answered], None] = lambda answered: None,
) -> Run:
    """Ask what is still to be asked, write the run's files and return them.

    A question that fails for a reason of its own is recorded as failed. One that a model or a server failed is asked
    again when the run is run again, and several of these in a row stop it.

    Args:
        order: what is to be run.
        progress: is told a system, how many questions it has answered, and how many there are.
        tell: is given each new answer, from any thread.

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
        rounds = [_round(asker, asked, folder, order.concurrency, tell) for asker in askers]
        ask_rounds(folder, rounds, progress)
        check_untuned_since(folder.settings["systems"], {system.name: system.describe() for system in systems})
        _finish(folder, rounds, order.prices, baseline)
    run = load_run(order.out)
    write_report(run)
    return run


def _round(
    asker: Asker,
    questions: Sequence[GoldQuestion],
    folder: RunFolder,
    concurrency: int | None,
    tell: Callable[[Answered], None],
) -> Round[GoldQuestion]:
    """Return the round of one system."""
    system = asker.system

    def ask(question: GoldQuestion) -> tuple[Answered, ServiceUnavailable | None]:
        answered, fault = asker.ask(question, folder.answered.get((system.name, question.asked.id)))
        tell(answered)
        return answered, fault

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
    asked = [GoldQuestion(question, found.ids) for question, found in zip(drawn, gold, strict=True)]
    lacking = {
        "unresolved_gold": sum(found.unresolved for found in gold),
        "without_gold": sum(not found.ids for found in gold),
    }
    return asked, lacking


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
