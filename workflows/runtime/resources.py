"""The resources of a run, which no state may hold: settings, open index, chat model, extractor."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from langgraph.runtime import ServerInfo

from agents.chat.local_model import is_local, local_name, open_local_model, refuse_file_of_client
from agents.chat.model import ChatModel, open_chat_model
from agents.chat.usage import QuestionBudget, Spent
from graph.embedding.embeddings import configured_embedder
from graph.endpoints.openai_protocol import thinking_tokens, timeout_s
from graph.environment import environment, refresh_environment
from graph.moments import last_moment
from graph.relationships.conversations import check_open_to
from graph.relationships.provenance import ProvenanceFilter, passages_of, passages_that_stood
from graph.relationships.record import RelationshipRecord
from graph.retrieve.index_pool import IndexPool
from graph.retrieve.modes import Mode
from graph.retrieve.open_index import Index
from graph.retrieve.past import PastIndexes
from graph.retrieve.selection import Selection
from graph.storage.workspace import Workspace, resolve_workspace
from graph.walk.strengths import UNTUNED, Tuning, workspace_tuning
from workflows.runtime.access import within_reach
from workflows.runtime.fresh_generations import FreshGenerations
from workflows.settings.indexing import IndexingContext
from workflows.settings.mara import Context
from workflows.states.records import FIRST_NODE, ErrorRecord, error_of

OFFLINE = "offline"
"""The name of the offline agents where a chat model could stand."""

DEFAULT_CHAT_MODEL = "gpt-6-luna"

INDEX_POOL = IndexPool()
"""The open indexes of this process."""

FRESH_GENERATIONS = FreshGenerations(INDEX_POOL)
"""The generations that the questions of this process begin with."""

_PAST = PastIndexes(INDEX_POOL)
_open_chat_model, _open_local_model = lru_cache(maxsize=16)(open_chat_model), lru_cache(maxsize=16)(open_local_model)


class OpenRun:
    """A run that is under way: what its nodes share, opened once by the first of them.

    Attributes:
        context: its settings.
        generation: the one that it goes on from; None for the newest.
        budget: what its question may take.
        node: the name of the node that sees it; empty for none.
        task: names this run of the node; the same where LangGraph runs it again from the same checkpoint.
        goes_on: whether it goes on from a state that it did not make: a fork, a thread, an edit.
    """

    def __init__(self, context: Context, budget: QuestionBudget | None = None) -> None:
        self.context, self.budget = context, budget or QuestionBudget()
        self.generation: int | None = None
        self.node = self.task = ""
        self.goes_on = False
        self._lock = Lock()
        self._began = False

    @cached_property
    def index(self) -> Index:
        """The index that it works on."""
        return open_workspace_index(self.context, self.generation)

    @cached_property
    def selection(self) -> Selection | None:
        """The passages that its filters select of the index, with all that they support; None without a filter."""
        return selection_of(self.context, self.index)

    @property
    def answer_tokens(self) -> int | None:
        """The tokens that an answer may take; None for what the agent that writes it takes of its own."""
        return self.context.answer_tokens

    def at(self, node: str, task: str, state: Mapping[str, Any]) -> OpenRun:
        """Return the run as a node sees it; the first node opens what all share, where ``state`` says on which index.

        Raises what opening an index or selecting from it raises.
        """
        with self._lock:
            if not self._began:
                self.goes_on = node != FIRST_NODE
                self.generation = state.get("generation") if self.goes_on else None
                spent = state.get("spent") if self.goes_on else None
                self.budget.begin(self.context.limits(), Spent(**spent) if spent else Spent())
                INDEX_POOL.begin_use(self.index)
                self._began = True
            seen = copy(self)
            seen.node, seen.task, seen.index, seen.selection = node, task, self.index, self.selection
        return seen

    def end(self) -> None:
        """Let go of the index."""
        with self._lock:
            if self._began:
                INDEX_POOL.end_use(self.index)
                del self.index
                self._began = False

    def error(self, kind: str, message: str, attempt: int = 1, raw: str = "") -> ErrorRecord:
        """Return an entry for ``errors`` of the node; a long reply is cut to 2,000 characters."""
        return error_of(self.node, kind, message, attempt, raw)

    def nothing_selected(self) -> ErrorRecord:
        """Return what tells that the filter selects no passage."""
        wanted = "`where`: check its keys and values"
        if self.context.provenance_filter:
            wanted = "`where` and `provenance`: check its source and its date, too"
        return self.error("NothingSelected", f"No passage meets the conditions of {wanted}")


def open_run(context: Context) -> OpenRun:
    """Return a run outside of a workflow, in the environment as it is now."""
    refresh_environment()
    return OpenRun(context)


def run_of_caller(form: type[Context], values: Any, user: Any, outer: OpenRun | None = None) -> OpenRun:
    """Return a run whose ``context`` has it, with a workflow's settings within what its caller may see.

    Args:
        form: the settings of the workflow.
        values: those of the caller, as an object or, from a client, as JSON; None for the defaults.
        user: the user of a LangGraph server, where it has authenticated one.
        outer: the run that starts this one, whose budget it shares.

    Raises:
        BadInput: the settings are another workflow's, or a filter would replace a condition of the caller's.
        NoAccess: in a LangGraph server, the caller is not known, or may not open the workspace.
    """
    if outer is None:
        refresh_environment()
    settings = form.model_validate(values) if isinstance(values, Mapping) else form.of(values)
    info = ServerInfo("", "", user) if hasattr(user, "identity") else None
    run = OpenRun(within_reach(settings, info), budget=outer.budget if outer else None)
    run.context = run.context.with_beside(run=run)
    return run


def selection_of(context: Context, index: Index) -> Selection | None:
    """Return what the filters of some settings select of an index, by metadata and provenance; None without a filter.

    Raises:
        BadInput: a condition cannot be used, or there is no relationship graph to tell provenance.
        NoAccess: the conversation whose citations count is not open to the caller.
    """
    return index.select(context.where, passages_by_provenance(context))


def open_workspace_index(context: Context, generation: int | None = None) -> Index:
    """Return the index that a run works on: the generation it began with while that is open, else the newest.

    In a server that watches its workspaces, the newest is the last one that was warmed up.

    Where the context asks for what stood at a date, that is an index of its own.
    """
    root, embedder = resolve_workspace(context.workspace), configured_embedder()
    if context.as_of:
        return _PAST.get(root, embedder, context.as_of, generation)
    return FRESH_GENERATIONS.get(root, embedder) if generation is None else INDEX_POOL.get(root, embedder, generation)


def close_indexes() -> None:
    """Close every index that runs of this process opened."""
    INDEX_POOL.close()
    _PAST.close()


def chat_model_name(context: Context | IndexingContext) -> str:
    """Return the chat model's name, or ``offline`` where neither the context nor the environment gives one."""
    model = _wanted_model(context)
    return local_name(model) if model != OFFLINE and is_local(model) else model


