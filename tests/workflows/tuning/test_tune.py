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
from graph.walk.strengths import UNTUNED, workspace_tuning
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
from workflows.runtime.resources import close_indexes
from workflows.tuning import tune
from workflows.tuning.tune import Recall, revert_tuning, tune_workspace

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
    def test_are_adopted_as_the_next_version_and_can_be_taken_back(
        self, tuned_world: tuple[Path, dict[str, Any]]
    ) -> None:
        root, result = tuned_world
        assert (result["adopted"], result["refusal"], result["version"]) == (True, "", 1)
        current = workspace_tuning(root)
        assert current.version == 1
        assert current.strengths[TEMPORAL] > current.strengths[CAUSALITY]
        assert {relation.value: strength for relation, strength in current.strengths.items()} == result["strengths"]
        assert (result["recall_before"], result["recall_after"]) == (0.0, 0.8)
        assert (result["questions"], result["held_out"]) == (N, N // 2)
        assert revert_tuning(root)["version"] == 0
        assert workspace_tuning(root) == UNTUNED


class TestRefusals:
    def test_strengths_that_lower_held_out_recall_are_refused_and_nothing_written(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A gain on the one half hurts the other: learned by heart, and wrong for unseen questions."""
        by_heart = np.random.default_rng(0).permutation(N)[N // 2 :]
        numbers = iter(range(N))

        def retrieved(*_: object) -> Recall:
            gain = 0.4 if next(numbers) in by_heart else -0.4
            return lambda strengths: 0.5 + gain * (strengths[TEMPORAL] > 1)

        monkeypatch.setattr(tune, "_retrieved", retrieved)
        mark(root, lambda number: f"calm{number}")
        result = tune_workspace(context_of(root))
        assert result["adopted"] is False
        assert result["refusal"].startswith("Recall on held-out questions goes from 0.500 to 0.100")
        assert result["strengths"]["TEMPORAL"] > 1, "on the questions learned from there is a gain"
        assert workspace_tuning(root) == UNTUNED
        assert not (root / "tuning.json").exists()


def test_too_few_questions_with_known_passages_teach_nothing(root: Path) -> None:
    mark(root, lambda number: f"calm{number}" if number else "gone")
    with pytest.raises(BadInput, match=f"{N - 1} questions; tuning needs {N}"):
        tune_workspace(context_of(root))
