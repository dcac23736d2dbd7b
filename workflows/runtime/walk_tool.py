"""The walk as a LangChain tool, which the node `walk_graph` calls, traces show, and other people's agents can bind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, WithJsonSchema, field_validator, with_config
from typing_extensions import TypedDict

from graph.errors import BadInput
from graph.relations import fact_relations
from graph.retrieve.modes import WalkSettings
from graph.retrieve.open_index import Index
from graph.retrieve.search import (
    Seeds,
    factors_for,
    seed_passages,
    trusted_damping,
    walk_passages,
    weigh_every_passage,
    weigh_passage_seeds,
)
from graph.retrieve.selection import Selection
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationType, entity_id
from graph.walk.sparse import SparseVector
from graph.walk.strengths import tuned
from workflows.runtime.resources import OpenRun, tuning_for
from workflows.runtime.tracing import describe_current_run, factors_shown, is_watched
from workflows.runtime.visibility import keep_seeds
from workflows.settings.forms import Share
from workflows.settings.mara import SHOWN_SEEDS, QuestionText
from workflows.states.conversion import beta_of, seeds_named
from workflows.states.records import Factors

_ENTITY_ID = re.compile(r"entity-[0-9a-f]{24}")
_DESCRIPTION = (
    "Rank passages by relation-aware Personalized PageRank: walk the knowledge graph from weighted entities and"
    " passages, along the relation types that matter for a question, to the passages that answer it together."
)


class GivenSeed(TypedDict):
    """An entity or a passage that a walk starts from; the text is for readers of a trace."""

    id: str
    weight: float
    text: NotRequired[str]


class StateArguments(BaseModel):
    """The arguments of a walk as the node `walk_graph` takes them from a state, which a person may have edited."""

    model_config = ConfigDict(extra="forbid")

    entity_seeds: list[GivenSeed] = []
    passage_seeds: list[GivenSeed] = []
    question: str | None = None
    passage_weight: float | None = None
    relation_weights: Factors | None = None
    damping: float | None = None
    k: int | None = Field(None, ge=1)


Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_only_these_keys = with_config(ConfigDict(extra="forbid"))


@_only_these_keys
class AgentSeed(TypedDict):
    """An entity or a passage to start from."""

    id: Annotated[str, Field(description="A passage's id; an entity's id or name.")]
    weight: Annotated[Weight, Field(description="0 or more; all seeds' weights are scaled to sum 1.")]
    text: NotRequired[Annotated[str, Field(description="The entity's name, for readers of a trace.")]]


_OWN_NAME = "[A-Z][A-Z0-9_]*"


def _one_of(relations: Iterable[str]) -> Any:
    return Field(pattern=f"^({'|'.join(relations)})$")


def _shares_schema(relations: Iterable[RelationType], *, own: bool = False) -> WithJsonSchema:
    share = {"type": "number", "minimum": 0, "maximum": 1}
    properties = {relation.value: share for relation in relations}
    others: dict[str, Any] = {"patternProperties": {f"^{_OWN_NAME}$": share}} if own else {}
    return WithJsonSchema({"type": "object", "properties": properties, **others, "additionalProperties": False})


@_only_these_keys
class AgentFactors(TypedDict):
    """β: shares by relation type."""

    entity_entity: Annotated[
        dict[Annotated[str, _one_of((*ENTITY_RELATIONS, _OWN_NAME))], Share],
        _shares_schema(ENTITY_RELATIONS, own=True),
    ]
    entity_passage: Annotated[
        dict[Annotated[str, _one_of(PASSAGE_RELATIONS)], Share], _shares_schema(PASSAGE_RELATIONS)
    ]


class AgentArguments(BaseModel):
    """The arguments of a walk as an agent gives them: a chat model may write anything, and what is wrong is refused."""

    model_config = ConfigDict(extra="forbid")

    entity_seeds: list[AgentSeed] = Field(default=[], description="Entities to start from.")
    passage_seeds: list[AgentSeed] = Field(default=[], description="Passages to start from.")
    question: QuestionText | None = Field(
        None, description="In place of passage_seeds: start from the passages most similar to this question."
    )
    passage_weight: Weight | None = Field(
        None,
        description="With a question: weight of the passage most similar to it, beside those of entity_seeds.",
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

    # Validators of fields: LangGraph's ToolNode tells models no error that concerns the arguments as a whole.

    @field_validator("question")
    @classmethod
    def _check_no_seed_is_ignored(cls, question: str | None, info: ValidationInfo) -> str | None:
        if question is not None and info.data.get("passage_seeds"):
            raise ValueError("question and passage_seeds exclude each other: give one of them")
        return question

    @field_validator("passage_weight")
    @classmethod
    def _check_weight_is_not_ignored(cls, weight: float | None, info: ValidationInfo) -> float | None:
        if weight is not None and info.data.get("question", "") is None:
            raise ValueError("passage_weight needs a question: passage_seeds have weights of their own")
        return weight


def walk_as_tool(run: OpenRun, arguments: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Walk by the tool of `pagerank_tool`; where no callback sees the call, without LangChain's way to call a tool.

    That takes longer than the walk itself on a small workspace.

    Args:
        run: the run to walk on.
        arguments: those of `StateArguments`, all of them, from a state whose shape was checked.
        metadata: of the call, for those who see it.
    """
    if is_watched():
        return dict(pagerank_tool(lambda: run).invoke(arguments, {"metadata": dict(metadata)}))
    return _walker(lambda: run, texts=False)(**arguments)


