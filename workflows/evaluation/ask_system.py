"""Ask one system one question, and write down what came of it: a row of results and a row of timings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.graph import START

from agents.chat.usage import tallied
from graph.errors import ServiceUnavailable
from workflows import retrieval
from workflows.ask import graph_of
from workflows.context import Question
from workflows.evaluation import exact_match, token_f1
from workflows.evaluation.attribution import (
    attribution_of,
    checking_of,
    cited_passages,
    supported_citations,
    unattributed,
)
from workflows.evaluation.controls import context_for
from workflows.evaluation.systems import Given, System
from workflows.mara import add_answering, no_answer
from workflows.nodes.retrieval import begin
from workflows.runs.question_files import AskedQuestion
from workflows.runs.run_folder import Answered, Row, rounded
from workflows.runs.runner import outcome_of
from workflows.runtime.node import node
from workflows.runtime.resources import OFFLINE, OpenRun, open_workspace_index
from workflows.runtime.workflow_graph import TRANSPORT_RETRIES, WorkflowBuilder
from workflows.settings.mara import Context
from workflows.states.conversion import passage_hits
from workflows.states.records import FIRST_NODE, NO_USAGE, Update, UsageRecord, add_usage, usage_record
from workflows.states.shared import Asked, Output, State

SHOWN_PASSAGE_SEEDS = 20
"""The number of passage seeds, heaviest first, in a row of results."""

_RETRIEVAL = "retrieval"
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
    given = [(place[key], 1.0) for key in state["passage_ids"] if key in place]
    return {
        **begin(state, run),
        **no_answer(),
        "workflow": WORKFLOW,
        "passages": passage_hits(run.index, given),
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
        system: who is asked.
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
        graph, given = self._graph_and_input(question)
        start = time.perf_counter()
        result = graph.invoke(given, context=context)
        return {**result, "total_ms": round((time.perf_counter() - start) * 1000, 3)}

    def _graph_and_input(self, question: GoldQuestion) -> tuple[Any, Any]:
        """Return what is run, and what it is asked."""
        text, given = question.asked.question, self.system.given
        if given is not None:
            ids = list(question.gold_ids) if given is Given.GOLD_PASSAGES else []
            return _ANSWERING, {"question": text, "passage_ids": ids}
        graph = retrieval.graph if self.retrieval_only else graph_of(self.system.context.workflow)
        return graph, Question(question=text)

    def _answered(
        self, question: GoldQuestion, result: Mapping[str, Any], failed: Row | None, usage: UsageRecord
    ) -> Answered:
        asked = question.asked
        # What follow-up questions find beside is no part of the ranking.
        retrieved = [hit for hit in result.get("passages", ()) if "follow_up" not in hit]
        row = {
            "id": asked.id,
            "question": asked.question,
            "type": asked.type,
            "hops": asked.hops,
            "system": self.system.name,
            "mode": (self.system.given or self.system.context.mode).value,
            "workflow": _RETRIEVAL if self.retrieval_only else self.system.context.workflow.value,
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
            "seeds": _shown_seeds(result.get("seeds") or {}),
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


def _shown_seeds(seeds: Mapping[str, Any]) -> Row:
    passages = sorted(seeds.get("passages", ()), key=lambda seed: -seed["weight"])
    return {"entities": seeds.get("entities", []), "passages": passages[:SHOWN_PASSAGE_SEEDS]}
