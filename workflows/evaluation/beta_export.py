"""The β of a finished run as training data: what fine-tunes a manager, with what came of each β."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.manager import PASSAGE_WEIGHTS, ManagerReply, manager_messages
from graph.errors import BadInput
from graph.own_types import NO_TYPES
from graph.relations import RelationType
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT
from graph.storage.workspace import write_atomically
from workflows.evaluation.compare import METRICS, named_run
from workflows.runs.output_files import check_output
from workflows.runs.run_folder import json_lines


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
    chosen = [row for row in with_beta if not min_recall or (METRICS["recall@5"].of(row) or 0) >= min_recall]
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
    told = weight if weight is not None and lowest <= weight <= highest else DEFAULT_PASSAGE_WEIGHT
    reply = ManagerReply(**row["relation_factors"], passage_weight=told)
    weighed = map(RelationType, row["relation_factors"]["entity_entity"])
    own = NO_TYPES.used([relation for relation in weighed if relation.is_own], ())
    messages = [*manager_messages(row["question"], own=own), AIMessage(reply.model_dump_json())]
    outcome = {name: METRICS[name].of(row) for name in ("recall@5", "mrr", "f1")}
    return {
        "messages": convert_to_openai_messages(messages),
        "outcome": {"id": row["id"], "system": row["system"], **outcome},
    }
