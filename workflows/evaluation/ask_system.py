"""Ask one system one question, and write down the outcome: a row of results and a row of timings.

Controls stand in for agents: they know nothing of a question, or know its gold passages, to tell how much there is to
win. The oracle of β is the manager who knows the gold passages, and chooses among a few simple β.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from langgraph.graph import START

from agents.answerer import ClosedBookAnswerer
from agents.chat.usage import tallied
from agents.fact_filter import FactChoice, OfflineFactFilter
from agents.manager import OfflineManager, RelationWeights
from agents.roles import Feedback
from graph.construction.knowledge_graph import GraphFact
from graph.errors import ServiceUnavailable
from graph.own_types import OwnTypes
from graph.relations import fact_relations
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT
from graph.retrieve.search import factors_for, restart_of, walk_passages
from graph.schema import PASSAGE_RELATIONS, RelationFactors, RelationType, ScoredFact
from graph.walk.strengths import tuned
from workflows import retrieval
from workflows.answering import graph_of
from workflows.context import Context, Question
from workflows.evaluation import FIRST_PAGE, exact_match, recall_at_k, reciprocal_rank, token_f1
from workflows.evaluation.attribution import (
    attribution_of,
    checking_of,
    cited_passages,
    supported_citations,
    unattributed,
)
from workflows.evaluation.systems import Control, Given, System
from workflows.mara import add_answering, no_answer
from workflows.nodes.retrieval import begin
from workflows.runs.question_files import AskedQuestion
from workflows.runs.run_folder import Answered, Row, rounded
from workflows.runs.runner import outcome_of
from workflows.runtime.node import node
from workflows.runtime.resources import OFFLINE, OpenRun, chat_model_of, open_workspace_index, selection_of, tuning_for
from workflows.runtime.workflow_graph import TRANSPORT_RETRIES, WorkflowBuilder
from workflows.states.conversion import passage_hits, start_of
from workflows.states.records import FIRST_NODE, NO_USAGE, Update, UsageRecord, add_usage, usage_record
from workflows.states.shared import Asked, Output, State

SHOWN_PASSAGE_SEEDS = 20
"""The number of passage seeds, heaviest first, in a row of results."""

WORKFLOW = "given passages"
_ERROR_KEYS = ("node", "kind", "message", "attempt")
_FACT_KEYS = ("subject", "predicate", "object", "relation", "score", "kept")


class GivenPassages(Asked):
    """A question and the ids of the passages to answer it from."""

    passage_ids: list[str]


class GivenState(State):
    """The state of workflow mara, and what was given."""

    passage_ids: list[str]


@node()
def encode_question(state: GivenPassages, run: OpenRun) -> Update:
    """Start afresh, and lay out those of the given passages that the index holds."""
    place = run.index.graph.passage_index
    hits = [(place[key], 1.0) for key in state["passage_ids"] if key in place]
    return {
        **begin(state, run),
        **no_answer(),
        "workflow": WORKFLOW,
        "passages": passage_hits(run.index, hits),
        "ranked_by": "given",
        "checks_claims": run.context.check_claims,
    }


def build() -> WorkflowBuilder[GivenState, Context, GivenPassages, Output]:
    """Return the builder of workflow mara with given passages in place of retrieval: the gold ones, or none."""
    builder: WorkflowBuilder[GivenState, Context, GivenPassages, Output] = WorkflowBuilder(
        GivenState, TRANSPORT_RETRIES, context_schema=Context, input_schema=GivenPassages, output_schema=Output
    )
    builder.add(encode_question)
    add_answering(builder)
    builder.add_edge(START, FIRST_NODE)
    builder.add_edge(FIRST_NODE, "write_answer")
    return builder


_ANSWERING = build().compile(name=WORKFLOW).with_config(recursion_limit=retrieval.RECURSION_LIMIT)


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question, with the ids of its gold passages in the workspace."""

    asked: AskedQuestion
    gold_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks a system questions on one generation of a workspace; safe across threads.

    Attributes:
        system: the one that is asked.
        generation: what the workspace held when the run began.
        seed: of random β.
        retrieval_only: whether passages are retrieved and no answer is written.
    """

    system: System
    generation: int
    seed: int
    retrieval_only: bool

    def warm_up(self, question: GoldQuestion) -> None:
        """Retrieve once without any chat model, so that no question pays for what is loaded once; tell nothing.

        Raises:
            MaraError: the system cannot answer anything at all.
        """
        offline = self.system.context.model_copy(update={"model": OFFLINE})
        retrieval.graph.invoke(Question(question=question.asked.question), context=offline)
        open_workspace_index(self.system.context).forget_vectors()

    def ask(self, question: GoldQuestion, before: Answered | None) -> tuple[Answered, ServiceUnavailable | None]:
        """Return what the system makes of a question, and why a model or a server failed it, if one did.

        A question that could not be answered has nothing retrieved and nothing right; its row says why.

        Args:
            question: what is asked.
            before: what came of it when it was asked before; its usage is counted on from there.

        Raises:
            BadInput: the workspace was indexed again since the run began.
            MaraError: the workspace or a package is at fault.
        """
        with tallied() as spent:
            result, failed, fault = outcome_of(lambda: self._result(question), self.generation)
        usage = add_usage(before.timing["usage"] if before else NO_USAGE, usage_record(spent.usage))
        return self._answered(question, result, failed, usage), fault

    def _result(self, question: GoldQuestion) -> dict[str, Any]:
        """Return what the system's graph gives, and under ``total_ms`` the milliseconds that it took."""
        context = context_for(self.system, question.asked.question, question.gold_ids, self.seed)
        graph: Any = retrieval.graph if self.retrieval_only else graph_of(self.system.context.workflow)
        asked: Any = Question(question=question.asked.question)
        if self.system.given is not None:
            ids = list(question.gold_ids) if self.system.given is Given.GOLD_PASSAGES else []
            graph, asked = _ANSWERING, {"question": question.asked.question, "passage_ids": ids}
        start = time.perf_counter()
        result = graph.invoke(asked, context=context)
        return {**result, "total_ms": round((time.perf_counter() - start) * 1000, 3)}

    def _answered(
        self, question: GoldQuestion, result: Mapping[str, Any], failed: Row | None, usage: UsageRecord
    ) -> Answered:
        asked = question.asked
        seeds = result.get("seeds") or {}
        passage_seeds = sorted(seeds.get("passages", ()), key=lambda seed: -seed["weight"])
        # Passages of follow-up questions are no part of the ranking.
        retrieved = [hit for hit in result.get("passages", ()) if "follow_up" not in hit]
        row = {
            "id": asked.id,
            "question": asked.question,
            "type": asked.type,
            "hops": asked.hops,
            "system": self.system.name,
            "mode": (self.system.given or self.system.context.mode).value,
            "workflow": "retrieval" if self.retrieval_only else self.system.context.workflow.value,
            "gold_ids": list(question.gold_ids),
            "gold_answers": list(asked.answers),
            "retrieved_ids": [hit["id"] for hit in retrieved],
            "retrieved_scores": [hit["score"] for hit in retrieved],
            "ranked_by": result.get("ranked_by", ""),
            **self._answer(question, result, failed=failed is not None),
            "relation_factors": result.get("relation_factors"),
            "passage_weight": result.get("passage_weight"),
            "fact_outcome": result.get("fact_outcome", ""),
            "facts": [{key: fact[key] for key in _FACT_KEYS} for fact in result.get("facts", ())],
            "seeds": {"entities": seeds.get("entities", []), "passages": passage_seeds[:SHOWN_PASSAGE_SEEDS]},
            **checking_of(result),
            "errors": [{key: error[key] for key in _ERROR_KEYS} for error in result.get("errors", ())],
            "failed": failed,
        }
        times = {"total_ms": result.get("total_ms"), "timings_ms": result.get("timings_ms", {}), "usage": usage}
        return Answered(rounded(row), {"id": asked.id, "system": self.system.name, **times})

    def _answer(self, question: GoldQuestion, result: Mapping[str, Any], *, failed: bool) -> Row:
        """Return what a row says of the answer; a refusal is never right, whatever words it shares with the gold."""
        answers = not self.retrieval_only
        if failed or not answers:
            score = 0.0 if answers and question.asked.answers else None
            return {
                "answer": None,
                "refused": None,
                "citations": [],
                **unattributed(question.gold_ids, failed=failed and answers),
                "em": score,
                "f1": score,
            }
        return {
            "answer": result["answer"],
            "refused": result["refused"],
            "citations": _judged_citations(result, question.gold_ids),
            **attribution_of(result, question.gold_ids),
            "em": _score(exact_match, result, question),
            "f1": _score(token_f1, result, question),
        }


