"""The nodes of retrieval: each a few lines over plain functions of `graph` and `agents`.

The relationship graph adds to a ranking the concepts of its thread, and what its user read and asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from agents.fact_filter import FACT_FILTER, OfflineFactFilter
from agents.leaning import asks_nothing, leaning_of
from agents.manager import MANAGER
from agents.rewriter import REWRITER
from graph.errors import BadInput, MaraError, NoAccess
from graph.relationships.conversation_search import (
    documents_of_thread,
    relevances,
    thread_concepts,
    with_thread_relevance,
    with_thread_seeds,
)
from graph.relationships.conversations import check_open_to
from graph.relationships.history import now
from graph.relationships.profile import Placed, Profile, candidates_of, personal_ranking, profile_of
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.relationships.sight import Sight
from graph.retrieve.filter_keys import unknown_keys
from graph.retrieve.modes import Mode
from graph.retrieve.search import (
    FUSED_DEPTH,
    Ranking,
    best,
    effective_passage_weight,
    find_facts,
    rank_passages,
    seed_passages,
    start_near,
    weigh_entity_seeds,
    weigh_every_passage,
)
from graph.retrieve.selection import Selection
from graph.schema import ScoredFact
from graph.storage.workspace import resolve_workspace
from workflows.nodes.conversation import ASKS_NOTHING, spoken, visible_turns
from workflows.runtime.agents import ask, fell_back
from workflows.runtime.history import told, turns_before
from workflows.runtime.node import node
from workflows.runtime.resources import OFFLINE, OpenRun, chat_model_name, models_of
from workflows.runtime.tracing import fact_documents, passage_documents, step
from workflows.runtime.walk_tool import walk_as_tool
from workflows.settings.mara import Question
from workflows.settings.walk import SHOWN_SEEDS
from workflows.states.conversion import (
    fact_hit,
    facts_of,
    passage_candidates,
    passage_hits,
    ranking_of,
    seed_set,
    start_of,
    tell_pagerank,
)
from workflows.states.records import ErrorRecord, FactHit, Factors, PassageHit, SeedSet, TurnRecord, Update
from workflows.states.shared import Asked, State, check_same_kind, searched_words

RELATIONSHIPS_UNREAD = "RelationshipsUnread"
"""The kind of an error that tells that the relationship graph could not be read, and so did not count."""

COMPARED = 20
"""Passages that are compared for a personal ranking, at least; twice as many as are returned, where that is more."""

Found = TypeVar("Found")


def fresh_state() -> Update:
    """Return what every run starts from, so that a thread that was used before holds nothing of it."""
    return {
        "passages": [],
        "ranked_by": "",
        "walk": None,
        "facts": [],
        "fact_outcome": "",
        "relation_factors": None,
        "passage_weight": None,
        "tuning": None,
        "adaptive_passage_weight": None,
        "passage_candidates": [],
        "seeds": SeedSet(entities=[], passages=[]),
        "errors": None,
        "usage": None,
        "spent": None,
        "understood": None,
        **REWRITER.not_asked,
        **FACT_FILTER.not_asked,
        **MANAGER.not_asked,
    }


def begin(state: Asked, run: OpenRun) -> Update:
    """Check the question, start afresh and compute the question's vectors, which the index keeps for the searches."""
    asked = Question.model_validate(state)
    question = asked.question
    context, index, selection = run.context, run.index, run.selection
    errors = []
    if not index.complete:
        unfinished = "The last indexing run was interrupted: documents may be missing; run `mara index` again"
        errors.append(run.error("IndexingUnfinished", unfinished))
    if context.where and (unknown := unknown_keys(index, context.where, context.fixed_where)) and unknown.held:
        errors.append(run.error("UnknownKeys", unknown.note))
    earlier: list[TurnRecord] = []
    if asked.turns or context.conversation_id:
        turns, unread = turns_before(asked.turns, run)
        earlier, hidden = visible_turns(turns, run)
        errors += [*unread, *hidden]
    if _is_empty(selection):
        errors.append(run.nothing_selected())
    else:
        step(
            "embedding",
            "embed_question",
            lambda: {"texts": [question]},
            lambda: index.encode(question),
            lambda _: {"dimension": index.graph.passage_vectors.shape[1]},
            {"ls_model_name": index.embedder.model_id},
        )
    return {
        **fresh_state(),
        "errors": errors or None,
        "turns": [],
        "earlier": earlier,
        "leaning": ASKS_NOTHING if asks_nothing(question) else leaning_of(question, spoken(earlier)) if earlier else "",
        **_provenance(run),
        "asked_at": now() if context.remembers else "",
        "remembers": context.remembers,
        "weighs_relations": context.walk_settings().beta,
        "nothing_selected": _is_empty(selection),
    }


