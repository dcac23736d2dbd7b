from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.errors import BadInput, EmbeddingMismatch, WorkspaceDamaged, WorkspaceLocked, WorkspaceMissing
from graph.publish.chroma_store import ChromaSet, ChromaStore
from graph.publish.generation_vectors import GenerationVectors
from graph.publish.vector_store import Place
from graph.retrieve import open_index as module
from graph.retrieve import search
from graph.retrieve.modes import MARA
from graph.retrieve.open_index import Index, open_index
from graph.retrieve.search import seed_passages
from graph.retrieve.selection import Selection
from graph.schema import RelationType
from graph.storage.workspace import Workspace
from graph.text import normalise_name
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
    def test_the_nearest_facts_come_first_with_scores_from_zero_to_one(self, index: Index) -> None:
        hits = index.search_facts("marn lies by lake sund", 9)
        assert hits[0][0].fact.subject == "Marn"
        scores = [score for _, score in hits]
        assert scores[0] == pytest.approx(1.0, abs=1e-5)
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)
        embedder = HashEmbedder()
        facts = embedder.embed(["nissan founded in 1933", "lake sund lies in ostra", "marn lies by lake sund"])
        cosines = facts @ embedder.embed(["nissan"])[0]
        assert index.least_fact_score("nissan") == pytest.approx(min(cosines), abs=1e-5)

    def test_every_passage_has_its_exact_cosine_kept_until_it_is_forgotten(self, index: Index) -> None:
        scores = index.score_passages("Nissan")
        approximate = dict(index.search_passages("Nissan", 3))
        assert scores.shape == (3,)
        assert {passage: float(scores[passage]) for passage in approximate} == pytest.approx(approximate, abs=1e-5)
        assert index.score_passages("Nissan") is scores
        assert index.score_passages("Nissan", np.array([2, 0])).tolist() == scores[[2, 0]].tolist()
        with pytest.raises(ValueError, match="read-only"):
            scores[0] = 1
        index.forget_vectors()
        assert index.score_passages("Nissan") is not scores

    def test_vectors_of_another_length_are_refused_with_what_to_do(self, workspace: Workspace) -> None:
        class Shorter(HashEmbedder):
            def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
                return super().embed_question(question, instruction)[:8]

        index = open_index(workspace.root, Shorter())
        for ask in (index.encode, index.score_passages, lambda question: index.search_facts(question, 1)):
            with pytest.raises(EmbeddingMismatch, match=r"gives 8.*mara doctor --reembed"):
                ask("When?")
        index.close()


def test_a_workspace_without_facts_and_passages_of_one_text_are_searched(tmp_path: Path) -> None:
    publish_workspace(tmp_path, [passage_of(key, "", "the same") for key in "abcde"])
    index = open_index(tmp_path, HashEmbedder())
    assert index.search_facts("the same", 5) == []
    assert sorted(ids(index, index.search_passages("the same", 5))) == ["a", "b", "c", "d", "e"]
    index.close()


class TestOpening:
    def test_no_workspace_or_none_that_can_answer(self, workspace: Workspace, tmp_path: Path) -> None:
        with pytest.raises(WorkspaceMissing, match=r"no workspace at .*mara index"):
            open_index(tmp_path / "nowhere", HashEmbedder())
        with pytest.raises(EmbeddingMismatch, match=r"'hash'.*'other'.*mara doctor --reembed"):
            open_index(workspace.root, HashEmbedder("other"))
        publish_workspace(tmp_path / "empty", [])
        publish_workspace(workspace.root, [], removed=[passage.id for passage in PASSAGES])
        for root in (tmp_path / "empty", workspace.root):
            with pytest.raises(WorkspaceMissing, match=r"holds no passage"):
                open_index(root, HashEmbedder())


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    path.write_bytes(b"\xffgarbage" * 100)


