"""The walk as a LangChain tool, which the node `walk_graph` calls, traces show, and other people's agents can bind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NotRequired

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Field, with_config
from typing_extensions import TypedDict

from graph.errors import BadInput
from graph.relations import fact_relations
from graph.retrieve.modes import WalkSettings
from graph.retrieve.search import Ranking, Start, factors_for, restart_of, start_near, walk_passages
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationFactors, RelationType, entity_id
from graph.server_clients import told_to_clients
from graph.walk.pagerank import Walk
from graph.walk.strengths import tuned
from workflows.runtime.resources import OpenRun, tuning_for
from workflows.runtime.tracing import about_update, describe_current_run, factors_shown, is_watched
from workflows.settings.forms import Share
from workflows.settings.mara import QuestionText
from workflows.states.conversion import beta_of, seeds_named
from workflows.states.records import Factors, SeedSet
from workflows.states.shared import State

_ENTITY_ID = re.compile(r"entity-[0-9a-f]{24}")
_DESCRIPTION = (
    "Rank passages by relation-aware Personalized PageRank: walk the knowledge graph from weighted entities and"
    " passages, along the relation types that matter for a question, to the passages that answer it together."
)


Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_only_these_keys = with_config(ConfigDict(extra="forbid"))


@_only_these_keys
class AgentSeed(TypedDict):
    """An entity or a passage to start from."""

    id: Annotated[str, Field(description="A passage's id; an entity's id or name.")]
    weight: Annotated[Weight, Field(description="0 or more; all seeds' weights are scaled to sum 1.")]
    text: NotRequired[Annotated[str, Field(description="The entity's name, for readers of a trace.")]]


@_only_these_keys
class AgentFactors(TypedDict):
    """β: shares by relation type."""

    entity_entity: dict[str, Share]
    entity_passage: dict[str, Share]


class AgentArguments(BaseModel):
    """The arguments of a walk as an agent gives them: a chat model may write anything, and what is wrong is refused."""

    model_config = ConfigDict(extra="forbid")

    entity_seeds: list[AgentSeed] = Field(default=[], description="Entities to start from.")
    passage_seeds: list[AgentSeed] = Field(default=[], description="Passages to start from.")
    question: QuestionText | None = Field(
        None, description="In place of passage_seeds: start from the passages most similar to this question."
    )
    passage_weight: Weight | None = Field(
        None, description="With a question: weight of the passage most similar to it, beside those of entity_seeds."
    )
    relation_weights: AgentFactors | None = Field(
        None,
        description=(
            "β, how much each relation type matters: in entity_entity the shares of"
            f" {', '.join(ENTITY_RELATIONS)} and of the workspace's own types, in entity_passage those of"
            f" {', '.join(PASSAGE_RELATIONS)}; each sums to 1. Without it all types weigh the same."
        ),
    )
    damping: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None, description="Probability of following an edge, from 0 to below 1."
    )
    k: Annotated[int, Field(ge=1)] | None = Field(None, description="How many passages are returned.")


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """A walk of a run.

    Attributes:
        ranking: the best passages; empty where nothing was walked.
        walk: None where no seed was left to walk from.
        settings: of the walk.
        tuning: the version of the strengths.
        unknown_relations: the types that β does not name.
    """

    ranking: Ranking
    walk: Walk | None
    settings: WalkSettings
    tuning: int
    unknown_relations: tuple[str, ...]


def walk_from(run: OpenRun, start: Start, beta: RelationFactors | None, k: int) -> Walked:
    """Walk over a run's generation, with the strengths that its workspace was tuned to. Raises as `walk_passages`."""
    context, index, settings = run.context, run.index, start.settings
    tuning, own = tuning_for(context), index.graph.own.relation_types
    factors = tuned(factors_for(beta, settings, own), tuning.strengths, own)
    describe_current_run(lambda: {"mara_factors": factors_shown(factors, own)})
    ranking, walk = Ranking(), None
    if (start.entities or not context.mode.as_published) and (restart := restart_of(index, start)):
        ranking, walk = walk_passages(
            index, start.words, restart, factors, settings, k, context.walk.engine, run.selection
        )
        if run.selection is not None:
            walk = replace(walk, arcs=None)  # They would tell of hidden passages.
    return Walked(ranking, walk, settings, tuning.version, factors.unknown)


def walk_as_tool(run: OpenRun, start: Start, state: State, k: int, unknown: int) -> Walked:
    """Walk from where a state says; a trace shows a call of a tool.

    Args:
        run: the run to walk on.
        start: where the state's walk starts.
        state: the state, of which the call's arguments and metadata are told.
        k: how many passages are ranked.
        unknown: how many seeds of the state the workspace does not hold.
    """
    if not is_watched():
        return walk_from(run, start, beta_of(state), k)
    walked: list[Walked] = []

    def walk(**_: object) -> dict[str, Any]:
        walked.append(walk_from(run, start, beta_of(state), k))
        return _told(run, walked[0], unknown, texts=False)

    seeds = state.get("seeds") or SeedSet(entities=[], passages=[])
    arguments = {
        "entity_seeds": seeds["entities"],
        "passage_seeds": seeds["passages"],
        "question": start.words if start.passages is None else None,
        "passage_weight": start.passage_weight,
        "relation_weights": state.get("relation_factors"),
        "damping": None,
        "k": k,
    }
    _tool(walk, {"type": "object"}).invoke(arguments, {"metadata": about_update(state)})
    return walked[0]