def _wanted_model(context: Context | IndexingContext) -> str:
    """Return what names the model: a local one as ``local`` or with its file."""
    if context.model:
        return context.model
    has_server = environment().openai_api_key or environment().openai_base_url
    return environment().mara_chat_model or (DEFAULT_CHAT_MODEL if has_server else OFFLINE)


def models_of(context: Context, index: Index) -> dict[str, str]:
    """Return what a run's result says of the models behind it."""
    return {"chat": chat_model_name(context), "embedding": index.embedder.model_id, "store": index.store_name}


def tuning_for(context: Context) -> Tuning:
    """Return the strengths that a walk goes by: the workspace's current ones, in mode ``mara`` and where wanted."""
    if context.mode is not Mode.MARA or not context.walk.tuned:
        return UNTUNED
    return workspace_tuning(resolve_workspace(context.workspace))


def chat_model_of(context: Context | IndexingContext, temperature: float) -> ChatModel | None:
    """Return the chat model of a run; None where the offline agents answer. Raises ModelUnavailable."""
    name = _wanted_model(context)
    if name == OFFLINE:
        return None
    refuse_file_of_client(context.model)
    if is_local(name):
        return _open_local_model(name, temperature, timeout_s=timeout_s(), thinking_tokens=thinking_tokens())
    return chat_model_at(environment().openai_base_url or None, name, temperature)


def chat_model_at(base_url: str | None, name: str, temperature: float) -> ChatModel:
    """Return the chat model of a server, with the key, the time-out and the thinking that the environment names."""
    key, seconds, thinking = environment().openai_api_key or None, timeout_s(), thinking_tokens()
    return _open_chat_model(
        name, temperature, base_url=base_url, api_key=key, timeout_s=seconds, thinking_tokens=thinking
    )


def passages_by_provenance(context: Context) -> frozenset[str] | None:
    """Return the ids of the passages that meet a run's conditions on provenance; None where there is none.

    As of a date, documents are what they were then, and citations those that were given since, too.

    Raises:
        BadInput: there is no relationship graph, or nothing tells whose citations count.
        NoAccess: the conversation is not open to the caller.
    """
    if not context.provenance.model_fields_set:
        return None
    wanted = context.provenance_filter
    if not wanted:
        return None
    root = resolve_workspace(context.workspace).absolute()
    documents = _of_documents(root, context.as_of, wanted.of_documents) if wanted.of_documents else None
    if not wanted.cited_before:
        return documents
    with RelationshipRecord.of(root) as record:
        check_open_to(record, wanted.conversation_id, wanted.user_id, own_only=context.own_only)
        cited = passages_of(record, wanted.of_citations)
    return cited if documents is None else cited & documents


def _of_documents(root: Path, as_of: str, wanted: ProvenanceFilter) -> frozenset[str]:
    """Return the passages that meet conditions on documents: by the relationship graph, or by what stood at a date."""
    if as_of:
        with Workspace(root).open_record() as record:
            return _passages_then(root, record.commit_id, record.versions.state, last_moment(as_of), wanted)
    with RelationshipRecord.of(root) as relationships:
        return _passages(root, relationships.revision, wanted)


@lru_cache(maxsize=8)
def _passages(root: Path, revision: int, wanted: ProvenanceFilter) -> frozenset[str]:
    """Return the passages at a revision, which the nodes of a run all ask for; nothing of a person is kept here."""
    with RelationshipRecord.of(root) as record:
        return passages_of(record, wanted)


@lru_cache(maxsize=8)
def _passages_then(root: Path, commit_id: str, state: str, moment: str, wanted: ProvenanceFilter) -> frozenset[str]:
    """Return the passages that stood at a moment, of a commit and a state of the versions kept, as `_passages` does."""
    with Workspace(root).open_record() as record:
        return passages_that_stood((span for span in record.versions.spans() if span.stands_at(moment)), wanted)
