"""The trace of workflow ragenta at LangSmith: its nodes, agents and requests, described."""

from __future__ import annotations

from tests.scripted_server import ScriptedServer
from tests.trace_server import TraceServer
from tests.workflows.ragenta_world import (
    FOLLOW_UP,
    TWO_THINGS,
    MakeContext,
    quick_ragenta,
    well_behaved,
)
from tests.workflows.traced import without_timings
from workflows.context import asking

AGENTS = ("predictor", "judge", "final_predictor", "claim_judge")

LARGEST_RUN = 100_000


def test_a_question_of_two_parts_is_described_with_its_claims_and_its_follow_up(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, traces: TraceServer
) -> None:
    chat_server.script(well_behaved())
    plain = quick_ragenta.invoke(asking(TWO_THINGS), context=ragenta_settings())
    with traces.tracing():
        result = quick_ragenta.invoke(asking(TWO_THINGS), context=ragenta_settings())
    assert without_timings(result) == without_timings(plain)
    root = traces.tree()
    about = {"mara_workspace": "workspace", "mara_generation": result["generation"], "mara_mode": "hybrid"}
    steps = [step for agent in AGENTS for step in root.all(agent)]
    assert len(steps) == 2 * 3 + 2 * 2
    for described in (root, *steps, *root.all("ChatOpenAI")):
        assert about.items() <= described.metadata.items(), described.name
        assert described.tags.count("mode:hybrid") == 1, described.name
        assert described.payloads < LARGEST_RUN
    assert all(not run.error for run in root.walk())
    assert [step.outputs["coverage"] for step in root.all("claim_judge")] == ["PARTIALLY ANSWERED", "FULLY ANSWERED"]
    search = root.one("search_follow_up")
    assert search.one("rank_passages").inputs["query"] == search.inputs["question"] == FOLLOW_UP
