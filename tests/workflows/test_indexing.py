"""Indexing: what is added, replaced and refused, and that nothing is lost when a run breaks off or is killed."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.offline.extractor import OFFLINE_EXTRACTOR
from graph.errors import BadInput, EmbeddingMismatch, ModelUnavailable, WorkspaceLocked
from graph.storage.workspace import Workspace
from tests.builders import Child, HashEmbedder
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import (
    BRANDT,
    KARV,
    ROWS,
    SUND,
    VELM,
    Indexer,
    ask,
    content_of,
    served_embeddings,
    texts_in,
    use_embedder,
)
from workflows import indexing
from workflows.indexing import index_sources, reembed_workspace
from workflows.indexing_run import run
from workflows.indexing_run.report import IndexReport

pytestmark = pytest.mark.usefixtures("embedder")


class Interrupted(RuntimeError):
    """The error with which a test breaks a run off."""


class FailingEmbedder(HashEmbedder):
    """Fails while a text holds the given word."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self._word = word

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any(self._word in text for text in texts):
            raise Interrupted(self._word)
        return super().embed(texts)


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The content of a workspace into which all rows were indexed in one go."""
    folder = tmp_path_factory.mktemp("at-once")
    write_lines(folder / "corpus.jsonl", list(ROWS))
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        index_sources([folder / "corpus.jsonl"], folder / "workspace")
    return content_of(folder / "workspace")


def test_the_report_counts_what_was_done_and_indexing_the_same_again_does_nothing(
    index: Indexer, root: Path, embedder: HashEmbedder
) -> None:
    report = index(ROWS)
    assert (report.passages, report.added, report.replaced, report.unchanged) == (5, 5, 0, 0)
    assert (report.imported, report.extracted, report.unmatched_triples) == (0, 5, 0)
    assert min(report.entities, report.facts, report.edges) > 0
    assert report.workspace == str(root)
    assert report.models == {"extractor": OFFLINE_EXTRACTOR, "embedding": "hash"}
    assert json.loads(json.dumps(report.to_json())).keys() == IndexReport.__dataclass_fields__.keys()
    asked, before = len(embedder.asked), content_of(root)
    again = index(ROWS)
    assert (again.added, again.replaced, again.unchanged) == (0, 0, 5)
    assert again.generation == report.generation
    assert (again.entities, again.facts, again.edges) == (report.entities, report.facts, report.edges)
    assert len(embedder.asked) == asked
    assert content_of(root) == before


def test_a_known_id_with_another_text_title_or_metadata_replaces_it_and_the_others_stay(
    index: Indexer, root: Path
) -> None:
    first = index([*ROWS, VELM, VELM])
    assert (first.passages, first.identical) == (5, 2), "a passage that is given twice stands once"
    changed = [{**KARV, "text": "Karv is a lighthouse."}, {**VELM, "title": "River Velm"}, {**SUND, "year": 1911}]
    report = index([*changed, BRANDT])
    assert (report.passages, report.added, report.replaced, report.unchanged) == (5, 0, 3, 1)
    assert report.generation > first.generation
    passages = {passage.id: passage for passage in content_of(root)["passages"]}
    assert passages.keys() == {row["id"] for row in ROWS}
    assert passages["karv"].text == "Karv is a lighthouse."
    assert (passages["velm"].title, passages["sund"].metadata) == ("River Velm", {"year": 1911})


def test_two_texts_under_one_id_are_an_error_that_loses_nothing(index: Indexer, root: Path) -> None:
    index([VELM, SUND])
    before = content_of(root)
    with pytest.raises(BadInput, match=r"'karv' stands for two texts.*corpus\.jsonl"):
        index([BRANDT, KARV, {**KARV, "text": "Karv is something else."}])
    assert content_of(root) == before
    assert index([VELM, SUND]).unchanged == 2


def test_a_run_whose_embedding_breaks_off_keeps_its_commits_and_goes_on_where_it_stopped(
    index: Indexer, root: Path, at_once: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "COMMIT_PASSAGES", 2)
    use_embedder(monkeypatch, FailingEmbedder("Belavia"))
    with pytest.raises(Interrupted):
        index(ROWS)
    assert texts_in(root).keys() == {"velm", "sund"}
    partial = ask(root, "Where does the Velm flow?")
    assert partial["passages"]
    assert [error["kind"] for error in partial["errors"]] == ["IndexingUnfinished"]

    use_embedder(monkeypatch, HashEmbedder())
    resumed = index(ROWS)
    assert ask(root, "Where does the Velm flow?")["errors"] == []
    assert (resumed.added, resumed.unchanged) == (3, 2)
    assert content_of(root) == at_once


def test_a_run_that_breaks_off_before_it_publishes_is_published_by_the_next(
    index: Indexer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index([VELM])
    with monkeypatch.context() as patch:
        patch.setattr(run, "publish", interrupt)
        with pytest.raises(Interrupted):
            index(ROWS)
    report = index(ROWS)
    assert (report.added, report.unchanged) == (0, 5)
    assert Workspace(root).current() == report.generation
    assert len(texts_in(root)) == 5


def interrupt(*_: object) -> None:
    raise Interrupted


def test_another_embedding_model_is_refused_before_anything_is_written(
    index: Indexer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index([VELM])
    before = content_of(root)
    use_embedder(monkeypatch, HashEmbedder("another"))
    with pytest.raises(EmbeddingMismatch, match=r"'hash'.*'another'.*mara doctor --reembed"):
        index(ROWS)
    assert content_of(root) == before


def test_reembedding_that_fails_leaves_the_old_vectors(
    index: Indexer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(ROWS)
    before = content_of(root)
    refusing = ScriptedServer({"embeddings": [Reply("wrong key", status=401)]})
    refused = pytest.raises(ModelUnavailable, match="OPENAI_API_KEY")
    with refusing as server, served_embeddings(monkeypatch, server), refused:
        reembed_workspace(root)
    assert content_of(root) == before


INDEX = """
import sys
from pathlib import Path
from graph.embedding import embeddings
from tests.builders import HashEmbedder
from workflows import indexing
from workflows.indexing import index_sources

