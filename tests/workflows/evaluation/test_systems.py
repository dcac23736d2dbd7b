"""Systems: a mode with switches, as the command line writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graph.errors import BadInput
from graph.retrieve.modes import Mode, Preset
from workflows.context import Context
from workflows.evaluation.systems import (
    ABLATIONS,
    NEED_A_MODEL,
    SWITCHES,
    Control,
    Given,
    answer_systems,
    parse_system,
    parse_systems,
)
from workflows.settings.enums import UnsupportedClaims, Workflow
from workflows.settings.ragenta import RagentaContext

OF_RAGENTA = {"walk", "no-judge", "no-claims", "no-follow-ups"}
BASE = Context(workspace="somewhere", top_k=20)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_mode_alone_is_a_system_with_the_settings_that_all_share(mode: Mode) -> None:
    system = parse_system(mode, BASE)
    assert (system.name, system.controls) == (mode.value, ())
    assert system.context == BASE.model_copy(update={"mode": mode})


@pytest.mark.parametrize(
    ("switch", "changed"),
    [
        ("no-filter", {"filter_facts": False}),
        ("no-beta", {"weigh_relations": False}),
        ("no-synonyms", {"synonym_edges": False}),
        ("no-passage-seeds", {"passage_weight": 0.0}),
        ("no-fact-seeds", {"entity_seeds": 0}),
        ("no-names", {"name_weight": 0.0}),
        ("damping=0.5", {"damping": 0.5}),
        ("alpha = .5", {"alpha": 0.5}),
        ("adaptive_passage_weight=true", {"adaptive_passage_weight": True}),
        ("fact_candidates=7", {"fact_candidates": 7}),
        ("preset=seed", {"preset": Preset.SEED}),
        ("model=offline", {"model": "offline"}),
    ],
)
def test_a_switch_changes_what_it_names_and_nothing_else(switch: str, changed: dict[str, Any]) -> None:
    system = parse_system(f"mara + {switch}", BASE)
    assert system.name == f"mara+{switch}"
    assert system.context == BASE.model_copy(update={"mode": Mode.MARA, **changed})


def test_every_named_switch_changes_the_walk_or_its_agents() -> None:
    plain = parse_system("mara", BASE).describe()
    assert [name for name in SWITCHES if name not in OF_RAGENTA and _described(f"mara+{name}") == plain] == []


def _described(spec: str) -> dict[str, Any]:
    return parse_system(spec, BASE).describe()


class TestRagenta:
    def test_it_is_a_system_of_its_own_workflow_with_hybrid_retrieval(self) -> None:
        system = parse_system("ragenta", BASE)
        assert system.context == RagentaContext(workspace="somewhere", top_k=20)
        assert (system.context.workflow, system.context.mode) == (Workflow.RAGENTA, Mode.HYBRID)
        described = system.describe()
        assert (described["workflow"], described["mode"], described["walk"]) == ("ragenta", "hybrid", None)
        assert parse_system("hybrid", BASE).describe()["workflow"] == "mara"

    @pytest.mark.parametrize(
        ("spec", "changed"),
        [
            ("ragenta+walk", {"mode": Mode.MARA}),
            ("ragenta+n=1+alpha=0.7", {"n": 1.0, "alpha": 0.7}),
            ("ragenta+no-judge", {"judge_passages": False}),
            ("ragenta+no-judge+answer_passages=5", {"judge_passages": False, "answer_passages": 5}),
            ("ragenta+no-claims", {"check_claims": False}),
            ("ragenta+no-follow-ups", {"follow_up_rounds": 0}),
            ("ragenta+unsupported_claims=remove", {"unsupported_claims": UnsupportedClaims.REMOVE}),
            ("ragenta+walk+no-beta+judge_floor=-1", {"mode": Mode.MARA, "weigh_relations": False, "judge_floor": -1.0}),
            ("basic-rag", {"judge_passages": False, "check_claims": False}),
            ("basic-rag+walk", {"judge_passages": False, "check_claims": False, "mode": Mode.MARA}),
            ("basic-rag+alpha=1", {"judge_passages": False, "check_claims": False, "alpha": 1.0}),
        ],
    )
    def test_switches_change_what_they_name_and_nothing_else(self, spec: str, changed: dict[str, Any]) -> None:
        system = parse_system(spec, BASE)
        assert system.name == spec
        assert system.context == RagentaContext(workspace="somewhere", top_k=20, **changed)

    def test_the_mode_that_others_share_is_none_of_its_own(self) -> None:
        assert parse_system("ragenta", BASE.model_copy(update={"mode": Mode.DENSE})).context.mode is Mode.HYBRID

    def test_controls_stand_in_for_the_agents_of_its_walk(self) -> None:
        assert parse_system("ragenta+walk+oracle-beta", BASE).controls == (Control.ORACLE_BETA,)

    @pytest.mark.parametrize("name", sorted(OF_RAGENTA))
    def test_every_named_switch_of_it_changes_it(self, name: str) -> None:
        assert _described(f"ragenta+{name}") != _described("ragenta")

    def test_the_main_workflow_can_check_claims_too(self) -> None:
        system = parse_system("dense+check_claims=true+unsupported_claims=remove", BASE)
        assert system.context.workflow is Workflow.MARA
        assert (system.context.check_claims, system.context.unsupported_claims) == (True, UnsupportedClaims.REMOVE)

    @pytest.mark.parametrize(
        ("spec", "said"),
        [
            ("mara+no-judge", "Workflow mara has no setting judge_passages"),
            ("dense+n=1", "Workflow mara has no setting n"),
            ("mara+walk", "says twice what mode is"),
            ("dense+walk", "says twice what mode is"),
            ("ragenta+walk+walk", "says twice what mode is"),
            ("ragenta+mode=dense", "'mode=dense' in 'ragenta+mode=dense' is not a switch"),
            ("ragenta+oracle-filter", "has controls, and nothing that they could control"),
            ("basic-rag+no-judge", "says twice what judge_passages is"),
            ("ragenta+n=wide", "n has to be a number"),
            ("ragenta+max_follow_ups=9", "follow_ups.questions has to be 3 or less"),
        ],
    )
    def test_what_cannot_be_is_refused(self, spec: str, said: str) -> None:
        with pytest.raises(BadInput) as refused:
            parse_system(spec, BASE)
        assert said in str(refused.value)


def test_switches_add_up() -> None:
    system = parse_system("mara+no-names+oracle-filter+oracle-beta+max_facts=9", BASE)
    assert system.controls == (Control.ORACLE_FILTER, Control.ORACLE_BETA)
    assert (system.context.walk.name_weight, system.context.max_facts) == (0.0, 9)


def test_an_oracle_filter_has_thirty_candidates_unless_told_otherwise() -> None:
    assert parse_system("hipporag2+oracle-filter", BASE).context.walk.fact_candidates == 30
    assert parse_system("hipporag2+oracle-filter+fact_candidates=5", BASE).context.walk.fact_candidates == 5
    assert parse_system("hipporag2+fact_candidates=5+oracle-filter", BASE).context.walk.fact_candidates == 5


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "'' is not a system. Take one of mara, hipporag2"),
        ("mars", "'mars' is not a system. Take one of mara, hipporag2, mara-matrix, dense, sparse, hybrid, ragenta"),
        ("mara+", "'' in 'mara+' is not a switch"),
        ("mara+no-bets", "is not a switch. Take no-filter, no-beta"),
        ("mara+dampness=0.5", "or SETTING=VALUE of adaptive_passage_weight, alpha"),
        ("mara+category", "'category' in 'mara+category' is not a switch"),
        ("mara+relation_strength=0.5", "'relation_strength=0.5' in 'mara+relation_strength=0.5' is not a switch"),
        ("mara+damping=", "is not a switch"),
        ("mara+damping", "is not a switch"),
        ("mara+damping=fast", "damping has to be a number"),
        ("mara+damping=1.5", "damping has to be 0.99 or less"),
        ("mara+entity_rarity=none", "entity_rarity has to be '"),
        ("mara+workspace=/etc", "is not a switch"),
        ("mara+mode=dense", "is not a switch"),
        ("mara+top_k=5", "is not a switch"),
        ("mara+damping=0.5+damping=0.6", "says twice what damping is"),
        ("mara+uniform-beta+oracle-beta", "says twice what weigh_relations is"),
        ("mara+no-beta+random-beta", "says twice what weigh_relations is"),
        ("mara+no-filter+oracle-filter", "says twice what filter_facts is"),
        ("hipporag2+oracle-beta", "asks for a β that mode hipporag2 does not use"),
        ("dense+oracle-filter", "has controls, and nothing that they could control"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_can(spec: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_system(spec, BASE)
    assert said in str(refused.value)


def test_similarity_takes_what_matters_to_it() -> None:
    assert parse_system("hybrid+alpha=0.5", BASE).context.walk.alpha == 0.5
    assert parse_system("dense+answer_passages=3", BASE).context.answer_passages == 3


@pytest.mark.parametrize(
    "specs",
    [
        ["mara", "dense", "mara"],
        ["mara+no-beta", " mara + no-beta "],
        ["mara+no-beta+damping=0.5", "mara+damping=0.5+no-beta"],
    ],
)
def test_a_system_given_twice_is_refused(specs: list[str]) -> None:
    with pytest.raises(BadInput, match="is given twice"):
        parse_systems(specs, BASE)


def test_all_ablations_are_systems_beside_the_modes() -> None:
    systems = parse_systems([*Mode, *ABLATIONS], BASE)
    assert [system.name for system in systems] == [*Mode, *ABLATIONS]
    asked = {control for system in systems for control in system.controls}
    assert asked == set(Control) - {Control.OFFLINE_AGENTS}


def test_the_table_of_answers_has_nine_systems_and_without_a_chat_model_those_that_need_none() -> None:
    served = BASE.model_copy(update={"model": "scripted"})
    systems = parse_systems(answer_systems("scripted"), served)
    assert [system.name for system in systems] == [
        *("closed-book", "gold-passages", "dense", "hybrid", "hipporag2"),
        *("mara+offline-agents", "mara", "ragenta", "ragenta+walk"),
    ]
    assert [system.given for system in systems if system.given] == list(Given)
    assert set(answer_systems("scripted")) - set(answer_systems("offline")) == NEED_A_MODEL.keys()
    parse_systems(answer_systems("offline"), BASE)


@pytest.mark.parametrize("spec", ["closed-book", "mara+offline-agents", "ragenta+walk+offline-agents"])
def test_what_needs_a_chat_model_is_refused_without_one(spec: str) -> None:
    with pytest.raises(BadInput, match="needs a chat model, and none is configured"):
        parse_system(spec, BASE)
    assert parse_system(spec, BASE.model_copy(update={"model": "scripted"})).name == spec


def test_offline_agents_stand_in_for_filter_and_manager() -> None:
    served = BASE.model_copy(update={"model": "scripted"})
    assert parse_system("mara+offline-agents", served).describe()["controls"] == ["offline-agents"]
    for both in ("no-filter", "no-beta", "oracle-filter", "uniform-beta"):
        with pytest.raises(BadInput, match="says twice what"):
            parse_system(f"mara+offline-agents+{both}", served)
    assert parse_system("hipporag2+offline-agents", served).controls == (Control.OFFLINE_AGENTS,)


def test_what_is_given_in_place_of_retrieval_takes_settings_of_the_answer() -> None:
    served = BASE.model_copy(update={"model": "scripted"})
    assert parse_system("gold-passages+answer_passages=2+check_claims=true", BASE).context.answer_passages == 2
    assert parse_system("closed-book+temperature=1", served).describe()["controls"] == ["closed-book"]
    with pytest.raises(BadInput, match="nothing that they could control"):
        parse_system("gold-passages+oracle-beta", served)


def test_a_system_describes_itself_down_to_the_walk_and_says_nothing_of_the_machine() -> None:
    described = parse_system("mara+oracle-beta+damping=0.5", BASE).describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["mode"], described["controls"], described["chat_model"]) == ("mara", ["oracle-beta"], "offline")
    assert (described["walk"]["damping"], described["context"]["top_k"]) == (0.5, 20)
    assert "somewhere" not in json.dumps(described)
    assert parse_system("dense", BASE).describe()["walk"] is None
