"""The agents that do without a model: does any manager or fact filter choose better than no choice at all?

    python -m benchmarks.offline_agents --set QUESTIONS WORKSPACE [--set QUESTIONS WORKSPACE ...] [--folds 5]

Managers: uniform β; the cue words of the taxonomy, which is the offline manager; the similarity of the question to a
few plain questions of each relation type; the two multiplied. Each at two relation strengths. Fact filters: every
candidate, none, and the offline filter with different limits. Recall@5 of all questions beside the first candidate,
paired, and what choosing the best candidate on the other folds gives on held-out ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.manager import Manager, OfflineManager, RelationWeights
from agents.roles import Feedback
from graph.embedding.embeddings import QUESTION_TO_PASSAGE, Embedder, configured_embedder
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT
from graph.schema import ENTITY_RELATIONS, RelationFactors, RelationType
from workflows.context import Context, Question
from workflows.evaluation import recall_at_k
from workflows.evaluation.controls import UniformManager
from workflows.evaluation.gold import GoldLookup
from workflows.evaluation.statistics import bootstrap_interval
from workflows.retrieval import graph
from workflows.runs.question_files import read_questions
from workflows.runtime.resources import OFFLINE, open_workspace_index

PROTOTYPES: Mapping[RelationType, tuple[str, ...]] = {
    RelationType.HIERARCHICAL: (
        "What kind of thing is it?",
        "What is it a part or a member of?",
        "Who is the father, mother, child or spouse of this person?",
        "Of which country is this city the capital?",
    ),
    RelationType.TEMPORAL: (
        "When did it happen?",
        "In what year was it founded or born?",
        "When did it start or end?",
        "Which of them came first?",
    ),
    RelationType.SPATIAL: (
        "Where is it located?",
        "In which city, county or country does it lie?",
        "Where was this person born?",
        "What does it border?",
    ),
    RelationType.CAUSALITY: (
        "What caused it?",
        "Why did it happen?",
        "What did it lead to or result in?",
        "What enabled or prevented it?",
    ),
    RelationType.ATTRIBUTION: (
        "Who wrote, directed, performed or founded it?",
        "What is this person's occupation or nationality?",
        "Who owns it?",
        "How many, how large or how long is it?",
    ),
}
"""Plain questions of each relation type, which name nothing."""

TEMPERATURE = 10.0
"""How sharply similarity becomes a share: a cosine 0.1 higher weighs e times as much."""

STRENGTHS = (0.5, 1.0)
LIMITS = (1, 2, 3, 4, 6)
_DEPTH = 5


class PrototypeManager:
    """Weighs the relation types by the question's similarity to the prototypes of each."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        means = np.stack([embedder.embed(list(PROTOTYPES[relation])).mean(axis=0) for relation in ENTITY_RELATIONS])
        self._prototypes = means / np.linalg.norm(means, axis=1, keepdims=True)

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return the softmax of the similarities; the passage classes stay uniform."""
        cosines = self._prototypes @ self._embedder.embed_question(question, QUESTION_TO_PASSAGE)
        shares = np.exp(TEMPERATURE * (cosines - cosines.max()))
        return _weights(dict(zip(ENTITY_RELATIONS, (shares / shares.sum()).tolist(), strict=True)))


class ProductManager:
    """Multiplies the shares that two managers give."""

    def __init__(self, first: Manager, second: Manager) -> None:
        self._managers = (first, second)

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return the normalised product."""
        first, second = (manager.weigh(question).factors.entity_entity for manager in self._managers)
        products = {relation: first[relation] * second[relation] for relation in ENTITY_RELATIONS}
        total = sum(products.values())
        return _weights({relation: product / total for relation, product in products.items()})


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to do without a model: a manager of its own, or the offline one, and settings of a run."""

    name: str
    settings: Mapping[str, Any]
    manager: Manager | None = None


def managers(embedder: Embedder) -> list[Candidate]:
    """Return the candidate managers, the one that prefers nothing first."""
    cues, prototypes = OfflineManager(), PrototypeManager(embedder)
    routers: dict[str, Manager] = {
        "cues": cues,
        "prototypes": prototypes,
        "cues x prototypes": ProductManager(cues, prototypes),
    }
    return [
        Candidate("uniform", {}, UniformManager()),
        *(
            Candidate(f"{name}, λ {strength:g}", {"relation_strength": strength}, router)
            for name, router in routers.items()
            for strength in STRENGTHS
        ),
    ]


def fact_filters() -> list[Candidate]:
    """Return the candidate fact filters, the one that keeps every candidate first."""
    return [
        Candidate("every candidate", {"filter_facts": False}),
        Candidate("no fact", {"entity_seeds": 0}),
        *(Candidate(f"at most {limit}", {"max_facts": limit}) for limit in LIMITS),
    ]


def recalls_of(candidate: Candidate, questions: Path, workspace: str) -> NDArray[np.float64]:
    """Return recall@5 of every question that has gold passages."""
    context = Context(workspace=workspace, model=OFFLINE, top_k=_DEPTH, tuned=False, **candidate.settings)
    chosen = context.with_agents(manager=candidate.manager)
    lookup = GoldLookup(open_workspace_index(context).graph.passages)
    recalls = []
    for question in read_questions(questions):
        gold = lookup.resolve(question).ids
        if gold:
            found = graph.invoke(Question(question=question.question), context=chosen)["passages"]
            recalls.append(recall_at_k([passage["id"] for passage in found], gold, _DEPTH))
    return np.array(recalls)


def held_out(table: NDArray[np.float64], folds: int, seed: int) -> NDArray[np.float64]:
    """Return each question's recall by the candidate that is best on the other folds; ties go to the first.

    Args:
        table: shape (n_candidates, n_questions).
        folds: how many parts the questions are dealt into.
        seed: of the dealing.
    """
    part = np.random.default_rng(seed).permutation(table.shape[1]) % folds
    chosen = np.empty(table.shape[1])
    for fold in range(folds):
        best = int(table[:, part != fold].mean(axis=1).argmax())
        chosen[part == fold] = table[best, part == fold]
    return chosen


def main() -> None:
    """Measure and print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", nargs=2, required=True, metavar=("QUESTIONS", "WORKSPACE"))
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for what, candidates in (("manager", managers(configured_embedder())), ("fact filter", fact_filters())):
        _print_table(what, candidates, options.set, options.folds, options.seed)


