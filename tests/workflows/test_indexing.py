"""Indexing: what is added, replaced, left alone and refused, and that nothing is lost when a run breaks off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.offline.extractor import OFFLINE_EXTRACTOR, OfflineExtractor
from agents.roles import Feedback
from graph.errors import BadInput, EmbeddingMismatch, ModelUnavailable
from graph.schema import Extraction, Passage
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder
from tests.scripted_server import Reply, ScriptedServer
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

pytestmark = pytest.mark.usefixtures("embedder")


class Interrupted(RuntimeError):
    """What a test breaks a run off with."""


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
    """What a workspace holds into which all rows were indexed in one go."""
    folder = tmp_path_factory.mktemp("at-once")
    write_lines(folder / "corpus.jsonl", list(ROWS))
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        index_sources([folder / "corpus.jsonl"], folder / "workspace")
    return content_of(folder / "workspace")


def test_the_report_counts_what_was_done_and_is_plain_json(index: Indexer, root: Path) -> None:
    report = index(ROWS)
    assert (report.passages, report.added, report.replaced, report.unchanged) == (5, 5, 0, 0)
    assert (report.imported, report.extracted, report.unmatched_triples) == (0, 5, 0)
    assert min(report.entities, report.facts, report.edges) > 0
    assert report.workspace == str(root)
    assert report.models == {"extractor": OFFLINE_EXTRACTOR, "embedding": "hash"}
    assert json.loads(json.dumps(report.to_json())).keys() == IndexReport.__dataclass_fields__.keys()


def test_indexing_the_same_again_does_nothing(index: Indexer, root: Path, embedder: HashEmbedder) -> None:
    first = index(ROWS)
    asked = len(embedder.asked)
    before = content_of(root)
    again = index(ROWS)
    assert (again.added, again.replaced, again.unchanged) == (0, 0, 5)
    assert again.generation == first.generation
    assert (again.entities, again.facts, again.edges) == (first.entities, first.facts, first.edges)
    assert len(embedder.asked) == asked
    assert content_of(root) == before


def test_a_known_id_with_another_text_replaces_it(index: Indexer, root: Path) -> None:
    first = index(ROWS)
    changed = {**KARV, "text": "Karv is a lighthouse in the north."}
    report = index([VELM, changed])
    assert (report.passages, report.added, report.replaced, report.unchanged) == (5, 0, 1, 1)
    assert report.generation > first.generation
    assert texts_in(root)["karv"] == changed["text"]


def test_a_changed_title_or_metadata_replaces_too(index: Indexer, root: Path) -> None:
    index([VELM, SUND])
    report = index([{**VELM, "title": "River Velm"}, {**SUND, "year": 1911}])
    assert (report.added, report.replaced) == (0, 2)
    passages = {passage.id: passage for passage in content_of(root)["passages"]}
    assert passages["velm"].title == "River Velm"
    assert passages["sund"].metadata == {"year": 1911}


def test_passages_that_were_not_given_again_stay(index: Indexer, root: Path) -> None:
    index([VELM, SUND])
    index([KARV])
    assert texts_in(root).keys() == {"velm", "sund", "karv"}


@pytest.mark.parametrize("order", [[2, 1, 0]])
@pytest.mark.slow
def test_one_by_one_in_any_order_gives_the_workspace_of_all_at_once(
    index: Indexer, root: Path, at_once: dict[str, Any], order: list[int]
) -> None:
    parts = [[VELM, {**SUND, "text": "It was to be replaced."}], [SUND, BRANDT], [KARV, OSTRA]]
    if order.index(0) > order.index(1):
        parts[0] = [VELM]
    for part in order:
        index(parts[part])
    assert content_of(root) == at_once


def test_two_texts_under_one_id_are_an_error_that_loses_nothing(index: Indexer, root: Path) -> None:
    index([VELM, SUND])
    before = content_of(root)
    with pytest.raises(BadInput, match=r"'karv' stands for two texts.*corpus\.jsonl"):
        index([BRANDT, KARV, {**KARV, "text": "Karv is something else."}])
    assert content_of(root) == before
    assert index([VELM, SUND]).unchanged == 2


def test_the_same_passage_given_twice_stands_once_and_is_counted(index: Indexer) -> None:
    report = index([VELM, SUND, VELM, VELM])
    assert (report.passages, report.identical) == (2, 2)


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
    told: list[tuple[str, int, int]] = []
    index(ROWS, progress=lambda stage, done, total: told.append((stage, done, total)))
    assert list(dict.fromkeys(stage for stage, _, _ in told)) == ["extract", "embed", "commit", "graph", "relate"]
    for stage, total in (("extract", 5), ("embed", 5), ("graph", 1), ("relate", 1)):
        steps = [done for name, done, of in told if name == stage and of == total]
        assert steps == sorted(steps)
        assert (steps[0], steps[-1]) == (0, total)
    assert [done for name, done, _ in told if name == "embed"] == [0, 2, 4, 5]
    assert [done for name, done, _ in told if name == "commit"] == [2, 4, 5]


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
