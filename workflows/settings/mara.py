"""The settings of a run: what Studio shows as a form, and Python passes as ``context``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, WithJsonSchema, field_validator

from agents.chat.usage import Limits
from agents.roles import Turn
from graph.endpoints.openai_protocol import question_s
from graph.errors import BadInput
from graph.metadata_filter import narrowed, read_conditions, where_schema
from graph.moments import last_moment
from graph.relationships.schema import EVERY_PART, HistoryPart
from graph.retrieve.modes import DEFAULT_ALPHA, THREAD_SHARE, Mode, Preset, WalkSettings, settings_of
from graph.schema import MAX_ID
from graph.text import has_controls
from workflows.settings.enums import UnsupportedClaims, Workflow
from workflows.settings.forms import FoundCount, KeptCount, Provenance, Retries, Temperature
from workflows.settings.renamed import SettingsForm
from workflows.settings.walk import Walk

if TYPE_CHECKING:
    from agents.answerer import Answerer
    from agents.fact_filter import FactFilter
    from agents.manager import Manager
    from agents.rewriter import Rewriter
    from graph.relationships.concepts import ConceptExtractor
    from graph.relationships.provenance import ProvenanceFilter

QUESTION_LIMIT = 10_000
"""Characters a question may have."""

MOST_ANSWER_TOKENS = 16_384
"""Tokens that an answer may be given at most."""

QuestionText = Annotated[str, Field(min_length=1, max_length=QUESTION_LIMIT, pattern=r"\S")]


def _check_id(value: str) -> str:
    if value and (not value.strip() or has_controls(value)):
        raise ValueError("give visible characters, without control characters")
    return value


HistoryId = Annotated[str, Field(max_length=MAX_ID), AfterValidator(_check_id)]
"""The id of a conversation or a user; empty for none."""

TURNS_LIMIT = 100
"""Earlier turns that a question may come with; the last few count."""


class Question(BaseModel):
    """A question, and the conversation that it is asked in."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    question: QuestionText = Field(examples=["When was Nissan founded?"])
    """The question, in plain words and any language."""
    turns: list[Turn] = Field(default=[], max_length=TURNS_LIMIT)
    """Earlier questions of the conversation with their answers, the last one last. A question that leans on them is
    completed; one that stands alone is not touched.
    """


@dataclass(frozen=True, slots=True)
class Beside:
    """The objects that come beside the settings of a run: Python alone gives it, and no client can say it.

    Attributes:
        agents: the caller's own, each by its name.
        fixed_where: the part of the filter that a server set, be it empty; None where none confines the run.
        concept_extractor: the caller's own way to find the concepts of messages.
        turn_key: the caller's name for the turn; empty where it gives none.
        replaces: the caller's name for the turn in whose place this one comes; empty for none.
        turns_are_all: whether none but the turns that come with the question count, be they none.
        run: the run under way; None where none is.
    """

    agents: Mapping[str, Any] = field(default_factory=dict)
    fixed_where: Mapping[str, Any] | None = None
    concept_extractor: ConceptExtractor | None = None
    turn_key: str = ""
    replaces: str = ""
    turns_are_all: bool = False
    run: Any = None


