from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.chat.usage import Prices
from graph.errors import BadInput, ServiceUnavailable
from tests.workflows.evaluation import compared_rows
from tests.workflows.langsmith_api import KEY, LangSmithApi
from workflows.evaluation.langsmith_experiment import (
    example_of,
    outputs_of,
    push_run,
    scores_of,
)
from workflows.runs.run_folder import Run

pytestmark = pytest.mark.filterwarnings(
    "ignore:'upload_results' parameter is in beta", "ignore:The following arguments are no longer used"
)

Values = dict[str, Any]

NOW = "2026-01-01T00:00:00Z"
TENANT = "00000000-0000-0000-0000-00000000000a"
INFO = {
    "version": "0.12.0",
    "instance_flags": {"dataset_examples_multipart_enabled": True},
    "batch_ingest_config": {
        **{"use_multipart_endpoint": True, "size_limit": 100, "size_limit_bytes": 20_971_520},
        **{"scale_up_qsize_trigger": 1000, "scale_up_nthreads_limit": 4, "scale_down_nempty_trigger": 4},
    },
}


def row_of(key: str, gold: list[str], answers: list[str], **fields: Any) -> Values:
    """A row of a question that was answered with passages b and a."""
    return {
        **compared_rows.row(
            key, "b a", " ".join(gold), question="Who?", gold_answers=answers, retrieved_scores=[0.5, 0.25]
        ),
        **{"answer": "Paris [1].", "refused": False},
        "citations": [{"number": 1, "passage_id": "b", "supported": True, "gold": False}],
        **fields,
    }


def timing_of(key: str, total_ms: float | None = 12.5, unknown: int = 0) -> Values:
    tokens = {"calls": 1, "prompt_tokens": 1_000, "completion_tokens": 100, "unknown": unknown}
    return {"id": key, "total_ms": total_ms, "timings_ms": {}, "usage": tokens}


ROWS = [
    row_of("q1", ["a"], ["Paris"], em=1.0, f1=0.5),
    row_of("q2", ["b", "x"], ["London"], citations=[{"supported": False}, {"supported": False}]),
    row_of("q3", [], []),
    row_of("q4", ["a"], ["Paris"], retrieved_ids=[], answer=None, refused=None, citations=[], failed={"kind": "X"}),
]
TIMINGS = [timing_of("q1"), timing_of("q2", 7.5), timing_of("q3", unknown=1), timing_of("q4", None)]


def run_of(**results: list[Values]) -> Run:
    settings = {
        "systems": {name: {"mode": name} for name in results},
        "questions": {"file": "questions.jsonl", "asked": len(ROWS)},
        "generation": 3,
    }
    return Run(Path("run"), settings, results, dict.fromkeys(results, TIMINGS), {})


def test_the_scores_are_the_figures_of_a_row() -> None:
    assert scores_of(ROWS[0], TIMINGS[0], Prices(1.0, 10.0)) == {
        **{"recall@1": 0.0, "recall@2": 1.0, "recall@5": 1.0, "recall@10": 1.0, "recall@20": 1.0},
        **{"all_gold@2": 1.0, "all_gold@5": 1.0, "all_gold@10": 1.0},
        **{"mrr": 0.5, "em": 1.0, "f1": 0.5, "refusal_rate": 0.0, "latency_ms": 12.5, "cost": 0.002},
    }
    assert scores_of(ROWS[2], timing_of("q", unknown=1), Prices(1.0, 1.0)) == {"refusal_rate": 0.0, "latency_ms": 12.5}


