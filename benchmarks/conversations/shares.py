"""The concepts of a thread as seeds, or in the score: recall by the share that they are given."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from statistics import fmean

from agents.offline.extractor import OfflineExtractor
from agents.roles import Turn
from benchmarks.conversations.data import Conversation, Task, Way, read_tasks
from benchmarks.conversations.mtrag import ask
from benchmarks.conversations.scoring import difference, ids_of
from graph.relationships.concepts import SpelledConcepts
from graph.relationships.history import HistoryPart, NewTurn, now, record_turn
from graph.relationships.record import RelationshipRecord
from graph.retrieve.modes import Mode
from workflows.context import Context
from workflows.evaluation import recall_at_k
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes, open_workspace_index

MODES = (Mode.MARA, Mode.HYBRID, Mode.DENSE)
DEPTHS = (2, 5)
_PARTS = (HistoryPart.MESSAGES, HistoryPart.CONCEPTS)


def mtrag_report(folder: Path, workspace: str, shares: Sequence[float]) -> Iterator[str]:
    """Write an MTRAG folder's threads into the history of a workspace of its corpus, and yield tables of recall."""
    tasks = [task for task in read_tasks(folder) if task.turns and task.gold_ids]
    yield from report(tasks, Path(workspace), shares)


def sample_report(conversations: Sequence[Conversation], shares: Sequence[float]) -> Iterator[str]:
    """Write the sample conversations, with gold answers, into a workspace that is thrown away, and yield tables."""
    tasks = [task for conversation in conversations for task in _later(conversation)]
    with tempfile.TemporaryDirectory() as folder, as_file(files("workflows.sample")) as sample:
        index_sources([sample / "corpus.jsonl"], Path(folder), extractor=OfflineExtractor())
        yield from report(tasks, Path(folder), shares)
        close_indexes()


def report(tasks: Sequence[Task], workspace: Path, shares: Sequence[float]) -> Iterator[str]:
    """Yield a table for each mode: recall of the last questions, by the share of their thread's concepts."""
    _write_threads(tasks, workspace)
    for mode in MODES:
        context = Context(workspace=str(workspace), mode=mode, model="offline", top_k=max(DEPTHS), remember=[])
        recalls = {share: _recalls(tasks, context, share) for share in (0.0, *(share for share in shares if share))}
        rows = [f"| {mode}, {len(tasks)} later turns | {' | '.join(f'R@{k} | above 0' for k in DEPTHS)} |"]
        rows.append("|---|" + "--:|" * 2 * len(DEPTHS))
        for share, by_depth in recalls.items():
            cells = [f"{fmean(by_depth[k]):.3f} | {difference(by_depth[k], recalls[0.0][k])}" for k in DEPTHS]
            rows.append(f"| share {share:g} | {' | '.join(cells)} |")
        yield "\n".join(rows)


def _write_threads(tasks: Sequence[Task], workspace: Path) -> None:
    """Write the turns before each question as a conversation of the history."""
    extractor = SpelledConcepts(open_workspace_index(Context(workspace=str(workspace))).graph)
    with RelationshipRecord.of(workspace, create=True) as record:
        for task in tasks:
            for number, turn in enumerate(task.turns):
                written = NewTurn(f"{task.id} {number}", turn.question, turn.answer or "-", now(), now(), _thread(task))
                record_turn(record, written, extractor, _PARTS)


def _recalls(tasks: Sequence[Task], context: Context, share: float) -> dict[int, list[float]]:
    found = []
    for task in tasks:
        settings = context.model_copy(update={"conversation_id": _thread(task), "conversation_share": share})
        found.append(ids_of(ask(task, Way.THREAD, settings)))
    return {k: [recall_at_k(ids, task.gold_ids, k) for ids, task in zip(found, tasks, strict=True)] for k in DEPTHS}


def _thread(task: Task) -> str:
    return f"benchmark {task.id}"


def _later(conversation: Conversation) -> Iterator[Task]:
    """Yield the later questions of a conversation that have gold passages, with the turns before them."""
    for place, turn in enumerate(conversation.turns):
        if place and turn.gold_ids:
            before = tuple(Turn(each.question, each.answer, each.gold_ids) for each in conversation.turns[:place])
            yield Task(f"{conversation.id} {place}", turn.question, before, turn.gold_ids)