def agent_tool(opened: Callable[[], OpenRun]) -> BaseTool:
    """Return the walk as a tool for agents: one that survives what their models get wrong.

    Its result is plain JSON: ``passages``, best first (``id``, ``title``, ``score`` and ``text``); the walk's
    ``engine``, ``error``, ``arcs`` and ``damping``; ``tuning``, the version of the strengths; ``unknown_seeds``, how
    many seeds the workspace does not hold or the filter hides; ``unknown_relations``, the types that β does not name.
    Where no seed is left nothing is walked: ``engine`` is None. Without a question the words of none are looked for, so
    that coverage does not count.

    Arguments that the schema refuses raise a ValidationError, which agents pass on to their models. A refusal by the
    walk itself becomes the text of a failed call. An error that no model can mend is raised, such as a missing
    workspace or package.

    Args:
        opened: opens the run to walk on; called at each call of the tool.
    """

    def walk_or_tell(**arguments: Any) -> dict[str, Any]:
        try:
            with told_to_clients():
                return _walk_for_agent(opened(), **arguments)
        except BadInput as fault:
            if type(fault) is BadInput:  # its subclasses are about the workspace or the installation
                raise ToolException(str(fault)) from fault
            raise

    return _tool(walk_or_tell, AgentArguments)


def _tool(walk: Callable[..., dict[str, Any]], arguments: type[BaseModel] | dict[str, Any]) -> BaseTool:
    return StructuredTool.from_function(
        walk,
        name="personalized_pagerank",
        description=_DESCRIPTION,
        args_schema=arguments,
        infer_schema=False,
        handle_tool_error=True,
    )


def _walk_for_agent(
    run: OpenRun,
    entity_seeds: list[dict[str, Any]],
    passage_seeds: list[dict[str, Any]],
    question: str | None,
    passage_weight: float | None,
    relation_weights: Factors | None,
    damping: float | None,
    k: int | None,
) -> dict[str, Any]:
    context, index, selection, settings = run.context, run.index, run.selection, run.context.walk_settings()
    if question is not None and passage_seeds:
        raise BadInput("question and passage_seeds exclude each other", "Give one of them")
    if question is None and passage_weight is not None:
        raise BadInput("passage_weight needs a question", "passage_seeds have weights of their own")
    if damping is not None:
        settings = replace(settings, damping=damping)
    if relation_weights:
        _check_known(relation_weights["entity_entity"], fact_relations(index.graph.own.relation_types))
        _check_known(relation_weights["entity_passage"], PASSAGE_RELATIONS)
    ids = [seed["id"] if _ENTITY_ID.fullmatch(seed["id"]) else entity_id(seed["id"]) for seed in entity_seeds]
    named = [{**seed, "id": known} for seed, known in zip(entity_seeds, ids, strict=True)]
    entities, passages, unknown = seeds_named(index, {"entities": named, "passages": passage_seeds}, selection)
    if question is None:
        start = Start(settings, entities, passages)
    else:
        weight = settings.passage_weight if passage_weight is None else passage_weight
        start = start_near(index, question, entities, weight, settings, selection)
    walked = walk_from(run, start, beta_of({"relation_factors": relation_weights}), k or context.top_k)
    return _told(run, walked, unknown, texts=True)


def _told(run: OpenRun, walked: Walked, unknown: int, *, texts: bool) -> dict[str, Any]:
    """Return a walk as plain JSON, for agents and traces."""
    passages, walk = run.index.graph.passages, walked.walk
    ranked = [(passages[place], score) for place, score in walked.ranking]
    return {
        "passages": [
            {"id": passage.id, "title": passage.title, "score": score, **({"text": passage.text} if texts else {})}
            for passage, score in ranked
        ],
        "engine": walk and walk.engine.value,
        "error": walk and walk.error,
        "arcs": walk and walk.arcs,
        "damping": walked.settings.damping,
        "tuning": walked.tuning,
        "unknown_seeds": unknown,
        "unknown_relations": list(walked.unknown_relations),
    }


def _check_known(shares: Mapping[str, float], known: Sequence[RelationType]) -> None:
    """Raise BadInput for a share of a relation type that no edge of its category can carry."""
    unknown = [name for name in shares if name not in known]
    if unknown:
        raise BadInput(f"No relation type here is called {', '.join(unknown)}", f"Known are {', '.join(known)}")
