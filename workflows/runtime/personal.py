"""What the relationship graph adds to a run's ranking: the concepts of its thread, and what its user read and asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from graph.errors import BadInput, MaraError, NoAccess
from graph.relationships.conversation_search import (
    documents_of_thread,
    relevances,
    thread_concepts,
    with_thread_relevance,
    with_thread_seeds,
)
from graph.relationships.conversations import check_open_to
from graph.relationships.profile import Placed, Profile, candidates_of, personal_ranking, profile_of
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.relationships.sight import Sight
from graph.retrieve.search import FUSED_DEPTH, Ranking
from graph.storage.workspace import resolve_workspace
from workflows.runtime.history import told
from workflows.runtime.resources import OpenRun
from workflows.states.conversion import passage_hits
from workflows.states.records import ErrorRecord, PassageHit

RELATIONSHIPS_UNREAD = "RelationshipsUnread"
"""The kind of an error that tells that the relationship graph could not be read, and so did not count."""

COMPARED = 20
"""Passages that are compared for a personal ranking, at least; twice as many as are returned, where that is more."""

Found = TypeVar("Found")


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
    """Return how a run's ranking is moved towards its user. Raises BadInput where it is to be, and nobody is named."""
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


def thread_depth(run: OpenRun, k: int) -> int:
    """Return how many passages are to be ranked by similarity, so that the conversation may raise one from below."""
    return max(k, FUSED_DEPTH) if run.context.thread_share else k


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
    """Return the id of the run's conversation. Raises NoAccess where it is not open to who asks."""
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
