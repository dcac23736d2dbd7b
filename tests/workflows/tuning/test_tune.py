"""Tuning end to end: evidence that a type is too weak strengthens it, and a gain that does not hold up is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graph.errors import BadInput
from graph.schema import RelationType
from graph.storage.marks import Mark, MarkKind, add_marks
from graph.walk.strengths import TUNED_RELATIONS, UNTUNED, workspace_tuning
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
from workflows.runtime.resources import close_indexes
from workflows.tuning import tune
from workflows.tuning.tune import (
    Scores,
    Strengths,
    revert_tuning,
    tune_workspace,
    tuning_history,
)

pytestmark = pytest.mark.usefixtures("embedder", "fewest")

N = 10
CAUSES = 6
TEMPORAL, CAUSALITY = RelationType.TEMPORAL, RelationType.CAUSALITY


def question(number: int) -> str:
    return f"What came after storm{number}?"


@pytest.fixture(scope="module")
def fewest() -> Iterator[None]:
    """Half as many questions as tuning asks for: every one of them is walked for again and again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune, "FEWEST_QUESTIONS", N)
        yield


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Storms, each with what it caused, and a faint fact that tells what came after it."""
    passages, triples = [], {}
    for number in range(N):
        storm, calm = f"storm{number}", f"calm{number}"
        ruins = [f"ruin{number}of{cause}" for cause in range(CAUSES)]
        facts: list[TripleParts] = [(storm, "before", calm, TEMPORAL, 0.5)]
        triples[storm] = [*facts, *((storm, "caused", ruin, CAUSALITY) for ruin in ruins)]
        passages += [passage_of(name, name, f"{name} is told of.") for name in (storm, calm, *ruins)]
    return publish_workspace(tmp_path_factory.mktemp("storms") / "workspace", passages, triples).root


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copytree(template, tmp_path / "workspace"))
    close_indexes()


def context_of(root: Path, **changes: Any) -> Context:
    """Return settings under which the storm that a question names is all that the walk starts from."""
    alone = {"passage_weight": 0, "entity_seeds": 0, "weigh_relations": False, "model": "offline"}
    return Context(**{"workspace": str(root), **alone, **changes})


def mark(root: Path, served: Callable[[int], str], n: int = N) -> None:
    add_marks(root, [Mark(question(number), served(number), MarkKind.GOLD) for number in range(n)])


@pytest.fixture(scope="module")
def tuned_world(
    fewest: None, template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The storms, tuned on marks that say that what came after them served, and the result of tuning."""
    root = Path(shutil.copytree(template, tmp_path_factory.mktemp("tuned") / "workspace"))
    mark(root, lambda number: f"calm{number}")
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        result = tune_workspace(context_of(root))
        close_indexes()
    yield root, result
    close_indexes()


class TestGains:
    def test_are_adopted_as_the_next_version(self, tuned_world: tuple[Path, dict[str, Any]]) -> None:
        root, result = tuned_world
        assert (result["adopted"], result["refusal"], result["version"], result["parent"]) == (True, "", 1, 0)
        current = workspace_tuning(root)
        assert current.version == 1
        assert current.strengths[TEMPORAL] > current.strengths[CAUSALITY]
        assert {relation.value: strength for relation, strength in current.strengths.items()} == result["strengths"]
        assert (result["recall_before"], result["recall_after"], result["difference"]) == (0.0, 1.0, 1.0)
        assert (result["gained"], result["lost"]) == (N // 2, 0)
        assert result["made_from"] == {"questions": N, "passages": N, "gold": N, "cited": 0, "person": 0}
        assert result["settings"]["held_out"] == N // 2

    def test_going_back_restores_the_earlier_strengths(self, tuned_world: tuple[Path, dict[str, Any]]) -> None:
        root = tuned_world[0]
        learned = workspace_tuning(root)
        revert_tuning(root, 0)
        assert workspace_tuning(root) == UNTUNED
        revert_tuning(root, 1)
        assert workspace_tuning(root) == learned
        reverted = revert_tuning(root, 0)
        assert (reverted["before"], reverted["version"], reverted["strengths"]["TEMPORAL"]) == (1, 0, 1.0)
        assert [each["version"] for each in tuning_history(root)["versions"]] == [0, 1]


class TestRefusals:
    def test_strengths_that_lower_held_out_recall_are_refused_and_nothing_written(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A gain on the one half hurts the other: learned by heart, and wrong for unseen questions."""

        class ByHeart:
            made = 0
            count = 0

            def __init__(self, *arguments: object) -> None:
                ByHeart.made += 1
                self.is_held_out = ByHeart.made == 1

            def __call__(self, strengths: Strengths) -> Scores:
                raised = strengths[TUNED_RELATIONS.index(TEMPORAL)] > 1
                recall = np.full(N // 2, 0.5 + (-0.4 if self.is_held_out else 0.4) * raised)
                return Scores(recall, recall)

        monkeypatch.setattr(tune, "Walks", ByHeart)
        mark(root, lambda number: f"calm{number}")
        result = tune_workspace(context_of(root))
        assert result["adopted"] is False
        assert result["refusal"] == "Recall on held-out questions would fall from 0.500 to 0.100"
        assert result["lost"] == N // 2
        assert result["strengths"] != result["strengths_before"], "on the questions learned from there is a gain"
        assert workspace_tuning(root) == UNTUNED
        assert not (root / "tuning.json").exists()

    def test_a_dry_run_writes_nothing_and_one_seed_gives_the_same_twice(self, root: Path) -> None:
        mark(root, lambda number: f"calm{number}")
        first, second = (tune_workspace(context_of(root), seed=7, dry_run=True) for _ in range(2))
        assert first == second
        assert (first["adopted"], first["refusal"], first["difference"]) == (False, "", 1.0)
        assert workspace_tuning(root) == UNTUNED


class TestEvidence:
    def test_too_few_questions_with_known_passages_teach_nothing(self, root: Path) -> None:
        mark(root, lambda number: f"calm{number}" if number else "gone")
        with pytest.raises(BadInput, match=f"{N - 1} questions; tuning needs {N}"):
            tune_workspace(context_of(root))

    def test_a_published_baseline_is_not_tuned(self, root: Path) -> None:
        with pytest.raises(BadInput, match="hipporag2"):
            tune_workspace(context_of(root, mode="hipporag2"))
