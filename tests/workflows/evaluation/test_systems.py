"""Systems: a mode with switches, as the command line writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graph.errors import BadInput
from graph.factors import FactorPolicy, SynonymyPolicy
from graph.modes import Mode, Preset
from workflows.context import Context
from workflows.evaluation.controls import Control
from workflows.evaluation.systems import ABLATIONS, SWITCHES, parse_system, parse_systems

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
        ("no-synonyms", {"synonymy": SynonymyPolicy.NONE}),
        ("no-passage-seeds", {"passage_weight": 0.0}),
        ("no-fact-seeds", {"entity_seeds": 0}),
        ("no-names", {"name_weight": 0.0}),
        ("category", {"policy": FactorPolicy.CATEGORY}),
        ("neutral", {"policy": FactorPolicy.NEUTRAL}),
        ("facts", {"policy": FactorPolicy.FACTS}),
        ("damping=0.5", {"damping": 0.5}),
        ("relation_strength = .5", {"relation_strength": 0.5}),
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
    plain = {key: value for key, value in parse_system("mara", BASE).describe().items() if key != "controls"}
    same = [name for name in SWITCHES if parse_system(f"mara+{name}", BASE).describe() == {**plain, "controls": []}]
    assert all("policy" in SWITCHES[name] for name in same), "the policy that is the default changes nothing"


def test_switches_add_up() -> None:
    system = parse_system("mara+no-names+oracle-filter+oracle-beta+max_facts=9", BASE)
    assert system.controls == (Control.ORACLE_FILTER, Control.ORACLE_BETA)
    assert (system.context.name_weight, system.context.max_facts) == (0.0, 9)


def test_an_oracle_filter_has_thirty_candidates_unless_told_otherwise() -> None:
    assert parse_system("hipporag2+oracle-filter", BASE).context.fact_candidates == 30
    assert parse_system("hipporag2+oracle-filter+fact_candidates=5", BASE).context.fact_candidates == 5
    assert parse_system("hipporag2+fact_candidates=5+oracle-filter", BASE).context.fact_candidates == 5


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "'' is not a mode. Take one of mara, hipporag2"),
        ("mars", "'mars' is not a mode"),
        ("mara+", "'' in 'mara+' is not a switch"),
        ("mara+no-bets", "is not a switch. Take no-filter, no-beta"),
        ("mara+dampness=0.5", "or SETTING=VALUE of adaptive_passage_weight, alpha"),
        ("mara+damping=", "is not a switch"),
        ("mara+damping", "is not a switch"),
        ("mara+damping=fast", "damping: Input should be a valid number"),
        ("mara+damping=1.5", "damping: Input should be less than or equal to 0.99"),
        ("mara+policy=none", "policy: Input should be"),
        ("mara+workspace=/etc", "is not a switch"),
        ("mara+mode=dense", "is not a switch"),
        ("mara+top_k=5", "is not a switch"),
        ("mara+damping=0.5+damping=0.6", "says twice what damping is"),
        ("mara+category+policy=facts", "says twice what policy is"),
        ("mara+uniform-beta+oracle-beta", "says twice what weigh_relations is"),
        ("mara+no-beta+random-beta", "says twice what weigh_relations is"),
        ("mara+no-filter+oracle-filter", "says twice what filter_facts is"),
        ("hipporag2+oracle-beta", "asks for a β that mode hipporag2 does not use"),
        ("dense+oracle-filter", "changes nothing in mode dense"),
        ("dense+no-beta", "changes nothing in mode dense"),
        ("sparse+alpha=0.5", "changes nothing in mode sparse"),
        ("hipporag2+preset=seed", "changes nothing in mode hipporag2"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_can(spec: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_system(spec, BASE)
    assert said in str(refused.value)


def test_similarity_takes_what_matters_to_it() -> None:
    assert parse_system("hybrid+alpha=0.5", BASE).context.alpha == 0.5
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
    assert {control for system in systems for control in system.controls} == set(Control)


def test_a_system_describes_itself_down_to_the_walk_and_says_nothing_of_the_machine() -> None:
    described = parse_system("mara+oracle-beta+damping=0.5", BASE).describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["mode"], described["controls"], described["chat_model"]) == ("mara", ["oracle-beta"], "offline")
    assert (described["walk"]["damping"], described["context"]["top_k"]) == (0.5, 20)
    assert "somewhere" not in json.dumps(described)
    assert parse_system("dense", BASE).describe()["walk"] is None
