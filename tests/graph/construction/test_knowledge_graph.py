from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction import columns, knowledge_graph
from graph.construction.build import derive_graph
from graph.construction.edges import EDGE_KINDS, Edges, TypedGraph
from graph.construction.knowledge_graph import _NUMBERED, SNAPSHOT_VERSION, KnowledgeGraph, load
from graph.schema import Passage, RelationType, entity_id
from graph.storage.record import Record
from graph.text import tokens
from tests.builders import HashEmbedder, TripleParts, passage_of, stored, typed_graph, write_passages
from tests.graph.construction.test_builder_changes import assert_same as assert_same_graph
from tests.random_walks import graphs as random_graphs
from tests.snapshots import save


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    """A graph that is only read."""
    passages = [
        Passage("日産", "Nissan (company)", "Nissan\u2028was founded.\n", "a.txt", {"year": 1933, "x": 0.5, "b": True}),
        passage_of("b", "Nissan Motor", "Text."),
        passage_of("c", "", ""),
    ]
    triples: dict[str, list[TripleParts]] = {
        "日産": [("Nissan", "founded", "1933", RelationType.TEMPORAL, 0.9)],
        "b": [("Nissan Motor", "is", "日本")],
    }
    with Record(tmp_path_factory.mktemp("record") / "record.sqlite", create=True) as record:
        write_passages(record, passages, triples, HashEmbedder())
        return derive_graph(record)


