"""Runs that are killed, interrupted or met by another: nothing is lost, and the next one ends where one go would."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graph.errors import WorkspaceLocked
from graph.storage.workspace import Workspace
from tests.builders import Child, HashEmbedder
from tests.extracting import proper_reply, titles_asked
from tests.scripted_server import Fault, Reply, ScriptedServer
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import ROWS, content_of
from workflows.indexing import index_sources
from workflows.runtime.own_run import interruptibly

pytestmark = pytest.mark.usefixtures("embedder")

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


@pytest.mark.parametrize(
    "moment", ["Belavia", *(pytest.param(other, marks=pytest.mark.slow) for other in ("Velm", "Ida", "Ostra is"))]
)
def test_killed_in_the_middle_of_a_batch_the_next_run_ends_as_one_go_would(
    corpus: Path, root: Path, tmp_path: Path, moment: str
) -> None:
    with Child(INDEX, corpus, root, moment) as child:
        assert child.hear() == "reached"
        child.kill()
    with Workspace(root).open_record() as record:
        held = record.count_passages()
    assert held < len(ROWS)
    report = index_sources([corpus], root)
    assert (report.added, report.unchanged, report.passages) == (len(ROWS) - held, held, len(ROWS))
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
