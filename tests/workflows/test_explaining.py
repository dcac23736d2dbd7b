"""An explanation tells of exactly the walk that answered, adds up, and shows nothing that the run's filter hides."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.schema import RelationFactors
from tests.builders import HashEmbedder
from tests.workflows.explanations import PRPACK, check_it_adds_up, check_it_is_the_walk, explained
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import run
from tests.workflows.workspaces import VELM, Indexer
from workflows.context import Context
from workflows.evaluation.ask_system import FixedManager
from workflows.explaining import explain
from workflows.explanation.model import Explanation
from workflows.runtime.resources import close_indexes

WALKS: tuple[dict[str, Any], ...] = (
    {},
    {"mode": "hipporag2"},
    {"mode": "mara-matrix"},
    {"engine": "push"},
    {"engine": "igraph"},
    {"passage_seeds": 0},
    {"damping": 0.0},
)


@pytest.fixture(scope="module")
def plain(small_workspace: Path) -> tuple[dict[str, Any], Explanation]:
    """A result of the default settings, and its explanation."""
    return explained(Context(workspace=str(small_workspace)))


def check_its_paths_are_made_of_what_is_shown(explanation: Explanation) -> None:
    nodes, edges = {node.id: node for node in explanation.nodes}, {edge.id: edge for edge in explanation.edges}
    assert explanation.paths
    assert explanation.damping is not None
    for path in explanation.paths:
        here, mass = path.seed, nodes[path.seed].restart[-1]
        for step in path.steps:
            edge = edges[step.edge]
            assert (step.from_node, {edge.source, edge.target}) == (here, {here, step.to})
            assert step.predicate in edge.predicates or not step.predicate
            here, mass = step.to, mass * explanation.damping * step.share
        assert here == path.passage
        assert path.mass == pytest.approx(mass)
        assert path.mass <= nodes[path.passage].mass[-1]


def test_its_masses_are_the_runs_scores_and_add_up_and_its_paths_are_made_of_what_is_shown(
    settings: MakeContext,
) -> None:
    for changes in WALKS:
        result, explanation = explained(settings(**changes), max_nodes=12)
        assert result["ranked_by"] == "walk", changes
        check_it_is_the_walk(explanation, result)
        check_it_adds_up(explanation)
        check_its_paths_are_made_of_what_is_shown(explain(result, settings(**changes), max_nodes=2))
        if "engine" in changes:
            assert explanation.walk is not None
            assert explanation.walk["engine"] == changes["engine"], "though PRPACK walks again"


def test_without_beta_its_masses_are_those_of_a_run_whose_relations_weigh_alike(
    settings: MakeContext, plain: tuple[dict[str, Any], Explanation]
) -> None:
    explanation = plain[1]
    assert explanation.stops == ("without β", "with β")
    alike = explained(settings().with_agents(manager=FixedManager(RelationFactors.uniform())))[1]
    masses = {node.ref: node.mass[-1] for node in alike.nodes}
    for node in explanation.nodes:
        assert masses.get(node.ref, node.mass[0]) == pytest.approx(node.mass[0], abs=PRPACK)


class TestRefused:
    def test_a_context_of_another_mode_or_of_another_walk_and_a_result_of_another_workspace(
        self, settings: MakeContext, plain: tuple[dict[str, Any], Explanation]
    ) -> None:
        result = plain[0]
        with pytest.raises(BadInput, match="of mode mara, the context of hipporag2"):
            explain(result, settings(mode="hipporag2"))
        for changes in ({"title_edges": False}, {"directed": False}, {"preset": "seed"}):
            with pytest.raises(BadInput, match="other settings"):
                explain(result, settings(**changes))
        elsewhere = [{**hit, "id": f"{hit['id']} elsewhere"} for hit in result["passages"]]
        with pytest.raises(BadInput, match="outside this workspace"):
            explain({**result, "passages": elsewhere}, settings())

    def test_what_lacks_a_part_is_refused_by_name(
        self, settings: MakeContext, plain: tuple[dict[str, Any], Explanation]
    ) -> None:
        spoilt: list[tuple[Callable[[Any], Any], str]] = [
            (lambda result: result.pop("question"), "lacks question"),
            (lambda result: result.update(passages=[]), "outside this workspace"),
        ]
        for spoil, reason in spoilt:
            result = copy.deepcopy(plain[0])
            spoil(result)
            with pytest.raises(BadInput, match=reason):
                explain(result, settings())

    def test_a_generation_that_is_gone(self, root: Path, index: Indexer, embedder: HashEmbedder) -> None:
        index([VELM])
        context = Context(workspace=str(root))
        result = run(context, "Where does the Velm flow?").result
        assert explain(result, context).generation == result["generation"]
        close_indexes()
        index([{"id": "new", "title": "New", "text": "A new passage."}])
        with pytest.raises(BadInput, match="went from generation"):
            explain(result, context)
        close_indexes()
