"""A finished run as experiments at LangSmith: its questions, its outputs and its measures as feedback."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from agents.chat.usage import Prices
from graph.endpoints.address import censored
from graph.environment import environment
from graph.errors import BadInput, ServiceUnavailable
from graph.schema import stable_id
from workflows.evaluation import ALL_GOLD_DEPTHS, DEPTHS
from workflows.evaluation.compare import METRICS
from workflows.evaluation.runner import ABOUT_RUN
from workflows.runtime.trace_delivery import langsmith_endpoint
from workflows.states.records import usage_of

if TYPE_CHECKING:
    from langsmith import Client
    from langsmith.evaluation._runner import ExperimentResults
    from langsmith.schemas import Example

    from workflows.runs.run_folder import Run

Values = dict[str, Any]

_FLUSH_S = 60.0
_SENT_AT_ONCE = 16
_RETRIEVED = ("retrieved_ids", "retrieved_scores", "ranked_by", "relation_factors", "passage_weight", "fact_outcome")
_SCORED = (*(f"recall@{k}" for k in DEPTHS), *(f"all-gold@{k}" for k in ALL_GOLD_DEPTHS), "mrr", "em", "f1")
_ANSWERED = ("answer", "refused", "citations")


def langsmith_key() -> str:
    """Return the key for an upload. Raises BadInput where none is set."""
    key = environment().langsmith_key
    if not key:
        raise BadInput("LangSmith needs a key", "Set LANGSMITH_API_KEY; without it the run stays in its folder, whole")
    return key


def scores_of(row: Mapping[str, Any], timing: Mapping[str, Any], prices: Prices | None = None) -> dict[str, float]:
    """Return the figures of a question, by the words of ``metrics.json``; those that nothing was measured for are out.

    Their means over questions are the figures there; of ``cost`` it is the sum.
    """
    scores = {name.replace("all-gold", "all_gold"): METRICS[name](row) for name in _SCORED}
    scores["refusal_rate"], scores["latency_ms"] = row["refused"], timing["total_ms"]
    if prices is not None:
        scores["cost"] = prices.cost_of(usage_of(timing["usage"]))
    return {key: float(value) for key, value in scores.items() if value is not None}


def example_of(row: Mapping[str, Any]) -> Values:
    """Return a question as LangSmith keeps it: its inputs, reference outputs and metadata.

    Args:
        row: with ``id``, ``question``, ``gold_ids``, ``gold_answers``, ``type`` and ``hops``, as one of results.jsonl.
    """
    return {
        "inputs": {"question": row["question"]},
        "outputs": {"answers": list(row["gold_answers"]), "gold_ids": list(row["gold_ids"])},
        "metadata": {key: row[key] for key in ("id", "type", "hops")},
    }


def outputs_of(result: Mapping[str, Any], timing: Mapping[str, Any]) -> Values:
    """Return a question's rows of results.jsonl and timings.jsonl as the outputs of an experiment."""
    answered = () if result["workflow"] == "retrieval" else _ANSWERED
    outputs = {key: result[key] for key in (*_RETRIEVED, *answered, "errors", "failed")}
    return {**outputs, "total_ms": timing["total_ms"], "usage": timing["usage"]}


def push_run(run: Run, prices: Prices | None = None) -> dict[str, ExperimentResults]:
    """Send a finished run to LangSmith, one experiment for each system, without asking anything again.

    The questions become a data set that is named for them, where there is none yet. LangSmith's client tells the state
    of the git repository it runs in.

    Args:
        run: with at least one question.
        prices: of tokens.

    Returns:
        What ``langsmith.evaluate`` returns, by system.

    Raises:
        BadInput: there is no ``LANGSMITH_API_KEY``, or the address cannot be read.
        ServiceUnavailable: LangSmith refused the upload, or did not take all of it.
    """
    return {system: _push_system(run, system, prices) for system in run.results}


