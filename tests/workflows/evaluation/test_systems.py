"""Systems: a mode with switches, as the command line writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from graph.errors import BadInput
from graph.retrieve.modes import Mode, Preset
from workflows.context import Context
from workflows.evaluation.systems import (
    NEED_A_MODEL,
    Given,
    answer_systems,
    parse_system,
    parse_systems,
)
from workflows.settings.enums import Workflow
from workflows.settings.ragenta import RagentaContext

TWO_BETAS = ("uniform-beta+oracle-beta", "no-beta+random-beta")
BASE = Context(workspace="somewhere", top_k=20)


def _by_name(settings: dict[str, Any]) -> dict[str, Any]:
    """Every setting by its name, with the object before it: `follow_ups.rounds`."""
    objects = {name: settings.pop(name) for name in ("walk", "follow_ups") if name in settings}
    return settings | {f"{name}.{field}": value for name, of in objects.items() for field, value in of.items()}


def changed_by(spec: str) -> dict[str, Any]:
    """The settings in which a system differs from those that all share."""
    system = parse_system(spec, BASE)
    plain = RagentaContext(workspace="somewhere", top_k=20) if system.context.workflow is Workflow.RAGENTA else BASE
    shared, own = (_by_name(context.model_dump()) for context in (plain, system.context))
    return {name: value for name, value in own.items() if value != shared[name]}


def test_a_mode_with_its_switches_is_a_system_and_changes_nothing_else() -> None:
    basic: dict[str, Any] = {"judge_passages": False, "check_claims": False}
    cases: list[tuple[str, dict[str, Any]]] = [
        *((mode.value, {"mode": mode}) for mode in Mode if mode is not BASE.mode),
        ("mara+no-filter", {"filter_facts": False}),
        ("mara+no-beta", {"weigh_relations": False}),
        ("mara+no-passage-seeds", {"walk.passage_weight": 0.0}),
        ("mara+damping=0.5", {"walk.damping": 0.5}),
        ("mara+adaptive_passage_weight=true", {"walk.adaptive_passage_weight": True}),
        ("mara+preset=seed", {"preset": Preset.SEED}),
        ("ragenta+n=1+alpha=0.7", {"n": 1.0, "walk.alpha": 0.7}),
        ("ragenta+no-judge+answer_passages=5", {"judge_passages": False, "answer_passages": 5}),
        ("ragenta+no-follow-ups", {"follow_ups.rounds": 0}),
        ("ragenta+walk+no-beta+judge_floor=-1", {"mode": Mode.MARA, "weigh_relations": False, "judge_floor": -1.0}),
        ("basic-rag+walk", {**basic, "mode": Mode.MARA}),
        ("hybrid+alpha=0.5", {"mode": Mode.HYBRID, "walk.alpha": 0.5}),
    ]
    for spec, changed in cases:
        system = parse_system(spec, BASE)
        assert (system.name, system.controls) == (spec, ())
        assert changed_by(spec) == changed, spec
    assert parse_system("mara + alpha = .5", BASE).context == parse_system("mara+alpha=.5", BASE).context
    assert parse_system("ragenta", BASE.model_copy(update={"mode": Mode.DENSE})).context.mode is Mode.HYBRID


def test_an_oracle_filter_has_thirty_candidates_unless_another_number_is_set() -> None:
    assert parse_system("hipporag2+oracle-filter", BASE).context.walk.fact_candidates == 30
    assert parse_system("hipporag2+fact_candidates=5+oracle-filter", BASE).context.walk.fact_candidates == 5


def test_an_impossible_system_is_refused_with_the_possible_ones() -> None:
    cases = [
        ("mars", "'mars' is not a system. Take one of mara, hipporag2, mara-matrix, dense, sparse, hybrid, ragenta"),
        ("mara+no-bets", "is not a switch. Take no-filter, no-beta"),
        *((f"mara+{switch}", "is not a switch") for switch in ("workspace=/etc", "mode=dense", "top_k=5")),
        ("mara+damping=1.5", "damping: Input should be less than or equal to 0.99"),
        ("mara+damping=0.5+damping=0.6", "says twice what damping is"),
        *((f"mara+{two}", "says twice what weigh_relations is") for two in TWO_BETAS),
        ("hipporag2+oracle-beta", "asks for a β that mode hipporag2 does not use"),
        ("dense+oracle-filter", "has controls, and nothing that they could control"),
        ("mara+no-judge", "judge_passages is not known"),
        *((spec, "says twice what mode is") for spec in ("mara+walk", "ragenta+walk+walk")),
        ("ragenta+oracle-filter", "has controls, and nothing that they could control"),
        ("ragenta+max_follow_ups=9", "follow_ups.questions: Input should be less than or equal to 3"),
    ]
    for spec, said in cases:
        with pytest.raises(BadInput) as refused:
            parse_system(spec, BASE)
        assert said in str(refused.value), spec


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


def test_a_system_that_needs_a_chat_model_is_refused_without_one() -> None:
    for spec in ("closed-book", "mara+offline-agents"):
        with pytest.raises(BadInput, match="needs a chat model, and none is configured"):
            parse_system(spec, BASE)
        assert parse_system(spec, BASE.model_copy(update={"model": "scripted"})).name == spec


def test_a_system_describes_itself_down_to_the_walk_and_says_nothing_of_the_machine() -> None:
    described = parse_system("mara+oracle-beta+damping=0.5", BASE).describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["mode"], described["controls"], described["chat_model"]) == ("mara", ["oracle-beta"], "offline")
    assert (described["walk"]["damping"], described["context"]["top_k"]) == (0.5, 20)
    assert "somewhere" not in json.dumps(described)
    described = parse_system("ragenta", BASE).describe()
    assert (described["workflow"], described["mode"], described["walk"]) == ("ragenta", "hybrid", None)