class TestDerivingAgain:
    """What is missing, behind or damaged is derived again from the record, without embedding anything."""

    def assert_mended(self, workspace: Workspace) -> None:
        index = open_index(workspace.root, Silent())
        assert_answers(index)
        assert workspace.current() == index.graph.generation
        index.close()

    @pytest.mark.parametrize("name", mostly_slow(["index/1/chroma", "index/1/bm25", "index", "index/1"], 1))
    def test_a_folder_that_is_gone(self, workspace: Workspace, name: str) -> None:
        shutil.rmtree(workspace.root / name)
        self.assert_mended(workspace)

    def test_a_current_or_a_hold_file_that_is_gone_or_damaged(self, workspace: Workspace) -> None:
        self.assert_mended(workspace)
        overwrite(workspace.index_folder(1) / "held.db")
        self.assert_mended(workspace)
        path = workspace.root / "CURRENT"
        path.unlink()
        self.assert_mended(workspace)
        for content in ("two", "", "99"):
            path.write_text(content)
            self.assert_mended(workspace)

    def test_a_file_of_the_snapshot_is_mended(self, workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
        damages: list[tuple[str, Callable[[Path], None]]] = [
            ("snapshot.json", truncate),
            ("passages.bounds.npy", overwrite),
            ("edge_weight.npy", Path.unlink),
            ("bm25/weights.npy", truncate),
        ]
        for generation, (name, damage) in enumerate(damages, start=1):
            caplog.clear()
            damage(workspace.index_folder(generation) / name)
            for _ in range(2):
                self.assert_mended(workspace)
                assert workspace.current() == generation + 1
            assert caplog.records[-1].getMessage() == f"The index of {workspace.root} is derived again from its record"

    @pytest.mark.parametrize("damage", mostly_slow([overwrite, truncate, Path.unlink], 1))
    def test_the_search_index(self, workspace: Workspace, damage: Callable[[Path], None]) -> None:
        (path,) = workspace.index_folder(1).glob("chroma/*/chroma.sqlite3")
        damage(path)
        self.assert_mended(workspace)

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

    def test_a_writer_that_was_killed_between_its_commit_and_its_publication(self, workspace: Workspace) -> None:
        with workspace.open_record() as record:
            write_passages(record, [passage_of("new", "New", "text")], {}, HashEmbedder(), removed=["marn"])
        assert workspace.current() == 1
        index = open_index(workspace.root, Silent())
        assert [passage.id for passage in index.graph.passages] == ["new", "nissan", "sund"]
        assert workspace.current() == index.graph.generation == 2
        index.close()

    def test_what_cannot_be_mended_is_given_up(self, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(folder: Path) -> None:
            raise OSError("the disk is dying")

        with monkeypatch.context() as patch:
            patch.setattr(module, "load", broken)
            with pytest.raises(WorkspaceDamaged, match=r"opened \(the disk is dying\).*Delete its index folder"):
                open_index(workspace.root, Silent())
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


SHOWN = 20
HOUSES = 120
"""Of these, three in a hundred belong to Ann."""


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("houses")
    owned = [
        passage_of(f"h{i}", f"House {i}", f"House {i} stands.", owner="ann" if i % 33 == 0 else "bob", built=1900 + i)
        for i in range(HOUSES)
    ]
    publish_workspace(root, owned, {p.id: [(p.title, "stands in", f"Street {p.id}")] for p in owned})
    index = open_index(root, HashEmbedder())
    yield index
    index.close()


def cosines(index: Index, question: str, facts: Iterable[str]) -> NDArray[np.float32]:
    embedder = HashEmbedder()
    texts = [index.graph.facts[key].fact for key in facts]
    spelled = [" ".join(map(normalise_name, (f.subject, f.predicate, f.object))) for f in texts]
    return np.asarray(embedder.embed(spelled) @ embedder.embed([question])[0])


@pytest.fixture
def searches(houses: Index, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """How many ids each search of the store was restricted to."""
    seen: list[int | None] = []
    search = GenerationVectors.search

    def watched(self: GenerationVectors, name: str, vector: Any, k: int, within: Any = None) -> Any:
        seen.append(None if within is None else len(within))
        return search(self, name, vector, k, within)

    monkeypatch.setattr(GenerationVectors, "search", watched)
    return seen


def test_conditions_select_passages_and_no_condition_nothing(houses: Index, searches: list[int | None]) -> None:
    selection = houses.select({"owner": "ann", "built": {"$gt": 1900, "$lte": 1966}})
    assert selection is not None
    assert {houses.graph.passages[row].id for row in selection.rows} == {"h33", "h66"}
    assert houses.select({}) is None
    with pytest.raises(BadInput, match="'owner' cannot be used"):
        houses.select({"owner": None})
    for count in (0, 3, 100):
        rows = np.arange(HOUSES)[::-1][:count]
        assert houses.score_passages("House 5", rows).tolist() == houses.score_passages("House 5")[rows].tolist()
    assert houses.search_facts("House", 3, Selection.of(houses.graph, np.zeros(0, dtype=np.intp))) == []
    assert searches == [], "there is nothing to search"


def test_the_nearest_facts_of_a_selection_are_found(houses: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    for at_most in [0, 1_000]:
        for k in [1, 3, 99]:
            monkeypatch.setattr(module, "_MOST_OVERFETCHED", at_most)
            selection = houses.select({"owner": "ann"})
            assert selection is not None
            for question in ("House 5 stands", "street", "Where is house 66?"):
                whole = [hit for hit in houses.search_facts(question, HOUSES) if hit[0].fact.id in selection.facts]
                hits = houses.search_facts(question, k, selection)
                assert [score for _, score in hits] == pytest.approx([score for _, score in whole[:k]], abs=1e-6)
                assert {fact.fact.id for fact, _ in hits} <= selection.facts.keys()
                least = min(float(c) for c in cosines(houses, question, selection.facts))
                assert houses.least_fact_score(question, selection) == pytest.approx(least, abs=1e-5)


def test_more_are_asked_for_first_and_the_selected_alone_where_that_is_too_few_or_too_many(
    houses: Index, searches: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide, narrow = houses.select({"owner": "bob"}), houses.select({"owner": "ann"})
    houses.search_facts("House 5 stands", 3, wide)
    assert searches == [None]
    monkeypatch.setattr(module, "_MOST_OVERFETCHED", 50)
    houses.search_facts("House 5 stands", 3, narrow)
    assert searches == [None, 4]
    monkeypatch.setattr(module, "_OVERFETCH", 0)
    houses.search_facts("House 5 stands", 3, wide)
    assert searches == [None, 4, None, HOUSES - 4]


def test_above_a_size_the_nearest_passages_are_looked_up_and_are_those_of_a_comparison_with_all(
    houses: Index, searches: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for at_most in [0, 1_000]:
        for owner in ["ann", "bob", "nobody"]:
            monkeypatch.setattr(module, "_MOST_OVERFETCHED", at_most)
            for selection in (houses.select({"owner": owner}), None):
                for question in ("House 5 stands", "street", "House 66"):
                    compared = seed_passages(houses, question, MARA, SHOWN, selection)
                    assert not searches
                    with pytest.MonkeyPatch.context() as patch:
                        patch.setattr(search, "_COMPARED", 0)
                        looked_up = seed_passages(houses, question, MARA, SHOWN, selection)
                        bar = search._nearest_cosine(houses, question, selection)
                    assert [score for _, score in looked_up] == pytest.approx(
                        [score for _, score in compared], abs=1e-6
                    )
                    assert bar == pytest.approx(search._nearest_cosine(houses, question, selection), abs=1e-6)
                    searches.clear()