class Context(SettingsForm):
    """The settings of a run. Where a field may be empty, the mode's own value holds.

    Attributes:
        workflow: which workflow they are of.
    """

    workflow: ClassVar[Workflow] = Workflow.MARA
    earlier: ClassVar[Mapping[str, str]] = {name: f"walk.{name}" for name in Walk.model_fields}

    workspace: str = Field(default="", max_length=4096, title="Workspace")
    """Workspace to query. Empty: MARA_WORKSPACE, else ./.mara."""
    mode: Mode = Field(default=Mode.MARA, title="Retrieval · mode")
    """How to rank passages: relation-aware walk (mara), published baseline (hipporag2), that baseline with β on its
    fact edges (mara-matrix), or similarity alone (dense, sparse, hybrid).
    """
    preset: Preset = Field(default=Preset.MARA, title="Retrieval · preset")
    """Parameters of mode mara: as measured (mara), or as first designed (seed)."""
    top_k: FoundCount = Field(default=10, title="Retrieval · passages returned")
    """Number of passages to return."""
    where: Annotated[dict[str, Any], WithJsonSchema(where_schema())] = Field(
        default={},
        examples=[{"tenant": "a", "date": {"$gte": "2020", "$lt": "2021-07"}}],
        title="Retrieval · filter by metadata",
    )
    """Filter on the metadata of passages: values, or conditions with $in, $ne, $nin, $gt, $gte, $lt, $lte; all must
    hold. Dates are ISO 8601 texts.
    """
    provenance: Provenance = Field(
        default=Provenance(),
        examples=[{"source": "handbook.pdf", "newer_than": "2025-01-01"}, {"cited_before": True}],
        title="Retrieval · filter by provenance",
    )
    """Filter on where passages come from: one source, documents newer than a date, what answers in this conversation or
    to this user cited before. All that is given must hold, beside the filter by metadata.
    """
    as_of: str = Field(default="", max_length=40, examples=["2024-03-31"], title="Retrieval · as of")
    """Date as of which to answer, from what stood then and nothing else: ISO 8601, UTC where it names no offset; a day
    counts to its end. Empty: from what stands now.
    """
    model: str = Field(default="", max_length=256, title="Answer · chat model")
    """Chat model. Empty: MARA_CHAT_MODEL, else the default one if a key or a server is configured, else the offline
    agents. 'local': the packaged small model. 'local:FILE.gguf': a model file, not from clients of a server. 'offline':
    always the offline agents.
    """
    answer_passages: KeptCount = Field(default=5, title="Answer · passages")
    """Number of best passages given to the answerer; without a model, all that are returned are read."""
    answer_tokens: int | None = Field(default=None, ge=50, le=MOST_ANSWER_TOKENS, title="Answer · tokens")
    """Tokens that an answer may take, its model's thinking aside (320; with ragenta 800)."""
    question_s: float | None = Field(default=None, ge=0, le=86_400, title="Answer · seconds")
    """Seconds of work on a question, after which no model is asked any more; 0 means no limit. Empty: MARA_QUESTION_S,
    else 300.
    """
    check_claims: bool = Field(default=False, title="Claims · check them")
    """Check each sentence of the answer with the claim judge."""
    unsupported_claims: UnsupportedClaims = Field(default=UnsupportedClaims.MARK, title="Claims · unsupported ones")
    """Mark or remove a sentence that no passage supports."""
    conversation_id: HistoryId = Field(default="", examples=["founding of Nissan"], title="History · conversation")
    """Name of the conversation that the question is asked in: its earlier turns count, and this one is written to the
    history. Empty: no conversation.
    """
    user_id: HistoryId = Field(default="", examples=["ada"], title="History · user")
    """Name of the user: their questions and the documents that they view are written to the history. Empty: no user.
    With keys, a server takes the name that belongs to the key.
    """
    personalise: bool = Field(default=False, title="History · personal ranking")
    """Move the ranking, by a bounded amount, towards what this user read, marked and asked; the result tells of each
    passage that moved why. Needs a user.
    """
    remember: list[HistoryPart] = Field(
        default=list(EVERY_PART), max_length=len(EVERY_PART), title="History · what is written"
    )
    """The parts of a turn that are written to the history: messages, their references and concepts, and views. Without
    messages, views alone; an empty list: nothing.
    """
    temperature: Temperature = Field(default=0.0, title="Agents · temperature")
    """Temperature of all agents but the manager."""
    manager_temperature: Temperature = Field(default=0.3, title="Agents · temperature of the manager")
    """Temperature of the manager."""
    filter_facts: bool = Field(default=True, title="Agents · filter facts")
    """Let the recognition-memory filter choose among the candidate facts."""
    max_facts: KeptCount = Field(default=4, title="Agents · facts kept")
    """Facts that the filter may keep, at most."""
    weigh_relations: bool = Field(default=True, title="Agents · weigh relations (β)")
    """Let the manager's β steer the walk (modes mara, mara-matrix)."""
    max_json_retries: Retries = Field(default=2, title="Agents · retries of a malformed reply")
    """Retries after a malformed reply."""
    max_model_calls: int = Field(default=0, ge=0, le=100_000, title="Budget · model calls")
    """Model calls that a question may use, at most; 0 means no limit."""
    max_model_tokens: int = Field(default=0, ge=0, le=1_000_000_000, title="Budget · tokens")
    """Tokens of prompts and replies after which no model is asked any more; 0 means no limit."""
    walk: Walk = Field(default=Walk(), examples=[{"damping": 0.5, "engine": "push"}], title="Experiments · walk")
    """The walk and its seeds in detail, for experiments: see the settings of the walk."""

    _beside: Beside = PrivateAttr(default_factory=Beside)

    @classmethod
    def of(cls, context: Context | None) -> Self:
        """Return a run's settings as those of this workflow; the defaults where plain Python passed none.

        Raises:
            BadInput: they are another workflow's.
        """
        if context is None:
            return cls()
        if not isinstance(context, cls):
            raise BadInput(
                f"Workflow {cls.workflow} was given settings of workflow {context.workflow}",
                f"Pass a {cls.__module__}.{cls.__name__}, or make_context(workflow='{cls.workflow}', ...)",
            )
        return context

    @field_validator("where", mode="before")
    @classmethod
    def check_where(cls, where: object) -> object:
        """Return the filter as it is. Raises BadInput where it cannot be used."""
        read_conditions(where)
        return where

    @field_validator("as_of")
    @classmethod
    def check_as_of(cls, as_of: str) -> str:
        """Return the date as it is. Raises BadInput where it is none."""
        if as_of:
            last_moment(as_of)
        return as_of

    def with_agents(
        self,
        fact_filter: FactFilter | None = None,
        manager: Manager | None = None,
        answerer: Answerer | None = None,
        rewriter: Rewriter | None = None,
    ) -> Context:
        """Return these settings with a caller's own agents in place of the configured ones; None changes nothing.

        Workflow ``ragenta`` has a final predictor in place of the answerer.
        """
        arguments = {"fact_filter": fact_filter, "manager": manager, "answerer": answerer, "rewriter": rewriter}
        agents = {name: agent for name, agent in arguments.items() if agent}
        return self.with_beside(agents={**self.beside.agents, **agents})

    def with_beside(self, **changed: Any) -> Self:
        """Return these settings with something else of what Python gives beside them, by name: see `Beside`."""
        copied = self.model_copy()
        copied._beside = replace(self._beside, **changed)
        return copied

    @property
    def beside(self) -> Beside:
        """The objects that Python gave beside them."""
        return self._beside

    def with_concept_extractor(self, extractor: ConceptExtractor) -> Self:
        """Return these settings with a caller's own way to find the concepts of messages."""
        return self.with_beside(concept_extractor=extractor)

    def as_turn(self, key: str, replaces: str = "", *, turns_are_all: bool = False) -> Self:
        """Return these settings for a turn that its caller names: asked again under the same name, it is the same.

        Args:
            key: the name.
            replaces: the name of the turn in whose place it comes; empty for none.
            turns_are_all: whether those of the history never count, also where no turn comes with the question.
        """
        return self.with_beside(turn_key=key, replaces=replaces, turns_are_all=turns_are_all)

    def in_history(self, conversation: str, user: str) -> Self:
        """Return these settings with another conversation and another user; empty for none."""
        return self.model_copy(update={"conversation_id": conversation, "user_id": user})

    def within(self, fixed: Mapping[str, Any]) -> Self:
        """Return these settings with a server's own filter, which theirs can only narrow further.

        Raises:
            BadInput: theirs would replace one of its conditions, or the two are too many conditions together.
        """
        confined = self.model_copy(update={"where": narrowed(fixed, self.where)} if fixed else None)
        return confined.with_beside(fixed_where=narrowed(fixed, {}))

    @property
    def is_confined(self) -> bool:
        """Whether these settings are within a server's own filter, be it an empty one: no client can say so."""
        return self._beside.fixed_where is not None

    @property
    def fixed_where(self) -> Mapping[str, Any]:
        """The part of the filter that a server set: of passages outside of it, nothing may be told."""
        return self._beside.fixed_where or {}

    @property
    def remembers(self) -> bool:
        """Whether anything of a turn is written to the history."""
        views = bool(self.user_id) and HistoryPart.VIEWS in self.remember
        return views or (bool(self.conversation_id or self.user_id) and HistoryPart.MESSAGES in self.remember)

    @property
    def own_only(self) -> bool:
        """Whether the user may use only their own conversations: one whom a server knows."""
        return self.is_confined and bool(self.user_id)

    @property
    def thread_share(self) -> float:
        """Share of the conversation's concepts; 0 without a conversation."""
        own = 0.0 if self.mode.walks else THREAD_SHARE
        share = own if self.walk.conversation_share is None else self.walk.conversation_share
        return share if self.conversation_id else 0.0

    @property
    def provenance_filter(self) -> ProvenanceFilter:
        """The filter by provenance, with whose citations count."""
        from graph.relationships.provenance import ProvenanceFilter

        provenance = self.provenance
        who = (self.conversation_id, self.user_id) if provenance.cited_before else ("", "")
        return ProvenanceFilter(provenance.source, provenance.newer_than, provenance.cited_before, *who)

    @property
    def hybrid_alpha(self) -> float:
        """Share of the dense score where passages are ranked by similarity."""
        return DEFAULT_ALPHA if self.walk.alpha is None else self.walk.alpha

    def limits(self) -> Limits:
        """Return what a question may take. Raises BadInput where MARA_QUESTION_S holds no number."""
        seconds = question_s() if self.question_s is None else self.question_s
        return Limits(seconds, self.max_model_calls, self.max_model_tokens)

    def walk_settings(self) -> WalkSettings:
        """Return the mode's settings with what this context changes."""
        own = settings_of(self.mode, self.preset)
        overrides = {name: value for name, value in self.walk if value is not None and name in own.__dataclass_fields__}
        settings = replace(own, **overrides)
        return settings if self.weigh_relations else replace(settings, beta=False)
