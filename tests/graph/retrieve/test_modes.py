from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from graph.retrieve.modes import HIPPORAG2, MARA, MARA_MATRIX, SEED, Mode, Preset, settings_of
from graph.retrieve.search import effective_passage_weight
from graph.walk.settings import DIRECTED, FactorPolicy


def test_modes_that_rank_by_similarity_do_not_walk() -> None:
    assert [mode for mode in Mode if mode.walks] == [Mode.MARA, Mode.HIPPORAG2, Mode.MARA_MATRIX]
    assert [mode for mode in Mode if mode.as_published] == [Mode.HIPPORAG2, Mode.MARA_MATRIX]


def test_the_preset_matters_to_mara_alone() -> None:
    assert (settings_of(Mode.MARA, Preset.MARA), settings_of(Mode.MARA, Preset.SEED)) == (MARA, SEED)
    for preset in Preset:
        assert settings_of(Mode.HIPPORAG2, preset) is HIPPORAG2
        assert settings_of(Mode.MARA_MATRIX, preset) is MARA_MATRIX


def test_the_published_baseline_and_what_the_source_documents_change_in_it() -> None:
    assert (HIPPORAG2.passage_seeds, HIPPORAG2.passage_weight, HIPPORAG2.damping) == (0, 0.05, 0.5)
    assert (HIPPORAG2.beta, HIPPORAG2.counts, HIPPORAG2.fact_candidates, HIPPORAG2.entity_seeds) == (False, True, 5, 5)
    assert not any((HIPPORAG2.directed, HIPPORAG2.title_edges, HIPPORAG2.mention_edges, HIPPORAG2.name_shares))
    assert (HIPPORAG2.fact_bar, HIPPORAG2.least_damping, HIPPORAG2.name_weight) == (0, 0.5, 0)
    own = {"fact_candidates": 10, "beta": True, "policy": FactorPolicy.CATEGORY, "counts": False}
    assert asdict(SEED) == asdict(HIPPORAG2) | own | {"title_edges": True, "mention_edges": True}


def test_without_synonyms_a_walk_follows_none() -> None:
    assert MARA.directions == DIRECTED
    assert replace(MARA, synonym_edges=False).directions.synonym == 0


def test_the_matrix_variant_differs_from_the_baseline_in_beta_and_the_passage_weight_alone() -> None:
    baseline, variant = asdict(HIPPORAG2), asdict(MARA_MATRIX)
    assert {name: value for name, value in variant.items() if value != baseline[name]} == {
        "beta": True,
        "policy": FactorPolicy.FACTS,
        "adaptive_passage_weight": True,
    }
    for chosen in (0.01, 0.03, 0.05, 0.1):
        assert effective_passage_weight(MARA_MATRIX, chosen) == pytest.approx(chosen)
    assert effective_passage_weight(MARA_MATRIX, None) == HIPPORAG2.passage_weight
