"""The sample conversations: each asked as a thread, and each later question also without it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from statistics import fmean
from typing import Any

from agents.offline.extractor import OfflineExtractor
from agents.roles import Turn
from benchmarks.conversations import gate
from benchmarks.conversations.data import Conversation, LabelledTurn, Way
from benchmarks.conversations.scoring import difference, holds_words, ids_of, same_result
from workflows.answering import ask
from workflows.context import Context
from workflows.evaluation import recall_at_k
from workflows.indexing import index_sources
from workflows.results import turn_of
from workflows.runtime.resources import close_indexes
from workflows.settings.enums import ResultKind

DEPTHS = (2, 5)
"""Two of 75 passages, and five."""


@dataclass(frozen=True, slots=True)
class Later:
    """A later question of a conversation, and its result for each way of asking it."""

    conversation: Conversation
    turn: LabelledTurn
    results: Mapping[Way, Mapping[str, Any]]

    def recall(self, way: Way, depth: int) -> float:
        """The share of its gold passages among the first ``depth``; it has to have some."""
        return recall_at_k(ids_of(self.results[way]), self.turn.gold_ids, depth)

    def is_right(self, way: Way) -> bool:
        """Whether the answer holds the words of the gold answer."""
        return holds_words(self.results[way]["plain_answer"] or "", self.turn.answer)

    @property
    def asked_back(self) -> bool:
        """Whether the thread's answer is a question to the user."""
        return bool(self.results[Way.THREAD]["answer_kind"] == ResultKind.CLARIFICATION)


Figure = Callable[[Later, Way], float]

FIGURES: Mapping[str, Figure] = {
    **{f"recall@{depth}": partial(Later.recall, depth=depth) for depth in DEPTHS},
    "answers with the gold words": Later.is_right,
}


def report(conversations: Sequence[Conversation], model: str, *, each: bool) -> Iterator[str]:
    """Index the sample corpus into a workspace that is thrown away, ask, and yield what to print.

    Args:
        conversations: to ask.
        model: the chat model, or ``offline``.
        each: whether later questions that went wrong are told one by one.
    """
    with tempfile.TemporaryDirectory() as folder, as_file(files("workflows.sample")) as sample:
        index_sources([sample / "corpus.jsonl"], Path(folder), extractor=OfflineExtractor())
        context = Context(workspace=folder, model=model)
        later = [turn for conversation in conversations for turn in ask_conversation(conversation, context)]
        unchanged = unchanged_first_turns(conversations, context)
        close_indexes()
    leaning, alone = _labels(conversations)
    if each:
        yield from (told(turn) for turn in later if went_wrong(turn))
        yield from (f"Changed in another's thread: {question}" for question, kept in unchanged.items() if not kept)
        yield gate.wrong(leaning, alone)
    yield recall_table(later)
    yield behaviour_table(later, list(unchanged.values()))
    yield gate.table("sample", leaning, alone)


def ask_conversation(conversation: Conversation, context: Context) -> Iterator[Later]:
    """Ask a conversation turn by turn; what the system answered is the thread. Yield its later turns."""
    turns: list[Turn] = []
    for place, turn in enumerate(conversation.turns):
        answered = ask(turn.question, context, turns)
        if place:
            previous = conversation.turns[place - 1].question
            in_front = ask(f"{previous} {turn.question}", context)
            alone = ask(turn.question, context)
            yield Later(conversation, turn, {Way.ALONE: alone, Way.IN_FRONT: in_front, Way.THREAD: answered})
        turns.append(turn_of(answered))


def unchanged_first_turns(conversations: Sequence[Conversation], context: Context) -> dict[str, bool]:
    """Tell of each first question whether the thread of another conversation leaves its whole result as it is."""
    firsts = list(dict.fromkeys(conversation.turns[0].question for conversation in conversations))
    alone = [ask(question, context) for question in firsts]
    in_thread = [
        ask(question, context, [turn_of(other)])
        for question, other in zip(firsts, alone[-1:] + alone[:-1], strict=True)
    ]
    same = [same_result(one, other) for one, other in zip(alone, in_thread, strict=True)]
    return dict(zip(firsts, same, strict=True))


