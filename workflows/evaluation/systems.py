"""Systems under evaluation: a mode or a workflow with switches, as in ``mara+no-beta+damping=0.5``, ``ragenta+n=1``.

Two more answer without retrieval: ``closed-book`` and ``gold-passages``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from workflows.context import Context, make_context
from workflows.runs.runner import described
from workflows.runtime.resources import OFFLINE, chat_model_name
from workflows.settings.enums import Workflow
from workflows.settings.ragenta import RagentaContext

ORACLE_CANDIDATES = 30
"""The number of facts that an oracle filter chooses among."""


class Control(StrEnum):
    """A control that stands in for an agent of a system."""

    UNIFORM_BETA = "uniform-beta"
    """β that prefers nothing."""
    RANDOM_BETA = "random-beta"
    """β drawn by the seed and the question."""
    ORACLE_BETA = "oracle-beta"
    """The β of a small set that ranks the gold passages best."""
    ORACLE_FILTER = "oracle-filter"
    """The candidate facts that a gold passage supports."""
    OFFLINE_AGENTS = "offline-agents"
    """The offline fact filter and manager, beside a chat model that answers."""

    @property
    def weighs_relations(self) -> bool:
        """Whether it stands in for the manager alone."""
        return self not in (Control.ORACLE_FILTER, Control.OFFLINE_AGENTS)

    @property
    def settings(self) -> Mapping[str, bool]:
        """The settings that switch on the agents which it stands in for."""
        manager = {} if self is Control.ORACLE_FILTER else {"weigh_relations": True}
        return manager if self.weighs_relations else {"filter_facts": True, **manager}


class Given(StrEnum):
    """The passages that a system is given in place of retrieval."""

    CLOSED_BOOK = "closed-book"
    """No passage: a chat model answers from what it knows."""
    GOLD_PASSAGES = "gold-passages"
    """The gold passages."""


SWITCHES: Mapping[str, Mapping[str, Any]] = {
    "no-filter": {"filter_facts": False},
    "no-beta": {"weigh_relations": False},
    "no-synonyms": {"walk.synonym_edges": False},
    "no-passage-seeds": {"walk.passage_weight": 0.0},
    "no-fact-seeds": {"walk.entity_seeds": 0},
    "no-names": {"walk.name_weight": 0.0},
    "no-name-shares": {"walk.name_shares": False},
    "no-titles": {"walk.title_edges": False},
    "no-mentions": {"walk.mention_edges": False},
    "undirected": {"walk.directed": False},
    "no-fact-bar": {"walk.fact_bar": 0.0},
    "fixed-damping": {"walk.least_damping": 0.99},
    "no-convergence": {"walk.convergence": 0.0},
    "no-coverage": {"walk.coverage": 0.0},
    "no-tuning": {"walk.tuned": False},
    "no-judge": {"judge_passages": False},
    "no-claims": {"check_claims": False},
    "no-follow-ups": {"follow_ups.rounds": 0},
    "walk": {"mode": Mode.MARA},
}
"""Named switches, with the settings that each stands for."""

ABLATIONS = (
    "mara+no-filter",
    "mara+no-beta",
    "mara+no-synonyms",
    "mara+no-passage-seeds",
    "mara+no-fact-seeds",
    "mara+no-names",
    "mara+no-fact-bar",
    "mara+no-name-shares",
    "mara+fixed-damping",
    "mara+no-convergence",
    "mara+no-coverage",
    "mara+no-titles",
    "mara+no-mentions",
    "mara+undirected",
    "mara+entity_rarity=inverse",
    "mara+seed_sharpness=1",
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
"""The systems that ``mara eval --ablations`` asks beside the modes."""

_NAMED: Mapping[str, tuple[Workflow, Mapping[str, Any]]] = {
    **{mode.value: (Workflow.MARA, {"mode": mode}) for mode in Mode},
    "ragenta": (Workflow.RAGENTA, {}),
    "basic-rag": (Workflow.RAGENTA, {"judge_passages": False, "check_claims": False}),
    **{given.value: (Workflow.MARA, {}) for given in Given},
}
"""The named systems: the workflow of each, and the settings that its name stands for."""

ANSWER_SYSTEMS = (
    *(Given.CLOSED_BOOK.value, Given.GOLD_PASSAGES.value, "dense", "hybrid", "hipporag2"),
    *(f"mara+{Control.OFFLINE_AGENTS}", "mara", "ragenta", "ragenta+walk"),
)
"""The systems that ``mara eval --answers`` sets side by side."""

NEED_A_MODEL: Mapping[str, str] = {
    Given.CLOSED_BOOK.value: "asks a chat model alone",
    f"mara+{Control.OFFLINE_AGENTS}": "is `mara` where no chat model answers",
}
"""Those that cannot be asked without a chat model, and why."""

_OF_THE_RUN = frozenset({"workspace", "mode", "where", "top_k", "as_of"})
_NAMES = {name: path for name, path in RagentaContext.known_names().items() if name not in _OF_THE_RUN}
"""The settings that a switch may name, each with its path."""
_SHORT = sorted({path.removeprefix("walk.") for path in _NAMES.values()} - {"walk", "follow_ups"})


@dataclass(frozen=True, slots=True)
class System:
    """A mode, or a workflow, with switches.

    Attributes:
        name: as it was written, without spaces.
        context: its settings.
        controls: what stands in for its agents.
        given: what stands in for its retrieval; None where it retrieves.
    """

    name: str
    context: Context
    controls: tuple[Control, ...] = ()
    given: Given | None = None

    def describe(self) -> dict[str, Any]:
        """Return its settings as plain values, down to those of the walk; where the workspace is, is left out."""
        return described(self.context, (*self.controls, *([self.given] if self.given else ())))


def is_control(settings: Mapping[str, Any]) -> bool:
    """Tell whether a system that `System.describe` describes is no result; with offline agents alone it is one."""
    return bool(set(settings["controls"]) - {Control.OFFLINE_AGENTS})


def answer_systems(chat_model: str) -> list[str]:
    """Return `ANSWER_SYSTEMS`, less those that need a chat model where there is none."""
    return [name for name in ANSWER_SYSTEMS if chat_model != OFFLINE or name not in NEED_A_MODEL]


def parse_systems(specs: Sequence[str], base: Context) -> list[System]:
    """Return the systems that are written. Raises BadInput for one that cannot be, or that is given twice."""
    systems = {system.name: system for system in (parse_system(spec, base) for spec in specs)}
    if len(systems) < len(specs):
        raise BadInput("A system is given twice", "Give each --mode once")
    return list(systems.values())


def parse_system(spec: str, base: Context) -> System:
    """Return the system that is written as NAME, or NAME+SWITCH+SETTING=VALUE and so on.

    Args:
        spec: a mode, ``ragenta`` or ``basic-rag`` (RAGentA without judge and claim check), and switches; what they
            are, the error for an unknown one tells.
        base: the settings that all systems share.

    Raises:
        BadInput: the name or a switch is unknown, a value is out of range, two switches are about the same, a control
            has nothing to control, or the system needs a chat model and there is none.
    """
    first, *switches = (part.strip() for part in spec.split("+"))
    if first not in _NAMED:
        raise BadInput(f"{first!r} is not a system", f"Take one of {_listed(_NAMED)}")
    workflow, settings = _NAMED[first]
    controls: list[Control] = []
    for switch in switches:
        named, control = _read_switch(switch, spec)
        claimed = named or (control.settings if control else {})
        twice = settings.keys() & claimed.keys()
        if twice:
            names = _listed(sorted(path.removeprefix("walk.") for path in twice))
            raise BadInput(f"{spec!r} says twice what {names} is", "Leave one of the switches out")
        settings = {**settings, **claimed}
        controls += [control] if control else []
    if Control.ORACLE_FILTER in controls:
        settings = {"walk.fact_candidates": ORACLE_CANDIDATES, **settings}
    name = "+".join((first, *switches))
    shared = base.model_dump(exclude_unset=True, exclude={"mode", "walk"})
    walk = {f"walk.{part}": value for part, value in base.walk.model_dump(exclude_unset=True).items()}
    context = make_context(workflow, **{**shared, **walk, **settings})
    instead = Given(first) if first in list(Given) else None
    if controls and (instead or not context.mode.walks):
        raise BadInput(f"{spec!r} has controls, and nothing that they could control", "Leave them out")
    needs_model = instead is Given.CLOSED_BOOK or Control.OFFLINE_AGENTS in controls
    if needs_model and chat_model_name(context) == OFFLINE:
        raise BadInput(f"{spec!r} needs a chat model, and none is configured", "Name one with --model, or leave it out")
    if any(control.weighs_relations for control in controls) and not context.walk_settings().beta:
        raise BadInput(f"{spec!r} asks for a β that mode {context.mode.value} does not use", "Leave the switch out")
    return System(name, context, tuple(controls), instead)


def _read_switch(switch: str, spec: str) -> tuple[Mapping[str, Any], Control | None]:
    """Return the settings of a switch, or the control that it is."""
    if switch in SWITCHES:
        return SWITCHES[switch], None
    if switch in list(Control):
        return {}, Control(switch)
    name, equals, value = (part.strip() for part in switch.partition("="))
    if not equals or name not in _NAMES or not value:
        raise BadInput(
            f"{switch!r} in {spec!r} is not a switch",
            f"Take {_listed((*SWITCHES, *Control))}, or SETTING=VALUE of {_listed(_SHORT)}",
        )
    return {RagentaContext.path_of(name): value}, None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(str, names))
