"""The trace of a run at LangSmith: the whole tree, typed and described, small, and without vectors or keys."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from graph.errors import BadInput, ModelUnavailable
from tests.scripted_server import ScriptedServer
from tests.trace_server import TraceServer
from tests.workflows.small_world import (
    ANSWERED,
    QUESTION,
    quick_graph,
    run,
    well_behaved,
)
from tests.workflows.traced import RETRIEVAL, shape, without_timings
from workflows.answering import ask
from workflows.context import Context, asking

MakeContext = Callable[..., Context]
KEY = "sk-test-very-secret"
LARGEST_RUN = 100_000
A_VECTOR = re.compile(r"\[(-?\d+\.\d+(e-?\d+)?, ){20}")
TYPES = {
    "embed_question": "embedding",
    "search_facts": "retriever",
    "rank_passages": "retriever",
    "personalized_pagerank": "tool",
    "ChatOpenAI": "llm",
}
"""Of all runs that are no chains."""


def test_all_steps_are_typed_and_described_and_tracing_changes_no_result(
    settings: MakeContext, traces: TraceServer
) -> None:
    with traces.tracing(tags=["nightly"], metadata={"ticket": 7}):
        result = asyncio.run(quick_graph.ainvoke(asking(QUESTION), context=settings()))
    assert without_timings(result) == without_timings(quick_graph.invoke(asking(QUESTION), context=settings()))
    root = traces.tree()
    assert shape(root) == RETRIEVAL
    assert root.inputs == {"question": QUESTION}
    assert all(step.run_type == TYPES.get(step.name, "chain") for step in root.walk())
    assert all(not step.error and step.outputs for step in root.walk())
    about = {"ticket": 7, "mara_workspace": "workspace", "mara_generation": result["generation"], "mara_mode": "mara"}
    about |= {"mara_chat_model": "offline", "mara_embedding_model": "all-MiniLM-L6-v2", "mara_store": "embedded"}
    described = [step for step in root.walk() if not step.name.startswith("after_")]
    for step in described:
        assert about.items() <= step.metadata.items(), step.name
        assert {"mode:mara", "nightly"} <= {*step.tags}, step.name
        assert len(step.metadata["mara_workspace_id"]) == 32
    assert root.metadata["mara_beta"] == result["relation_factors"]
    assert root.metadata["mara_heaviest_relation"] == "TEMPORAL"
    assert root.metadata["mara_passage_weight"] == result["passage_weight"] == 1.25


def test_the_walk_is_a_tool_with_its_seeds_factors_and_best_passages(
    settings: MakeContext, traces: TraceServer
) -> None:
    with traces.tracing():
        result: Any = ask(QUESTION, settings(walk={"damping": 0.5}))
    walk = traces.tree().one("personalized_pagerank")
    assert walk.metadata["mara_beta"] == walk.inputs["relation_weights"] == result["relation_factors"]
    assert walk.metadata["mara_passage_weight"] == result["passage_weight"]
    assert walk.inputs["entity_seeds"] == result["seeds"]["entities"]
    assert walk.inputs["passage_seeds"] == result["seeds"]["passages"]
    factors, shares = walk.metadata["mara_factors"], result["relation_factors"]["entity_entity"]
    assert factors["TEMPORAL"]["from_entity"] == pytest.approx(0.3 * 5 * shares["TEMPORAL"])
    ranking = walk.outputs["output"]
    assert ranking["passages"] == [{key: hit[key] for key in ("id", "title", "score")} for hit in result["passages"]]
    assert (ranking["engine"], ranking["damping"]) == (result["walk"]["engine"], 0.5)


def test_no_vector_no_key_and_no_whole_graph_is_sent(
    settings: MakeContext, traces: TraceServer, chat_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    chat_server.script({**well_behaved(), "answerer": ["Uncited.", ANSWERED]})
    with traces.tracing():
        run(settings(mode="hipporag2"))
        run(settings())
    for root in traces.trees():
        for step in root.walk():
            text = json.dumps(step.fields)
            assert KEY not in text
            assert not A_VECTOR.search(text), step.name
            assert step.payloads < LARGEST_RUN


def test_a_question_that_fails_ends_its_trace_with_the_error(settings: MakeContext, traces: TraceServer) -> None:
    with traces.tracing(), pytest.raises(BadInput, match="nowhere"):
        quick_graph.invoke(asking(QUESTION), context=Context(workspace="nowhere"))
    with traces.tracing(), pytest.raises(ModelUnavailable):
        quick_graph.invoke(asking(QUESTION), context=settings(model="any"))
    first, second = traces.trees()
    assert "nowhere" in first.error
    assert "ModelUnavailable" in second.error
