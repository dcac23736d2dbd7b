"""The agents that nodes ask, one declaration each, and the one way to ask them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agents.answerer import ChatAnswerer
from agents.chat.model import CUT, ChatModel
from agents.claim_judge import ChatClaimJudge
from agents.fact_filter import ChatFactFilter
from agents.final_predictor import ChatFinalPredictor
from agents.judge import ChatJudge
from agents.manager import ChatManager
from agents.offline.answerer import OfflineAnswerer
from agents.offline.claim_judge import OfflineClaimJudge
from agents.offline.fact_filter import OfflineFactFilter
from agents.offline.final_predictor import OfflineFinalPredictor
from agents.offline.judge import OfflineJudge
from agents.offline.manager import OfflineManager
from agents.offline.predictor import OfflinePredictor
from agents.offline.reading.alignment import Embed
from agents.offline.rewriter import OfflineRewriter
from agents.predictor import ChatPredictor
from agents.rewriter import ChatRewriter
from agents.roles import (
    Answer,
    Answerer,
    Assessment,
    ClaimJudge,
    FactChoice,
    FactFilter,
    Feedback,
    FinalAnswer,
    FinalPredictor,
    Judge,
    Judgement,
    Manager,
    Predictor,
    RelationWeights,
    Rewriter,
    Rewriting,
)
from graph.embedding.bert import PACKAGED_MODEL
from graph.errors import BudgetSpent, MalformedReply, MaraError, SlowReply
from graph.retrieve.known_names import KnownNames
from graph.schema import ScoredFact
from workflows.runtime.resources import OFFLINE, OpenRun, chat_model_name, chat_model_of
from workflows.runtime.tracing import (
    Values,
    answer_shown,
    assessment_shown,
    choice_shown,
    final_answer_shown,
    judgement_shown,
    prediction_shown,
    rewriting_shown,
    step,
    weights_shown,
)
from workflows.settings.mara import Context
from workflows.states.records import Update, feedback_from, refusal_of

_RETRIES: Mapping[type[MaraError], int] = {SlowReply: 1, BudgetSpent: 0}
"""How often an agent is asked again after a fault, where the settings do not say less."""

Role = TypeVar("Role")
Said = TypeVar("Said")


@dataclass(frozen=True, slots=True)
class AgentStep(Generic[Role, Said]):
    """An agent, and how a workflow asks it.

    Attributes:
        name: its step in a trace.
        key: begins the keys of the state that count its attempts and hold its refused reply.
        chat: makes it from a chat model, for a run.
        offline: makes its offline twin.
        shown: what a trace shows of a reply.
        own: the caller's own agent, or one that the settings ask for, in place of both.
        temperature: of the chat model.
    """

    name: str
    key: str
    chat: Callable[[ChatModel, OpenRun], Role]
    offline: Callable[[OpenRun], Role]
    shown: Callable[[Said], Values]
    own: Callable[[Context], Role | None] = lambda context: None
    temperature: Callable[[Context], float] = lambda context: context.temperature

    @property
    def attempts(self) -> str:
        """The key of the state that counts its attempts."""
        return f"{self.key}_attempts"

    @property
    def refusal(self) -> str:
        """The key of the state that holds its last reply where that was malformed."""
        return f"{self.key}_refusal"

    @property
    def not_asked(self) -> Update:
        """What the state holds before it is asked."""
        return {self.attempts: 0, self.refusal: None}

    def of(self, run: OpenRun) -> Role:
        """Return the agent of a run. Raises ModelUnavailable."""
        own = self.own(run.context)
        if own is not None:
            return own
        model = chat_model_of(run.context, self.temperature(run.context))
        return self.chat(model, run) if model else self.offline(run)

    def fell_back(self, state: Mapping[str, Any], run: OpenRun, instead: str) -> Update:
        """Return what its fallback node tells, beside what it puts in place of the reply.

        Args:
            state: holds the last refusal.
            run: the run that falls back.
            instead: what is done without a reply, in words.
        """
        called = self.name.replace("_", " ")
        kind = (state.get(self.refusal) or {}).get("kind")
        if kind == SlowReply.__name__:
            message = f"The {called}'s replies stayed too slow: {instead}"
        elif kind == BudgetSpent.__name__:
            message = f"Nothing was left to ask the {called}: {instead}"
        else:
            message = f"The {called}'s replies stayed malformed: {instead}"
        return {"errors": [run.error("Fallback", message, state.get(self.attempts, 0))]}


@dataclass(frozen=True, slots=True)
class Reply(Generic[Said]):
    """What came of asking an agent.

    Attributes:
        said: its reply; None where that was malformed.
        attempt: which it was, from 1.
        update: what the state is told: the attempt and, of a malformed reply, why it was refused.
    """

    said: Said | None
    attempt: int
    update: Update


def ask(
    agent: AgentStep[Role, Said],
    state: Mapping[str, Any],
    run: OpenRun,
    inputs: Callable[[], Values],
    work: Callable[[Role, Feedback | None], Said],
    spent: Callable[[int], bool] = lambda attempt: False,
) -> Reply[Said]:
    """Ask an agent as a step of the trace; a malformed reply is refused, a slow one given up, and each asked for again.

    A refusal is final where no retry is left: then the fallback node follows. A slow reply is asked for once more,
    and so is one that ran into its limit, which takes as long; nothing where nothing is left of the question's budget.

    Args:
        agent: who is asked.
        state: counts the attempts and holds the last refusal.
        run: the run that asks.
        inputs: what the trace shows of the question.
        work: asks the agent, given why its last reply was refused.
        spent: tells whether no call is left after an attempt, whatever the retries.
    """
    attempt = state.get(agent.attempts, 0) + 1
    feedback = feedback_from(state.get(agent.refusal))
    try:
        said = step(
            "chain",
            agent.name,
            inputs,
            lambda: work(agent.of(run), feedback),
            agent.shown,
            {"mara_attempt": attempt},
        )
    except (MalformedReply, SlowReply, BudgetSpent) as fault:
        retries = min(_RETRIES.get(type(fault), run.context.max_json_retries), run.context.max_json_retries)
        if CUT in (fault.message, (state.get(agent.refusal) or {}).get("reason")):
            retries = min(retries, _RETRIES[SlowReply])
        refusal = refusal_of(fault, final=attempt > retries or spent(attempt))
        errors = [run.error(fault.kind, str(fault), attempt, refusal["raw"])]
        return Reply(None, attempt, {agent.attempts: attempt, agent.refusal: refusal, "errors": errors})
    return Reply(said, attempt, {agent.attempts: attempt, agent.refusal: None})


class KeepAllFacts:
    """The fact filter of runs that want none: every candidate is kept."""

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        """Return all candidates, whatever ``max_facts`` says."""
        return FactChoice(tuple(candidates))


def _own_fact_filter(context: Context) -> FactFilter | None:
    """Return the caller's own filter, or none at all: the modes that run as published use a model's alone."""
    if context.own_fact_filter is not None:
        return context.own_fact_filter
    without_model = context.mode.as_published and chat_model_name(context) == OFFLINE
    return KeepAllFacts() if not context.filter_facts or without_model else None


LEAST_LIKENESS = 0.37
"""The least cosine of evidence with the packaged embedding model; that of other models lies elsewhere."""


def _comparing_sentences(twin: Callable[[Embed, float], Role]) -> Callable[[OpenRun], Role]:
    """Return what makes an offline twin that compares sentences with the index's embedding model."""

    def of_run(run: OpenRun) -> Role:
        return twin(run.index.embed, LEAST_LIKENESS if run.index.embedder.model_id == PACKAGED_MODEL else 0.0)

    return of_run


