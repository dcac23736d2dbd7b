"""The demonstration: the bundled sample indexed and asked, with the figures that it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HashEmbedder
from tests.workflows.workspaces import use_embedder
from workflows.admin.demo import run_demo, sample_questions

Told = list[tuple[str, int, int]]


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Told, Path]:
    """The result of the demonstration, and its progress, with vectors that mean nothing."""
    steps: Told = []
    workspace = tmp_path_factory.mktemp("demo") / "workspace"
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        result = run_demo(workspace, lambda stage, done, total: steps.append((stage, done, total)))
    return result, steps, workspace


def test_the_sample_is_indexed_whole_and_every_question_is_asked(
    demonstrated: tuple[dict[str, Any], Told, Path],
) -> None:
    result, steps, workspace = demonstrated
    questions = sample_questions()
    assert len(questions) == 20
    assert all(question["question"].strip() and question["gold_ids"] and question["answers"] for question in questions)
    assert result.keys() == {"index", "results", "recall_at_5", "answers_with_gold"}
    assert result["index"]["added"] == result["index"]["passages"] >= 60
    assert (result["index"]["workspace"], result["index"]["refused"]) == (str(workspace), [])
    asked = [(each["question"], each["gold_ids"]) for each in result["results"]]
    assert asked == [(question["question"], question["gold_ids"]) for question in questions]
    assert all(each["answer"] for each in result["results"])
    assert json.loads(json.dumps(result))["recall_at_5"] == result["recall_at_5"]
    shares = []
    for each in result["results"]:
        first_five = [passage["id"] for passage in each["passages"]][:5]
        shares.append(sum(key in first_five for key in each["gold_ids"]) / len(each["gold_ids"]))
    assert result["recall_at_5"] == pytest.approx(sum(shares) / len(shares))
    assert 0 < result["recall_at_5"] < 1
    stages = list(dict.fromkeys(stage for stage, _, _ in steps))
    assert stages == ["extract", "embed", "commit", "graph", "relate", "ask"]
    assert [(done, total) for stage, done, total in steps if stage == "ask"] == [(n, 20) for n in range(21)]


@pytest.mark.slow
def test_with_the_embedded_model_the_sample_is_answered_well(tmp_path: Path) -> None:
    result = run_demo(tmp_path / "workspace")
    assert result["recall_at_5"] >= 0.9
    assert result["answers_with_gold"] >= 7
    (walkthrough,) = [each for each in result["results"] if each["question"] == "When was Nissan founded?"]
    assert "1933" in walkthrough["answer"]
    assert walkthrough["citations"]
