"""An explanation tells of exactly the walk that answered, adds up, and shows nothing that the run's filter hides."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from graph.schema import ENTITY_RELATIONS, RelationFactors, RelationType
from graph.walk.strengths import TUNED_RELATIONS, UNTUNED, adopt
from tests.builders import HashEmbedder
from tests.workflows.explanations import PRPACK, check_it_adds_up, check_it_is_the_walk, explained
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import QUESTION, run
from tests.workflows.workspaces import VELM, Indexer
from workflows import retrieval
from workflows.context import Context
from workflows.evaluation.ask_system import FixedManager
from workflows.explaining import LEAST_NODES, MOST_NODES, explain, write_explanation
from workflows.explanation.model import Explanation
from workflows.explanation.model import Path as PathOfMass
from workflows.runtime.resources import close_indexes

WALKS: tuple[dict[str, Any], ...] = (
    {},
    {"preset": "seed"},
    {"mode": "hipporag2"},
    {"mode": "mara-matrix"},
    {"engine": "matrix"},
    {"engine": "push"},
    {"engine": "igraph"},
    {"weigh_relations": False},
    {"passage_seeds": 0},
    {"damping": 0.0},
)

STRONG_FACTS = replace(
    UNTUNED,
    strengths={**dict.fromkeys(TUNED_RELATIONS, 1.0), RelationType.TEMPORAL: 4.0, RelationType.PRIMARY: 0.25},
    parent=0,
    recall_before=0.5,
    recall_after=0.6,
)


@pytest.fixture(scope="module")
def plain(small_workspace: Path) -> tuple[dict[str, Any], Explanation]:
    """A result of the default settings, and its explanation."""
    return explained(Context(workspace=str(small_workspace)))


def over_facts(path: PathOfMass) -> bool:
    return any(step.relation in ENTITY_RELATIONS for step in path.steps)


def strengths(explanation: Explanation) -> list[tuple[float, str]]:
    return [(stop.strength, stop.label) for stop in explanation.stops]


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
        check_its_paths_are_made_of_what_is_shown(explain(result, settings(**changes), max_nodes=LEAST_NODES))
        if "engine" in changes:
            assert explanation.walk is not None
            assert explanation.walk.engine == changes["engine"], "though PRPACK walks again"


def test_where_the_heaviest_paths_take_no_fact_one_that_does_is_told_last(
    plain: tuple[dict[str, Any], Explanation],
) -> None:
    paths = plain[1].paths
    assert [(path.number, over_facts(path)) for path in paths] == [
        *((1, False), (1, False), (1, False), (1, True)),
        *((2, False), (2, False), (2, False), (2, True)),
    ]
    assert paths[-1].words.startswith("Lake Sund —has on its shore the town of (ATTRIBUTION, 0.02)→ Marn")


class TestStops:
    def test_beta_comes_in_by_quarters_of_its_strength(
        self, settings: MakeContext, plain: tuple[dict[str, Any], Explanation]
    ) -> None:
        explanation = plain[1]
        between = [(0.25, "25 % of β"), (0.5, "50 % of β"), (0.75, "75 % of β")]
        assert strengths(explanation) == [(0.0, "without β"), *between, (1.0, "with β")]
        assert explanation.beta is not None
        uniform = RelationFactors.uniform()

        def quarter_of(beta: Mapping[str, float], even: Mapping[str, float]) -> dict[str, float]:
            return {name: 0.75 * share + 0.25 * beta[name] for name, share in even.items()}

        quarter = RelationFactors(
            quarter_of(explanation.beta.entity_entity, uniform.entity_entity),
            quarter_of(explanation.beta.entity_passage, uniform.entity_passage),
        )
        for stop, beta in ((0, uniform), (1, quarter)):
            other = explained(settings().with_agents(manager=FixedManager(beta)))[1]
            masses = {node.ref: node.mass[-1] for node in other.nodes}
            for node in explanation.nodes:
                assert masses.get(node.ref, node.mass[stop]) == pytest.approx(node.mass[stop], abs=PRPACK)

    def test_where_beta_is_taken_as_it_is_it_is_in_or_out_or_compared_with_nothing(self, settings: MakeContext) -> None:
        in_or_out, nothing = [(0.0, "without β"), (1.0, "with β")], [(1.0, "as walked")]
        cases: list[tuple[dict[str, Any], list[tuple[float, str]]]] = [
            ({"preset": "seed"}, in_or_out),
            ({"mode": "mara-matrix"}, in_or_out),
            ({"mode": "hipporag2"}, nothing),
            ({"weigh_relations": False}, nothing),
        ]
        for changes, stops in cases:
            assert strengths(explained(settings(**changes))[1]) == stops, changes

    def test_ranks_are_those_of_each_walk(self, plain: tuple[dict[str, Any], Explanation]) -> None:
        result, explanation = plain
        ranks = {node.ref: node.rank for node in explanation.nodes}
        assert [ranks[hit["id"]][-1] for hit in result["passages"]] == [*range(1, 11)]  # type: ignore[index]
        assert {node.rank for node in explanation.nodes if node.kind == "entity"} == {None}


def test_the_tuned_strengths_of_the_run_hold_even_where_others_came_since(
    small_workspace: Path, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(small_workspace, tmp_path / "workspace"))
    context = Context(workspace=str(root))
    adopt(root, STRONG_FACTS)
    result = run(context).result
    adopt(root, replace(STRONG_FACTS, strengths=UNTUNED.strengths, parent=1))
    explanation = explain(result, context)
    assert result["tuning"] == 1
    check_it_is_the_walk(explanation, result)
    check_it_adds_up(explanation)
    close_indexes()


class TestContent:
    def test_everything_of_the_result_that_a_reader_asks_for_as_plain_json(
        self, plain: tuple[dict[str, Any], Explanation]
    ) -> None:
        result, explanation = plain
        assert explanation.workspace == "workspace"
        for name in ("question", "answer", "mode", "ranked_by", "generation", "fact_outcome", "passage_weight"):
            assert getattr(explanation, name) == result[name]
        content = explanation.to_json()
        assert (content["models"], content["citations"]) == (result["models"], result["citations"])
        assert [fact["predicate"] for fact in content["facts"]] == [hit["predicate"] for hit in result["facts"]]
        assert content["beta"]["entity_entity"] == pytest.approx(result["relation_factors"]["entity_entity"])
        assert list(content) == [
            *("question", "answer", "mode", "ranked_by", "workspace", "generation", "models", "citations", "facts"),
            *("fact_outcome", "beta", "passage_weight", "damping", "stops", "nodes", "edges", "paths", "anchors"),
            *("shown", "walk", "own_relations", "why"),
        ]
        step = ("from", "to", "edge", "predicate", "relation", "reversed", "share")
        assert tuple(content["paths"][-1]["steps"][-1]) == step
        assert json.loads(json.dumps(content, allow_nan=False)) == content

    def test_anchors_tell_what_of_a_passages_mass_began_at_each_entity(
        self, settings: MakeContext, plain: tuple[dict[str, Any], Explanation]
    ) -> None:
        result, explanation = plain
        nodes = {node.ref: node.id for node in explanation.nodes}
        seeds = {seed["id"]: seed["weight"] for seed in result["seeds"]["entities"]}
        whole = sum(seeds.values()) + sum(seed["weight"] for seed in result["seeds"]["passages"])
        assert sum(anchor.share for anchor in explanation.anchors) == pytest.approx(sum(seeds.values()) / whole)
        assert explanation.anchors[0].share == pytest.approx(max(seeds.values()) / whole)
        parts = [sum(each.brought[nodes[hit["id"]]] for each in explanation.anchors) for hit in result["passages"]]
        assert min(parts) >= 0
        assert 0 < max(parts) <= 1
        assert explained(settings(walk={"convergence": 0.0}))[1].anchors == ()

    def test_what_is_cited_returned_and_seeded_is_shown_whatever_the_limit_and_more_nodes_show_more(
        self, settings: MakeContext, plain: tuple[dict[str, Any], Explanation]
    ) -> None:
        result = plain[0]
        small, large = (explain(result, settings(), max_nodes=n) for n in (LEAST_NODES, MOST_NODES))
        refs = {node.ref for node in small.nodes}
        assert {hit["id"] for hit in (*result["passages"], *result["seeds"]["entities"])} <= refs
        numbers = {node.ref: node.number for node in small.nodes if node.number}
        assert numbers == {mark["passage_id"]: mark["number"] for mark in result["citations"]}
        assert small.shown.nodes < large.shown.nodes <= large.shown.of_nodes
        assert 0 < small.shown.inflow < large.shown.inflow == pytest.approx(1)
        ids = {node.id: node.label for node in large.nodes}
        [founded] = [edge for edge in large.edges if "founded in" in edge.predicates]
        assert (ids[founded.source], ids[founded.target], founded.link) == ("Marn", "1203", None)

    def test_a_result_of_the_retrieval_workflow_is_explained_by_its_best_passage(self, settings: MakeContext) -> None:
        result = run(settings(), graph=retrieval.graph).result
        explanation = explain(result, settings())
        assert (explanation.answer, explanation.citations) == ("", ())
        best = next(node.id for node in explanation.nodes if node.ref == result["passages"][0]["id"])
        assert {path.passage for path in explanation.paths} == {best}
        heaviest = [path for path in explanation.paths if not over_facts(path)]
        assert len({path.seed for path in heaviest}) == len(heaviest) <= 3
        assert len(explanation.paths) <= 4

    def test_without_a_walk_there_are_the_passages_alone(self, settings: MakeContext) -> None:
        for mode in [mode for mode in Mode if not mode.walks]:
            result, explanation = explained(settings(mode=mode))
            first = min(result["citations"], key=lambda mark: mark["number"])
            assert explanation.nodes[0].ref == first["passage_id"], mode
            assert {node.ref for node in explanation.nodes} == {hit["id"] for hit in result["passages"]}
            assert (explanation.stops, explanation.edges, explanation.paths) == ((), (), ())
            assert (explanation.walk, explanation.beta, explanation.damping) == (None, None, None)
            assert {(node.mass, node.rank) for node in explanation.nodes} == {((), ())}


class TestRefused:
    def test_results_and_numbers_of_nodes_that_cannot_be_shown(self, settings: MakeContext) -> None:
        for result in ({}, {"question": "?"}, None, [1]):
            with pytest.raises(BadInput, match="no result of a question"):
                explain(result, settings())  # type: ignore[arg-type]
        for n in (-1, 0, 1, 2001):
            with pytest.raises(BadInput, match="2 to 2000"):
                explain({}, settings(), max_nodes=n)

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
            (lambda result: result["passages"][0].pop("score"), r"passages\.0\.score is missing"),
            (lambda result: result["facts"][0].pop("kept"), r"facts\.0\.kept is missing"),
            (lambda result: result["seeds"]["entities"][0].pop("weight"), r"seeds\.entities\.0\.weight is missing"),
            (lambda result: result.update(models="x"), "models"),
            (lambda result: result.update(generation="3"), "generation has to be a whole number"),
            (lambda result: result.pop("question"), "lacks question"),
            (lambda result: result.update(passages=[]), "outside this workspace"),
        ]
        for spoil, reason in spoilt:
            result = copy.deepcopy(plain[0])
            spoil(result)
            with pytest.raises(BadInput, match=reason):
                explain(result, settings())

    def test_but_not_what_holds_more_or_was_stored_without_times_and_errors(
        self, settings: MakeContext, plain: tuple[dict[str, Any], Explanation]
    ) -> None:
        result, explanation = plain
        more = copy.deepcopy(result)
        more["citations"][0]["note"] = "mine"
        stored = {key: value for key, value in more.items() if key not in ("timings_ms", "errors")}
        assert explain(stored, settings()) == explanation

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


def test_it_is_written_as_one_file_or_refused_by_its_name(
    plain: tuple[dict[str, Any], Explanation], tmp_path: Path
) -> None:
    explanation = plain[1]
    for name in ("out", "out.pdf", ".html"):
        with pytest.raises(BadInput, match=r"End the name in \.html, \.json, \.graphml"):
            write_explanation(explanation, tmp_path / name)
    with pytest.raises(BadInput, match="cannot be written"):
        write_explanation(explanation, tmp_path / "missing" / "out.json")
    assert not list(tmp_path.iterdir())
    write_explanation(explanation, tmp_path / "out.JSON")
    assert json.loads((tmp_path / "out.JSON").read_text("utf-8")) == explanation.to_json()
    write_explanation(explanation, tmp_path / "out.html")
    assert QUESTION in (tmp_path / "out.html").read_text("utf-8")
    assert len(list(tmp_path.iterdir())) == 2