@node()
def encode_question(state: Asked, run: OpenRun) -> Update:
    """Start a run of retrieval alone: see `begin`."""
    return begin(state, run)


@node("understood")
def retrieve_facts(state: State, run: OpenRun) -> Update:
    """Look the nearest facts up in the vector store."""
    check_same_kind(state, run.context.mode)
    settings = run.context.walk_settings()
    facts = step(
        "retriever",
        "search_facts",
        lambda: {"query": searched_words(state), "k": settings.fact_candidates},
        lambda: find_facts(run.index, searched_words(state), settings, run.selection),
        fact_documents,
    )
    return {"facts": [fact_hit(fact, score, kept=False) for fact, score in facts]}


@node("facts", "filter_attempts", "filter_refusal")
def filter_facts(state: State, run: OpenRun) -> Update:
    """Ask the recognition-memory filter which candidates are worth starting from."""
    check_same_kind(state, run.context.mode)
    question, most = state["question"], run.context.max_facts
    facts = facts_of(state.get("facts", []), run.index, run.selection)
    candidates = [ScoredFact(fact.fact, score) for fact, score in facts]
    reply = ask(
        FACT_FILTER,
        state,
        run,
        lambda: {"question": question, **fact_documents(facts), "max_facts": most},
        lambda fact_filter, feedback: fact_filter.choose(question, candidates, most, feedback),
    )
    choice = reply.said
    if choice is None:
        return reply.update
    kept = {chosen.fact.id for chosen in choice.kept}
    update: Update = {
        **reply.update,
        "fact_outcome": "kept" if kept else "nothing relevant",
        "facts": [FactHit(**{**hit, "kept": hit["id"] in kept}) for hit in state.get("facts", [])],
    }
    if choice.dropped:
        message = f"{choice.dropped} items of the reply were no candidates and were dropped"
        update["errors"] = [run.error("InventedFacts", message, reply.attempt)]
    return update


@node("facts", "filter_attempts", "filter_refusal")
def keep_top_facts(state: State, run: OpenRun) -> Update:
    """Fallback of the filter: keep the best candidates as they are."""
    most, facts = run.context.max_facts, state.get("facts", [])
    return {
        "fact_outcome": "failed",
        "facts": [FactHit(**{**hit, "kept": rank < most}) for rank, hit in enumerate(facts)],
        **fell_back(FACT_FILTER, state, run, most),
    }


@node("manager_attempts", "manager_refusal")
def weigh_relations(state: State, run: OpenRun) -> Update:
    """Ask the manager which relation types matter for the question."""
    reply = ask(
        MANAGER,
        state,
        run,
        lambda: {"question": state["question"]},
        lambda manager, feedback: manager.weigh(state["question"], feedback),
    )
    weights = reply.said
    if weights is None:
        return reply.update
    update: Update = {
        **reply.update,
        "relation_factors": Factors(
            entity_entity=dict(weights.factors.entity_entity), entity_passage=dict(weights.factors.entity_passage)
        ),
        "adaptive_passage_weight": weights.passage_weight,
    }
    if weights.defaulted:
        message = f"Missing, unknown or out of range, and defaulted: {', '.join(weights.defaulted)}"
        update["errors"] = [run.error("Defaulted", message, reply.attempt)]
    return update


@node("manager_attempts", "manager_refusal")
def neutral_relations(state: State, run: OpenRun) -> Update:
    """Fallback of the manager: walk without β."""
    return fell_back(MANAGER, state, run)


@node("understood")
def retrieve_passages(state: State, run: OpenRun) -> Update:
    """Rank passages by similarity: the passage seeds of a walk, or the result itself in a mode that does not walk."""
    check_same_kind(state, run.context.mode)
    return _seed_candidates(state, run) if run.context.mode.walks else _ranked_by_similarity(state, run)


def _seed_candidates(state: State, run: OpenRun) -> Update:
    """The passages that a walk may start from."""
    question, settings = searched_words(state), run.context.walk_settings()
    ranking = _rank_step(
        run,
        {"query": question, "k": SHOWN_SEEDS, "mode": "hybrid" if settings.hybrid_seeds else "dense"},
        lambda: seed_passages(run.index, question, settings, SHOWN_SEEDS, run.selection),
    )
    return {"passage_candidates": passage_candidates(run.index, ranking)}


