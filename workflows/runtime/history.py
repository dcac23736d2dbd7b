"""The history of a run: the turns before its question, and its own turn once it is answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from agents.roles import Turn
from graph.errors import MaraError, NoAccess
from graph.relationships.conversations import (
    Cited,
    PastTurn,
    check_open_to,
    conversation,
    erase_conversation,
    last_turns,
)
from graph.relationships.history import NewTurn, RecordedTurn, now, record_turn
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.server_clients import without_folders
from graph.storage.workspace import Workspace, resolve_workspace
from graph.text import counted
from workflows.runtime.resources import OpenRun
from workflows.runtime.visibility import sees
from workflows.settings.mara import Context
from workflows.states.records import ErrorRecord, Update
from workflows.states.shared import State

HISTORY_UNREAD = "HistoryUnread"
"""The kind of an error that tells that the turns of a conversation could not be read."""

HISTORY_UNWRITTEN = "HistoryUnwritten"
"""The kind of an error that tells that a turn, or a part of it, is not in the history."""

_TURNS_READ = 20
"""The last turns of a conversation that are read: more than any question leans on."""


def turns_before(turns: list[Turn], run: OpenRun) -> tuple[list[Turn], list[ErrorRecord]]:
    """Return the turns that a question may lean on: those given, else those of its conversation in the history.

    Where the caller has said that those given are all, it is those, be they none.

    Raises:
        NoAccess: the conversation is not open to the caller.
    """
    if not run.context.conversation_id:
        return turns, []
    try:
        past = past_turns(run.context)
    except NoAccess:
        raise
    except MaraError as fault:
        message = f"The earlier turns of the conversation cannot be read and do not count ({told(fault, run.context)})"
        return turns, [run.error(HISTORY_UNREAD, message)]
    return turns if turns or run.context.beside.turns_are_all else seen_turns(past, run), []


def past_turns(context: Context) -> list[PastTurn]:
    """Return the last turns of a run's conversation, the last one last; none where nothing was written yet.

    Raises:
        NoAccess: the conversation is not open to the caller.
        WorkspaceDamaged: the relationship graph cannot be read.
    """
    root = resolve_workspace(context.workspace)
    if not context.conversation_id or not has_relationships(root):
        return []
    with RelationshipRecord.of(root) as record:
        check_open_to(record, context.conversation_id, context.user_id, own_only=context.own_only)
        return last_turns(record, context.conversation_id, _TURNS_READ)


def seen_turns(past: Sequence[PastTurn], run: OpenRun) -> list[Turn]:
    """Return turns of the history as a question may lean on them.

    A question counts as it was completed, but as it was typed where it may have been completed from an answer that the
    run does not see. A removed passage is not seen.
    """
    turns: list[Turn] = []
    sees_all = True
    for turn in past:
        question, answer = turn.question, turn.answer
        cited = tuple(each.passage for each in answer.cited) if answer else ()
        asked = question.understood if question.understood and sees_all else question.content
        turns.append(Turn(asked, answer.content if answer else "", cited))
        sees_all = sees_all and all(sees(passage, run) for passage in cited)
    return turns


def record_answer(state: State, run: OpenRun) -> Update:
    """Write a run's turn to the history; what fails there is told among the errors, and costs no answer."""
    context = run.context
    if not context.remembers:
        return {"recorded": None}
    try:
        done = _write(_new_turn(state, run), run)
    except Exception as fault:
        message = f"The answer stands, but this turn is not in the history ({told(fault, context)})"
        return {"recorded": None, "errors": [run.error(HISTORY_UNWRITTEN, message)]}
    recorded = {
        "conversation": context.conversation_id if done.question else "",
        "user": context.user_id,
        "question": done.question,
        "answer": done.answer,
        "viewed": list(done.viewed),
    }
    try:
        errors = [run.error(HISTORY_UNWRITTEN, each) for each in _unlinked(done.unlinked, context)]
    except Exception as fault:
        errors = [run.error(HISTORY_UNWRITTEN, f"Some cited passages are not linked ({told(fault, context)})")]
    return {"recorded": recorded, "errors": errors}


def erase_own_conversation(context: Context) -> None:
    """Erase a user's conversation from the history, where it holds that; somebody else's of that name stays.

    Raises:
        WorkspaceLocked: other processes write for longer than one waits.
        GraphUnavailable: it is erased here, and the configured graph server still holds it.
    """
    root = resolve_workspace(context.workspace)
    if not has_relationships(root):
        return
    with RelationshipRecord.of(root) as record:
        entry = conversation(record, context.conversation_id)
        if entry is None or entry.owner != context.user_id:
            return
        erase_conversation(record, context.conversation_id)
    from workflows.runtime.graph_server import erase_on_graph_server

    erase_on_graph_server(root)


def told(fault: Exception, context: Context) -> str:
    """Return what a result tells of a fault: of ours the words without folders, of others the kind."""
    if not isinstance(fault, MaraError):
        return type(fault).__name__
    root = resolve_workspace(context.workspace)
    return without_folders(f"{fault.kind}: {fault.message}", root.parent, root.absolute().parent)


def _unlinked(passages: Sequence[str], context: Context) -> Iterator[str]:
    """Tell which cited passages the relationship graph does not hold: those of the past alone, and those it lacks."""
    if not passages:
        return
    with Workspace(resolve_workspace(context.workspace)).open_record() as record:
        standing = {span.passage_id for span in record.versions.spans(passages) if span.until is None}
    if past := len(passages) - len(standing):
        cited = counted(past, "cited passage")
        yield f"{cited} stood in the past only: the answer keeps their numbers, and nothing is linked"
    if standing:
        cited = counted(len(standing), "cited passage is", "cited passages are")
        yield f"{cited} not in the relationship graph, and not linked: index again"


def _write(turn: NewTurn, run: OpenRun) -> RecordedTurn:
    from graph.relationships.concepts import SpelledConcepts

    context = run.context
    extractor = context.beside.concept_extractor or SpelledConcepts(run.index.graph)
    root: Path = resolve_workspace(context.workspace)
    with RelationshipRecord.of(root, create=True) as record:
        return record_turn(record, turn, extractor, context.remember, own_only=context.own_only)


def _new_turn(state: State, run: OpenRun) -> NewTurn:
    understood = state.get("understood")
    typed = understood["asked"] if understood else state["question"]
    return NewTurn(
        key=run.context.beside.turn_key or run.task,
        question=typed,
        answer=state.get("answer", ""),
        asked_at=state.get("asked_at") or now(),
        answered_at=now(),
        conversation=run.context.conversation_id,
        user=run.context.user_id,
        understood="" if typed == state["question"] else state["question"],
        kind=state.get("answer_kind", ""),
        cited=tuple(_cited(state)),
        replaces=run.context.beside.replaces,
    )


def _cited(state: State) -> Iterator[Cited]:
    """Yield what the answer cites, each passage once."""
    cited = {mark["passage_id"]: mark["number"] for mark in reversed(state.get("citations", []))}
    for passage, number in sorted(cited.items(), key=lambda each: each[1]):
        yield Cited(number, passage)