class Waiting(HashEmbedder):
    "Says each text that it is to embed, and waits to be told."

    def embed(self, texts):
        if any(sys.argv[3] in text for text in texts):
            print("reached", flush=True)
            input()
        return super().embed(texts)

embedder = Waiting()
embeddings._embedder = lambda *configured: embedder
indexing.COMMIT_PASSAGES = 2
index_sources([Path(sys.argv[1])], Path(sys.argv[2]))
print("done", flush=True)
"""
"""A program for a `Child` that indexes a corpus into a workspace, and waits where it is to embed a word."""

TABLES = ("passages", "names", "facts", "passage_names", "passage_facts")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    write_lines(path, list(ROWS))
    return path


def dump(root: Path) -> dict[str, list[Any]]:
    """Every row of a workspace's record."""
    with sqlite3.connect(root / "record.sqlite") as record:
        rows = {table: sorted(record.execute(f"SELECT * FROM {table}")) for table in TABLES}
    record.close()
    return rows


def test_killed_in_the_middle_of_a_batch_the_next_run_ends_as_one_go_would(
    corpus: Path, root: Path, tmp_path: Path
) -> None:
    with Child(INDEX, corpus, root, "Belavia") as child:
        assert child.hear() == "reached"
        child.kill()
    with Workspace(root).open_record() as record:
        committed = record.count_passages()
    assert committed < len(ROWS)
    report = index_sources([corpus], root)
    assert (report.added, report.unchanged, report.passages) == (len(ROWS) - committed, committed, len(ROWS))
    index_sources([corpus], tmp_path / "one go")
    assert dump(root) == dump(tmp_path / "one go")
    assert content_of(root) == content_of(tmp_path / "one go")


def test_two_runs_in_one_process_do_not_write_at_once(
    corpus: Path, root: Path, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, go_on = threading.Event(), threading.Event()
    embed = embedder.embed

    def waiting(texts: list[str]) -> Any:
        at_work.set()
        go_on.wait(30)
        return embed(texts)

    monkeypatch.setattr(embedder, "embed", waiting)
    first = threading.Thread(target=index_sources, args=([corpus], root))
    first.start()
    assert at_work.wait(30)
    with pytest.raises(WorkspaceLocked, match=rf"process {os.getpid()}\b"):
        index_sources([corpus], root)
    go_on.set()
    first.join()
    assert index_sources([corpus], root).unchanged == len(ROWS)