def _score(
    measure: Callable[[str, Sequence[str]], float], result: Mapping[str, Any], question: GoldQuestion
) -> float | None:
    golds = question.asked.answers
    if not golds:
        return None
    return 0.0 if result["refused"] else measure(result["plain_answer"], golds)


def _judged_citations(result: Mapping[str, Any], gold_ids: Sequence[str]) -> list[Row]:
    """Return the citations of an answer, whether each is supported, and whether it names a gold passage."""
    cited, passages = cited_passages(result)
    supported = supported_citations(result["answer"], passages)
    return [
        {"number": number, "passage_id": key, "supported": supported.get(number, False), "gold": key in gold_ids}
        for number, key in cited.items()
    ]


DOMINANT_SHARE = 0.6
"""The share that a candidate's preferred type takes of its category; the others share the rest evenly."""


class FixedManager:
    """Gives the same β whatever is asked, with the usual passage weight."""

    def __init__(self, factors: RelationFactors) -> None:
        self._factors = factors

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return the weights."""
        return RelationWeights(self._factors, DEFAULT_PASSAGE_WEIGHT)


class RandomManager:
    """Draws β for each question from all there are, evenly (Dirichlet, all parameters 1).

    The draw depends on the seed and the question alone, and not on the order in which questions are asked.
    """

    def __init__(self, seed: int, own: Sequence[RelationType] = ()) -> None:
        self._seed = seed
        self._own = own

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return the weights, with the usual passage weight."""
        digest = hashlib.blake2b(question.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        source = np.random.default_rng([abs(self._seed), int(self._seed < 0), int.from_bytes(digest)])

        def draw(relations: Sequence[RelationType]) -> dict[str, float]:
            shares = source.dirichlet(np.ones(len(relations)))
            return {relation.value: float(share) for relation, share in zip(relations, shares, strict=True)}

        factors = RelationFactors(draw(fact_relations(self._own)), draw(PASSAGE_RELATIONS))
        return RelationWeights(factors, DEFAULT_PASSAGE_WEIGHT)


class OracleFilter:
    """Keeps the candidates that a gold passage supports: a filter that makes no mistake.

    Args:
        facts: of the graph, by id.
        gold: places of the gold passages among the graph's.
    """

    def __init__(self, facts: Mapping[str, GraphFact], gold: Collection[int]) -> None:
        self._facts = facts
        self._gold = frozenset(gold)

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        """Return the first ``max_facts`` of them."""
        known = ((each, self._facts.get(each.fact.id)) for each in candidates)
        kept = [each for each, fact in known if fact is not None and not self._gold.isdisjoint(fact.passages)]
        return FactChoice(tuple(kept[:max_facts]))


def candidate_factors(own: Sequence[RelationType] = ()) -> list[RelationFactors]:
    """Return the β that the oracle chooses among: uniform, and one dominant type of either category."""
    uniform, between_entities = RelationFactors.uniform(own), fact_relations(own)
    return [
        uniform,
        *(RelationFactors(_dominated(between_entities, each), uniform.entity_passage) for each in between_entities),
        *(RelationFactors(uniform.entity_entity, _dominated(PASSAGE_RELATIONS, each)) for each in PASSAGE_RELATIONS),
    ]


def context_for(system: System, question: str, gold_ids: Sequence[str], seed: int) -> Context:
    """Return a system's context for one question, with its controls in place of the agents.

    Args:
        system: whose context it is.
        question: what is asked.
        gold_ids: of the passages that hold the answer.
        seed: what random β depends on, beside the question.

    Raises:
        ModelUnavailable: a closed book needs the chat model, which cannot be opened.
    """
    context = system.context
    if system.given is Given.CLOSED_BOOK and (model := chat_model_of(context, context.temperature)):
        context = context.with_agents(answerer=ClosedBookAnswerer(model))
    for control in sorted(system.controls, key=lambda control: control.weighs_relations):
        if control is Control.ORACLE_FILTER:
            context = context.with_agents(fact_filter=_oracle_filter(context, gold_ids))
        elif control is Control.OFFLINE_AGENTS:
            context = context.with_agents(fact_filter=OfflineFactFilter(), manager=OfflineManager(_own_types(context)))
        elif control is Control.UNIFORM_BETA:
            context = context.with_agents(
                manager=FixedManager(RelationFactors.uniform(_own_types(context).relation_types))
            )
        elif control is Control.RANDOM_BETA:
            context = context.with_agents(manager=RandomManager(seed, _own_types(context).relation_types))
        else:
            best = best_factors(context, question, gold_ids)
            open_workspace_index(context).forget_vectors()
            context = context.with_agents(manager=FixedManager(best))
    return context


def best_factors(context: Context, question: str, gold_ids: Sequence[str]) -> RelationFactors:
    """Return the candidate whose walk has the best recall of gold passages among the first five.

    Ties go to the better rank of the first gold passage, then to the earlier candidate: uniform comes first, and is
    returned where there is no walk or no gold passage. All candidates walk from the seeds of uniform β.
    """
    own = _own_types(context).relation_types
    candidates = candidate_factors(own)
    settings, uniform = context.walk_settings(), FixedManager(candidates[0])
    searched: Any = retrieval.graph.invoke(Question(question=question), context=context.with_agents(manager=uniform))
    if searched.get("ranked_by") != "walk" or not gold_ids:
        return candidates[0]
    index = open_workspace_index(context, searched["generation"])
    selection = selection_of(context, index)
    start, _ = start_of(index, searched, settings, selection)
    restart = restart_of(index, start)
    tuning = tuning_for(context)

    def worth(beta: RelationFactors) -> tuple[float, float]:
        factors = tuned(factors_for(beta, settings, own), tuning.strengths, own)
        ranking, _ = walk_passages(
            index, start.words, restart, factors, start.settings, context.top_k, context.walk.engine, selection
        )
        ids = [index.graph.passage_ids[place] for place, _ in ranking]
        return recall_at_k(ids, gold_ids, FIRST_PAGE), reciprocal_rank(ids, gold_ids)

    return max(candidates, key=worth)


def _oracle_filter(context: Context, gold_ids: Sequence[str]) -> OracleFilter:
    index = open_workspace_index(context)
    places = index.graph.passage_index
    return OracleFilter(index.graph.facts, [places[key] for key in gold_ids if key in places])


def _own_types(context: Context) -> OwnTypes:
    return open_workspace_index(context).graph.own


def _dominated(relations: Sequence[RelationType], dominant: RelationType) -> dict[str, float]:
    rest = (1 - DOMINANT_SHARE) / (len(relations) - 1)
    return {relation.value: DOMINANT_SHARE if relation == dominant else rest for relation in relations}
