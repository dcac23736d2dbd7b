"""The coverage of an extraction: triples, types, confidence, and the share of gold answers that become nodes.

    python -m benchmarks.extraction --corpus FILE.jsonl --questions FILE.jsonl [--triples FILE.jsonl] [--misses]

The offline extractor reads the corpus; an imported file of triples, if given, stands beside it. Questions are JSONL of
{question, answers, gold_ids}. A gold answer is covered where one of its spellings has the normal form of a whole
name: an entity, an end of a triple or a title. An answer that stands in no gold passage word for word cannot be
covered in its place by any extractor; the share of those that do stand there is printed as the ceiling.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.offline.extractor import OfflineExtractor
from graph.schema import ENTITY_RELATIONS, Extraction, Passage, Triple
from graph.sources.documents import read_documents
from graph.sources.triples import read_triples
from graph.taxonomy import type_triple
from graph.text import find_name, normalise_name, title_name, tokens

_YES_OR_NO = frozenset(("yes", "no"))
BANDS: Mapping[str, tuple[float, float]] = {
    "0.9 and more (explicit)": (0.9, 1.01),
    "0.7 to 0.9 (likely)": (0.7, 0.9),
    "below 0.7 (co-occurrence)": (0.0, 0.7),
}
"""Confidence bands: lowest confidence, and the one that lies above."""


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A question's accepted answers, and the passages that hold them."""

    question: str
    spellings: tuple[str, ...]
    gold_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions whose answer can be a node, and how many were left out because theirs is yes or no."""

    answers: tuple[GoldAnswer, ...]
    yes_or_no: int


@dataclass(frozen=True, slots=True)
class Extracted:
    """The findings of one extractor, by passage id.

    Attributes:
        label: the extractor.
        seconds: processor time of each passage's extraction, in the order of the corpus; empty where it was imported.
    """

    label: str
    extractions: Mapping[str, Extraction]
    seconds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerCoverage:
    """How many gold answers are nodes.

    Attributes:
        as_node: a name anywhere in the corpus.
        in_place: a name of one of the question's gold passages.
        standing: word for word in one of the gold passages, name or not: the ceiling of ``in_place``.
        missed: those that stand in a gold passage and are no name there.
    """

    as_node: int
    in_place: int
    standing: int
    missed: tuple[GoldAnswer, ...]


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--triples", type=Path, help="imported triples, to stand beside the extractor's")
    parser.add_argument("--misses", action="store_true", help="print the answers that are no name in their passages")
    options = parser.parse_args()
    passages = list(read_documents([options.corpus]).passages.values())
    questions = read_questions(options.questions)
    columns = [extract_offline(passages)]
    if options.triples:
        columns.append(imported(passages, options.triples))
    coverages = [cover_answers(passages, questions.answers, column.extractions) for column in columns]
    print(table(passages, questions, columns, coverages))
    if options.misses:
        for column, coverage in zip(columns, coverages, strict=True):
            print(f"\nNot a name in its gold passages ({column.label}):")
            print("\n".join(f"- {gold.spellings[0]} | {gold.question}" for gold in coverage.missed))


def read_questions(path: Path) -> Questions:
    """Read JSONL of {question, answers, gold_ids}."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    golds = [GoldAnswer(row["question"], tuple(row["answers"]), tuple(map(str, row["gold_ids"]))) for row in rows]
    named = tuple(gold for gold in golds if not {normalise_name(answer) for answer in gold.spellings} & _YES_OR_NO)
    return Questions(named, len(golds) - len(named))


def extract_offline(passages: Sequence[Passage]) -> Extracted:
    """Extract every passage with the offline extractor."""
    extractor = OfflineExtractor()
    extractor.extract(Passage("warm-up", "Warm-up", "Compiled patterns are ready in 2000."))
    extractions: dict[str, Extraction] = {}
    seconds = []
    for passage in passages:
        start = time.thread_time()
        extractions[passage.id] = extractor.extract(passage)
        seconds.append(time.thread_time() - start)
    return Extracted(extractor.name, extractions, tuple(seconds))


def imported(passages: Sequence[Passage], path: Path) -> Extracted:
    """Return the extractions of a file of triples; a passage that it lacks has none. Raises BadInput."""
    triples = read_triples(path)
    nothing = Extraction((), (), "import")
    return Extracted("import", {passage.id: triples.of(passage) or nothing for passage in passages})


