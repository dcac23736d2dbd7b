"""A finished run as files for other programs: its rankings for TREC's tools, its β as training data for a manager."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from agents.manager import PASSAGE_WEIGHTS, ManagerReply, manager_messages
from graph.errors import BadInput
from graph.own_types import NO_TYPES
from graph.relations import RelationType
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT
from graph.storage.workspace import write_atomically
from workflows.evaluation.compare import METRICS, named_run
from workflows.runs.run_folder import Row, check_output, check_outside, dumps, json_lines

QRELS = "qrels"


def export_trec(run: str, out: Path) -> dict[str, Any]:
    """Write a run's rankings and gold passages into a folder, for scorers of other projects.

    ``SYSTEM.trec`` is a system's run file and ``qrels.trec`` has the gold passages, in the form of TREC, where no id
    holds white space (see `trec_id`); ``.json`` files of the same names hold them as {question: {passage: score}}, the
    form of beir.

    Args:
        run: a run's folder, or FOLDER:SYSTEM for one of its systems.
        out: a new or empty folder, outside of every workspace and run.

    Returns:
        The ``folder``, its ``files``, the number of ``questions``, of those ``without_gold``, which no scorer counts,
        and for each system those ``without_passages``, which trec_eval counts with ``-c`` alone.

    Raises:
        BadInput: there is no such run or system, or the folder cannot be written.
    """
    _check_folder(out)
    loaded, chosen = named_run(run)
    results = {name: rows for name, rows in loaded.results.items() if chosen in (None, name)}
    asked = next(iter(results.values()))
    qrels = {row["id"]: dict.fromkeys(row["gold_ids"], 1) for row in asked if row["gold_ids"]}
    files = {f"{QRELS}.trec": trec_qrels(qrels), f"{QRELS}.json": dumps(qrels)}
    for system, rows in results.items():
        rankings = {row["id"]: ranking_of(row) for row in rows}
        name = quote(system, safe="+=")
        files |= {f"{name}.trec": trec_run(rankings, system), f"{name}.json": dumps(rankings)}
    out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_atomically(out / name, text)
    return {
        "folder": str(out),
        "files": list(files),
        "questions": len(asked),
        "without_gold": len(asked) - len(qrels),
        "without_passages": {system: sum(not row["retrieved_ids"] for row in rows) for system, rows in results.items()},
    }


def ranking_of(row: Row) -> dict[str, float]:
    """Return a question's passages with their scores, which fall strictly from each to the next.

    Scorers order by score alone, trec_eval in single precision and equal ones by id. So a score that is not below the
    one before becomes the next lower number of single precision, and the order is that of the run for all of them.
    """
    falling: dict[str, float] = {}
    bound = np.float32(np.inf)
    for passage, score in zip(row["retrieved_ids"], row["retrieved_scores"], strict=True):
        bound = min(np.float32(score), np.nextafter(bound, np.float32(-np.inf)))
        falling[passage] = float(str(bound))
    return falling


def trec_run(rankings: Mapping[str, Mapping[str, float]], system: str) -> str:
    """Return a run file: question, Q0, passage, rank, score and system on each line."""
    return "".join(
        f"{trec_id(question)} Q0 {trec_id(passage)} {rank} {score!r} {trec_id(system)}\n"
        for question, ranking in rankings.items()
        for rank, (passage, score) in enumerate(ranking.items(), start=1)
    )


def trec_qrels(qrels: Mapping[str, Mapping[str, int]]) -> str:
    """Return a file of relevance judgements: question, 0, passage and relevance on each line."""
    return "".join(
        f"{trec_id(question)} 0 {trec_id(passage)} {relevance}\n"
        for question, gold in qrels.items()
        for passage, relevance in gold.items()
    )


def trec_id(text: str) -> str:
    """Return an id as one word: white space, invisible characters and % become %XX, as in an address."""
    return "".join(quote(each) if each == "%" or each.isspace() or not each.isprintable() else each for each in text)


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file", "Name a folder to export to")
    if out.exists() and any(out.iterdir()):
        raise BadInput(f"{out} is not empty", "Name a new or an empty folder to export to")
    check_outside(out / QRELS)


def export_beta(run: str, out: Path, min_recall: float = 0.0) -> dict[str, Any]:
    """Write one line of JSON for each question whose run holds a β: the manager's messages, and the outcome.

    ``messages`` are those of OpenAI's chat format for fine-tuning: the manager's prompt, the question as it is sent,
    and β as the reply. ``outcome`` holds the question's ``id``, the ``system``, ``recall@5``, ``mrr`` and ``f1``.

    Args:
        run: a run's folder, or FOLDER:SYSTEM for one of its systems.
        out: the file to write, ending in .jsonl, outside of every workspace and run.
        min_recall: recall@5 that a question needs to be written; above 0, questions without gold passages are left out.

    Returns:
        The file, and how many questions were ``written``, had no β (``without_beta``) and less recall (``below``).

    Raises:
        BadInput: there is no such run or system, none of its questions has a β, or the file cannot be one to write.
    """
    check_output(out, ".jsonl")
    loaded, system = named_run(run)
    rows = [row for name, own in loaded.results.items() if system in (None, name) for row in own]
    with_beta = [row for row in rows if row["relation_factors"]]
    if not with_beta:
        raise BadInput(f"No question of {run} has a β", "Evaluate a system that weighs relations, such as mara")
    chosen = [row for row in with_beta if not min_recall or (METRICS["recall@5"](row) or 0) >= min_recall]
    write_atomically(out, json_lines(map(training_example, chosen)))
    return {
        "file": str(out),
        "written": len(chosen),
        "without_beta": len(rows) - len(with_beta),
        "below": len(with_beta) - len(chosen),
    }


def training_example(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of results as an example to learn β from.

    The passage weight is the row's where a manager may choose it, else the usual one: with a fixed weight, what the
    manager said of it is not kept. The prompt names own relation types without their meanings, which no run keeps.
    """
    from langchain_core.messages import AIMessage, convert_to_openai_messages

    lowest, highest = PASSAGE_WEIGHTS
    weight = row["passage_weight"]
    if weight is None or not lowest <= weight <= highest:
        weight = DEFAULT_PASSAGE_WEIGHT
    reply = ManagerReply(**row["relation_factors"], passage_weight=weight)
    weighed = map(RelationType, row["relation_factors"]["entity_entity"])
    own = NO_TYPES.used([relation for relation in weighed if relation.is_own], ())
    messages = [*manager_messages(row["question"], own=own), AIMessage(reply.model_dump_json())]
    outcome = {name: METRICS[name](row) for name in ("recall@5", "mrr", "f1")}
    return {
        "messages": convert_to_openai_messages(messages),
        "outcome": {"id": row["id"], "system": row["system"], **outcome},
    }