def assert_same(one: KnowledgeGraph, other: KnowledgeGraph) -> None:
    assert_same_graph(one, other)
    for name in ("generation", "commit_id", "embedding_model", "passage_index", "entity_index"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.facts.passages == other.facts.passages
    for column in fields(Edges):
        assert getattr(one.edges, column.name).dtype == getattr(other.edges, column.name).dtype


strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


class TestSnapshot:
    def test_it_comes_back_mapped_or_read_also_where_its_folder_is_removed(
        self, graph: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for mapped_from in (0, 1 << 20):
            monkeypatch.setattr(columns, "_MAPPED_FROM", mapped_from)
            (tmp_path / "snapshot").mkdir()
            save(graph, tmp_path / "snapshot")
            again = load(tmp_path / "snapshot")
            shutil.rmtree(tmp_path / "snapshot")
            assert_same(again, graph)
            for index, entity in enumerate(graph.entity_names):
                assert again.entity_index[entity_id(entity)] == index
            for text in ("the nissan company", "nissan motor 日本"):
                assert again.names.find(tokens(text)) == graph.names.find(tokens(text)) != []


@contextmanager
def restored(path: Path) -> Iterator[None]:
    """Write a file again as it was, whatever happened to it."""
    whole = path.read_bytes()
    yield
    path.write_bytes(whole)


class TestDamage:
    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, graph: KnowledgeGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("snapshot")
        save(graph, folder)
        return folder

    @pytest.fixture(autouse=True)
    def whole(self, folder: Path) -> Iterator[None]:
        """Each test leaves the shared snapshot as it was."""
        yield
        load(folder)

    def test_a_file_that_is_gone_or_not_as_it_was_written_is_refused(self, folder: Path) -> None:
        for path in [*folder.iterdir()]:
            whole = path.read_bytes()
            for damaged in (None, whole[:-1], whole + b"0"):
                with restored(path):
                    path.unlink() if damaged is None else path.write_bytes(damaged)
                    with pytest.raises((OSError, ValueError)):
                        load(folder)

    def test_a_number_that_leads_nowhere_is_refused(self, folder: Path) -> None:
        for name in [
            *("edge_source", "edge_target", "edge_kind", "fact_ends", "fact_relations", "alias_entities"),
            *("fact_passages.values", "fact_passages.starts", "spellings.numbers.values", "first_words.numbers.starts"),
            *("arc_forward", "arc_backward", "arc_node", "arc_kind"),
            *("entities.bounds", "passages.bounds", "facts.bounds", "aliases.bounds", "spellings.bounds"),
        ]:
            path = folder / f"{name}.npy"
            for value in (-1, 100_000):
                with restored(path):
                    array = np.load(path)
                    array.flat[len(array.flat) // 2] = np.array(value).astype(array.dtype)
                    np.save(path, array)
                    with pytest.raises(ValueError, match=r"\w"):
                        load(folder)

    def test_large_columns_are_not_read_at_opening(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(columns, "CHECKED_TO", 0)
        for name in ("edge_target", "arc_node", "fact_passages.values", "passages.bounds"):
            path = folder / f"{name}.npy"
            with restored(path):
                array = np.load(path)
                array[len(array) // 2] = -1
                np.save(path, array)
                load(folder)

    def test_edges_out_of_order_are_refused(self, folder: Path) -> None:
        path = folder / "edge_source.npy"
        with restored(path):
            np.save(path, np.load(path)[::-1].copy())
            with pytest.raises(ValueError, match="order of their sources"):
                load(folder)

    def test_a_header_of_another_version_or_count_or_none_is_refused(self, folder: Path) -> None:
        path = folder / "snapshot.json"
        whole = json.loads(path.read_text())
        changes: list[Any] = [
            *({"snapshot_version": version} for version in (SNAPSHOT_VERSION - 1, SNAPSHOT_VERSION + 1)),
            *({name: count} for name in ("passages", "entities", "facts", "edges") for count in (0, 1000)),
            *({"generation": "1"}, {"relations": [*RelationType][::-1]}),
            {"edge_kinds": _NUMBERED["edge_kinds"][:-1]},
        ]
        with restored(path):
            for content in (*(json.dumps(whole | change) for change in changes), "[]", "{}"):
                path.write_text(content)
                with pytest.raises(ValueError, match=r"\w"):
                    load(folder)


class TestLookUps:
    @settings(max_examples=30)
    @given(st.sets(strings, min_size=1, max_size=12), st.sets(strings, max_size=4))
    def test_ids_of_many_passages_are_read_where_they_lie(self, ids: set[str], others: set[str]) -> None:
        passages = tuple(passage_of(key, "", "") for key in sorted(ids))
        vectors = np.zeros((len(ids), 4), dtype=np.float32)
        graph = replace(typed_graph(1, 0, []), passages=stored(passages), passage_vectors=vectors)
        with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
            save(graph, Path(name))
            held, read = load(Path(name)), load(Path(name))
            assert dict(held.passage_index) == {key: place for place, key in enumerate(sorted(ids))}
            patch.setattr(columns, "_KEPT_KEYS", 0)
            assert list(read.passage_ids) == [read.passage_ids[place] for place in range(len(ids))] == sorted(ids)
            for _ in range(2):
                for key in (*ids, *others):
                    assert read.passage_index.get(key) == held.passage_index.get(key)
                    assert (key in read.passage_index) == (key in ids)
            for share in (0, 1000):
                patch.setattr(knowledge_graph, "_LOOKED_UP", share)
                found = read.passages_of(ids | others)
                assert found.tolist() == list(range(len(ids)))
                assert read.passages_of(others).tolist() == sorted(held.passage_index[key] for key in others & ids)

    def test_passages_of_a_source_and_parts_of_a_document_are_found_up_to_a_number(self, tmp_path: Path) -> None:
        rows = (("a.xlsx", "d", 2), ("b.xlsx", "e", 0), ("a.xlsx", "d", 0), ("a.xlsx", "d", 1), ("b.xlsx", "", 0))
        passages = tuple(
            replace(passage_of(str(place), "", ""), source=source, metadata={"document": document, "chunk": number})
            for place, (source, document, number) in enumerate(rows)
        )
        built = replace(
            typed_graph(1, 0, []),
            passages=stored(passages),
            passage_vectors=np.zeros((len(passages), 4), dtype=np.float32),
        )
        save(built, tmp_path)
        for known in (built, load(tmp_path)):
            assert known.passages_from("a.xlsx", 3) == [0, 2, 3]
            assert known.passages_from("a.xlsx", 2) == []
            assert known.passages_from("a", 9) == []
            assert known.parts_of("d", "a.xlsx", 3) == [2, 3, 0]
            assert known.parts_of("d", "b.xlsx", 9) == []
            assert known.parts_of("d", "a.xlsx", 2) == []
            assert known.parts_of("4", "b.xlsx", 9) == [4]

    @given(random_graphs())
    def test_passages_and_entities_are_linked_both_ways(self, typed: TypedGraph) -> None:
        links = [(source, target) for source, target in zip(typed.source.tolist(), typed.target.tolist(), strict=True)]
        edges = [
            (source, target, EDGE_KINDS[kind], weight)
            for (source, target), kind, weight in zip(links, typed.kind, typed.weight, strict=True)
        ]
        graph = typed_graph(typed.n_entities, typed.n_passages, edges)
        for passage in range(typed.n_passages):
            node = typed.n_entities + passage
            assert graph.entities_in(passage).tolist() == sorted(a for a, b in links if b == node)
        for entity in range(typed.n_entities):
            linked = sorted(b - typed.n_entities for a, b in links if a == entity and b >= typed.n_entities)
            assert graph.passages_with(entity).tolist() == linked