def pagerank_tool(opened: Callable[[], OpenRun]) -> BaseTool:
    """Return the walk over an open generation as the tool that the node `walk_graph` calls: see `walk_as_tool`.

    Its result is plain JSON: ``passages``, best first (``id``, ``title`` and ``score``); the walk's ``engine``,
    ``error``, ``arcs`` and ``damping``, which follows from the entity seeds where it is not given; ``tuning``, the
    version of the strengths; ``unknown_seeds``, how many seeds the workspace does not hold or the filter hides;
    ``unknown_relations``, the types that β does not name. Where no seed is left nothing is walked: ``engine`` is None.

    Args:
        opened: opens the run to walk on; called at each call of the tool.
    """
    return _tool(_walker(opened, texts=False), StateArguments)


def agent_tool(opened: Callable[[], OpenRun]) -> BaseTool:
    """Return the tool of `pagerank_tool`, with texts, for agents: one that survives what their models get wrong.

    What the schema refuses raises a ValidationError, which agents pass on to their models. A refusal by the walk
    itself becomes the text of a failed call. What no model can mend is raised, such as a missing workspace or package.
    """
    walk = _walker(opened, texts=True)

    def walk_or_tell(**arguments: Any) -> dict[str, Any]:
        try:
            return walk(**arguments)
        except BadInput as fault:
            if type(fault) is BadInput:  # its subclasses are about the workspace or the installation
                raise ToolException(str(fault)) from fault
            raise

    return _tool(walk_or_tell, AgentArguments)


def _tool(walk: Callable[..., dict[str, Any]], arguments: type[BaseModel]) -> BaseTool:
    return StructuredTool.from_function(
        walk,
        name="personalized_pagerank",
        description=_DESCRIPTION,
        args_schema=arguments,
        infer_schema=False,
        handle_tool_error=True,
    )


def _walker(opened: Callable[[], OpenRun], *, texts: bool) -> Callable[..., dict[str, Any]]:
    def walk(
        entity_seeds: list[dict[str, Any]],
        passage_seeds: list[dict[str, Any]],
        question: str | None,
        passage_weight: float | None,
        relation_weights: Factors | None,
        damping: float | None,
        k: int | None,
    ) -> dict[str, Any]:
        run = opened()
        context, index, selection = run.context, run.index, run.selection
        settings = context.walk_settings()
        tuning = tuning_for(context)
        own = run.index.graph.own.relation_types
        if texts and relation_weights:
            _check_known(relation_weights["entity_entity"], fact_relations(own))
        factors = tuned(factors_for(beta_of({"relation_factors": relation_weights}), settings, own), tuning, own)
        describe_current_run(lambda: {"mara_factors": factors_shown(factors, own)})
        entities = [{**seed, "id": _entity_id(seed["id"])} for seed in entity_seeds]
        given: dict[str, Any] = {"entities": entities, "passages": passage_seeds}
        seen = given if selection is None else keep_seeds(given, selection)
        seeds, known = seeds_named(index, seen)
        if question is not None:
            weight = settings.passage_weight if passage_weight is None else passage_weight
            seeds = _from_similar_passages(seeds, index, question, weight, settings, selection)
        if damping is None and not texts:
            damping = trusted_damping(seeds.entities.values(), settings)
        if damping is not None:
            settings = replace(settings, damping=damping)
        found: dict[str, Any] = {
            "passages": [],
            "engine": None,
            "error": None,
            "arcs": None,
            "damping": settings.damping,
            "tuning": tuning.version,
            "unknown_seeds": len(entity_seeds) + len(passage_seeds) - known,
            "unknown_relations": list(factors.unknown),
        }
        if not seeds or (context.mode.as_published and not seeds.entities):
            return found
        ranking, walked = walk_passages(index, seeds, factors, settings, k or context.top_k, context.engine, selection)
        ranked = ((index.graph.passages[place], score) for place, score in ranking)
        found["passages"] = [
            {"id": passage.id, "title": passage.title, "score": score, **({"text": passage.text} if texts else {})}
            for passage, score in ranked
        ]
        # Arcs would tell of hidden passages.
        arcs = walked.arcs if selection is None else None
        return {**found, "engine": walked.engine.value, "error": walked.error, "arcs": arcs}

    return walk


def _check_known(shares: Mapping[str, float], known: Sequence[RelationType]) -> None:
    """Raise BadInput for a share of a relation type that no fact of the graph can carry."""
    unknown = [name for name in shares if name not in known]
    if unknown:
        raise BadInput(
            f"No relation type between entities is called {', '.join(unknown)}", f"Known are {', '.join(known)}"
        )


def _entity_id(given: str) -> str:
    return given if _ENTITY_ID.fullmatch(given) else entity_id(given)


def _from_similar_passages(
    seeds: Seeds,
    index: Index,
    question: str,
    weight: float,
    settings: WalkSettings,
    selection: Selection | None,
) -> Seeds:
    """Return the seeds with the passages most similar to a question as passage seeds: as many as the mode takes."""
    if not settings.passage_seeds:
        return replace(seeds, passages=weigh_every_passage(index, question, settings, weight, selection))
    ranking = seed_passages(index, question, settings, SHOWN_SEEDS, selection)
    weights = weigh_passage_seeds(ranking, settings, weight)
    return replace(seeds, passages=SparseVector.of_mapping(seeds.passages.length, weights))