class FakeLangSmith(LangSmithApi):
    """As much of LangSmith's API as an experiment asks for.

    Attributes:
        datasets: by name.
        examples: by id.
        sessions: the experiments, by id.
        runs: by id, with all that was sent of each; feedback likewise.
    """

    def __init__(self) -> None:
        super().__init__()
        self.datasets: dict[str, Values] = {}
        self.examples: dict[str, Values] = {}
        self.sessions: dict[str, Values] = {}
        self.runs: dict[str, Values] = {}
        self.feedback: dict[str, Values] = {}

    def reply(self, method: str, path: str, query: object, sent: Any) -> Any:
        path = path.removeprefix("/v1/platform")
        if path == "/info":
            return INFO
        if path == "/datasets":
            if method == "POST":
                self.datasets[sent["name"]] = {**sent, "id": str(uuid4()), "created_at": NOW}
                return self.datasets[sent["name"]]
            return list(self.datasets.values())
        if path == "/sessions" and method == "GET":
            return [{"id": str(UUID(int=1)), "tenant_id": TENANT, "start_time": NOW}]
        if path.startswith("/sessions"):
            key = path.removeprefix("/sessions").strip("/") or sent["id"]
            self.sessions.setdefault(key, {"tenant_id": TENANT, "start_time": NOW}).update(
                {name: value for name, value in sent.items() if value is not None}
            )
            return {"id": key, **self.sessions[key]}
        if path == "/examples":
            return [{"id": key, "created_at": NOW, "modified_at": NOW, **each} for key, each in self.examples.items()]
        if path.endswith("/examples"):
            self._merge(self.examples, sent)
            for example in self.examples.values():
                example["dataset_id"] = path.split("/")[-2]
            return {"example_ids": list(self.examples), "count": len(self.examples)}
        if path == "/runs/multipart":
            for name, part in sent:
                kind, _, rest = name.partition(".")
                self._merge(self.feedback if kind == "feedback" else self.runs, [(rest, part)])
            return {}
        if path == "/feedback":
            self.feedback[sent["id"]] = sent
            return {}
        raise AssertionError(f"{method} {path}")

    def _merge(self, store: dict[str, Values], parts: list[tuple[str, Any]]) -> None:
        for name, part in parts:
            key, _, field = name.partition(".")
            known = store.setdefault(key, {})
            known.update({field: part} if field else {k: v for k, v in part.items() if v is not None})


@pytest.fixture
def langsmith_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLangSmith]:
    server = FakeLangSmith()
    with server.running(monkeypatch):
        yield server


class TestUpload:
    def test_a_run_becomes_a_data_set_and_an_experiment_with_its_figures(
        self, langsmith_server: FakeLangSmith, capfd: pytest.CaptureFixture[str]
    ) -> None:
        push_run(run_of(mara=ROWS), Prices(1.0, 10.0))
        scores = sorted((each["key"], each["score"]) for each in langsmith_server.feedback.values())
        assert [score for key, score in scores if key == "recall@5"] == [0, 1 / 2, 1]
        assert [score for key, score in scores if key == "latency_ms"] == [7.5, 12.5, 12.5]
        assert langsmith_server.keys == {KEY}
        assert capfd.readouterr() == ("", "")
        [dataset] = langsmith_server.datasets.values()
        examples = {each["metadata"]["id"]: key for key, each in langsmith_server.examples.items()}
        assert examples.keys() == {row["id"] for row in ROWS}
        assert langsmith_server.examples[examples["q2"]]["outputs"] == example_of(ROWS[1])["outputs"]
        outputs = {run["reference_example_id"]: run["outputs"] for run in langsmith_server.runs.values()}
        assert outputs[examples["q2"]] == outputs_of(ROWS[1], TIMINGS[1])
        [session] = langsmith_server.sessions.values()
        assert session["reference_dataset_id"] == dataset["id"]
        assert session["extra"]["metadata"]["settings"] == {"mode": "mara"}

    def test_an_upload_needs_a_key(self) -> None:
        with pytest.raises(BadInput, match="LANGSMITH_API_KEY"):
            push_run(run_of(mara=ROWS))

    def test_a_refused_upload_or_a_part_that_does_not_arrive_is_an_error(self, langsmith_server: FakeLangSmith) -> None:
        cases = [
            ("/datasets", 401, "LANGSMITH_API_KEY"),
            ("/runs/multipart", 422, "did not take all"),
        ]
        for path, status, said in cases:
            langsmith_server.down = {path: status}
            with pytest.raises(ServiceUnavailable, match=said):
                push_run(run_of(mara=ROWS))
