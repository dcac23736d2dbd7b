"""Traces of a run: each step with its type, and the run's metadata, without vectors or whole graphs.

LangGraph traces the workflow and its nodes, LangChain the requests to a chat model. Here stand the steps between: the
look-ups in the retriever shape that LangSmith renders as documents, the walk, the agents; and the metadata of all.
Without tracing nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from langchain_core.tracers.langchain import LangChainTracer
from langgraph.config import get_config
from langsmith.run_helpers import get_current_run_tree, get_tracing_context, trace, tracing_context
from langsmith.run_trees import RunTree
from langsmith.utils import tracing_is_enabled

from agents.answers.claims import Claim
from agents.roles import NumberedPassage
from graph.construction.edges import kinds_with
from graph.construction.knowledge_graph import GraphFact
from graph.errors import MalformedReply
from graph.relations import RelationType
from graph.retrieve.open_index import Index
from graph.retrieve.search import Ranking
from graph.storage.workspace import resolve_workspace
from graph.walk.factors import EdgeFactors
from workflows.runtime.resources import OpenRun, chat_model_name, models_of
from workflows.settings.indexing import IndexingContext

RunType = Literal["chain", "retriever", "embedding"]
Values = dict[str, Any]
T = TypeVar("T")

SHOWN_DOCUMENTS = 20
"""Facts or passages that one step of a trace shows at most, the best first; it tells how many there are."""

SHOWN_REPLY = 2_000
"""Characters of a malformed reply that a step shows."""


def current_run() -> RunTree | None:
    """Return the run that the caller traces to; None where it does not trace, though a caller of its own may."""
    run = get_current_run_tree()
    return run if run is not None and tracing_is_enabled() else None


def is_watched() -> bool:
    """Tell whether a trace, a stream or a caller's callback sees what the node that is under way calls."""
    callbacks = get_config().get("callbacks")
    return bool(callbacks if isinstance(callbacks, list) else callbacks and callbacks.handlers)


@contextmanager
def described(about: Callable[[], Values]) -> Iterator[Callable[[Callable[[], Values]], Values]]:
    """Give the node that runs, its workflow, and all steps within it metadata; ``about`` is asked where one traces.

    Yields a function that gives more of it to the node and its workflow, once it is known.
    """
    run = current_run()
    if run is None:
        yield lambda more: {}
        return
    runs = [run, *_workflow_of(run)]

    def tell(more: Callable[[], Values]) -> Values:
        known = _described(more)
        for each in runs:
            each.add_metadata(known)
            each.add_tags(_new_tags(known, each.tags))
        return known

    known = tell(about)
    present = get_tracing_context()["tags"] or []
    with tracing_context(metadata=known, tags=[*present, *_new_tags(known, present)]):
        yield tell


def step(
    run_type: RunType,
    name: str,
    inputs: Callable[[], Values],
    work: Callable[[], T],
    outputs: Callable[[T], Values],
    metadata: Mapping[str, Any] | None = None,
) -> T:
    """Do a piece of work as a step of the trace; without a trace, just do it.

    A malformed reply ends the step with the reason as its error and with the reply, and goes on to the caller.
    """
    if current_run() is None:
        return work()
    malformed: MalformedReply | None = None
    with trace(name, run_type, inputs=_described(inputs), metadata=dict(metadata or {})) as run:
        try:
            result = work()
            run.end(outputs=_described(lambda: outputs(result)))
        except MalformedReply as fault:
            run.end(outputs={"reply": fault.raw[:SHOWN_REPLY]}, error=f"{fault.kind}: {fault.reason}")
            malformed = fault
    if malformed is not None:
        raise malformed
    return result


def _described(describe: Callable[[], Values]) -> Values:
    """Return a description; where it fails the trace says so, and the run goes on to meet the fault itself, if any."""
    try:
        return describe()
    except Exception as fault:
        return {"undescribed": f"{type(fault).__name__}: {fault}"}


def _new_tags(known: Values, present: Sequence[str] | None) -> list[str]:
    """Return the tags that a description adds: the mode, by which traces are told apart most often."""
    tags = [f"mode:{known['mara_mode']}"] if "mara_mode" in known else []
    return [tag for tag in tags if tag not in (present or ())]


