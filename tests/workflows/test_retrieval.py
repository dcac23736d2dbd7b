"""Retrieval without a model: the nodes of a mode, where the walk starts, how passages rank, and a learned tuning."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.errors import DependencyMissing, WorkspaceDamaged
from graph.retrieve.modes import MARA, Mode
from graph.schema import RelationType
from graph.walk.settings import Engine
from graph.walk.strengths import TUNING_FILE, adopt, revert
from tests.scripted_server import ScriptedServer
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import QUESTION, TEXTS, Run, run, well_behaved
from workflows import retrieval
from workflows.context import Context
from workflows.retrieval import graph
from workflows.runtime.resources import close_indexes

Retrieve = Callable[..., Run]

WALKING = ["encode_question", "retrieve_facts", "filter_facts", "retrieve_passages", "seed_graph", "walk_graph"]
NODES_OF_MODE = {
    Mode.MARA: [*WALKING, "weigh_relations"],
    Mode.HIPPORAG2: WALKING,
    Mode.MARA_MATRIX: [*WALKING, "weigh_relations"],
    Mode.DENSE: ["encode_question", "retrieve_passages"],
    Mode.SPARSE: ["encode_question", "retrieve_passages"],
    Mode.HYBRID: ["encode_question", "retrieve_passages"],
}
UNRELATED = "How are violins tuned?"


@pytest.fixture
def retrieve(settings: MakeContext) -> Retrieve:
    def once(question: str = QUESTION, **changes: object) -> Run:
        return run(settings(**changes), question, retrieval.graph)

    return once


@pytest.fixture
def retrieve_choosing_nothing(chat_server: ScriptedServer, retrieve: Retrieve) -> Retrieve:
    """Retrieve with a filter that finds no fact relevant."""
    chat_server.script({**well_behaved(), "fact filter": ['{"facts": []}']})
    return retrieve


def entity_names(done: Run) -> list[str]:
    return [seed["text"] for seed in done.result["seeds"]["entities"]]


def test_a_mode_runs_its_own_nodes_each_once_and_times_them_and_its_passages_are_whole_and_best_first(
    retrieve: Retrieve,
) -> None:
    for mode in Mode:
        start = time.perf_counter()
        done = retrieve(mode=mode)
        elapsed_ms = (time.perf_counter() - start) * 1000
        assert done.visits == Counter(NODES_OF_MODE[mode])
        assert done.result["timings_ms"].keys() == done.visits.keys()
        assert all(0 < spent < elapsed_ms for spent in done.result["timings_ms"].values()), mode
        assert json.loads(json.dumps(done.result, allow_nan=False)) == done.result
        assert (done.result["question"], done.result["mode"], done.result["errors"]) == (QUESTION, mode.value, [])
        assert done.result["ranked_by"] == ("walk" if mode.walks else mode.value)
        hits = done.result["passages"]
        keys = {"number", "id", "title", "text", "source", "metadata", "score"}
        assert [hit.keys() for hit in hits] == [keys | ({"pagerank"} if mode is Mode.MARA else set())] * len(hits)
        assert [hit["number"] for hit in hits] == list(range(1, len(hits) + 1))
        assert [hit["text"] for hit in hits] == [TEXTS[hit["id"]] for hit in hits]
        assert len(set(done.passage_ids)) == len(hits), mode
        scores = [hit["score"] for hit in hits]
        assert scores == sorted(scores, reverse=True), mode
        for k in (1, 3):
            assert retrieve(mode=mode, top_k=k).passage_ids == done.passage_ids[:k]
        if mode is not Mode.SPARSE:
            assert sorted(retrieve(mode=mode, top_k=200).passage_ids) == sorted(TEXTS)


def test_the_engine_changes_no_ranking_and_is_told_where_something_walked(retrieve: Retrieve) -> None:
    reference = retrieve(engine=Engine.IGRAPH, top_k=3)
    for engine in Engine:
        done = retrieve(engine=engine, top_k=3)
        assert done.passage_ids == reference.passage_ids, engine
        walk = done.result["walk"]
        assert walk["engine"] == ("matrix" if engine is Engine.AUTO else engine.value), "the graph is small"
        assert 0 <= walk["error"] < 0.1
        assert (walk["arcs"] is None) == (walk["engine"] == "igraph")
    assert retrieve(mode="dense").result["walk"] is None


@pytest.mark.usefixtures("without_numba")
def test_without_numba_the_engine_push_is_refused_with_what_to_install(retrieve: Retrieve) -> None:
    with pytest.raises(DependencyMissing, match=r"push needs numba.*pip install"):
        retrieve(engine="push")
    assert retrieve().result["walk"]["engine"] == "matrix"


def test_alpha_goes_from_the_sparse_ranking_by_words_to_the_dense_one(retrieve: Retrieve) -> None:
    assert retrieve("Who built the dam, and when?", mode="sparse").passage_ids[0] == "tarn-dam"
    assert retrieve("xylophone", mode="sparse").result["passages"] == []
    assert retrieve(mode="hybrid", alpha=1).passage_ids == retrieve(mode="dense").passage_ids
    assert retrieve(mode="hybrid", alpha=0).passage_ids == retrieve(mode="sparse").passage_ids


def test_kept_facts_are_the_first_of_the_candidates_and_seed_their_ends(retrieve: Retrieve) -> None:
    done = retrieve("Where was Duke Orlo born?")
    assert done.result["fact_outcome"] == "kept"
    assert done.kept[0] == ("Duke Orlo", "born in", "Kesh")
    assert {"Duke Orlo", "Kesh"} <= set(entity_names(done))
    assert len(done.result["facts"]) == MARA.fact_candidates
    assert 0 < len(done.kept) <= Context().max_facts
    for hit in done.result["facts"]:
        assert hit.keys() == {"id", "subject", "predicate", "object", "relation", "score", "kept"}
        assert 0 <= hit["score"] <= 1


def test_names_in_the_question_are_seeds_beside_the_facts(retrieve_choosing_nothing: Retrieve) -> None:
    named = retrieve_choosing_nothing("Did Ada Brandt ever see the flood of 1871?")
    assert named.result["fact_outcome"] == "nothing relevant"
    assert set(entity_names(named)) == {"Ada Brandt", "Flood of 1871"}
    assert {"brandt", "flood"} <= set(named.passage_ids[:3])
    without = retrieve_choosing_nothing("Did Ada Brandt ever see the flood of 1871?", name_weight=0)
    assert entity_names(without) == []


def test_a_name_counts_by_its_alias_and_not_by_a_part_of_it(retrieve_choosing_nothing: Retrieve) -> None:
    assert entity_names(retrieve_choosing_nothing("How long is the VELM (river)?")) == ["Velm"]
    assert entity_names(retrieve_choosing_nothing("Where is Velmont, where Marni lives?")) == []


def test_without_any_seed_or_fact_of_a_mode_as_published_the_ranking_is_dense_and_says_so(
    retrieve_choosing_nothing: Retrieve,
) -> None:
    dense = retrieve_choosing_nothing(mode="dense").result["passages"]
    for mode in ("hipporag2", "mara-matrix"):
        fallen = retrieve_choosing_nothing(mode=mode).result
        assert (fallen["fact_outcome"], fallen["ranked_by"]) == ("nothing relevant", "dense")
        assert fallen["passages"] == dense, mode
    seedless = retrieve_choosing_nothing(passage_weight=0, name_weight=0).result
    assert seedless["seeds"] == {"entities": [], "passages": []}
    assert (seedless["ranked_by"], seedless["passages"]) == ("dense", dense)


def test_offline_hipporag2_keeps_its_five_candidates_and_asks_no_manager(retrieve: Retrieve) -> None:
    for question in (QUESTION, UNRELATED):
        done = retrieve(question, mode="hipporag2", max_facts=2)
        assert [hit["kept"] for hit in done.result["facts"]] == [True] * 5
        assert done.result["fact_outcome"] == "kept"
        assert len(entity_names(done)) == 5
        assert done.result["relation_factors"] is None
        assert done.result["passage_weight"] == 0.05
        assert done.result["ranked_by"] == "walk"


def test_offline_mara_matrix_keeps_the_same_candidates_and_walks_by_the_managers_beta_and_passage_weight(
    retrieve: Retrieve,
) -> None:
    question = "What caused the flood of 1871?"
    baseline, done = retrieve(question, mode="hipporag2").result, retrieve(question, mode="mara-matrix").result
    assert done["facts"] == baseline["facts"]
    assert done["seeds"]["entities"] == baseline["seeds"]["entities"]
    factors = done["relation_factors"]["entity_entity"]
    assert max(factors, key=factors.__getitem__) == "CAUSALITY"
    assert done["passage_weight"] < baseline["passage_weight"]
    assert done["passages"] != baseline["passages"]
    deaf = retrieve(question, mode="mara-matrix", weigh_relations=False)
    assert "weigh_relations" not in deaf.visits
    assert (deaf.result["passages"], deaf.result["passage_weight"]) == (baseline["passages"], 0.05)


def test_damping_0_ranks_the_seeds_alone(retrieve: Retrieve) -> None:
    done = retrieve(damping=0, top_k=200)
    weights = {seed["id"]: seed["weight"] for seed in done.result["seeds"]["passages"]}
    ranked = [hit for hit in done.result["passages"] if hit["score"] > 0]
    assert [hit["id"] for hit in ranked] == sorted(weights, key=lambda key: -weights[key])
    assert all(hit["score"] == 0 for hit in done.result["passages"][len(ranked) :])


STRONG_FACTS = {RelationType.TEMPORAL: 4.0, RelationType.PRIMARY: 0.25}


@pytest.fixture
def root(small_workspace: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copytree(small_workspace, tmp_path / "workspace"))
    close_indexes()


def asked(root: Path, **changes: Any) -> dict[str, Any]:
    return run(Context(workspace=str(root), **changes), graph=graph).result


def test_a_tuning_changes_the_walk_until_it_is_reverted(root: Path) -> None:
    before = asked(root)
    adopt(root, STRONG_FACTS, 0.5, 0.6)
    after = asked(root)
    assert after["tuning"] == 1
    assert [hit["score"] for hit in after["passages"]] != [hit["score"] for hit in before["passages"]]
    assert after["seeds"] == before["seeds"]
    revert(root)
    again = asked(root)
    assert (again["tuning"], again["passages"]) == (0, before["passages"])


@pytest.mark.parametrize("mode", [Mode.HIPPORAG2, Mode.MARA_MATRIX, Mode.HYBRID])
def test_other_modes_are_not_tuned(root: Path, mode: Mode) -> None:
    before = asked(root, mode=mode)
    adopt(root, STRONG_FACTS, 0.5, 0.6)
    after = asked(root, mode=mode)
    assert after["passages"] == before["passages"]
    assert after["tuning"] == (0 if mode.walks else None)


def test_a_file_that_cannot_be_read_is_no_tuning_that_is_passed_over(root: Path) -> None:
    (root / TUNING_FILE).write_text("{}", encoding="utf-8")
    with pytest.raises(WorkspaceDamaged, match="tuning"):
        asked(root)
