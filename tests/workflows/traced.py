"""The common parts of the tests of traces: the tree of an answered question, and what of a result can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.trace_server import TracedRun

RETRIEVAL = {
    "encode_question": ["embed_question"],
    "retrieve_facts": ["search_facts"],
    "retrieve_passages": ["rank_passages"],
    "filter_facts": ["fact_filter"],
    "weigh_relations": ["manager"],
    "seed_graph": [],
    "walk_graph": ["personalized_pagerank"],
    "write_answer": ["answerer"],
}
"""The nodes of an answered question, and the steps within each."""


def shape(run: TracedRun) -> dict[str, list[str]]:
    """The nodes below a root, and the steps below each; LangGraph's own run of a router left out."""
    return {
        node.name: [step.name for step in node.children if not step.name.startswith("after_")] for node in run.children
    }


def without_timings(result: Mapping[str, Any]) -> dict[str, Any]:
    return {**result, "timings_ms": {}}
