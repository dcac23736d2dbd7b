"""The benchmark of personal ranking: what its histories want rises."""

from __future__ import annotations

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


@pytest.mark.slow
def test_what_users_want_rises_for_most_and_falls_for_none(context: Context) -> None:
    for mode in [Mode.MARA, Mode.HYBRID]:
        ranks = list(ranks_of(HISTORIES, context.model_copy(update={"mode": mode})))
        could_rise = [(before, after) for before, after in ranks if before > 1]
        assert sum(after < before for before, after in could_rise) >= 0.7 * len(could_rise), mode
        assert all(after <= before for before, after in ranks), mode
        assert all(before - after < REACH for before, after in ranks), mode