def recall_table(later: Sequence[Later]) -> str:
    """Return recall and right answers by kind as a Markdown table, with the differences that the thread makes."""
    asked = [turn for turn in later if not turn.turn.ask_back]
    leaning = [turn for turn in asked if not turn.turn.stands_alone]
    by_kind = {
        kind: [turn for turn in asked if turn.conversation.kind == kind]
        for kind in dict.fromkeys(turn.conversation.kind for turn in asked)
    }
    groups = {**by_kind, "**all that lean**": leaning, "**all later turns**": asked}
    lines = [
        f"| later turns: {' / '.join(FIGURES)} | turns | {' | '.join(Way)} |",
        "|---|--:|" + "--:|" * len(Way),
        *(f"| {name} | {len(own)} | {_cells(own)} |" for name, own in groups.items()),
    ]
    for other in (Way.ALONE, Way.IN_FRONT):
        gains = [f"{name} {_gain(leaning, other, figure)}" for name, figure in FIGURES.items()]
        lines.append(f"\nThat lean, {Way.THREAD} above {other}: {'; '.join(gains)}")
    return "\n".join(lines)


def behaviour_table(later: Sequence[Later], unchanged_firsts: Sequence[bool]) -> str:
    """Return how often what stands alone is left as it is, and what is open is asked back, as a Markdown table."""
    alone = [same_result(t.results[Way.ALONE], t.results[Way.THREAD]) for t in later if t.turn.stands_alone]
    open_ones = [turn.asked_back for turn in later if turn.turn.ask_back]
    needless = [turn.asked_back for turn in later if not turn.turn.ask_back]
    rows = {
        "first turns in another's thread: result unchanged": unchanged_firsts,
        "later turns that stand alone: result unchanged": alone,
        "questions that could mean several things: asked back": open_ones,
        "other later turns: asked back needlessly": needless,
    }
    return "\n".join(["| | of | |", "|---|--:|--:|", *(f"| {row} | {len(d)} | {sum(d)} |" for row, d in rows.items())])


def went_wrong(later: Later) -> bool:
    """Tell whether a later question misses a gold passage or word, was changed, or was not asked back."""
    if later.turn.ask_back:
        return not later.asked_back
    changed = later.turn.stands_alone and not same_result(later.results[Way.ALONE], later.results[Way.THREAD])
    return changed or later.recall(Way.THREAD, max(DEPTHS)) < 1 or not later.is_right(Way.THREAD)


def told(later: Later) -> str:
    """Return a later question and what came of it, to read."""
    result, turn = later.results[Way.THREAD], later.turn
    expected = "a question back" if turn.ask_back else f"{turn.answer!r} in {list(turn.gold_ids)}"
    return (
        f"{later.conversation.id} ({later.conversation.kind}): {turn.question}\n"
        f"  expected: {expected}{', as without the thread' if turn.stands_alone else ''}\n"
        f"  found: {ids_of(result)[: max(DEPTHS)]}\n"
        f"  understood: {result['question']} {result['understood']}\n"
        f"  said: {result['answer']}\n"
    )


def _labels(conversations: Sequence[Conversation]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the questions that lean, and those that stand alone, first ones too, by id and place."""
    labelled = {f"{each.id} {place}": turn for each in conversations for place, turn in enumerate(each.turns)}
    leaning = {id_: turn.question for id_, turn in labelled.items() if not turn.stands_alone}
    return leaning, {id_: turn.question for id_, turn in labelled.items() if turn.stands_alone}


def _cells(later: Sequence[Later]) -> str:
    return " | ".join(" / ".join(f"{_mean(later, way, figure):.3f}" for figure in FIGURES.values()) for way in Way)


def _mean(later: Sequence[Later], way: Way, figure: Figure) -> float:
    return fmean(figure(turn, way) for turn in later)


def _gain(later: Sequence[Later], other: Way, figure: Figure) -> str:
    return difference([figure(turn, Way.THREAD) for turn in later], [figure(turn, other) for turn in later])