def _ranked_by_similarity(state: State, run: OpenRun) -> Update:
    """The ranking of a mode that does not walk."""
    question, mode, k, alpha = searched_words(state), run.context.mode, run.context.top_k, run.context.hybrid_alpha
    nothing_else: Update = {"facts": [], "seeds": SeedSet(entities=[], passages=[])}
    if _is_empty(run.selection):
        return {**nothing_else, **_nothing(run)}
    personal = personal_of(run)
    # The conversation may raise a passage from below.
    depth = max(personal.depth, FUSED_DEPTH) if run.context.thread_share else personal.depth
    ranking = _rank_step(
        run,
        {"query": question, "k": k, "mode": mode.value},
        lambda: rank_passages(run.index, question, mode, depth, alpha, run.selection),
    )
    mixed, unread = with_relevance_of_thread(run, ranking)
    return {
        **nothing_else,
        "passages": personal.hits(mixed[: personal.depth]),
        "ranked_by": mode.value,
        "errors": [*unread, *personal.errors],
    }


def _rank_step(run: OpenRun, inputs: Update, rank: Callable[[], Ranking]) -> Ranking:
    """Rank passages as a step of the trace."""
    return step(
        "retriever", "rank_passages", lambda: inputs, rank, lambda ranking: passage_documents(run.index, ranking)
    )


@node("understood", "facts", "fact_outcome", "passage_candidates", "adaptive_passage_weight")
def seed_graph(state: State, run: OpenRun) -> Update:
    """Join the branches: weigh the entities of the kept facts, the names in the question and the passages."""
    check_same_kind(state, run.context.mode)
    index, selection, settings = run.index, run.selection, run.context.walk_settings()
    if _were_chosen(state, run):
        settings = replace(settings, fact_bar=0.0)
    hits, candidates = state.get("facts", []), state.get("passage_candidates", [])
    kept = facts_of([hit for hit in hits if hit["kept"]], index, selection)
    asked = weigh_entity_seeds(index, searched_words(state), kept, settings, selection)
    entities, unread = with_seeds_of_thread(run, asked)
    weight = effective_passage_weight(settings, state.get("adaptive_passage_weight"))
    near = ranking_of(index, candidates)
    start = start_near(index, searched_words(state), entities, weight, settings, selection, near)
    if start.passages is None:
        every = best(weigh_every_passage(index, start).dense(), SHOWN_SEEDS, selection)
        shown = [(passage, share) for passage, share in every if share > 0]
    else:
        shown = list(start.passages.items())
    unknown = len([hit for hit in hits if hit["id"] not in index.graph.facts]) + len(candidates) - len(near)
    return {
        "passage_weight": weight,
        "seeds": seed_set(index, entities, shown, selection),
        "errors": [*unknown_entries(run, unknown), *unread],
    }


@node("understood", "facts", "passage_candidates", "seeds", "relation_factors", "passage_weight")
def walk_graph(state: State, run: OpenRun) -> Update:
    """Walk from the seeds and rank the passages; without a seed to start from, rank by similarity and say so."""
    check_same_kind(state, run.context.mode)
    context, index, selection = run.context, run.index, run.selection
    settings = context.walk_settings()
    update = _provenance(run)
    if _is_empty(selection):
        return {**update, **_nothing(run)}
    start, unknown = start_of(index, state, settings, selection)
    personal = personal_of(run)
    walked = walk_as_tool(run, start, state, personal.depth, unknown)
    update["errors"] = [*unknown_entries(run, unknown), *personal.errors]
    walk = walked.walk
    if walk is None:
        ranking = rank_passages(index, start.words, Mode.DENSE, personal.depth, settings.alpha, selection)
        return {**update, "passages": personal.hits(ranking), "ranked_by": "dense", "walk": None}
    hits = personal.hits(walked.ranking)
    if walked.settings.convergence or walked.settings.coverage:
        tell_pagerank(hits, walk, index)
    update |= {
        "passages": hits,
        "ranked_by": "walk",
        "tuning": walked.tuning,
        "walk": {
            "engine": walk.engine.value,
            "error": walk.error,
            "arcs": walk.arcs,
            "damping": walked.settings.damping,
            "convergence": walked.settings.convergence,
        },
    }
    if walked.unknown_relations:
        named = ", ".join(walked.unknown_relations)
        message = f"β does not name {named}: each weighs as without β, or the mean of its category"
        update["errors"] += [run.error("UnknownRelation", message)]
    return update


def _were_chosen(state: State, run: OpenRun) -> bool:
    """Whether a model or the caller's own filter chose the facts: then all of them count, however near they are."""
    own = run.context.beside.agents.get(FACT_FILTER.name)
    if own is not None:
        return not isinstance(own, OfflineFactFilter)
    is_asked = run.context.filter_facts and chat_model_name(run.context) != OFFLINE
    return is_asked and state.get("fact_outcome") != "failed"


def unknown_entries(run: OpenRun, unknown: int) -> list[ErrorRecord]:
    """Tell of entries that were dropped: written by hand, or of an earlier generation."""
    message = f"{unknown} entries of the state name nothing that this workspace holds and were dropped"
    return [run.error("UnknownEntries", message)] if unknown else []


def _is_empty(selection: Selection | None) -> bool:
    return selection is not None and selection.is_empty


