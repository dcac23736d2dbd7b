"""Personal ranking: made-up reading histories over the sample corpus, each with a question that means several things.

    python -m benchmarks.personal [--mode mara] [--reach 4 ...] [--each]

Each history of ``personal.jsonl`` is written for a user of its own; the question is asked with and without personal
ranking, and the passage that this user wants is looked for. Beside it, what the same histories do to the unambiguous
questions of the sample, which all users ask. Several reaches are compared side by side.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from statistics import fmean

from agents.offline.extractor import OfflineExtractor
from graph.relationships.concepts import SpelledConcepts
from graph.relationships.history import NewTurn, now, record_turn, track_user_viewed_document
from graph.relationships.profile import (
    REACH,
    Candidate,
    Profile,
    candidates_of,
    personal_ranking,
    profile_of,
)
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import HistoryPart, Node, NodeType
from graph.retrieve.modes import Mode
from graph.retrieve.open_index import Index
from workflows import retrieval
from workflows.context import Context, asking
from workflows.evaluation import recall_at_k
from workflows.indexing import index_sources
from workflows.nodes.retrieval import COMPARED
from workflows.runtime.resources import close_indexes, open_workspace_index

HISTORIES = Path(__file__).with_name("personal.jsonl")
MODES = (Mode.MARA, Mode.HIPPORAG2, Mode.HYBRID, Mode.DENSE, Mode.SPARSE)
DEPTH = 5
NOT_FOUND = COMPARED + 1


@dataclass(frozen=True, slots=True)
class History:
    """A made-up user: the documents they viewed, the questions they asked, and what they want by the next one."""

    user: str
    question: str
    wanted: str
    viewed: tuple[str, ...]
    asked: tuple[str, ...]

    @property
    def viewed_wanted(self) -> bool:
        """Whether what they want is something that they viewed before."""
        return self.wanted in self.viewed


def read_histories(path: Path = HISTORIES) -> list[History]:
    """Return the histories, one a line."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        History(f"reader {number}", each["question"], each["wanted"], tuple(each["viewed"]), tuple(each["asked"]))
        for number, each in enumerate(lines, start=1)
    ]


def write_histories(record: RelationshipRecord, index: Index, histories: Sequence[History]) -> None:
    """Write what the users viewed and asked, as their work with the index would have."""
    concepts = SpelledConcepts(index.graph)
    for each in histories:
        record.put_node(Node(NodeType.USER, each.user, {"created_at": now()}))
        for document in each.viewed:
            track_user_viewed_document(record, each.user, document)
        for number, question in enumerate(each.asked):
            turn = NewTurn(f"{each.user} {number}", question, "-", now(), now(), user=each.user)
            record_turn(record, turn, concepts, (HistoryPart.MESSAGES, HistoryPart.CONCEPTS))


def main() -> None:
    """Measure and print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", action="append", type=Mode, choices=list(Mode), help="else five of them")
    parser.add_argument("--reach", nargs="+", type=float, default=[REACH])
    parser.add_argument("--each", action="store_true", help="also print the rank of every wanted passage")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, as_file(files("workflows.sample")) as sample:
        index_sources([sample / "corpus.jsonl"], Path(folder), extractor=OfflineExtractor())
        gold = [json.loads(line) for line in (sample / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
        histories = read_histories()
        context = Context(workspace=folder, model="offline")
        with RelationshipRecord.of(Path(folder)) as record:
            write_histories(record, open_workspace_index(context), histories)
        profiles = _profiles(histories, context)
        print(_HEADER)
        for mode in options.mode or MODES:
            asked = context.model_copy(update={"mode": mode, "top_k": COMPARED})
            found = {question: _ranked(question, asked) for question in _questions(histories, gold)}
            for reach in options.reach:
                ranks = list(_ranks(histories, found, profiles, reach))
                harm = _recalls(gold, found, profiles, reach)
                print(_row(mode, reach, histories, ranks, harm), flush=True)
                if options.each:
                    _print_each(histories, ranks)
        close_indexes()


def ranks_of(histories: Sequence[History], context: Context) -> Iterator[tuple[int, int]]:
    """Yield the rank of what each user wants, without and with personal ranking, in the context's mode."""
    asked = context.model_copy(update={"top_k": COMPARED})
    found = {question: _ranked(question, asked) for question in {each.question for each in histories}}
    yield from _ranks(histories, found, _profiles(histories, context), REACH)


