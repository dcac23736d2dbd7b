"""Conversations to measure with: those over the sample corpus, and those of an MTRAG folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from agents.roles import Turn

HERE = Path(__file__).parent


class Part(StrEnum):
    """The half of the sample conversations: one to develop with, one that nobody looks at."""

    DEVELOPMENT = "development"
    HELD_OUT = "held_out"


class Way(StrEnum):
    """How a later question of a conversation is asked."""

    ALONE = "last turn alone"
    IN_FRONT = "previous question in front"
    THREAD = "with the thread"


@dataclass(frozen=True, slots=True)
class LabelledTurn:
    """A question of a sample conversation.

    Attributes:
        question: as it is typed.
        gold_ids: of the passages that are needed to answer it; none where it has to be asked back.
        answer: words that a right answer holds.
        stands_alone: whether it can be looked up without the conversation.
        ask_back: whether it could mean several things, so that a question back is right.
    """

    question: str
    gold_ids: tuple[str, ...]
    answer: str
    stands_alone: bool
    ask_back: bool


@dataclass(frozen=True, slots=True)
class Conversation:
    """A sample conversation; its kind tells what its later questions lean by."""

    id: str
    kind: str
    part: Part
    turns: tuple[LabelledTurn, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A question of MTRAG with the turns before it; ``gold_ids`` are empty where nothing answers it."""

    id: str
    question: str
    turns: tuple[Turn, ...]
    gold_ids: tuple[str, ...]


def read_conversations(parts: Sequence[Part]) -> list[Conversation]:
    """Return the sample conversations of some parts, in the order of the file."""
    rows = _rows(HERE / "sample.jsonl")
    return [_conversation(row) for row in rows if row["part"] in parts]


def read_tasks(folder: Path) -> list[Task]:
    """Return the tasks of an MTRAG folder, in the order of its ``questions.jsonl``."""
    return [
        Task(row["id"], row["question"], turns_of(row["messages"]), tuple(row["gold_ids"]))
        for row in _rows(folder / "questions.jsonl")
    ]


def read_labels(name: str) -> frozenset[str]:
    """Return the ids of tasks in a file of labels beside this one, such as ``mtrag_leaning.txt``."""
    return frozenset((HERE / name).read_text(encoding="utf-8").split())


def turns_of(messages: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...]:
    """Return messages as turns: each of the user's with the assistant's reply behind it, if there is one."""
    turns: list[Turn] = []
    for message in messages:
        if message["role"] == "user":
            turns.append(Turn(message["content"]))
        elif turns:
            turns[-1] = Turn(turns[-1].question, message["content"])
    return tuple(turns)


def _conversation(row: Mapping[str, Any]) -> Conversation:
    turns = (LabelledTurn(**{**turn, "gold_ids": tuple(turn["gold_ids"])}) for turn in row["turns"])
    return Conversation(row["id"], row["kind"], Part(row["part"]), tuple(turns))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
