"""The benchmark of personal ranking: its histories are whole, and what they want rises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import as_file, files

import pytest

from benchmarks.personal import ranks_of, read_histories, write_histories
from graph.relationships.profile import REACH
from graph.relationships.record import RelationshipRecord
from graph.retrieve.modes import Mode
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes, open_workspace_index

HISTORIES = read_histories()


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    root = tmp_path_factory.mktemp("histories")
    with as_file(files("workflows.sample")) as sample:
        index_sources([sample / "corpus.jsonl"], root)
    context = Context(workspace=str(root), model="offline")
    with RelationshipRecord.of(root) as record:
        write_histories(record, open_workspace_index(context), HISTORIES)
    yield context
    close_indexes()


def test_there_are_twenty_and_more_over_passages_of_the_sample() -> None:
    with as_file(files("workflows.sample")) as sample:
        known = {json.loads(line)["id"] for line in (sample / "corpus.jsonl").read_text(encoding="utf-8").splitlines()}
    assert len(HISTORIES) >= 20
    assert {key for each in HISTORIES for key in (each.wanted, *each.viewed)} <= known
    assert all(each.viewed or each.asked for each in HISTORIES)


@pytest.mark.slow
def test_what_users_want_rises_for_most_and_falls_for_none(context: Context) -> None:
    for mode in [Mode.MARA, Mode.HYBRID]:
        ranks = list(ranks_of(HISTORIES, context.model_copy(update={"mode": mode})))
        could_rise = [(before, after) for before, after in ranks if before > 1]
        assert sum(after < before for before, after in could_rise) >= 0.7 * len(could_rise), mode
        assert all(after <= before for before, after in ranks), mode
        assert all(before - after < REACH for before, after in ranks), mode
