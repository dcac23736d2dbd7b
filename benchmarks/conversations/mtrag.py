"""Later questions of MTRAG: recall with the thread beside recall without it, and the gate beside labels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from agents.rewriter import Rewriter
from benchmarks.conversations import gate
from benchmarks.conversations.data import Task, Way, read_labels, read_tasks
from benchmarks.conversations.scoring import difference, ids_of, same_result
from graph.errors import BadInput
from graph.retrieve.modes import Mode
from workflows.context import Context, asking
from workflows.evaluation import recall_at_k
from workflows.retrieval import graph

DEPTHS = (2, 5, 10)
MODES = (Mode.MARA, Mode.HYBRID)

Results = dict[Way, list[dict[str, Any]]]


def report(folder: Path, workspace: str, model: str, *, each: bool, rewriter: Rewriter | None = None) -> Iterator[str]:
    """Ask the tasks of an MTRAG folder in a workspace of its corpus, and yield what to print.

    ``each``: the questions that the gate gets wrong are told one by one. ``rewriter`` completes questions in place of
    the model's own, or of the offline one.

    Raises:
        BadInput: the labels are not of these tasks.
    """
    tasks = read_tasks(folder)
    leaning, alone = labels_of(tasks)
    later = [task for task in tasks if task.turns and task.gold_ids]
    first = [task for task in tasks if not task.turns]
    for mode in MODES:
        settings = Context(workspace=workspace, mode=mode, model=model, top_k=max(DEPTHS))
        context = settings.with_agents(rewriter=rewriter)
        results: Results = {way: [ask(task, way, context) for task in later] for way in Way}
        yield recall_table(f"{mode}, {len(later)} later turns", results, later)
        yield told_of_rewriting(results[Way.THREAD])
        in_threads = [
            same_result(ask(task, Way.ALONE, context), ask(replace(task, turns=other.turns), Way.THREAD, context))
            for task, other in zip(first, later, strict=False)
        ]
        same = unchanged(later, results, alone)
        yield (
            f"Result unchanged: {sum(in_threads)} of {len(in_threads)} first turns in another task's thread, "
            f"{sum(same)} of {len(same)} later turns labelled to stand alone"
        )
    if each:
        yield gate.wrong(leaning, alone)
    yield gate.table("MTRAG", leaning, alone)


def labels_of(tasks: Sequence[Task]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the later questions that lean and those that stand alone, by id. Raises BadInput where labels lack."""
    ids, others = read_labels("mtrag_leaning.txt"), read_labels("mtrag_alone.txt")
    later = {task.id: task.question for task in tasks if task.turns}
    if later.keys() != ids | others:
        raise BadInput("The labels are not of these tasks", "Give the folder of the development data, mtrag_dev")
    leaning = {id_: question for id_, question in later.items() if id_ in ids}
    return leaning, {id_: question for id_, question in later.items() if id_ in others}


def ask(task: Task, way: Way, context: Context) -> dict[str, Any]:
    """Return what retrieval gives for a task, asked in one way."""
    in_front = way is Way.IN_FRONT and task.turns
    question = f"{task.turns[-1].question} {task.question}" if in_front else task.question
    turns = task.turns if way is Way.THREAD else ()
    result: dict[str, Any] = graph.invoke(asking(question, turns), context=context)
    return result


def recall_table(name: str, results: Results, tasks: Sequence[Task]) -> str:
    """Return recall for each way of asking as a Markdown table, with the differences that the thread makes."""
    recalls = {
        way: {k: [recall_at_k(ids_of(r), t.gold_ids, k) for r, t in zip(own, tasks, strict=True)] for k in DEPTHS}
        for way, own in results.items()
    }
    lines = [f"| {name} | {' | '.join(f'R@{k}' for k in DEPTHS)} |", "|---|" + "--:|" * len(DEPTHS)]
    for way, by_depth in recalls.items():
        lines.append(f"| {way} | {' | '.join(f'{fmean(by_depth[k]):.3f}' for k in DEPTHS)} |")
    for other in (Way.ALONE, Way.IN_FRONT):
        cells = [difference(recalls[Way.THREAD][k], recalls[other][k]) for k in DEPTHS]
        lines.append(f"| {Way.THREAD} above {other} | {' | '.join(cells)} |")
    return "\n".join(lines)


def told_of_rewriting(results: Sequence[dict[str, Any]]) -> str:
    """Return how many questions were completed, asked back, or completed without the model that was to do it."""
    understood = [result["understood"] for result in results if result["understood"]]
    asked_back = sum(bool(each["choices"]) for each in understood)
    fell_back = sum(any(e["kind"] == "Fallback" for e in result["errors"]) for result in results)
    return f"Completed: {len(understood)}; asked back: {asked_back}; fell back to the offline rewriter: {fell_back}"


def unchanged(tasks: Sequence[Task], results: Results, alone: Collection[str]) -> list[bool]:
    """Tell of each task that stands alone whether the thread leaves its whole result as it is."""
    pairs = zip(tasks, results[Way.ALONE], results[Way.THREAD], strict=True)
    return [same_result(one, other) for task, one, other in pairs if task.id in alone]
