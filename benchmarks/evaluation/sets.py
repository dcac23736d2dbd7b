"""The development sets: corpora as they are indexed, and the questions that are asked of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents as they are indexed.

    Attributes:
        name: of its workspace.
        folder: where the data holds ``corpus.jsonl`` and ``questions.jsonl``.
        triples: whether its facts are imported from ``openie.jsonl``; else they are extracted without a model.
        titles: whether the passages keep their titles.
    """

    name: str
    folder: str
    triples: bool = False
    titles: bool = True


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions that are asked of a corpus.

    Attributes:
        name: of its run.
        heading: what the tables call it.
        corpus: what is searched.
        chosen: returns a row of the question file as it is asked, None for one that is left out.
        ablated: whether the ablations and controls are asked too.
    """

    name: str
    heading: str
    corpus: Corpus
    chosen: Callable[[Row], Row | None] = lambda row: row
    ablated: bool = False


def later_turn(row: Row) -> Row | None:
    """Return a turn that has gold passages and turns before it, asked by its last turn alone."""
    return row if row["gold_ids"] and row["turn"] > 1 else None


def first_turn(row: Row) -> Row | None:
    """Return a turn that has gold passages and none before it."""
    return row if row["gold_ids"] and row["turn"] == 1 else None


def after_the_turn_before(row: Row) -> Row | None:
    """Return a later turn with the user's turn before in front of it."""
    if later_turn(row) is None:
        return None
    before = [message["content"] for message in row["messages"] if message["role"] == "user"]
    return {**row, "question": f"{before[-1]} {row['question']}"}


_MUSIQUE = Corpus("musique", "musique_train100", triples=True)
_MUSIQUE_OFFLINE = Corpus("musique-offline", "musique_train100")
_HOTPOT = Corpus("hotpot", "hotpot_train100")
_HOTPOT_UNTITLED = Corpus("hotpot-untitled", "hotpot_train100", titles=False)
_MTRAG = Corpus("mtrag", "mtrag_dev")

QUESTION_SETS = (
    QuestionSet("musique", "MuSiQue", _MUSIQUE, ablated=True),
    QuestionSet("hotpot", "HotpotQA", _HOTPOT, ablated=True),
    QuestionSet("mtrag-later", "MTRAG, later turns", _MTRAG, later_turn, ablated=True),
    QuestionSet("mtrag-first", "MTRAG, first turns", _MTRAG, first_turn),
    QuestionSet("mtrag-before", "MTRAG, later turns after the turn before", _MTRAG, after_the_turn_before),
    QuestionSet("musique-offline", "MuSiQue, facts extracted without a model", _MUSIQUE_OFFLINE),
    QuestionSet("hotpot-untitled", "HotpotQA, titles taken off", _HOTPOT_UNTITLED),
)
"""All that is measured, in the order of the tables."""


def rows_of(path: Path) -> Iterator[Row]:
    """Yield the objects of a file of JSON lines."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
