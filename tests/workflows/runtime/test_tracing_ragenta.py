"""The trace of workflow ragenta at LangSmith: each agent below its node, passage by passage, and described."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.scripted_server import ReplyLike, ScriptedServer
from tests.trace_server import TracedRun, TraceServer
from tests.workflows.ragenta_world import (
    FOLLOW_UP,
    ONE_THING,
    TWO_THINGS,
    YES_SCORE,
    MakeContext,
    checks,
    judges,
    malformed_once,
    predicts,
    quick_ragenta,
    well_behaved,
    writes,
)
from tests.workflows.traced import without_timings
from workflows.context import Context, asking

AGENTS = {
    "predict_answer": "predictor",
    "score_passage": "judge",
    "write_answer": "final_predictor",
    "judge_claims": "claim_judge",
}
"""The nodes that ask an agent, and its name as a step of the trace."""

LARGEST_RUN = 100_000


def invoke(context: Context, question: str = ONE_THING) -> Any:
    return quick_ragenta.invoke(asking(question), context=context)


Replies = Callable[[Mapping[str, Any]], ReplyLike]


def nodes_of(run: TracedRun) -> list[TracedRun]:
    """The nodes that do their work themselves, in the order in which they began; no subgraph, no router."""
    subgraphs = {"ragenta", "judge_passage", "check_claims"}
    return [
        node
        for parent in run.walk()
        if parent.name in subgraphs
        for node in parent.children
        if node.name not in subgraphs and not node.name.startswith(("after_", "to_"))
    ]


def test_each_agent_is_a_step_below_its_node_with_its_request(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, traces: TraceServer
) -> None:
    chat_server.script(well_behaved())
    with traces.tracing():
        result = asyncio.run(quick_ragenta.ainvoke(asking(ONE_THING), context=ragenta_settings()))
    root = traces.tree()
    for name, agent in AGENTS.items():
        nodes = root.all(name)
        assert len(nodes) == (2 if agent in ("predictor", "judge") else 1)
        for node in nodes:
            (step,) = (child for child in node.children if not child.name.startswith("after_"))
            assert (step.name, step.run_type) == (agent, "chain")
            assert [request.name for request in step.children] == ["ChatOpenAI"]
    assert len(root.all("ChatOpenAI")) == result["usage"]["calls"] == 6
    judged = [node for node in root.children if node.name == "judge_passage"]
    assert [node.one("predictor").inputs["documents"][0]["metadata"]["id"] for node in judged] == [
        hit["id"] for hit in result["passages"]
    ]
    for node, record in zip(judged, sorted(result["judgements"], key=lambda each: each["number"]), strict=True):
        judge = node.one("judge")
        assert judge.inputs["prediction"] == node.one("predictor").outputs["prediction"] == record["prediction"]
        assert judge.outputs == {"score": record["score"], "judged_by": "logprobs"}
    assert judged[0].one("judge").outputs["score"] == pytest.approx(YES_SCORE)


def test_a_question_of_two_parts_is_described_with_its_claims_and_its_follow_up(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, traces: TraceServer
) -> None:
    chat_server.script(well_behaved())
    plain = invoke(ragenta_settings(), TWO_THINGS)
    with traces.tracing():
        result = invoke(ragenta_settings(), TWO_THINGS)
    assert without_timings(result) == without_timings(plain)
    root = traces.tree()
    about = {"mara_workspace": "workspace", "mara_generation": result["generation"], "mara_mode": "hybrid"}
    steps = [step for agent in AGENTS.values() for step in root.all(agent)]
    assert len(steps) == 2 * 3 + 2 * 2
    for described in (root, *nodes_of(root), *steps, *root.all("ChatOpenAI")):
        assert about.items() <= described.metadata.items(), described.name
        assert described.tags.count("mode:hybrid") == 1, described.name
        assert described.payloads < LARGEST_RUN
    assert all(not run.error for run in root.walk())
    first, second = root.all("claim_judge")
    assert [claim["cited"] for claim in first.inputs["claims"]] == [[1]]
    assert (first.outputs["coverage"], first.outputs["follow_ups"]) == ("PARTIALLY ANSWERED", [FOLLOW_UP])
    assert (second.outputs["coverage"], second.outputs["follow_ups"]) == ("FULLY ANSWERED", [])
    drafts = [step.inputs.get("draft") for step in root.all("final_predictor")]
    assert drafts == [None, "The Tarn Dam was built by Ada Brandt [1]."]
    search = root.one("search_follow_up")
    assert search.one("rank_passages").inputs["query"] == search.inputs["question"] == FOLLOW_UP


@pytest.mark.parametrize(
    ("node", "proper"),
    [("score_passage", judges), ("judge_claims", checks), ("predict_answer", predicts), ("write_answer", writes)],
)
@pytest.mark.slow
def test_a_malformed_reply_is_the_steps_error_and_the_next_attempt_a_sibling(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, traces: TraceServer, node: str, proper: Replies
) -> None:
    agent = AGENTS[node]
    refused = "<think>So" if agent == "predictor" else "It cites nothing."
    chat_server.script({**well_behaved(), agent.replace("_", " "): malformed_once(proper, refused)})
    with traces.tracing():
        invoke(ragenta_settings())
    root = traces.tree()
    again = [run for run in root.walk() if [child.name for child in run.children].count(node) == 2]
    assert len(again) == (2 if agent in ("predictor", "judge") else 1)
    for parent in again:
        first, second = (child.one(agent) for child in parent.children if child.name == node)
        assert first.error.startswith("MalformedReply")
        assert first.outputs == {"reply": refused}
        assert (first.metadata["mara_attempt"], second.metadata["mara_attempt"]) == (1, 2)
        assert not second.error
    assert not root.error
