"""The drawings of the workflows show every loop, fallback and condition."""

from __future__ import annotations

import json
import re

from docs.site.drawings import WORKFLOWS, draw_workflow
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


def test_only_the_branches_of_retrieval_lead_to_the_node_that_waits_for_them() -> None:
    """LangGraph by itself would draw another arrow there, from a node far behind it."""
    into = {source for source, _, _, target in ARROW.findall(draw_workflow("ragenta")) if target == "seed_graph"}
    assert into == {"retrieve_passages", *BRANCHES, *BRANCHES.values()}
