"""What is evaluated: a retrieval mode with switches, written as ``mara+no-beta+damping=0.5``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from graph.errors import BadInput
from graph.factors import FactorPolicy, SynonymyPolicy
from graph.modes import Mode
from workflows.context import Context, make_context
from workflows.evaluation.controls import ORACLE_CANDIDATES, Control
from workflows.resources import chat_model_name, tuning_for

SWITCHES: Mapping[str, Mapping[str, Any]] = {
    "no-filter": {"filter_facts": False},
    "no-beta": {"weigh_relations": False},
    "no-synonyms": {"synonymy": SynonymyPolicy.NONE},
    "no-passage-seeds": {"passage_weight": 0.0},
    "no-fact-seeds": {"entity_seeds": 0},
    "no-names": {"name_weight": 0.0},
    "no-tuning": {"tuned": False},
    **{policy.value: {"policy": policy} for policy in FactorPolicy},
}
"""Named switches, with the settings that each stands for."""

ABLATIONS = (
    "mara+no-filter",
    "mara+no-beta",
    "mara+no-synonyms",
    "mara+no-passage-seeds",
    "mara+no-fact-seeds",
    "mara+no-names",
    "mara+category",
    "mara+facts",
    "mara+relation_strength=0.5",
    "mara+synonymy=attribution",
    "mara+entity_rarity=inverse",
    "mara+seed_sharpness=1",
    "mara+entity_pooling=sum",
    "mara+entity_pooling=noisy-or",
    "mara+adaptive_passage_weight=true",
    "mara+preset=seed",
    "mara+uniform-beta",
    "mara+random-beta",
    "mara+oracle-beta",
    "mara+oracle-filter",
    "mara-matrix+uniform-beta",
    "mara-matrix+oracle-beta",
    "hipporag2+oracle-filter",
)
"""What ``mara eval --ablations`` asks beside the modes."""

_OF_THE_RUN = frozenset({"workspace", "mode", "where", "top_k"})
_OF_THE_ANSWER = frozenset({"model", "temperature", "answer_passages", "max_json_retries"})
_SETTINGS = frozenset(Context.model_fields) - _OF_THE_RUN


@dataclass(frozen=True, slots=True)
class System:
    """A mode with switches.

    Attributes:
        name: as it was written, without spaces.
        context: its settings.
        controls: what stands in for its agents.
    """

    name: str
    context: Context
    controls: tuple[Control, ...] = ()

    def describe(self) -> dict[str, Any]:
        """Return its settings as plain values, down to those of the walk; where the workspace is, is left out."""
        tuning = tuning_for(self.context)
        described = {
            "mode": self.context.mode.value,
            "controls": [control.value for control in self.controls],
            "chat_model": chat_model_name(self.context),
            "context": self.context.model_dump(mode="json", exclude={"workspace", "mode"}, exclude_none=True),
            "walk": asdict(self.context.walk_settings()) if self.context.mode.walks else None,
            "tuning": {"version": tuning.version, "strengths": dict(tuning.strengths)} if tuning.version else None,
        }
        plain: dict[str, Any] = json.loads(json.dumps(described, default=str))
        return plain


def parse_systems(specs: Sequence[str], base: Context) -> list[System]:
    """Return the systems that are written. Raises BadInput for one that cannot be, or that is given twice."""
    systems = [parse_system(spec, base) for spec in specs]
    seen: set[tuple[str, ...]] = set()
    for system in systems:
        mode, *switches = system.name.split("+")
        parts = (mode, *sorted(switches))
        if parts in seen:
            raise BadInput(f"{system.name} is given twice", "Give each --mode once")
        seen.add(parts)
    return systems


def parse_system(spec: str, base: Context) -> System:
    """Return the system that is written as MODE, or MODE+SWITCH+SETTING=VALUE and so on.

    Args:
        spec: a mode and its switches; what they are, the error for an unknown one tells.
        base: the settings that all systems share.

    Raises:
        BadInput: the mode or a switch is unknown, a value is out of range, two switches are about the same, or one
            would change nothing in this mode.
    """
    first, *switches = (part.strip() for part in spec.split("+"))
    mode = _mode_of(first)
    settings: dict[str, Any] = {}
    controls: list[Control] = []
    for switch in switches:
        given, control = _read_switch(switch, spec)
        _check_mode(mode, given, control, switch, spec)
        claimed = given or _claimed_by(control)
        twice = settings.keys() & claimed.keys()
        if twice:
            raise BadInput(f"{spec!r} says twice what {_listed(twice)} is", "Leave one of the switches out")
        settings |= claimed
        controls += [control] if control else []
    if Control.ORACLE_FILTER in controls:
        settings = {"fact_candidates": ORACLE_CANDIDATES, **settings}
    name = "+".join((mode.value, *switches))
    context = make_context(**{**base.model_dump(exclude_unset=True), "mode": mode, **settings})
    if any(control.weighs_relations for control in controls) and not context.walk_settings().beta:
        raise BadInput(f"{spec!r} asks for a β that mode {mode.value} does not use", "Leave the switch out")
    return System(name, context, tuple(controls))


def _mode_of(text: str) -> Mode:
    try:
        return Mode(text)
    except ValueError:
        raise BadInput(f"{text!r} is not a mode", f"Take one of {_listed(Mode)}") from None


def _read_switch(switch: str, spec: str) -> tuple[Mapping[str, Any], Control | None]:
    """Return the settings of a switch, or the control that it is."""
    if switch in SWITCHES:
        return SWITCHES[switch], None
    if switch in list(Control):
        return {}, Control(switch)
    name, equals, value = (part.strip() for part in switch.partition("="))
    if not equals or name not in _SETTINGS or not value:
        raise BadInput(
            f"{switch!r} in {spec!r} is not a switch",
            f"Take {_listed((*SWITCHES, *Control))}, or SETTING=VALUE of {_listed(sorted(_SETTINGS))}",
        )
    return {name: value}, None


def _claimed_by(control: Control | None) -> dict[str, Any]:
    """Return the setting that switches an agent on, which its control stands in for."""
    return {"weigh_relations": True} if control is None or control.weighs_relations else {"filter_facts": True}


def _check_mode(mode: Mode, given: Mapping[str, Any], control: Control | None, switch: str, spec: str) -> None:
    """Raise BadInput where a switch changes nothing."""
    useful = _SETTINGS
    if not mode.walks:
        useful = _OF_THE_ANSWER | ({"alpha"} if mode is Mode.HYBRID else set())
    elif mode is not Mode.MARA:
        useful = _SETTINGS - {"preset"}
    if (control is not None and not mode.walks) or not given.keys() <= useful:
        raise BadInput(f"{switch!r} in {spec!r} changes nothing in mode {mode.value}", "Leave it out")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(str, names))