def names_of(passage: Passage, extraction: Extraction) -> set[str]:
    """Return the normal forms that an extraction makes nodes of the passage: entities, ends of triples, the title."""
    spelled = [title_name(passage.title), *extraction.entities]
    spelled.extend(end for triple in extraction.triples for end in (triple.subject, triple.object))
    return {normal for name in spelled if (normal := normalise_name(name))}


def cover_answers(
    passages: Iterable[Passage], answers: Sequence[GoldAnswer], extractions: Mapping[str, Extraction]
) -> AnswerCoverage:
    """Count the gold answers that are a name in the corpus, and in the right passage."""
    by_id = {passage.id: passage for passage in passages}
    names = {key: names_of(passage, extractions[key]) for key, passage in by_id.items()}
    everywhere = set().union(*names.values())
    as_node, in_place, standing, missed = 0, 0, 0, []
    for gold in answers:
        normals = {normalise_name(answer) for answer in gold.spellings}
        held = [by_id[key] for key in gold.gold_ids if key in by_id]
        is_in_place = any(normals & names[passage.id] for passage in held)
        stands = any(_stands_in(passage, gold.spellings) for passage in held)
        as_node += bool(normals & everywhere)
        in_place += is_in_place
        standing += stands
        if stands and not is_in_place:
            missed.append(gold)
    return AnswerCoverage(as_node, in_place, standing, tuple(missed))


def _stands_in(passage: Passage, spellings: Iterable[str]) -> bool:
    joined = f" {' '.join(tokens(passage.content))} "
    return any(find_name(joined, spelling) >= 0 for spelling in spellings)


def table(
    passages: Sequence[Passage],
    questions: Questions,
    columns: Sequence[Extracted],
    coverages: Sequence[AnswerCoverage],
) -> str:
    """Return the figures as a Markdown table, one column an extractor."""
    figures = [
        {**extraction_figures(column), **_answer_figures(coverage, len(questions.answers))}
        for column, coverage in zip(columns, coverages, strict=True)
    ]
    words = statistics.mean(len(passage.content.split()) for passage in passages)
    lines = [
        f"{len(passages)} passages of {words:.0f} words (mean); {len(questions.answers)} questions with an answer that "
        f"can be a name, {questions.yes_or_no} answered yes or no left out",
        "",
        "| | " + " | ".join(column.label for column in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    lines.extend(f"| {row} | " + " | ".join(column[row] for column in figures) + " |" for row in figures[0])
    return "\n".join(lines)


def extraction_figures(extracted: Extracted) -> dict[str, str]:
    """Return what was extracted, by the name of the figure."""
    found = list(extracted.extractions.values())
    triples = [triple for extraction in found for triple in extraction.triples]
    sizes = [len(extraction.triples) for extraction in found]
    relations = Counter(triple.relation for triple in triples)
    return {
        "triples": str(len(triples)),
        "triples a passage, mean / median": f"{statistics.mean(sizes):.2f} / {statistics.median(sizes):g}",
        "passages without triples": _share(sum(not size for size in sizes), len(sizes)),
        "entities a passage, mean": f"{statistics.mean(len(extraction.entities) for extraction in found):.2f}",
        **{relation.value: _share(relations[relation], len(triples)) for relation in ENTITY_RELATIONS},
        "untyped (no cue)": _share(sum(not is_cued(triple) for triple in triples), len(triples)),
        **{
            f"confidence {band}": _share(sum(low <= t.confidence < high for t in triples), len(triples))
            for band, (low, high) in BANDS.items()
        },
        "processor ms a passage, mean / median": _milliseconds(extracted.seconds),
    }


def is_cued(triple: Triple) -> bool:
    """Tell whether the taxonomy's rules find a cue for a triple's type."""
    return type_triple(triple.subject, triple.predicate, triple.object)[1]


def _answer_figures(coverage: AnswerCoverage, n_answers: int) -> dict[str, str]:
    return {
        "gold answers that are nodes": _share(coverage.as_node, n_answers),
        "gold answers that are nodes of a gold passage": _share(coverage.in_place, n_answers),
        "gold answers that stand in a gold passage (ceiling)": _share(coverage.standing, n_answers),
    }


def _share(count: int, total: int) -> str:
    return f"{100 * count / total:.1f} % ({count})" if total else "none"


def _milliseconds(seconds: Sequence[float]) -> str:
    if not seconds:
        return "-"
    return f"{1000 * statistics.mean(seconds):.2f} / {1000 * statistics.median(seconds):.2f}"


if __name__ == "__main__":
    main()