def _whatever_run(agent: Callable[[ChatModel], Role]) -> Callable[[ChatModel, OpenRun], Role]:
    """Return what makes an agent that needs a chat model alone."""
    return lambda model, run: agent(model)


REWRITER: AgentStep[Rewriter, Rewriting] = AgentStep(
    name="rewriter",
    key="rewriter",
    chat=_whatever_run(ChatRewriter),
    offline=lambda run: OfflineRewriter(KnownNames(run.index.graph, run.selection)),
    shown=rewriting_shown,
    own=lambda context: context.own_rewriter,
)
FACT_FILTER: AgentStep[FactFilter, FactChoice] = AgentStep(
    name="fact_filter",
    key="filter",
    chat=_whatever_run(ChatFactFilter),
    offline=lambda run: OfflineFactFilter(),
    shown=choice_shown,
    own=_own_fact_filter,
)
MANAGER: AgentStep[Manager, RelationWeights] = AgentStep(
    name="manager",
    key="manager",
    chat=lambda model, run: ChatManager(model, run.index.graph.own),
    offline=lambda run: OfflineManager(run.index.graph.own),
    shown=weights_shown,
    own=lambda context: context.own_manager,
    temperature=lambda context: context.manager_temperature,
)
ANSWERER: AgentStep[Answerer, Answer] = AgentStep(
    name="answerer",
    key="answer",
    chat=_whatever_run(ChatAnswerer),
    offline=_comparing_sentences(OfflineAnswerer),
    shown=answer_shown,
    own=lambda context: context.own_answerer,
)
PREDICTOR: AgentStep[Predictor, str] = AgentStep(
    "predictor", "predict", _whatever_run(ChatPredictor), lambda run: OfflinePredictor(), prediction_shown
)
JUDGE: AgentStep[Judge, Judgement] = AgentStep(
    "judge", "score", _whatever_run(ChatJudge), lambda run: OfflineJudge(), judgement_shown
)
FINAL_PREDICTOR: AgentStep[FinalPredictor, FinalAnswer] = AgentStep(
    "final_predictor",
    "answer",
    _whatever_run(ChatFinalPredictor),
    _comparing_sentences(OfflineFinalPredictor),
    final_answer_shown,
)
CLAIM_JUDGE: AgentStep[ClaimJudge, Assessment] = AgentStep(
    "claim_judge", "claim", _whatever_run(ChatClaimJudge), _comparing_sentences(OfflineClaimJudge), assessment_shown
)
AGENTS: tuple[AgentStep[Any, Any], ...] = (
    *(REWRITER, FACT_FILTER, MANAGER, ANSWERER),
    *(PREDICTOR, JUDGE, FINAL_PREDICTOR, CLAIM_JUDGE),
)
"""Every agent that a workflow of questions asks."""
