"""The typed state of the workflows: plain JSON-like values, no vector, no graph, no score of all passages.

A workflow has one state; a node says which of its keys it reads (`workflows.runtime.node.node`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NotRequired, Required

from pydantic import TypeAdapter, ValidationError

# pydantic, and so the schemas, takes no other before Python 3.12.
from typing_extensions import TypedDict, get_type_hints

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from workflows.settings.problems import problems_of
from workflows.states.records import (
    CitationMark,
    ClaimRecord,
    ComponentRecord,
    DraftRecord,
    ErrorRecord,
    FactHit,
    Factors,
    FollowUpRecord,
    PassageCandidate,
    PassageHit,
    Refusal,
    SeedSet,
    TurnRecord,
    Understood,
    UsageRecord,
    add_errors,
    add_timings,
    add_usage,
    most_spent,
)

_HINT = "Correct the edit, or ask again from the start"


class Asked(TypedDict):
    """The input of the first node, which checks it.

    Not a pydantic model: LangGraph would build that from the checkpoint before every later run of a thread, and one
    refused question would shut the thread for good.
    """

    question: str
    turns: NotRequired[list[TurnRecord]]


class Output(TypedDict, total=False):
    """The output of workflow mara, and of every other that answers, in the documented order.

    ``question`` is the one that was searched: completed, where it leant on earlier turns. ``understood`` tells how, and
    is None where the question stood alone; ``fact_outcome`` is ``kept``, ``nothing relevant`` or ``failed``. ``walk``,
    ``relation_factors``, ``passage_weight`` and ``tuning`` are None where nothing walked, or not by them; ``recorded``,
    ids of what was written to the history, where nothing was. ``walk`` tells the engine, the error (L1 over all nodes),
    the number of arcs (None for PRPACK, and under a filter, where they would tell of hidden passages) and the damping.
    ``as_of`` is the date that was asked for, ``models`` the chat model (or ``offline``), the embedding model and the
    vector store. ``claims_checked_by`` is empty where nothing was checked. ``written_from`` are the numbers of the
    passages that the answer was written from. ``cut`` tells that the answer stops at its limit of tokens.
    """

    question: Required[str]
    understood: Understood | None
    mode: Required[str]
    workflow: str
    answer: str
    plain_answer: str
    refused: bool
    answer_kind: str
    cut: bool
    citations: list[CitationMark]
    passages: list[PassageHit]
    ranked_by: str
    walk: dict[str, Any] | None
    facts: list[FactHit]
    fact_outcome: str
    relation_factors: Factors | None
    passage_weight: float | None
    tuning: int | None
    seeds: SeedSet
    timings_ms: Annotated[dict[str, float], add_timings]
    usage: Annotated[UsageRecord, add_usage]
    errors: Annotated[list[ErrorRecord], add_errors]
    models: dict[str, str]
    generation: int
    as_of: str
    recorded: dict[str, Any] | None
    claims: list[ClaimRecord]
    claims_checked_by: str
    structure: str
    components: list[ComponentRecord]
    coverage: str
    follow_ups: list[FollowUpRecord]
    written_from: list[int]


CLAIMS = ("claims", "claims_checked_by", "structure", "components", "coverage", "follow_ups")
"""The keys of an output that tell of its claims."""


class State(Output, total=False):
    """The state of retrieval and of the main workflow: beside the output, retry loops and the keys of routers.

    Each agent has two keys: the attempts so far, and the refused reply that the next attempt is told of, or None.

    Attributes:
        turns: earlier turns as the caller gave them; empty once they were read.
        earlier: those turns that the run's filter lets count.
        leaning: why the question is taken to lean on earlier turns, in words, or that it asks nothing; empty for
            neither.
        asked_at: when, for the history; empty where nothing is to be remembered.
        remembers: whether the turn is written to the history.
        checks_claims: whether claims are to be checked.
        spent: what the question took of its budget, for a fork to go on with; ``usage`` is what the result tells.
        weighs_relations: whether the manager is asked for β.
        nothing_selected: whether the filter selects no passage.
        adaptive_passage_weight: the passage weight that the manager proposed; None where it did not.
        passage_candidates: the passages that the walk may start from, best first.
    """

    turns: list[TurnRecord]
    earlier: list[TurnRecord]
    leaning: str
    asked_at: str
    remembers: bool
    checks_claims: bool
    spent: Annotated[dict[str, float], most_spent]
    weighs_relations: bool
    nothing_selected: bool
    adaptive_passage_weight: float | None
    passage_candidates: list[PassageCandidate]
    rewriter_attempts: int
    rewriter_refusal: Refusal | None
    filter_attempts: int
    filter_refusal: Refusal | None
    manager_attempts: int
    manager_refusal: Refusal | None
    answer_attempts: int
    answer_refusal: Refusal | None


class ClaimState(State, total=False):
    """The state of the claim check, a subgraph of every workflow that answers.

    ``kept``, ``round`` and ``draft`` are those of workflow ragenta; the
    ``assessment`` is an `agents.claim_judge.Assessment` as JSON.
    """

    kept: list[int]
    round: int
    draft: DraftRecord | None
    assessment: dict[str, Any] | None
    claim_attempts: int
    claim_refusal: Refusal | None


def part_of(state: Any, keys: Sequence[str], name: str) -> Any:
    """Return a type of state with some keys of another: what a node or a subgraph reads, or what a graph puts out."""
    functional: Any = TypedDict
    hints = get_type_hints(state, include_extras=True)
    return functional(
        name, {key: hints[key] if key in state.__required_keys__ else NotRequired[hints[key]] for key in keys}
    )


def searched_words(state: Mapping[str, Any]) -> str:
    """Return the words that are searched with: the question's, and those typed once more where it was completed.

    So the words that the user typed weigh more than those it was completed with.
    """
    understood = state.get("understood")
    return f"{state['question']} {understood['asked']}" if understood else str(state["question"])


def check_shape(state: Mapping[str, Any], shape: Any) -> None:
    """Raise BadInput where a state is not of the shape that a node reads: what is wrong, by name.

    Args:
        state: what the node is given.
        shape: the node's own `TypedDict`.
    """
    try:
        _adapter(shape).validate_python(dict(state), strict=True)
    except ValidationError as fault:
        raise BadInput(f"The state cannot be gone on from ({problems_of(fault)})", _HINT) from fault


def mode_of(state: Mapping[str, Any]) -> Mode:
    """Return the mode that a run began with. Raises BadInput where the state names none."""
    try:
        return Mode(state["mode"])
    except (KeyError, ValueError) as fault:
        known = ", ".join(Mode)
        raise BadInput(f"The state's mode is {state.get('mode')!r}", f"Give one of {known}") from fault


def is_final(refusal: Refusal) -> bool:
    """Tell whether no attempt is left. Raises BadInput where what the state holds is no refusal."""
    check_shape({"refusal": refusal}, dict[str, Refusal])
    return refusal["final"]


def check_same_kind(state: Mapping[str, Any], mode: Mode) -> None:
    """Raise BadInput where a run goes on in a mode that walks, having begun in one that does not, or the reverse."""
    begun = mode_of(state)
    if begun.walks != mode.walks:
        message = f"This run began in mode {begun} and cannot go on in mode {mode}: only one of them walks"
        raise BadInput(message, "Ask again from the start in the other mode")


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)
