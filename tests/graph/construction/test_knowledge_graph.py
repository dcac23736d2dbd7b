from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction import columns, knowledge_graph
from graph.construction.build import derive_graph
from graph.construction.edges import EDGE_KINDS, KIND_INDEX, EdgeKind, Edges, TypedGraph
from graph.construction.knowledge_graph import (
    _NUMBERED,
    SNAPSHOT_VERSION,
    GraphFact,
    KnowledgeGraph,
    load,
    load_header,
)
from graph.schema import Fact, Passage, RelationType, entity_id
from graph.storage.record import Record
from graph.text import NameMatcher, normalise_name, tokens
from tests.builders import HashEmbedder, TripleParts, passage_of, typed_graph, write_passages
from tests.random_walks import graphs as random_graphs
from tests.snapshots import facts_of, save


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    """Built once: nobody can write to it."""
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
    for name in ("generation", "commit_id", "embedding_model", "entity_names", "entity_labels", "passages", "aliases"):
        assert getattr(one, name) == getattr(other, name), name
    assert list(one.facts.items()) == list(other.facts.items())
    for name in ("triple_passages", "name_passages", "name_shares", "passage_vectors"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    for column in fields(Edges):
        here, there = getattr(one.edges, column.name), getattr(other.edges, column.name)
        assert np.array_equal(here, there)
        assert here.dtype == there.dtype
    for learnt in ("indices", "lengths"):
        mine, theirs = (getattr(graph.names, learnt).items() for graph in (one, other))
        assert {key: tuple(numbers) for key, numbers in mine} == {key: tuple(numbers) for key, numbers in theirs}
    assert (one.passage_index, one.entity_index) == (other.passage_index, other.entity_index)
    assert one.facts.passages == other.facts.passages


strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
words = st.sampled_from(["Anna", "berg", "日本", "Ö", "-", "x", "(film)"])
spellings = st.one_of(strings, st.lists(words, min_size=1, max_size=3).map(" ".join))


@st.composite
def graphs(draw: st.DrawFn) -> KnowledgeGraph:
    """Any graph, with the names in any script, and texts of any characters."""
    names = draw(
        st.lists(spellings.map(normalise_name), unique=True, max_size=6).map(lambda n: sorted(n, key=entity_id))
    )
    ids = sorted(draw(st.sets(strings, max_size=4)))
    metadata = st.dictionaries(strings, st.one_of(strings, st.integers(), st.booleans(), st.floats(allow_nan=False)))
    passages = [Passage(key, draw(strings), draw(strings), draw(strings), draw(metadata)) for key in ids]
    entity, passage = st.integers(0, max(0, len(names) - 1)), st.integers(0, max(0, len(ids) - 1))
    facts = {}
    for _ in range(draw(st.integers(0, 4)) if names and ids else 0):
        fact = Fact(draw(strings), draw(strings), draw(strings), draw(st.sampled_from(list(RelationType))))
        held = sorted(draw(st.sets(passage, min_size=1)))
        facts[fact.id] = GraphFact(fact, draw(entity), draw(entity), tuple(held))
    nodes = st.integers(0, max(0, len(names) + len(ids) - 1))
    edge = st.tuples(entity, nodes, st.sampled_from(EDGE_KINDS), st.floats(0, 1, width=32))
    bare = typed_graph(len(names), len(ids), draw(st.lists(edge, max_size=6)) if names else [])
    aliases = tuple((draw(spellings), draw(entity)) for _ in range(draw(st.integers(0, 3)) if names else 0))
    return replace(
        bare,
        commit_id=draw(strings),
        entity_names=tuple(names),
        entity_labels=tuple(draw(strings) for _ in names),
        passages=tuple(passages),
        facts=facts_of(facts),
        aliases=aliases,
        names=NameMatcher.of([*((name, index) for index, name in enumerate(names)), *aliases]),
    )


class TestSnapshot:
    def test_it_comes_back_as_it_was_saved(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        assert_same(load(tmp_path), graph)

    @settings(max_examples=30)
    @given(graphs(), st.booleans(), st.data())
    def test_any_graph_comes_back_mapped_or_read(
        self, graph: KnowledgeGraph, mapped: bool, data: st.DataObject
    ) -> None:
        with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "_MAPPED_FROM", 0 if mapped else 1 << 20)
            save(graph, Path(name))
            again = load(Path(name))
            assert_same(again, graph)
            for index, entity in enumerate(graph.entity_names):
                assert again.entity_index[entity_id(entity)] == index
            known = [*graph.entity_names, *(alias for alias, _ in graph.aliases)]
            text = " ".join(data.draw(st.lists(st.sampled_from(known) if known else words, max_size=4)))
            assert again.names.find(tokens(text)) == graph.names.find(tokens(text))

    def test_it_may_lie_mapped_in_a_folder_that_is_removed(
        self, graph: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(columns, "_MAPPED_FROM", 0)
        folder = tmp_path / "1"
        folder.mkdir()
        save(graph, folder)
        again = load(folder)
        shutil.rmtree(folder)
        assert_same(again, graph)

    def test_typed_facts_counts_and_synonyms_survive(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        again = load(tmp_path)
        assert {fact.fact.relation for fact in again.facts.values()} == {
            RelationType.TEMPORAL,
            RelationType.ATTRIBUTION,
        }
        assert again.triple_passages[again.entity_index[entity_id("Nissan")]] == 1
        assert KIND_INDEX[EdgeKind(RelationType.SYNONYMY)] in again.edges.kind

    def test_a_walk_reads_plain_arrays_that_nobody_can_write(
        self, graph: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save(graph, tmp_path)
        for mapped_from in (0, 1 << 20):
            monkeypatch.setattr(columns, "_MAPPED_FROM", mapped_from)
            typed = load(tmp_path).typed
            for array in (typed.source, typed.target, typed.kind, typed.weight):
                assert type(array) is np.ndarray
                assert (array.flags.writeable, array.flags.aligned, array.flags.c_contiguous) == (False, True, True)

    def test_the_header_tells_what_is_in_it(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        header = load_header(tmp_path)
        assert (header["passages"], header["entities"], header["facts"]) == (3, graph.n_entities, 2)
        assert (header["edges"], header["generation"], header["embedding_model"]) == (len(graph.edges), 1, "hash")

    def test_the_header_names_what_numbers_stand_for(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        header = load_header(tmp_path)
        assert header["relations"] == [relation.value for relation in RelationType]
        assert len(set(header["edge_kinds"])) == len(EDGE_KINDS)
        assert header["edge_kinds"][KIND_INDEX[EdgeKind(RelationType.SYNONYMY)]] == "SYNONYMY"
        assert header["edge_kinds"][KIND_INDEX[EDGE_KINDS[-1]]] == "PERIPHERAL (mention)"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def continued(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"0")


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def overwritten(path: Path) -> None:
    path.write_bytes(b"\xffgarbage" * 100)


FILES = [
    "snapshot.json",
    *(f"edge_{name}.npy" for name in ("source", "target", "kind", "weight", "count", "offset")),
    *(f"arc_{name}.npy" for name in ("forward", "backward", "counts", "node", "kind", "weight")),
    *("triple_passages.npy", "name_passages.npy", "name_shares.npy", "passage_vectors.npy", "alias_entities.npy"),
    *("fact_ends.npy", "fact_relations.npy", "fact_passages.starts.npy", "fact_passages.values.npy"),
    *(f"{name}.{part}.npy" for name in ("entities", "passages", "facts", "aliases") for part in ("text", "bounds")),
    *(
        f"{name}.{part}.npy"
        for name in ("spellings", "first_words")
        for part in ("text", "bounds", "numbers.starts", "numbers.values")
    ),
]


class TestDamage:
    @pytest.fixture
    def folder(self, graph: KnowledgeGraph, tmp_path: Path) -> Path:
        folder = tmp_path / "1"
        folder.mkdir()
        save(graph, folder)
        return folder

    def test_these_are_the_files(self, folder: Path) -> None:
        assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)

    @pytest.mark.parametrize("name", FILES)
    def test_a_file_that_is_gone_or_not_as_it_was_written_is_refused(self, folder: Path, name: str) -> None:
        path = folder / name
        whole = path.read_bytes()
        for damage in (Path.unlink, cut, continued, emptied, overwritten):
            damage(path)
            with pytest.raises((OSError, ValueError)):
                load(folder)
            path.write_bytes(whole)
        load(folder)

    @pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".npy")])
    def test_a_file_of_fewer_rows_is_refused(self, folder: Path, name: str) -> None:
        np.save(folder / name, np.load(folder / name)[:-1])
        with pytest.raises(ValueError, match=r"\w"):
            load(folder)

    @pytest.mark.parametrize(
        "name",
        [
            *("edge_source", "edge_target", "edge_kind", "fact_ends", "fact_relations", "alias_entities"),
            *("fact_passages.values", "fact_passages.starts", "spellings.numbers.values", "first_words.numbers.starts"),
            *("arc_forward", "arc_backward", "arc_node", "arc_kind"),
            *("entities.bounds", "passages.bounds", "facts.bounds", "aliases.bounds", "spellings.bounds"),
        ],
    )
    @pytest.mark.parametrize("value", [-1, 100_000])
    def test_a_number_that_leads_nowhere_is_refused(self, folder: Path, name: str, value: int) -> None:
        array = np.load(folder / f"{name}.npy")
        array.flat[len(array.flat) // 2] = np.array(value).astype(array.dtype)
        np.save(folder / f"{name}.npy", array)
        with pytest.raises(ValueError, match=r"\w"):
            load(folder)

    @pytest.mark.parametrize("name", ["edge_target", "arc_node", "fact_passages.values", "passages.bounds"])
    def test_what_is_large_is_looked_at_where_that_is_asked_for(
        self, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A process that opens a snapshot reads no column of millions; `mara doctor` does."""
        array = np.load(folder / f"{name}.npy")
        array[len(array) // 2] = -1
        np.save(folder / f"{name}.npy", array)
        monkeypatch.setattr(columns, "CHECKED_TO", 0)
        load(folder)
        with pytest.raises(ValueError, match=r"\w"):
            load(folder, thorough=True)

    def test_edges_out_of_order_are_refused(self, folder: Path) -> None:
        source = np.load(folder / "edge_source.npy")
        np.save(folder / "edge_source.npy", source[::-1].copy())
        with pytest.raises(ValueError, match="order of their sources"):
            load(folder)

    def test_text_that_is_no_text_is_told_when_it_is_read(self, folder: Path) -> None:
        for name in ("entities", "passages", "facts"):
            text = np.load(folder / f"{name}.text.npy")
            np.save(folder / f"{name}.text.npy", np.full_like(text, 0xFF))
        graph = load(folder)
        for read in (graph.entity_names, graph.entity_labels, graph.passages, graph.facts.values()):
            with pytest.raises(ValueError, match="utf-8"):
                list(read)

    @pytest.mark.parametrize(
        "change",
        [{"snapshot_version": version} for version in (0, SNAPSHOT_VERSION - 1, SNAPSHOT_VERSION + 1, None)]
        + [{name: count} for name in ("passages", "entities", "facts", "edges") for count in (0, 1000, -1, "3", None)]
        + [{"generation": "1"}, {"commit_id": None}, {"embedding_model": 3}]
        + [{"relations": [*RelationType][::-1]}, {"relations": [*RelationType, "NEW"]}, {"relations": None}]
        + [{"edge_kinds": _NUMBERED["edge_kinds"][:-1]}, {"edge_kinds": None}],
    )
    def test_another_version_or_another_count_is_refused(self, folder: Path, change: dict[str, object]) -> None:
        path = folder / "snapshot.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        with pytest.raises(ValueError, match=r"\w"):
            load(folder)

    @pytest.mark.parametrize("content", ["[]", "3", "null", '"snapshot"', "{}"])
    def test_a_header_that_is_none_is_refused(self, folder: Path, content: str) -> None:
        (folder / "snapshot.json").write_text(content)
        with pytest.raises(ValueError, match="header"):
            load(folder)

    def test_none_at_all_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            load(tmp_path)


class TestLookUps:
    def test_passages_by_id_and_entities_by_the_id_of_their_name(self, graph: KnowledgeGraph) -> None:
        assert graph.passages[graph.passage_index["日産"]].title == "Nissan (company)"
        assert graph.entity_names[graph.entity_index[entity_id(" NISSAN ")]] == "nissan"

    def test_names_and_full_titles_are_found_in_text(self, graph: KnowledgeGraph) -> None:
        nissan = graph.entity_index[entity_id("Nissan")]
        assert [mention.name for mention in graph.names.find(["the", "nissan", "company"])] == [nissan]
        assert [mention.end for mention in graph.names.find(["nissan", "company"])] == [2]

    def test_they_are_the_same_in_what_was_loaded(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        again = load(tmp_path)
        assert again.passages[again.passage_index["日産"]].title == "Nissan (company)"
        assert again.entity_names[again.entity_index[entity_id(" NISSAN ")]] == "nissan"
        for text in ("Nissan (company)", "the nissan", "日本 and Nissan Motor", "1933", "motor", ""):
            assert again.names.find(tokens(text)) == graph.names.find(tokens(text))

    @settings(max_examples=30)
    @given(st.sets(strings, min_size=1, max_size=12), st.sets(strings, max_size=4))
    def test_ids_of_many_passages_are_read_where_they_lie(self, ids: set[str], others: set[str]) -> None:
        passages = tuple(passage_of(key, "", "") for key in sorted(ids))
        vectors = np.zeros((len(ids), 4), dtype=np.float32)
        graph = replace(typed_graph(1, 0, []), passages=passages, passage_vectors=vectors)
        with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
            save(graph, Path(name))
            held, read = load(Path(name)), load(Path(name))
            assert isinstance(held.passage_index, dict)
            patch.setattr(knowledge_graph, "_HELD_IDS", 0)
            patch.setattr(knowledge_graph, "_MOST_REMEMBERED", 3)
            assert not isinstance(read.passage_index, dict)
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

    @pytest.mark.parametrize("loaded", [False, True], ids=["built", "loaded"])
    def test_a_source_of_many_passages_yields_none(self, tmp_path: Path, loaded: bool) -> None:
        sources = ("a.xlsx", "b.xlsx", "a.xlsx", "b.md", "b.xlsx", "b.xlsx")
        passages = tuple(replace(passage_of(str(place), "", ""), source=source) for place, source in enumerate(sources))
        known = replace(
            typed_graph(1, 0, []), passages=passages, passage_vectors=np.zeros((len(passages), 4), dtype=np.float32)
        )
        if loaded:
            save(known, tmp_path)
            known = load(tmp_path)
        assert known.passages_from("b.xlsx", 3) == [1, 4, 5]
        assert known.passages_from("b.xlsx", 2) == []
        assert known.passages_from("a.xlsx", 2) == [0, 2]
        assert known.passages_from("b", 9) == []

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

    def test_an_id_that_stands_for_nothing_is_an_error(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        for known in (graph, load(tmp_path)):
            mappings: list[Mapping[str, object]] = [known.entity_index, known.passage_index, known.facts]
            for mapping in mappings:
                assert "entity-0" not in mapping
                assert mapping.get("entity-0") is None
                with pytest.raises(KeyError):
                    mapping["entity-0"]

    def test_facts_tell_which_passages_hold_them(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        for known in (graph, load(tmp_path)):
            assert list(known.facts.passages) == [fact.passages for fact in known.facts.values()]