def _nothing(run: OpenRun) -> Update:
    """The outcome of a ranking where the filter selects no passage."""
    return {"passages": [], "ranked_by": "", "walk": None, "errors": [run.nothing_selected()]}


def _provenance(run: OpenRun) -> Update:
    """The provenance of a result; told again by the walk, since a fork may bring another context."""
    return {
        "mode": run.context.mode.value,
        "models": models_of(run.context, run.index),
        "generation": run.index.graph.generation,
        "as_of": run.context.as_of,
    }


@dataclass(frozen=True, slots=True)
class Personal:
    """A run's personal ranking.

    Attributes:
        run: the run.
        profile: of its user; None where the run is not to be personal, or nothing is known of the user.
        errors: why there is none, where it could not be read.
    """

    run: OpenRun
    profile: Profile | None
    errors: list[ErrorRecord]

    @property
    def depth(self) -> int:
        """How many passages are to be ranked: more than are returned where one may come from below."""
        k = self.run.context.top_k
        return max(2 * k, COMPARED) if self.profile else k

    def hits(self, ranking: Ranking) -> list[PassageHit]:
        """Return the best passages of a ranking as the result holds them, each that moved with the reasons why."""
        k = self.run.context.top_k
        if not self.profile:
            return passage_hits(self.run.index, ranking[:k])
        placed = personal_ranking(candidates_of(self.run.index.graph, [row for row, _ in ranking]), self.profile)[:k]
        hits = passage_hits(self.run.index, [ranking[each.place] for each in placed])
        for hit, each in zip(hits, placed, strict=True):
            if each.shift or each.place + 1 != hit["number"]:
                hit["personal"] = _place(each)
        return hits


def personal_of(run: OpenRun) -> Personal:
    """Return how a run's ranking is moved towards its user. Raises BadInput where it is to be, and no user is named."""
    context = run.context
    if not context.personalise:
        return Personal(run, None, [])
    if not context.user_id:
        raise BadInput("A personal ranking needs a user", "Name one: `user_id`, on the command line --user")
    profile, errors = _read(run, lambda record, sight: profile_of(record, context.user_id, sight), Profile())
    return Personal(run, profile, errors)


def with_seeds_of_thread(run: OpenRun, entities: Mapping[int, float]) -> tuple[dict[int, float], list[ErrorRecord]]:
    """Return entity seeds of which the run's share is that of the concepts of its conversation."""
    share = run.context.thread_share
    if not share:
        return dict(entities), []
    concepts, errors = _read(
        run, lambda record, sight: thread_concepts(record, _open_thread(run, record), sight), dict[str, float]()
    )
    place = run.index.graph.entity_index
    thread = {place[concept]: weight for concept, weight in concepts.items() if concept in place}
    return with_thread_seeds(entities, thread, share), errors


def with_relevance_of_thread(run: OpenRun, ranking: Ranking) -> tuple[Ranking, list[ErrorRecord]]:
    """Return a ranking by similarity, mixed with the relevance of documents for the run's conversation."""
    share = run.context.thread_share
    if not share:
        return ranking, []
    counts, errors = _read(
        run, lambda record, sight: documents_of_thread(record, _open_thread(run, record), sight), dict[str, int]()
    )
    if not counts:
        return ranking, errors
    passages = run.index.graph.passages
    mixed = with_thread_relevance(
        [(passages[row].document, score) for row, score in ranking], relevances(counts), share
    )
    return [(ranking[place][0], score) for place, score in mixed], errors


def _open_thread(run: OpenRun, record: RelationshipRecord) -> str:
    """Return the id of the run's conversation. Raises NoAccess where it is not open to the user."""
    context = run.context
    check_open_to(record, context.conversation_id, context.user_id, own_only=context.own_only)
    return context.conversation_id


def _read(
    run: OpenRun, read: Callable[[RelationshipRecord, Sight | None], Found], otherwise: Found
) -> tuple[Found, list[ErrorRecord]]:
    """Read the relationship graph; where it cannot be read, the run goes on without it, and says so."""
    root = resolve_workspace(run.context.workspace)
    if not has_relationships(root):
        return otherwise, []
    sight = None if run.selection is None else Sight(run.selection)
    try:
        with RelationshipRecord.of(root) as record:
            return read(record, sight), []
    except NoAccess:
        raise
    except MaraError as fault:
        message = f"The relationship graph cannot be read and does not count ({told(fault, run.context)})"
        return otherwise, [run.error(RELATIONSHIPS_UNREAD, message)]


def _place(placed: Placed) -> dict[str, Any]:
    reasons = [{**asdict(each), "weight": round(each.weight, 4)} for each in placed.reasons]
    return {"before": placed.place + 1, "shift": round(placed.shift, 4), "reasons": reasons}
