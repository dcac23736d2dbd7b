from __future__ import annotations

import pytest

from graph.factors import DIRECTED, UNDIRECTED, FactorPolicy, SynonymyPolicy
from graph.modes import HIPPORAG2, MARA, SEED, Mode, Preset, WalkSettings, settings_of


def test_modes_that_rank_by_similarity_do_not_walk() -> None:
    assert [mode for mode in Mode if mode.walks] == [Mode.MARA, Mode.HIPPORAG2]


@pytest.mark.parametrize(
    ("mode", "preset", "settings"),
    [
        (Mode.MARA, Preset.MARA, MARA),
        (Mode.MARA, Preset.SEED, SEED),
        (Mode.HIPPORAG2, Preset.MARA, HIPPORAG2),
        (Mode.HIPPORAG2, Preset.SEED, HIPPORAG2),
    ],
)
def test_the_preset_matters_to_mara_alone(mode: Mode, preset: Preset, settings: WalkSettings) -> None:
    assert settings_of(mode, preset) is settings


def test_the_preset_of_the_source_documents() -> None:
    assert (SEED.damping, SEED.passage_weight, SEED.fact_candidates, SEED.entity_seeds) == (0.5, 0.05, 10, 5)
    assert (SEED.policy, SEED.synonymy, SEED.directions) == (
        FactorPolicy.CATEGORY,
        SynonymyPolicy.ATTRIBUTION,
        UNDIRECTED,
    )
    assert SEED.beta
    assert not SEED.counts
    assert SEED.name_weight == 0


def test_the_published_baseline_has_no_beta_five_facts_and_every_passage_as_a_seed() -> None:
    assert (HIPPORAG2.beta, HIPPORAG2.counts, HIPPORAG2.fact_candidates) == (False, True, 5)
    assert (HIPPORAG2.passage_seeds, HIPPORAG2.passage_weight, HIPPORAG2.damping) == (0, 0.05, 0.5)
    assert HIPPORAG2.directions == UNDIRECTED
    assert HIPPORAG2.name_weight == 0


def test_the_default_walks_directed_from_names_and_sharpened_hybrid_seeds() -> None:
    assert MARA.directions == DIRECTED
    assert MARA.hybrid_seeds
    assert MARA.seed_sharpness > 1
    assert MARA.name_weight > 0
    assert (MARA.policy, MARA.synonymy) == (FactorPolicy.NEUTRAL, SynonymyPolicy.NEUTRAL)


@pytest.mark.parametrize("settings", [MARA, SEED, HIPPORAG2])
def test_every_preset_is_within_its_limits(settings: WalkSettings) -> None:
    assert 0 <= settings.damping < 1
    assert 0 <= settings.relation_strength <= 1
    assert 0 <= settings.alpha <= 1