def _push_system(run: Run, system: str, prices: Prices | None) -> ExperimentResults:
    from langsmith.evaluation import evaluate

    rows = run.results[system]
    timed = {row["id"]: (row, timing) for row, timing in zip(rows, run.timings[system], strict=True)}

    def replay(inputs: Values, metadata: Values) -> Values:
        return outputs_of(*timed[metadata["id"]])

    def figures(example: Example) -> Values:
        scores = scores_of(*timed[(example.metadata or {})["id"]], prices)
        return {"results": [{"key": key, "score": score} for key, score in scores.items()]}

    evaluators: list[Any] = [figures]
    dataset = f"mara {Path(run.settings['questions']['file']).stem} {_digest(rows)}"
    refused: list[Exception] = []
    with _client(refused) as client:
        # LangSmith prints its own progress, which would stand between the lines of ours and of --json.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            results = evaluate(
                replay,
                data=_stored_examples(client, rows, dataset),
                evaluators=evaluators,
                metadata=_about(run, system),
                experiment_prefix=system,
                max_concurrency=_SENT_AT_ONCE,
                client=client,
                disable_evaluator_tracing=True,
            )
            results.wait()
        begun = monotonic()
        client.flush(timeout=_FLUSH_S)
        if monotonic() - begun >= _FLUSH_S:
            refused.append(TimeoutError(f"not sent within {_FLUSH_S:g} s"))
    if refused:
        raise ServiceUnavailable(
            f"LangSmith did not take all of {system} ({censored(str(refused[0]))})", "Push it once more"
        )
    return results


def _about(run: Run, system: str) -> Values:
    about = {key: run.settings[key] for key in ABOUT_RUN if key in run.settings}
    return {"system": system, "settings": run.settings["systems"][system], **about}


def _stored_examples(client: Client, rows: Sequence[Mapping[str, Any]], name: str) -> list[Example]:
    """Return the questions as LangSmith's examples; the data set and what it lacks are made."""
    if client.has_dataset(dataset_name=name):
        place = client.read_dataset(dataset_name=name).id
    else:
        place = client.create_dataset(name, description="Questions with answers and gold passages, by mara").id
    stored = {example.id for example in client.list_examples(dataset_id=place)}
    missing = [row for row in rows if uuid5(place, row["id"]) not in stored]
    if missing:
        client.create_examples(dataset_id=place, examples=[_new_example(place, row) for row in missing])
    return list(client.list_examples(dataset_id=place))


def _new_example(place: UUID, row: Mapping[str, Any]) -> Values:
    example = example_of(row)
    return {"id": uuid5(place, row["id"]), "reference_outputs": example.pop("outputs"), **example}


def _digest(rows: Sequence[Mapping[str, Any]]) -> str:
    return stable_id("set", json.dumps([example_of(row) for row in rows], sort_keys=True))


@contextlib.contextmanager
def _client(refused: list[Exception]) -> Iterator[Client]:
    """Lend a client made from the environment.

    Args:
        refused: takes what could not be sent in the background, which LangSmith's client would log alone.

    Raises:
        BadInput: there is no key, or the address cannot be read.
        ServiceUnavailable: LangSmith refused a request within the block.
    """
    from langsmith import Client, LangsmithError
    from langsmith.utils import LangSmithError
    from pydantic import ValidationError
    from requests import RequestException

    client = Client(langsmith_endpoint(), api_key=langsmith_key(), tracing_error_callback=refused.append)
    try:
        yield client
    except (LangSmithError, LangsmithError, RequestException, ValidationError) as fault:
        # Of a failed connection LangSmith's client tells parts of the key, after all that helps.
        reason = " ".join(censored(str(fault).partition("\nContent-Length")[0]).split())[:300] or type(fault).__name__
        raise ServiceUnavailable(
            f"LangSmith did not take the experiment ({reason})", "Check LANGSMITH_API_KEY and LANGSMITH_ENDPOINT"
        ) from fault
    finally:
        client.close(timeout=0)