def _print_table(
    what: str, candidates: Sequence[Candidate], sets: Sequence[tuple[str, str]], folds: int, seed: int
) -> None:
    columns = [[recalls_of(each, Path(file), workspace) for each in candidates] for file, workspace in sets]
    table = np.concatenate([np.stack(column) for column in columns], axis=1)
    print(f"| {what} | " + " | ".join(Path(file).parent.name for file, _ in sets) + " | all, less the first |")
    print("|---|" + "---|" * (len(sets) + 1))
    for row, each in enumerate(candidates):
        means = " | ".join(f"{column[row].mean():.3f}" for column in columns)
        print(f"| {each.name} | {means} | {_difference(table[row] - table[0])} |")
    rest = " | " * (len(sets) - 1)
    print(f"| the best of the other folds | {rest} | {_difference(held_out(table, folds, seed) - table[0])} |\n")


def _difference(differences: NDArray[np.float64]) -> str:
    interval = bootstrap_interval(differences)
    if interval is None:
        return "too few questions"
    mean, low, high = (round(value, 3) + 0.0 for value in (interval.mean, interval.low, interval.high))
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"


def _weights(shares: Mapping[RelationType, float]) -> RelationWeights:
    entity_entity = {relation.value: share for relation, share in shares.items()}
    passage_classes = RelationFactors.uniform().entity_passage
    return RelationWeights(RelationFactors(entity_entity, passage_classes), DEFAULT_PASSAGE_WEIGHT)


if __name__ == "__main__":
    main()
