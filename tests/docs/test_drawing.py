"""The drawings of the workflows are what LangGraph's own would be, without its faults."""

from __future__ import annotations

import json
import re
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from docs.site.drawings import WORKFLOWS, draw_workflow, mermaid
from tests.docs.pages import ROOT

ARROW = re.compile(r"  (\w+) (-->|-\.{1,2}->)(?:\|\"([^\"]+)\"\|)? (\w+)$", re.MULTILINE)

BRANCHES = {"filter_facts": "keep_top_facts", "weigh_relations": "neutral_relations"}
RETRIEVING = {"rewrite_question": "complete_question", **BRANCHES}
JUDGING = {
    "judge_passage_predict_answer": "judge_passage_skip_prediction",
    "judge_passage_score_passage": "judge_passage_leave_unjudged",
}
CHECKING = {"check_claims_judge_claims": "check_claims_check_words"}
"""The nodes that may run again, with their fallbacks."""


class Words(TypedDict):
    words: str


def nothing(state: Words) -> Words:
    return state


def workflow_within_another() -> str:
    """A subgraph that two nodes lead into, one of them on a condition."""
    inner = StateGraph(Words)
    for name in ("judge", "doubt"):
        inner.add_node(name, nothing)
    inner.add_edge(START, "judge")
    inner.add_conditional_edges("judge", lambda _: "", {"malformed": "judge", "given up": "doubt", "valid": END})
    inner.add_edge("doubt", END)
    outer = StateGraph(Words)
    for name in ("ask", "guess", "sum_up"):
        outer.add_node(name, nothing)
    outer.add_node("check", inner.compile())
    outer.add_edge(START, "ask")
    outer.add_conditional_edges("ask", lambda _: "", {"unknown": "guess", "answered": "check"})
    outer.add_edge("guess", "check")
    outer.add_edge("check", "sum_up")
    outer.add_edge("sum_up", END)
    return mermaid(outer.compile().get_graph(xray=True))


def small_workflow() -> str:
    """A node that may run again, its fallback, and a join."""
    builder = StateGraph(Words)
    for name in ("ask", "guess"):
        builder.add_node(name, nothing)
    builder.add_node("join", nothing, defer=True)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda _: "", {'say "again"': "ask", "give up": "guess", "fine": "join"})
    builder.add_edge("guess", "join")
    builder.add_edge("join", END)
    return mermaid(builder.compile().get_graph(xray=True))


def test_every_workflow_that_is_exported_is_drawn() -> None:
    exported = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
    assert {f"workflows.{name}:graph" for name in WORKFLOWS} >= {each["path"] for each in exported.values()}


def test_every_arrow_that_is_taken_on_a_condition_says_on_which() -> None:
    for workflow in WORKFLOWS:
        arrows = ARROW.findall(draw_workflow(workflow))
        assert any("." in shaft for _, shaft, _, _ in arrows)
        assert [arrow for arrow in arrows if ("." in arrow[1]) != bool(arrow[2])] == []


def test_each_role_has_its_loop_and_its_fallback() -> None:
    answering = {**RETRIEVING, "write_answer": "quote_passages", **CHECKING}
    for workflow, fallbacks in {"mara": answering, "retrieval": RETRIEVING, "ragenta": answering | JUDGING}.items():
        drawing = draw_workflow(workflow)
        arrows = {(source, target): label for source, _, label, target in ARROW.findall(drawing)}
        assert {source for source, target in arrows if source == target} == set(fallbacks)
        for node, fallback in fallbacks.items():
            assert arrows[node, node] == "malformed"
            assert re.search(rf'^ +{node}\["\w+"\]:::again$', drawing, re.MULTILINE)
            assert arrows[node, fallback] == "given up"
            assert re.search(rf'^ +{fallback}\["\w+"\]:::fallback$', drawing, re.MULTILINE)


def test_a_subgraph_has_a_frame_and_arrows_lead_into_it_and_out_of_it() -> None:
    lines = workflow_within_another().splitlines()
    frame = lines.index("  subgraph check")
    assert lines[frame + 1 : frame + 4] == [
        '    check_judge["judge"]:::again',
        '    check_doubt["doubt"]:::fallback',
        "  end",
    ]
    assert [line for line in lines if "check_" in line and "[" not in line] == [
        '  ask -.->|"answered"| check_judge',
        "  guess --> check_judge",
        '  check_judge -..->|"valid"| sum_up',
        '  check_judge -.->|"malformed"| check_judge',
        '  check_judge -..->|"given up"| check_doubt',
        "  check_doubt --> sum_up",
    ]


def test_only_the_branches_of_retrieval_lead_to_the_node_that_waits_for_them() -> None:
    """LangGraph by itself would draw another arrow there, from a node far behind it."""
    into = {source for source, _, _, target in ARROW.findall(draw_workflow("ragenta")) if target == "seed_graph"}
    assert into == {"retrieve_passages", *BRANCHES, *BRANCHES.values()}


def test_a_drawing_is_mermaid_in_the_order_of_the_nodes() -> None:
    assert small_workflow().splitlines() == [
        "```mermaid",
        "graph TD",
        '  __start__(["start"]):::terminal',
        '  ask["ask"]:::again',
        '  guess["guess"]:::fallback',
        '  join["join<br/>(waits for all branches)"]',
        '  __end__(["end"]):::terminal',
        "  __start__ --> ask",
        "  ask -.->|\"say 'again'\"| ask",
        '  ask -..->|"give up"| guess',
        '  ask -..->|"fine"| join',
        "  guess --> join",
        "  join --> __end__",
        "  classDef default fill:#f4f4f6,stroke:#6b6b76,color:#111",
        "  classDef again fill:#d9e8f6,stroke:#1f5f99,color:#111",
        "  classDef fallback fill:#ffe3bf,stroke:#a85b00,color:#111,stroke-dasharray:5 3",
        "  classDef terminal fill:#fff,stroke:#6b6b76,color:#111",
        "```",
    ]
