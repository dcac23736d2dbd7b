"""What the documentation shows of the code is what the code gives now."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from graph.errors import BadInput
from tests.docs.drawings import (
    SECTIONS,
    WORKFLOWS,
    draw_workflow,
    main,
    mermaid,
    sections_of,
    write_sections,
)
from tests.docs.pages import PAGES, ROOT, read

ARROW = re.compile(r"  (\w+) (-->|-\.{1,2}->)(?:\|\"([^\"]+)\"\|)? (\w+)$", re.MULTILINE)
MADE = {page: sections_of(read(page)) for page in PAGES if sections_of(read(page))}

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


@pytest.mark.parametrize("page", MADE, ids=lambda page: page.name)
def test_a_page_shows_the_code_as_it_is(page: Path) -> None:
    assert write_sections(read(page)) == read(page), "run `make drawings`"


def test_everything_that_is_made_from_the_code_is_shown_once() -> None:
    assert sorted(name for names in MADE.values() for name in names) == sorted(SECTIONS)


def test_every_workflow_that_is_exported_is_drawn() -> None:
    exported = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
    assert {f"workflows.{name}:graph" for name in WORKFLOWS} >= {each["path"] for each in exported.values()}


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_every_arrow_that_is_taken_on_a_condition_says_on_which(workflow: str) -> None:
    arrows = ARROW.findall(draw_workflow(workflow))
    assert any("." in shaft for _, shaft, _, _ in arrows)
    assert [arrow for arrow in arrows if ("." in arrow[1]) != bool(arrow[2])] == []


@pytest.mark.parametrize(
    ("workflow", "fallbacks"),
    [
        ("mara", {**RETRIEVING, "write_answer": "quote_passages", **CHECKING}),
        ("retrieval", RETRIEVING),
        ("ragenta", {**RETRIEVING, **JUDGING, "write_answer": "quote_passages", **CHECKING}),
    ],
)
def test_each_role_has_its_loop_and_its_fallback(workflow: str, fallbacks: dict[str, str]) -> None:
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


def test_only_what_is_between_markers_is_written_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- from the code: modes -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    main([str(page)])
    written = read(page)
    assert written == f"before\n<!-- from the code: modes -->\n\n{SECTIONS['modes']()}\n<!-- end -->\nafter\n"
    assert write_sections(written) == written


def test_a_marker_of_nothing_is_bad_input() -> None:
    with pytest.raises(BadInput, match="'nonsense'"):
        write_sections("<!-- from the code: nonsense -->\n<!-- end -->\n")