def about_run(run: OpenRun) -> Values:
    """Return the metadata of every step: which workspace, generation, mode and models."""
    context, index = run.context, run.index
    models = models_of(context, index)
    return {
        "mara_workspace": resolve_workspace(context.workspace).name,
        "mara_workspace_id": index.workspace_id,
        "mara_generation": index.graph.generation,
        "mara_mode": context.mode.value,
        "mara_chat_model": models["chat"],
        "mara_embedding_model": models["embedding"],
        "mara_store": models["store"],
    }


def about_indexing(context: IndexingContext) -> Values:
    """Return the metadata of indexing: which workspace is written, and who extracts."""
    return {"mara_workspace": resolve_workspace(context.workspace).name, "mara_chat_model": chat_model_name(context)}


def about_update(update: Mapping[str, Any]) -> Values:
    """Return the metadata that a node's update or state tells: attempts, β, the passage weight."""
    known: Values = {f"mara_{key}": value for key, value in update.items() if key.endswith("_attempts") and value}
    if factors := update.get("relation_factors"):
        known["mara_beta"] = factors
        if between := factors["entity_entity"]:
            known["mara_heaviest_relation"] = max(between, key=lambda relation: between[relation])
    if update.get("passage_weight") is not None:
        known["mara_passage_weight"] = update["passage_weight"]
    return known


def fact_documents(facts: Sequence[tuple[GraphFact, float]]) -> Values:
    """Return facts as a retriever's documents."""
    return _documents(
        (
            f"{fact.fact.subject} {fact.fact.predicate} {fact.fact.object}",
            {"id": fact.fact.id, "relation": fact.fact.relation.value, "score": score},
        )
        for fact, score in facts
    )


def passage_documents(index: Index, ranking: Ranking) -> Values:
    """Return passages as a retriever's documents."""
    passages = index.graph.passages
    scored = ((passages[place], score) for place, score in ranking[:SHOWN_DOCUMENTS])
    shown = _documents(
        (passage.text, {"id": passage.id, "title": passage.title, "source": passage.source, "score": score})
        for passage, score in scored
    )
    return {**shown, "found": len(ranking)}


def numbered_documents(passages: Sequence[NumberedPassage]) -> Values:
    """Return the passages that an answer is written from, with the numbers that it cites."""
    return _documents(
        (passage.text, {"id": passage.id, "title": passage.title, "number": passage.number}) for passage in passages
    )


def describe_current_run(about: Callable[[], Values]) -> None:
    """Give the run that is under way metadata; ``about`` is asked where one traces."""
    run = current_run()
    if run is not None:
        run.add_metadata(_described(about))


def factors_shown(factors: EdgeFactors, own: Sequence[RelationType] = ()) -> Values:
    """Return each kind of edge's factor by the side it is left from, in a graph with some own relation types."""
    return {
        " ".join(filter(None, (kind.relation, kind.link))): {
            "from_entity": float(factors.from_entity[place]),
            "from_passage": float(factors.from_passage[place]),
        }
        for place, kind in enumerate(kinds_with(own))
    }


def passage_shown(question: str, passage: NumberedPassage) -> Values:
    """Return what one passage is asked."""
    return {"question": question, **numbered_documents([passage])}


def claims_shown(question: str, claims: Sequence[Claim], passages: Sequence[NumberedPassage]) -> Values:
    """Return what the claim judge is given."""
    said = [{"number": claim.number, "text": claim.text, "cited": list(claim.cited)} for claim in claims]
    return {"question": question, "claims": said, **numbered_documents(passages)}


def _workflow_of(node: RunTree) -> Iterator[RunTree]:
    """Yield the run that a node's run stands in, as far as LangChain's tracer holds it."""
    callbacks = get_config().get("callbacks")
    for handler in getattr(callbacks, "handlers", ()):
        if isinstance(handler, LangChainTracer) and (run := handler.run_map.get(str(node.parent_run_id))):
            yield run


def _documents(items: Any) -> Values:
    documents = [{"page_content": text, "type": "Document", "metadata": metadata} for text, metadata in items]
    return {"documents": documents[:SHOWN_DOCUMENTS], "found": len(documents)}
