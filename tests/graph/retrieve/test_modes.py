from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from graph.retrieve.modes import HIPPORAG2, MARA, MARA_MATRIX, SEED, Mode, Preset, WalkSettings, settings_of
from graph.retrieve.search import effective_passage_weight
from graph.walk.settings import DIRECTED, FactorPolicy


def test_modes_that_rank_by_similarity_do_not_walk() -> None:
    assert [mode for mode in Mode if mode.walks] == [Mode.MARA, Mode.HIPPORAG2, Mode.MARA_MATRIX]


def test_the_baseline_and_its_variant_run_as_published() -> None:
    assert [mode for mode in Mode if mode.as_published] == [Mode.HIPPORAG2, Mode.MARA_MATRIX]


@pytest.mark.parametrize(
    ("mode", "preset", "settings"),
    [
        (Mode.MARA, Preset.MARA, MARA),
        (Mode.MARA, Preset.SEED, SEED),
        (Mode.HIPPORAG2, Preset.MARA, HIPPORAG2),
        (Mode.HIPPORAG2, Preset.SEED, HIPPORAG2),
        (Mode.MARA_MATRIX, Preset.MARA, MARA_MATRIX),
        (Mode.MARA_MATRIX, Preset.SEED, MARA_MATRIX),
    ],
)
def test_the_preset_matters_to_mara_alone(mode: Mode, preset: Preset, settings: WalkSettings) -> None:
    assert settings_of(mode, preset) is settings


def test_the_preset_of_the_source_documents() -> None:
    assert (SEED.damping, SEED.passage_weight, SEED.fact_candidates, SEED.entity_seeds) == (0.5, 0.05, 10, 5)
    assert (SEED.policy, SEED.directed) == (FactorPolicy.CATEGORY, False)
    assert SEED.title_edges
    assert SEED.mention_edges
    assert SEED.beta
    assert not SEED.counts
    assert SEED.name_weight == 0


def test_the_published_baseline_has_no_beta_five_facts_and_every_passage_as_a_seed() -> None:
    assert (HIPPORAG2.beta, HIPPORAG2.counts, HIPPORAG2.fact_candidates) == (False, True, 5)
    assert (HIPPORAG2.passage_seeds, HIPPORAG2.passage_weight, HIPPORAG2.damping) == (0, 0.05, 0.5)
    assert not any((HIPPORAG2.directed, HIPPORAG2.title_edges, HIPPORAG2.mention_edges, HIPPORAG2.name_shares))
    assert HIPPORAG2.fact_bar == 0
    assert HIPPORAG2.least_damping == HIPPORAG2.damping
    assert HIPPORAG2.name_weight == 0


def test_the_matrix_variant_differs_from_the_baseline_in_beta_and_the_passage_weight_alone() -> None:
    baseline, variant = asdict(HIPPORAG2), asdict(MARA_MATRIX)
    assert {name: value for name, value in variant.items() if value != baseline[name]} == {
        "beta": True,
        "policy": FactorPolicy.FACTS,
        "adaptive_passage_weight": True,
    }


@pytest.mark.parametrize("chosen", [0.01, 0.03, 0.05, 0.1])
def test_the_passage_weight_of_the_matrix_variant_is_the_managers_own(chosen: float) -> None:
    assert effective_passage_weight(MARA_MATRIX, chosen) == pytest.approx(chosen)
    assert effective_passage_weight(MARA_MATRIX, None) == HIPPORAG2.passage_weight


def test_the_default_walks_directed_from_names_and_sharpened_hybrid_seeds() -> None:
    assert MARA.directions == DIRECTED
    assert MARA.hybrid_seeds
    assert MARA.seed_sharpness > 1
    assert MARA.name_weight > 0
    assert MARA.policy is FactorPolicy.NEUTRAL


def test_without_synonym_edges_no_walk_follows_one() -> None:
    without = replace(MARA, synonym_edges=False)
    assert (MARA.directions.synonym, without.directions.synonym) == (DIRECTED.synonym, 0)


@pytest.mark.parametrize("settings", [MARA, SEED, HIPPORAG2, MARA_MATRIX])
def test_every_preset_is_within_its_limits(settings: WalkSettings) -> None:
    assert 0 <= settings.damping < 1
    assert 0 <= settings.alpha <= 1
