"""Indexing: what is added, replaced and refused, and that nothing is lost when a run breaks off or is killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.offline.extractor import OFFLINE_EXTRACTOR, OfflineExtractor
from agents.roles import Feedback
from graph.errors import BadInput, EmbeddingMismatch, ModelUnavailable, WorkspaceLocked
from graph.schema import Extraction, Passage
from graph.storage.workspace import Workspace
from tests.builders import Child, HashEmbedder
from tests.extracting import proper_reply, titles_asked
from tests.scripted_server import Fault, Reply, ScriptedServer
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import (
    BRANDT,
    KARV,
    OSTRA,
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
from workflows.runtime.own_run import interruptibly

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


class FailingExtractor(OfflineExtractor):
    """Fails at one passage."""

    def __init__(self, passage_id: str) -> None:
        super().__init__()
        self._passage_id = passage_id

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        if passage.id == self._passage_id:
            raise Interrupted(passage.id)
        return super().extract(passage)


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


@pytest.mark.slow
def test_one_by_one_in_any_order_gives_the_workspace_of_all_at_once(
    index: Indexer, root: Path, at_once: dict[str, Any]
) -> None:
    for part in ([KARV, OSTRA], [VELM, {**SUND, "text": "It was to be replaced."}], [SUND, BRANDT]):
        index(part)
    assert content_of(root) == at_once


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


def test_a_record_put_back_from_a_copy_is_derived_anew_and_nothing_of_the_other_stays(
    index: Indexer, root: Path, tmp_path: Path
) -> None:
    index([VELM])
    copy = (root / "record.sqlite").read_bytes()
    index([SUND])
    for leftover in root.glob("record.sqlite-*"):
        leftover.unlink()
    (root / "record.sqlite").write_bytes(copy)
    index([KARV])
    assert texts_in(root).keys() == {"velm", "karv"}
    index([VELM, KARV], tmp_path / "fresh")
    assert content_of(root) == content_of(tmp_path / "fresh")


def test_a_run_whose_extraction_breaks_off_loses_nothing(index: Indexer, root: Path, at_once: dict[str, Any]) -> None:
    index([VELM])
    before = content_of(root)
    with pytest.raises(Interrupted):
        index(ROWS, extractor=FailingExtractor("karv"))
    assert content_of(root) == before
    index(ROWS)
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


def test_progress_is_told_stage_by_stage_to_the_end(index: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "COMMIT_PASSAGES", 2)
    steps_told: list[tuple[str, int, int]] = []
    index(ROWS, progress=lambda stage, done, total: steps_told.append((stage, done, total)))
    assert list(dict.fromkeys(stage for stage, _, _ in steps_told)) == ["extract", "embed", "commit", "graph", "relate"]
    for stage, total in (("extract", 5), ("embed", 5), ("graph", 1), ("relate", 1)):
        steps = [done for name, done, of in steps_told if name == stage and of == total]
        assert steps == sorted(steps)
        assert (steps[0], steps[-1]) == (0, total)
    assert [done for name, done, _ in steps_told if name == "embed"] == [0, 2, 4, 5]
    assert [done for name, done, _ in steps_told if name == "commit"] == [2, 4, 5]


@pytest.mark.slow
def test_reembedding_moves_a_workspace_to_another_model_and_back(
    index: Indexer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(ROWS)
    before = content_of(root)
    with ScriptedServer() as server, served_embeddings(monkeypatch, server):
        there = reembed_workspace(root)
        assert (there["from"], there["to"], there["dimension"]) == ("hash", "openai:scripted", 16)
        assert there["passages"] == 5
        result = ask(root, "Where was Ida Brandt born?", mode="dense")
        assert result["passages"][0]["id"] == "brandt"
        assert result["models"]["embedding"] == "openai:scripted"
        assert {request.role for request in server.requests} == {"embeddings"}
    back = reembed_workspace(root)
    assert (back["to"], back["dimension"]) == ("hash", HashEmbedder.dimension)
    assert back["generation"] > there["generation"]
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


@pytest.mark.slow
def test_a_second_run_is_told_who_writes_and_disturbs_nothing(corpus: Path, root: Path) -> None:
    with Child(INDEX, corpus, root, "Belavia") as child:
        assert child.hear() == "reached"
        with pytest.raises(WorkspaceLocked, match=rf"process {child.process.pid}\b"):
            index_sources([corpus], root)
        child.tell()
        while (line := child.hear()) == "reached":
            child.tell()
        assert line == "done"
    assert index_sources([corpus], root).unchanged == len(ROWS)


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


@pytest.mark.slow
def test_an_interrupted_command_stops_promptly_says_so_and_goes_on_later(
    corpus: Path, root: Path, chat_server: ScriptedServer
) -> None:
    asked, proper = threading.Event(), threading.Semaphore(2)

    def hangs_after_two(body: Mapping[str, Any]) -> Reply | str:
        if proper.acquire(blocking=False):
            return proper_reply(body)
        if len(titles_asked(chat_server)) == len(ROWS):
            asked.set()
        return Reply(fault=Fault.HANG)

    chat_server.script({"extractor": hangs_after_two})
    process = subprocess.Popen(
        [Path(sys.executable).with_name("mara"), "index", corpus, "-w", root],
        env={**os.environ, "MARA_TIMEOUT_S": "3600"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert asked.wait(60)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped. What was committed is kept; run the same command to go on." in said
    assert "Traceback" not in said

    chat_server.script({"extractor": proper_reply})
    report = index_sources([corpus], root)
    assert (report.added, report.cached) == (len(ROWS), 2)


class TestInterruptibly:
    def test_work_is_done_in_the_callers_context_and_its_result_or_error_comes_back(self) -> None:
        assert interruptibly(lambda: 7, stop=pytest.fail) == 7
        with pytest.raises(ZeroDivisionError):
            interruptibly(lambda: 1 // 0, stop=pytest.fail)
