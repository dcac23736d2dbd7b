from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import retrieval
from graph.retrieve.modes import Mode
from tests.workflows.small_world import QUESTION, QUESTION_PASSAGES, write_corpus
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Mode, list[retrieval.Row]]]:
    folder = tmp_path_factory.mktemp("small-world")
    corpus, triples = write_corpus(folder)
    index_sources([corpus], folder / "workspace", triples)
    contexts = [Context(workspace=str(folder / "workspace"), mode=mode) for mode in (Mode.MARA, Mode.DENSE)]
    questions = [{"question": f"{QUESTION} {n}", "gold_ids": QUESTION_PASSAGES} for n in range(12)]
    yield retrieval.measure(questions, contexts, one_by_one=True)
    close_indexes()


def test_every_mode_is_asked_every_question_and_each_node_is_timed(rows: dict[Mode, list[retrieval.Row]]) -> None:
    assert {mode: len(own) for mode, own in rows.items()} == {Mode.MARA: 12, Mode.DENSE: 12}
    assert all(row["10"] == 1 for row in rows[Mode.MARA])
    for row in rows[Mode.MARA]:
        nodes = row["encode_question"] + row["walk_graph"] + row["seed_graph"]
        assert 0 < nodes < row["ms"]


def test_the_table_has_each_mode_beside_dense(rows: dict[Mode, list[retrieval.Row]]) -> None:
    head, _, mara, dense = retrieval.latency_table(rows).splitlines()
    assert head.endswith("| x dense |")
    assert mara.startswith("| mara | ")
    assert dense.endswith("| 1.00 |")
    assert "| encode_question |" in retrieval.node_table(rows)
    assert retrieval.latency_table({Mode.MARA: rows[Mode.MARA]}).endswith("|  |")
