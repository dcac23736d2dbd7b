"""A finished run as experiments at LangSmith: its questions, its outputs and its measures as feedback."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from agents.answers.citations import strip_citations
from agents.chat.usage import Prices
from graph.endpoints.address import censored
from graph.environment import environment
from graph.errors import BadInput, ServiceUnavailable
from graph.schema import stable_id
from workflows.evaluation import ALL_GOLD_DEPTHS, DEPTHS, exact_match, mean, token_f1
from workflows.evaluation.compare import METRICS
from workflows.evaluation.runner import ABOUT_RUN
from workflows.runtime.trace_delivery import langsmith_endpoint
from workflows.states.records import usage_of

if TYPE_CHECKING:
    from langsmith import Client
    from langsmith.evaluation._runner import ExperimentResults
    from langsmith.schemas import Example

    from workflows.runs.run_folder import Row, Run

Values = dict[str, Any]
Scores = dict[str, Any]
Measure = Callable[[Values, Values], float | None]
Evaluator = Callable[[Values, Values], Scores]
Target = Callable[..., Values]

_FLUSH_S = 60.0
_SENT_AT_ONCE = 16
_FAILED = {"output": None}  # what LangSmith gives as the outputs of a target that raised an error
_RETRIEVED = ("retrieved_ids", "retrieved_scores", "ranked_by", "relation_factors", "passage_weight", "fact_outcome")
_OF_RANKING = (*(f"recall@{k}" for k in DEPTHS), *(f"all_gold@{k}" for k in ALL_GOLD_DEPTHS), "mrr")
_ANSWERED = ("answer", "refused", "citations")


def langsmith_key() -> str:
    """Return the key for an upload. Raises BadInput where none is set."""
    key = environment().langsmith_key
    if not key:
        raise BadInput("LangSmith needs a key", "Set LANGSMITH_API_KEY; without it the run stays in its folder, whole")
    return key


def evaluators(prices: Prices | None = None) -> list[Evaluator]:
    """Return the evaluators of one question, as ``langsmith.evaluate`` takes them.

    They read the outputs ``retrieved_ids``, ``answer``, ``refused``, ``total_ms`` and ``tokens``, and the reference
    outputs ``gold_ids`` and ``answers``, as `outputs_of` and `example_of` make them. Where what a figure needs is
    missing, there is no feedback; a target that failed found nothing and has nothing right.

    The keys are the words of ``metrics.json``: ``recall@1`` … ``recall@20``, ``all_gold@2`` … ``all_gold@10``, ``mrr``
    (of one question the reciprocal rank), ``em``, ``f1``, ``refusal_rate`` (1 for a refusal), ``latency_ms`` and, with
    prices, ``cost``. Their means over questions are the figures there; of ``cost`` it is the sum.
    """
    measures = {name: _of_metric(name.replace("_", "-")) for name in _OF_RANKING}
    measures["em"], measures["f1"] = _of_answer(exact_match), _of_answer(token_f1)
    measures["refusal_rate"] = lambda outputs, _: _number(outputs.get("refused"))
    measures["latency_ms"] = lambda outputs, _: _number(outputs.get("total_ms"))
    if prices is not None:
        measures["cost"] = lambda outputs, _: (
            prices.cost_of(usage_of(outputs["usage"])) if outputs.get("usage") else None
        )
    return [_evaluator(key, measure) for key, measure in measures.items()]


def summary_citation_support(outputs: list[Values], reference_outputs: list[Values]) -> Scores:
    """Return the citation support rate over all citations of an experiment: no mean over questions gives it."""
    citations = [citation for values in outputs for citation in (values or {}).get("citations") or ()]
    score = mean(float(citation["supported"]) for citation in citations)
    return _feedback("citation_support_rate", score)


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
    """Return a question's rows of results.jsonl and timings.jsonl as the outputs that the evaluators read."""
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
    dataset = f"mara {Path(run.settings['questions']['file']).stem} {_digest(rows)}"
    refused: list[Exception] = []
    summaries: list[Any] = [summary_citation_support]
    with _client(refused) as client:
        # LangSmith prints its own progress, which would stand between the lines of ours and of --json.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            results = evaluate(
                _replay(rows, run.timings[system]),
                data=_stored_examples(client, rows, dataset),
                evaluators=evaluators(prices),
                summary_evaluators=summaries,
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


def _replay(results: Sequence[Row], timings: Sequence[Row]) -> Target:
    outputs = {row["id"]: outputs_of(row, timing) for row, timing in zip(results, timings, strict=True)}

    def replay(inputs: Values, metadata: Values) -> Values:
        return outputs[metadata["id"]]

    return replay


def _about(run: Run, system: str) -> Values:
    about = {key: run.settings[key] for key in ABOUT_RUN if key in run.settings}
    return {"system": system, "settings": run.settings["systems"][system], **about}


def _of_metric(name: str) -> Measure:
    def of_outputs(outputs: Values, reference: Values) -> float | None:
        retrieved = outputs.get("retrieved_ids") if outputs else []
        row = {"gold_ids": reference.get("gold_ids"), "retrieved_ids": retrieved}
        return None if retrieved is None else METRICS[name](row)

    return of_outputs


def _of_answer(measure: Callable[[str, Sequence[str]], float]) -> Measure:
    """A refusal is never right, whatever words it shares with the gold."""

    def of_outputs(outputs: Values, reference: Values) -> float | None:
        golds = reference.get("answers")
        if not golds or (outputs and "answer" not in outputs):
            return None
        answer = outputs.get("answer")
        return 0.0 if answer is None or outputs.get("refused") else measure(strip_citations(answer), golds)

    return of_outputs


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _evaluator(key: str, measure: Measure) -> Evaluator:
    def evaluate(outputs: Values, reference_outputs: Values) -> Scores:
        return _feedback(key, measure({} if outputs == _FAILED else outputs, reference_outputs))

    evaluate.__name__ = key
    return evaluate


def _feedback(key: str, score: float | None) -> Scores:
    return {"results": []} if score is None else {"key": key, "score": score}


def _stored_examples(client: Client, rows: Sequence[Mapping[str, Any]], name: str) -> list[Example]:
    """Return the questions as LangSmith's examples; the data set and what it lacks are made."""
    if client.has_dataset(dataset_name=name):
        place = client.read_dataset(dataset_name=name).id
    else:
        place = client.create_dataset(name, description="Questions with answers and gold passages, by mara").id
    stored = {example.id for example in client.list_examples(dataset_id=place)}
    missing = [row for row in rows if _example_id(place, row) not in stored]
    if missing:
        client.create_examples(dataset_id=place, examples=[_new_example(place, row) for row in missing])
    return list(client.list_examples(dataset_id=place))


def _new_example(place: UUID, row: Mapping[str, Any]) -> Values:
    example = example_of(row)
    return {"id": _example_id(place, row), "reference_outputs": example.pop("outputs"), **example}


def _example_id(place: UUID, row: Mapping[str, Any]) -> UUID:
    return uuid5(place, row["id"])


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

    class Noting(Client):
        def create_feedback(self, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().create_feedback(*args, **kwargs)
            except Exception as fault:
                refused.append(fault)
                raise

    client = Noting(langsmith_endpoint(), api_key=langsmith_key(), tracing_error_callback=refused.append)
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