def _profiles(histories: Sequence[History], context: Context) -> dict[str, Profile]:
    with RelationshipRecord.of(Path(context.workspace)) as record:
        return {each.user: profile_of(record, each.user) for each in histories}


_HEADER = (
    "| mode | reach | wanted rises | falls | first: before | after | mean rank: before | after"
    f" | viewed before: after | others: after | recall@{DEPTH} of the sample: before | after |\n{'|---' * 12}|"
)


def _questions(histories: Sequence[History], gold: Sequence[Mapping[str, list[str]]]) -> list[str]:
    return list(dict.fromkeys([*(each.question for each in histories), *(str(each["question"]) for each in gold)]))


def _ranked(question: str, context: Context) -> list[Candidate]:
    """Return the impersonal ranking of a question, as deep as a personal one compares."""
    index = open_workspace_index(context)
    result = retrieval.graph.invoke(asking(question), context=context)
    place = index.graph.passage_index
    return candidates_of(index.graph, [place[hit["id"]] for hit in result["passages"]])


def _ranks(
    histories: Sequence[History],
    found: Mapping[str, list[Candidate]],
    profiles: Mapping[str, Profile],
    reach: float,
) -> Iterator[tuple[int, int]]:
    """Yield the rank of each wanted passage, before and after."""
    for each in histories:
        ranking = found[each.question]
        ids = [candidate.id for candidate in ranking]
        placed = personal_ranking(ranking, profiles[each.user], reach)
        after = [ids[place.place] for place in placed]
        before_at, after_at = (
            order.index(each.wanted) + 1 if each.wanted in order else NOT_FOUND for order in (ids, after)
        )
        yield before_at, after_at


def _recalls(
    gold: Sequence[Mapping[str, list[str]]],
    found: Mapping[str, list[Candidate]],
    profiles: Mapping[str, Profile],
    reach: float,
) -> tuple[float, float]:
    """Return the mean recall of the sample's questions, for everybody, before and after."""
    before, after = [], []
    for each in gold:
        ranking = found[str(each["question"])]
        before.append(recall_at_k([candidate.id for candidate in ranking], each["gold_ids"], DEPTH))
        for profile in profiles.values():
            placed = personal_ranking(ranking, profile, reach)
            after.append(recall_at_k([ranking[place.place].id for place in placed], each["gold_ids"], DEPTH))
    return fmean(before), fmean(after)


def _row(
    mode: Mode,
    reach: float,
    histories: Sequence[History],
    ranks: Sequence[tuple[int, int]],
    harm: tuple[float, float],
) -> str:
    before, after = zip(*ranks, strict=True)
    viewed = [rank for each, rank in zip(histories, after, strict=True) if each.viewed_wanted]
    others = [rank for each, rank in zip(histories, after, strict=True) if not each.viewed_wanted]
    could_rise = sum(rank > 1 for rank in before)
    figures = (
        f"{sum(new < old for old, new in ranks)} of {could_rise}",
        sum(new > old for old, new in ranks),
        before.count(1),
        after.count(1),
        f"{fmean(before):.2f}",
        f"{fmean(after):.2f}",
        f"{fmean(viewed):.2f}",
        f"{fmean(others):.2f}",
        *(f"{recall:.3f}" for recall in harm),
    )
    return f"| {mode} | {reach:g} | " + " | ".join(map(str, figures)) + " |"


def _print_each(histories: Sequence[History], ranks: Sequence[tuple[int, int]]) -> None:
    for each, (before, after) in zip(histories, ranks, strict=True):
        print(f"  {before:2} -> {after:2}  {each.wanted}: {each.question}")


if __name__ == "__main__":
    main()
