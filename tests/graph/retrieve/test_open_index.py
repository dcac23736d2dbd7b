from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.construction.edges import EDGE_KINDS
from graph.errors import EmbeddingMismatch, WorkspaceDamaged, WorkspaceLocked, WorkspaceMissing
from graph.publish.chroma_store import ChromaSet, ChromaStore
from graph.publish.vector_store import Place
from graph.retrieve import open_index as module
from graph.retrieve.open_index import Index, open_index
from graph.schema import Passage, RelationType
from graph.storage.lock import GenerationHold
from graph.storage.workspace import Workspace
from tests.builders import (
    HOLD_LOCK,
    Child,
    HashEmbedder,
    Silent,
    TripleParts,
    passage_of,
    publish_workspace,
    write_passages,
)
from tests.cases import mostly_slow
from tests.damages import with_store

PASSAGES = [
    passage_of("nissan", "Nissan", "Nissan was founded in 1933."),
    passage_of("sund", "Lake Sund", "Lake Sund lies in Ostra."),
    passage_of("marn", "Marn", "Marn is a town by Lake Sund."),
]
TRIPLES: dict[str, list[TripleParts]] = {
    "nissan": [("Nissan", "founded in", "1933", RelationType.TEMPORAL)],
    "sund": [("Lake Sund", "lies in", "Ostra", RelationType.SPATIAL)],
    "marn": [("Marn", "lies by", "Lake Sund", RelationType.SPATIAL)],
}
READER = """
import sys
from pathlib import Path
from graph.retrieve.open_index import open_index
from tests.builders import HashEmbedder
index = open_index(Path(sys.argv[1]), HashEmbedder())
print("generation", index.graph.generation)
input()
found = [index.graph.passages[passage].id for passage, _ in index.search_passages("Marn", 9)]
print(sorted(found), len(index.search_facts("Marn", 9)), len(index.search_words("Marn", 9)) > 0)
input()
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_workspace(tmp_path_factory.mktemp("template") / "workspace", PASSAGES, TRIPLES).root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(template, tmp_path / "workspace")))


@pytest.fixture
def index(workspace: Workspace) -> Iterator[Index]:
    index = open_index(workspace.root, HashEmbedder())
    yield index
    index.close()


def ids(index: Index, hits: Sequence[tuple[int, float]]) -> list[str]:
    return [index.graph.passages[passage].id for passage, _ in hits]


def assert_answers(index: Index) -> None:
    """Every part of the index is whole."""
    assert sorted(ids(index, index.search_passages("Nissan", 9))) == ["marn", "nissan", "sund"]
    assert len(index.search_facts("Nissan", 9)) == 3
    assert index.search_words("founded", 1)[0][0] == index.graph.passage_index["nissan"]
    assert index.graph.n_entities == 5


class TestSearching:
    def test_the_nearest_passages_come_first(self, index: Index) -> None:
        assert_answers(index)
        ((passage, cosine),) = index.search_passages(PASSAGES[1].content, 1)
        assert (index.graph.passages[passage].id, round(cosine, 5)) == ("sund", 1.0)

    def test_the_nearest_facts_come_first_with_scores_from_zero_to_one(self, index: Index) -> None:
        found = index.search_facts("marn lies by lake sund", 9)
        assert found[0][0].fact.subject == "Marn"
        assert found[0][1] == pytest.approx(1.0, abs=1e-5)
        assert all(0 <= score <= 1 for _, score in found)
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)

    def test_the_least_score_is_that_of_the_farthest_fact(self, index: Index) -> None:
        embedder = HashEmbedder()
        question = embedder.embed(["nissan"])[0]
        facts = embedder.embed(["nissan founded in 1933", "lake sund lies in ostra", "marn lies by lake sund"])
        assert index.least_fact_score("nissan") == pytest.approx(min(facts @ question), abs=1e-5)

    def test_every_passage_has_its_exact_cosine(self, index: Index) -> None:
        scores = index.score_passages("Nissan")
        approximate = dict(index.search_passages("Nissan", 3))
        assert scores.shape == (3,)
        assert {passage: float(scores[passage]) for passage in approximate} == pytest.approx(approximate, abs=1e-5)

    def test_scores_of_all_passages_are_kept_until_they_are_forgotten(self, index: Index) -> None:
        scores = index.score_passages("Nissan")
        assert index.score_passages("Nissan") is scores
        assert index.score_passages("Nissan", np.array([2, 0])).tolist() == scores[[2, 0]].tolist()
        with pytest.raises(ValueError, match="read-only"):
            scores[0] = 1
        index.forget_vectors()
        assert index.score_passages("Nissan") is not scores

    def test_a_question_is_embedded_once_an_instruction(self, workspace: Workspace) -> None:
        embedder = HashEmbedder()
        index = open_index(workspace.root, embedder)
        index.encode("When?")
        index.encode("When?")
        index.search_passages("When?", 2)
        index.search_facts("When?", 2)
        index.score_passages("When?")
        assert embedder.asked == ["When?", "When?"]
        index.close()

    def test_vectors_of_another_length_are_refused_with_what_to_do(self, workspace: Workspace) -> None:
        class Shorter(HashEmbedder):
            def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
                return super().embed_question(question, instruction)[:8]

        index = open_index(workspace.root, Shorter())
        for ask in (index.encode, index.score_passages, lambda question: index.search_facts(question, 1)):
            with pytest.raises(EmbeddingMismatch, match=r"gives 8.*mara doctor --reembed"):
                ask("When?")
        index.close()

    def test_threads_may_search_side_by_side(self, index: Index) -> None:
        expected = index.search_passages("Nissan", 3)
        found: list[object] = []
        threads = [threading.Thread(target=lambda: found.append(index.search_passages("Nissan", 3))) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 6


class TestWithoutFacts:
    def test_a_workspace_without_any_fact_can_be_searched(self, tmp_path: Path) -> None:
        publish_workspace(tmp_path, [passage_of("a", "", "text")])
        index = open_index(tmp_path, HashEmbedder())
        assert index.search_facts("text", 5) == []
        assert ids(index, index.search_passages("text", 5)) == ["a"]
        index.close()

    def test_passages_of_one_text_are_all_found(self, tmp_path: Path) -> None:
        publish_workspace(tmp_path, [passage_of(key, "", "the same") for key in "abcde"])
        index = open_index(tmp_path, HashEmbedder())
        assert sorted(ids(index, index.search_passages("the same", 5))) == ["a", "b", "c", "d", "e"]
        index.close()


class TestOpening:
    def test_no_workspace(self, tmp_path: Path) -> None:
        with pytest.raises(WorkspaceMissing, match=r"no workspace at .*mara index"):
            open_index(tmp_path / "nowhere", HashEmbedder())

    @pytest.mark.parametrize("passages", [[], PASSAGES])
    def test_an_empty_workspace_or_one_that_everything_was_removed_from(
        self, tmp_path: Path, passages: Sequence[Passage]
    ) -> None:
        publish_workspace(tmp_path, passages)
        publish_workspace(tmp_path, [], removed=[passage.id for passage in passages])
        with pytest.raises(WorkspaceMissing, match=r"holds no passage"):
            open_index(tmp_path, HashEmbedder())

    def test_another_embedding_model(self, workspace: Workspace) -> None:
        with pytest.raises(EmbeddingMismatch, match=r"'hash'.*'other'.*mara doctor --reembed"):
            open_index(workspace.root, HashEmbedder("other"))

    def test_opening_what_is_whole_writes_no_generation(self, workspace: Workspace) -> None:
        for _ in range(2):
            index = open_index(workspace.root, Silent())
            assert index.graph.generation == 1
            assert_answers(index)
            index.close()

    def test_an_open_generation_is_held_until_it_is_closed(self, workspace: Workspace) -> None:
        index = open_index(workspace.root, HashEmbedder())
        assert GenerationHold.is_held(workspace.index_folder(1))
        index.close()
        assert not GenerationHold.is_held(workspace.index_folder(1))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwrite(path: Path) -> None:
    path.write_bytes(b"\xffgarbage" * 100)


class TestDerivingAgain:
    """What is missing, behind or damaged is derived again from the record, without embedding anything."""

    @pytest.mark.parametrize("name", mostly_slow(["index/1/chroma", "index/1/bm25", "index", "index/1"], 2))
    def test_a_folder_that_is_gone(self, workspace: Workspace, name: str) -> None:
        shutil.rmtree(workspace.root / name)
        index = open_index(workspace.root, Silent())
        assert_answers(index)
        index.close()

    @pytest.mark.parametrize("content", mostly_slow([None, "two", "", "99"], 2))
    def test_a_current_that_is_gone_or_damaged(self, workspace: Workspace, content: str | None) -> None:
        path = workspace.root / "CURRENT"
        path.unlink()
        if content is not None:
            path.write_text(content)
        index = open_index(workspace.root, Silent())
        assert_answers(index)
        assert workspace.current() == index.graph.generation
        index.close()

    @pytest.mark.parametrize(
        ("name", "damage"),
        mostly_slow(
            [
                ("snapshot.json", truncate),
                ("passages.bounds.npy", overwrite),
                ("edge_weight.npy", Path.unlink),
                ("bm25/weights.npy", empty),
                ("facts.text.npy", truncate),
                ("edge_weight.npy", empty),
                ("passage_vectors.npy", truncate),
                ("bm25/terms.text.npy", overwrite),
            ],
            4,
        ),
    )
    def test_a_file_of_the_snapshot(self, workspace: Workspace, name: str, damage: Callable[[Path], None]) -> None:
        damage(workspace.index_folder(1) / name)
        index = open_index(workspace.root, Silent())
        assert_answers(index)
        assert index.graph.generation == 2
        index.close()

    @pytest.mark.parametrize("damage", mostly_slow([overwrite, truncate, Path.unlink], 1))
    def test_the_search_index(self, workspace: Workspace, damage: Callable[[Path], None]) -> None:
        (path,) = workspace.index_folder(1).glob("chroma/*/chroma.sqlite3")
        damage(path)
        index = open_index(workspace.root, Silent())
        assert_answers(index)
        index.close()

    def test_it_is_told_with_the_reason(self, workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
        (workspace.index_folder(1) / "edge_weight.npy").unlink()
        open_index(workspace.root, Silent()).close()
        reason, done = (record.getMessage() for record in caplog.records)
        assert reason.startswith(f"The index of {workspace.root} cannot be opened: ")
        assert "edge_weight.npy" in reason
        assert done == f"The index of {workspace.root} is derived again from its record"

    def test_what_is_whole_is_opened_without_a_word(
        self, workspace: Workspace, caplog: pytest.LogCaptureFixture
    ) -> None:
        open_index(workspace.root, Silent()).close()
        assert not caplog.records

    def test_what_could_not_be_opened_is_let_go(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        opened: list[ChromaSet] = []
        closed: list[ChromaSet] = []
        open_set, close = ChromaStore.open, ChromaSet.close

        def watched_open(self: ChromaStore, place: Place, *, untouched: bool = False) -> ChromaSet:
            opened.append(open_set(self, place, untouched=untouched))
            return opened[-1]

        def watched_close(self: ChromaSet) -> None:
            closed.append(self)
            close(self)

        with_store(workspace, lambda held: held._open("facts")[0].delete(ids=["0"]))
        monkeypatch.setattr(ChromaStore, "open", watched_open)
        monkeypatch.setattr(ChromaSet, "close", watched_close)
        index = open_index(workspace.root, Silent())
        assert len(opened) == 2
        assert opened[0] in closed
        assert opened[1] not in closed
        assert not workspace.index_folder(1).exists()
        index.close()
        assert opened[1] in closed

    def test_a_hold_file(self, workspace: Workspace) -> None:
        open_index(workspace.root, Silent()).close()
        overwrite(workspace.index_folder(1) / "held.db")
        index = open_index(workspace.root, Silent())
        assert_answers(index)
        index.close()

    def test_a_writer_that_was_killed_between_its_commit_and_its_publication(self, workspace: Workspace) -> None:
        with workspace.open_record() as record:
            write_passages(record, [passage_of("new", "New", "text")], {}, HashEmbedder(), removed=["marn"])
        assert workspace.current() == 1
        index = open_index(workspace.root, Silent())
        assert [passage.id for passage in index.graph.passages] == ["new", "nissan", "sund"]
        assert workspace.current() == index.graph.generation == 2
        index.close()

    @pytest.mark.parametrize(("names", "numbers"), [("relations", "fact_relations"), ("edge_kinds", "edge_kind")])
    def test_a_snapshot_of_a_version_that_numbered_relations_otherwise(
        self, workspace: Workspace, names: str, numbers: str
    ) -> None:
        folder = workspace.index_folder(1)
        header = json.loads((folder / "snapshot.json").read_text())
        turned = np.load(folder / f"{numbers}.npy")
        np.save(folder / f"{numbers}.npy", (len(header[names]) - 1 - turned).astype(turned.dtype))
        (folder / "snapshot.json").write_text(json.dumps({**header, names: header[names][::-1]}))
        index = open_index(workspace.root, Silent())
        assert index.graph.generation == 2
        facts = {fact.fact.text: fact.fact.relation for fact in index.graph.facts.values()}
        assert facts["Lake Sund lies in Ostra"] is RelationType.SPATIAL
        held = {EDGE_KINDS[kind].relation for kind in index.graph.edges.kind.tolist()}
        assert {RelationType.TEMPORAL, RelationType.SPATIAL, RelationType.PRIMARY} <= held
        assert RelationType.CAUSALITY not in held
        index.close()

    def test_it_is_done_once(self, workspace: Workspace) -> None:
        empty(workspace.index_folder(1) / "edge_weight.npy")
        for _ in range(2):
            open_index(workspace.root, Silent()).close()
        assert workspace.current() == 2

    def test_what_cannot_be_mended_is_given_up_with_what_to_do(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(folder: Path) -> None:
            raise OSError("the disk is dying")

        monkeypatch.setattr(module, "load", broken)
        with pytest.raises(WorkspaceDamaged, match=r"cannot be opened \(the disk is dying\).*Delete its index folder"):
            open_index(workspace.root, Silent())

    def test_a_damaged_record_is_not_made_better_by_it(self, workspace: Workspace) -> None:
        overwrite(workspace.record_path)
        with pytest.raises(WorkspaceDamaged, match=r"record.sqlite cannot be read.*backup"):
            open_index(workspace.root, Silent())

    def test_while_a_writer_is_at_work_the_last_publication_answers(self, workspace: Workspace) -> None:
        with workspace.open_record() as record:
            write_passages(record, [passage_of("new", "New", "text")], {}, HashEmbedder())
        with Child(HOLD_LOCK, workspace.root) as writer:
            assert writer.hear() == "locked"
            index = open_index(workspace.root, Silent())
            assert index.graph.generation == 1
            assert_answers(index)
            index.close()

    @pytest.mark.parametrize("name", mostly_slow(["index/1/facts.text.npy", "CURRENT"], 1))
    def test_while_a_writer_is_at_work_nothing_can_be_mended(self, workspace: Workspace, name: str) -> None:
        (workspace.root / name).unlink()
        with Child(HOLD_LOCK, workspace.root) as writer:
            assert writer.hear() == "locked"
            with pytest.raises(WorkspaceLocked, match=rf"process {writer.process.pid}"):
                open_index(workspace.root, Silent())

    def test_a_generation_that_is_published_and_goes_while_it_is_opened_is_no_damage(
        self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        open_generation = module._open_generation

        def overtaken(*arguments: Any, **options: Any) -> Index:
            monkeypatch.setattr(module, "_open_generation", open_generation)
            publish_workspace(workspace.root, [passage_of("new", "New", "text")])
            return open_generation(*arguments, **options)

        monkeypatch.setattr(module, "_open_generation", overtaken)
        index = open_index(workspace.root, Silent())
        assert index.graph.generation == workspace.current() == 2
        assert not caplog.records
        index.close()


class TestReadersOfOtherProcesses:
    @pytest.mark.slow
    def test_one_opened_before_a_write_keeps_answering_from_its_generation(self, workspace: Workspace) -> None:
        with Child(READER, workspace.root) as reader:
            assert reader.hear() == "generation 1"
            publish_workspace(workspace.root, [passage_of("new", "Marn", "Marn anew")], removed=["marn", "sund"])
            publish_workspace(workspace.root, [passage_of("newer", "Marn", "Marn again")])
            assert workspace.index_folder(1).exists()
            reader.tell()
            assert reader.hear() == "['marn', 'nissan', 'sund'] 3 True"
        index = open_index(workspace.root, HashEmbedder())
        assert sorted(ids(index, index.search_passages("Marn", 9))) == ["new", "newer", "nissan"]
        index.close()
