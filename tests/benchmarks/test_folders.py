"""Folders of business documents without a model: most questions find their answer, absent names never do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.offline.extractor import OfflineExtractor
from benchmarks.folders import __main__ as folders
from benchmarks.folders.__main__ import Asked
from benchmarks.folders.scoring import Outcome
from workflows.indexing import index_sources
from workflows.runtime.resources import OFFLINE, close_indexes
from workflows.settings.enums import Workflow

pytestmark = pytest.mark.slow

FOLDERS = sorted(path.parent for path in Path(folders.__file__).parent.glob("*/questions.jsonl"))


@pytest.fixture(scope="module", params=list(Workflow))
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Asked]]:
    found: list[Asked] = []
    for folder in FOLDERS:
        workspace = tmp_path_factory.mktemp(folder.name)
        index_sources([folder / "documents"], workspace, extractor=OfflineExtractor())
        found += folders.ask_all(folder, str(workspace), request.param, OFFLINE)
    yield found
    close_indexes()


def test_more_than_half_of_the_answerable_questions_are_answered_right(asked: list[Asked]) -> None:
    answerable = [each for each in asked if each.question.get("answers") or each.question.get("all_of")]
    counted = Counter(each.outcome for each in answerable)
    assert counted[Outcome.RIGHT] > 0.5 * len(answerable)
    assert counted[Outcome.WRONG] < 0.35 * len(answerable)


def test_a_name_that_no_document_holds_is_refused(asked: list[Asked]) -> None:
    absent = [each for each in asked if each.question["kind"] == "absent_name"]
    assert len(absent) >= 3 * len(FOLDERS)
    assert [each.question["question"] for each in absent if not each.result["refused"]] == []


def test_nothing_is_called_fully_answered_or_supported(asked: list[Asked]) -> None:
    assert not any(each.is_called_full for each in asked)
    assert "supported" not in {claim["verdict"] for each in asked for claim in each.result.get("claims") or ()}
    assert {each.result["answer_kind"] for each in asked} <= {"evidence", "refusal"}
