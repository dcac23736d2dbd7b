"""An explanation tells of exactly the walk that answered, adds up, and shows nothing that the run's filter hides."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from graph.schema import ENTITY_RELATIONS, RelationFactors, RelationType
from graph.walk.settings import Engine
from graph.walk.strengths import TUNED_RELATIONS, UNTUNED, adopt
from tests.builders import HashEmbedder
from tests.cases import mostly_slow
from tests.workflows.explanations import PRPACK, check_it_adds_up, check_it_is_the_walk, explained
from tests.workflows.small_world import QUESTION, run
from tests.workflows.workspaces import VELM, Indexer
from workflows import retrieval
from workflows.context import Context
from workflows.evaluation.ask_system import FixedManager
from workflows.explaining import LEAST_NODES, MOST_NODES, explain, write_explanation
from workflows.explanation.model import Explanation
from workflows.explanation.model import Path as ToldPath
from workflows.runtime.resources import close_indexes

WALKS: dict[str, dict[str, Any]] = {
    "mara": {},
    "the documents' preset": {"preset": "seed"},
    "hipporag2": {"mode": "hipporag2"},
    "mara-matrix": {"mode": "mara-matrix"},
    "power iteration": {"engine": "matrix"},
    "forward push": {"engine": "push"},
    "PRPACK": {"engine": "igraph"},
    "without synonyms": {"synonym_edges": False},
    "without β": {"weigh_relations": False},
    "every passage a seed": {"passage_seeds": 0},
    "a far walk": {"damping": 0.95, "passage_weight": 0.1},
    "a walk of no step": {"damping": 0.0},
}

STRONG_FACTS = replace(
    UNTUNED,
    strengths={**dict.fromkeys(TUNED_RELATIONS, 1.0), RelationType.TEMPORAL: 4.0, RelationType.PRIMARY: 0.25},
    parent=0,
    recall_before=0.5,
    recall_after=0.6,
)


@pytest.mark.parametrize("changes", mostly_slow(WALKS, 7))
class TestTheRunsWalk:
    def test_its_masses_are_the_runs_scores_and_add_up(
        self, settings: Callable[..., Context], changes: dict[str, Any]
    ) -> None:
        result, told = explained(settings(**changes), max_nodes=12)
        assert result["ranked_by"] == "walk"
        check_it_is_the_walk(told, result)
        check_it_adds_up(told)

    def test_its_paths_are_made_of_what_is_shown(
        self, settings: Callable[..., Context], changes: dict[str, Any]
    ) -> None:
        told = explained(settings(**changes), max_nodes=LEAST_NODES)[1]
        nodes, edges = {node.id: node for node in told.nodes}, {edge.id: edge for edge in told.edges}
        assert told.paths
        assert told.damping is not None
        for path in told.paths:
            here, mass = path.seed, nodes[path.seed].restart[-1]
            for step in path.steps:
                edge = edges[step.edge]
                assert (step.from_node, {edge.source, edge.target}) == (here, {here, step.to})
                assert step.predicate in edge.predicates or not step.predicate
                here, mass = step.to, mass * told.damping * step.share
            assert here == path.passage
            assert path.mass == pytest.approx(mass)
            assert path.mass <= nodes[path.passage].mass[-1]


def over_facts(path: ToldPath) -> bool:
    return any(step.relation in ENTITY_RELATIONS for step in path.steps)


def cited_over_facts(told: Explanation) -> list[bool]:
    """Tell of each passage that paths lead to whether one of them takes a fact."""
    passages = dict.fromkeys(path.passage for path in told.paths)
    return [any(over_facts(path) for path in told.paths if path.passage == passage) for passage in passages]


class TestPaths:
    def test_where_the_heaviest_paths_take_no_fact_one_that_does_is_told_last(
        self, settings: Callable[..., Context]
    ) -> None:
        told = explained(settings())[1]
        assert [(path.number, over_facts(path)) for path in told.paths] == [
            *((1, False), (1, False), (1, False), (1, True)),
            *((2, False), (2, False), (2, False), (2, True)),
        ]
        assert told.paths[-1].words.startswith("Lake Sund —has on its shore the town of (ATTRIBUTION, 0.02)→ Marn")


class TestStops:
    def strengths(self, told: Explanation) -> list[tuple[float, str]]:
        return [(stop.strength, stop.label) for stop in told.stops]

    def test_beta_comes_in_by_quarters(self, settings: Callable[..., Context]) -> None:
        told = explained(settings())[1]
        between = [(0.25, "25 % of β"), (0.5, "50 % of β"), (0.75, "75 % of β")]
        assert self.strengths(told) == [(0.0, "without β"), *between, (1.0, "with β")]

    def test_the_first_is_the_walk_without_beta_and_a_quarter_that_of_a_quarter_of_its_strength(
        self, settings: Callable[..., Context]
    ) -> None:
        told = explained(settings())[1]
        assert told.beta is not None
        uniform = RelationFactors.uniform()

        def quarter_of(beta: Mapping[str, float], even: Mapping[str, float]) -> dict[str, float]:
            return {name: 0.75 * share + 0.25 * beta[name] for name, share in even.items()}

        quarter = RelationFactors(
            quarter_of(told.beta.entity_entity, uniform.entity_entity),
            quarter_of(told.beta.entity_passage, uniform.entity_passage),
        )
        for stop, beta in ((0, uniform), (1, quarter)):
            other = explained(settings().with_agents(manager=FixedManager(beta)))[1]
            masses = {node.ref: node.mass[-1] for node in other.nodes}
            for node in told.nodes:
                assert masses.get(node.ref, node.mass[stop]) == pytest.approx(node.mass[stop], abs=PRPACK)

    @pytest.mark.parametrize("changes", [{"preset": "seed"}, {"mode": "mara-matrix"}], ids=["category", "facts"])
    def test_where_beta_is_taken_as_it_is_it_is_in_or_out(
        self, settings: Callable[..., Context], changes: dict[str, Any]
    ) -> None:
        assert self.strengths(explained(settings(**changes))[1]) == [(0.0, "without β"), (1.0, "with β")]

    @pytest.mark.parametrize("changes", [{"mode": "hipporag2"}, {"weigh_relations": False}])
    def test_a_walk_that_beta_does_not_steer_is_compared_with_nothing(
        self, settings: Callable[..., Context], changes: dict[str, Any]
    ) -> None:
        assert self.strengths(explained(settings(**changes))[1]) == [(1.0, "as walked")]

    def test_ranks_are_those_of_each_walk(self, settings: Callable[..., Context]) -> None:
        result, told = explained(settings())
        ranks = {node.ref: node.rank for node in told.nodes}
        assert [ranks[hit["id"]][-1] for hit in result["passages"]] == [*range(1, 11)]  # type: ignore[index]
        assert {node.rank for node in told.nodes if node.kind == "entity"} == {None}


class TestTuned:
    @pytest.fixture
    def root(self, small_workspace: Path, tmp_path: Path) -> Iterator[Path]:
        yield Path(shutil.copytree(small_workspace, tmp_path / "workspace"))
        close_indexes()

    def test_the_strengths_of_the_run_hold_even_where_others_came_since(self, root: Path) -> None:
        context = Context(workspace=str(root))
        adopt(root, STRONG_FACTS)
        result = run(context).result
        adopt(root, replace(STRONG_FACTS, strengths=UNTUNED.strengths, parent=1))
        told = explain(result, context)
        assert result["tuning"] == 1
        check_it_is_the_walk(told, result)
        check_it_adds_up(told)


class TestTold:
    def test_everything_of_the_result_that_a_reader_asks_for(self, settings: Callable[..., Context]) -> None:
        result, told = explained(settings())
        assert told.workspace == "workspace"
        for name in ("question", "answer", "mode", "ranked_by", "generation", "fact_outcome", "passage_weight"):
            assert getattr(told, name) == result[name]
        plain = told.to_json()
        assert plain["models"] == result["models"]
        assert plain["citations"] == result["citations"]
        given = [{key: hit[key] for key in hit if key != "id"} for hit in result["facts"]]
        assert [fact["predicate"] for fact in plain["facts"]] == [hit["predicate"] for hit in given]
        assert plain["beta"]["entity_entity"] == pytest.approx(result["relation_factors"]["entity_entity"])

    def test_json_has_the_documented_keys_and_plain_values_alone(self, settings: Callable[..., Context]) -> None:
        plain = explained(settings())[1].to_json()
        assert list(plain) == [
            *("question", "answer", "mode", "ranked_by", "workspace", "generation", "models", "citations", "facts"),
            *("fact_outcome", "beta", "passage_weight", "damping", "stops", "nodes", "edges", "paths", "anchors"),
            *("shown", "walk", "own_relations", "why"),
        ]
        assert list(plain["paths"][-1]["steps"][-1]) == [
            *("from", "to", "edge", "predicate", "relation", "reversed", "share")
        ]
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain

    def test_anchors_tell_what_of_a_passages_mass_began_at_each_entity(self, settings: Callable[..., Context]) -> None:
        result, told = explained(settings())
        nodes = {node.ref: node.id for node in told.nodes}
        seeds = {seed["id"]: seed["weight"] for seed in result["seeds"]["entities"]}
        whole = sum(seeds.values()) + sum(seed["weight"] for seed in result["seeds"]["passages"])
        assert sum(anchor.share for anchor in told.anchors) == pytest.approx(sum(seeds.values()) / whole)
        assert told.anchors[0].share == pytest.approx(max(seeds.values()) / whole)
        parts = [sum(each.brought[nodes[hit["id"]]] for each in told.anchors) for hit in result["passages"]]
        assert min(parts) >= 0
        assert 0 < max(parts) <= 1

    def test_where_convergence_does_not_count_no_anchors_are_told(self, settings: Callable[..., Context]) -> None:
        assert explained(settings(convergence=0.0))[1].anchors == ()

    def test_cited_and_returned_passages_and_entity_seeds_are_shown_whatever_the_limit(
        self, settings: Callable[..., Context]
    ) -> None:
        result, told = explained(settings(), max_nodes=LEAST_NODES)
        refs = {node.ref for node in told.nodes}
        assert {hit["id"] for hit in result["passages"]} <= refs
        assert {seed["id"] for seed in result["seeds"]["entities"]} <= refs
        numbers = {node.ref: node.number for node in told.nodes if node.number}
        assert numbers == {mark["passage_id"]: mark["number"] for mark in result["citations"]}

    def test_more_nodes_show_more_of_what_flows_in_until_all_is_shown(self, settings: Callable[..., Context]) -> None:
        result = run(settings()).result
        small, large = (explain(result, settings(), max_nodes=n) for n in (LEAST_NODES, MOST_NODES))
        assert small.shown.nodes < large.shown.nodes <= large.shown.of_nodes
        assert 0 < small.shown.inflow < large.shown.inflow == pytest.approx(1)

    def test_facts_edges_go_from_subject_to_object(self, settings: Callable[..., Context]) -> None:
        told = explained(settings(), max_nodes=200)[1]
        ids = {node.id: node.label for node in told.nodes}
        [founded] = [edge for edge in told.edges if "founded in" in edge.predicates]
        assert (ids[founded.source], ids[founded.target], founded.link) == ("Marn", "1203", None)

    def test_a_result_of_the_retrieval_workflow_is_explained_by_its_best_passage(
        self, settings: Callable[..., Context]
    ) -> None:
        result = run(settings(), graph=retrieval.graph).result
        told = explain(result, settings())
        assert (told.answer, told.citations) == ("", ())
        best = next(node.id for node in told.nodes if node.ref == result["passages"][0]["id"])
        assert {path.passage for path in told.paths} == {best}
        heaviest = [path for path in told.paths if not over_facts(path)]
        assert len({path.seed for path in heaviest}) == len(heaviest) <= 3
        assert len(told.paths) <= 4

    @pytest.mark.parametrize("mode", [mode for mode in Mode if not mode.walks])
    def test_without_a_walk_there_are_the_passages_alone(self, settings: Callable[..., Context], mode: Mode) -> None:
        result, told = explained(settings(mode=mode))
        first = min(result["citations"], key=lambda mark: mark["number"])
        assert told.nodes[0].ref == first["passage_id"]
        assert {node.ref for node in told.nodes} == {hit["id"] for hit in result["passages"]}
        assert (told.stops, told.edges, told.paths, told.walk, told.beta, told.damping) == (
            (),
            (),
            (),
            None,
            None,
            None,
        )
        assert {(node.mass, node.rank) for node in told.nodes} == {((), ())}

    @pytest.mark.slow
    def test_the_sample_corpus_too(self, tmp_path: Path, root: Path, index: Indexer, embedder: HashEmbedder) -> None:
        import workflows.sample as sample

        folder = Path(next(iter(sample.__path__)))
        rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text("utf-8").splitlines()]
        index(rows)
        over: list[bool] = []
        for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()[::4]:
            result, told = explained(Context(workspace=str(root)), json.loads(line)["question"])
            check_it_is_the_walk(told, result)
            check_it_adds_up(told)
            over += cited_over_facts(told)
        assert sum(over) > 0.8 * len(over)


class TestRefused:
    def test_what_is_no_result(self, settings: Callable[..., Context]) -> None:
        for result in ({}, {"question": "?"}, None, [1]):
            with pytest.raises(BadInput, match="no result of a question"):
                explain(result, settings())  # type: ignore[arg-type]

    @pytest.mark.parametrize("n", [-1, 0, 1, 2001])
    def test_a_number_of_nodes_that_cannot_be_shown(self, settings: Callable[..., Context], n: int) -> None:
        with pytest.raises(BadInput, match="2 to 2000"):
            explain({}, settings(), max_nodes=n)

    def test_a_context_of_another_mode(self, settings: Callable[..., Context]) -> None:
        with pytest.raises(BadInput, match="of mode mara, the context of hipporag2"):
            explain(run(settings()).result, settings(mode="hipporag2"))

    @pytest.mark.parametrize("changes", [{"title_edges": False}, {"directed": False}, {"preset": "seed"}])
    def test_a_context_with_which_the_walk_gives_other_scores(
        self, settings: Callable[..., Context], changes: dict[str, Any]
    ) -> None:
        with pytest.raises(BadInput, match="other settings"):
            explain(run(settings()).result, settings(**changes))

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

    def test_a_result_of_another_workspace(self, settings: Callable[..., Context]) -> None:
        result = run(settings()).result
        result["passages"][0] = {**result["passages"][0], "id": "elsewhere"}
        with pytest.raises(BadInput, match="outside this workspace"):
            explain(result, settings())


@pytest.fixture(scope="module")
def explanation(small_workspace: Path) -> Explanation:
    return explained(Context(workspace=str(small_workspace)))[1]


class TestWritten:
    def test_json_is_what_it_says(self, explanation: Explanation, tmp_path: Path) -> None:
        write_explanation(explanation, tmp_path / "out.JSON")
        assert json.loads((tmp_path / "out.JSON").read_text("utf-8")) == explanation.to_json()

    def test_a_page_is_one_file(self, explanation: Explanation, tmp_path: Path) -> None:
        write_explanation(explanation, tmp_path / "out.html")
        assert [file.name for file in tmp_path.iterdir()] == ["out.html"]
        assert QUESTION in (tmp_path / "out.html").read_text("utf-8")

    @pytest.mark.parametrize("name", ["out", "out.pdf", ".html"])
    def test_another_ending_is_refused(self, explanation: Explanation, tmp_path: Path, name: str) -> None:
        with pytest.raises(BadInput, match=r"End the name in \.html, \.json, \.graphml"):
            write_explanation(explanation, tmp_path / name)
        assert not list(tmp_path.iterdir())

    def test_a_file_that_cannot_be_written_is_named(self, explanation: Explanation, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="cannot be written"):
            write_explanation(explanation, tmp_path / "missing" / "out.json")

    @pytest.mark.parametrize("engine", [Engine.PUSH, Engine.MATRIX])
    def test_the_run_names_its_engine_though_prpack_walks_again(
        self, settings: Callable[..., Context], engine: Engine
    ) -> None:
        walk = explained(settings(engine=engine))[1].walk
        assert walk is not None
        assert walk.engine == engine
