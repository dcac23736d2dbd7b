from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.construction import edges
from graph.construction.build import derive_graph
from graph.construction.edges import EDGE_KINDS, EdgeKind
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.relations import PassageLink
from graph.schema import Extraction, Passage, RelationType, entity_id
from graph.storage.record import Record
from graph.storage.writer import Writer
from tests.builders import DIMENSION, HashEmbedder, TripleParts, extraction_of, passage_of, write_passages

TEMPORAL, SPATIAL = RelationType.TEMPORAL, RelationType.SPATIAL
FOUNDED: TripleParts = ("Nissan", "founded", "1933", TEMPORAL, 0.9)


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with Record(tmp_path / "record.sqlite", create=True) as record:
        yield record


def graph_of(
    record: Record,
    passages: Sequence[Passage],
    triples: Mapping[str, Sequence[TripleParts]] | None = None,
    embedder: HashEmbedder | None = None,
) -> KnowledgeGraph:
    write_passages(record, passages, triples or {}, embedder or HashEmbedder())
    return derive_graph(record)


class Edge:
    """One edge with the names of its ends: of entities by their normal form, of passages by their id."""

    def __init__(self, graph: KnowledgeGraph, row: int) -> None:
        names = [*graph.entity_names, *(passage.id for passage in graph.passages)]
        edges = graph.edges
        self.ends = {names[edges.source[row]], names[edges.target[row]]}
        self.kind: EdgeKind = EDGE_KINDS[edges.kind[row]]
        self.weight, self.count = float(edges.weight[row]), float(edges.count[row])
        self.offset = int(edges.offset[row])


def edges_between(graph: KnowledgeGraph, one: str, other: str) -> list[Edge]:
    found = [Edge(graph, row) for row in range(len(graph.edges))]
    return [edge for edge in found if edge.ends == {one, other}]


def edge_between(graph: KnowledgeGraph, one: str, other: str) -> Edge:
    (edge,) = edges_between(graph, one, other)
    return edge


def cosine(embedder: HashEmbedder, one: str, other: str) -> float:
    vectors = embedder.embed([one, other])
    return float(vectors[0] @ vectors[1])


class Planned(HashEmbedder):
    """Gives chosen vectors to chosen texts: an angle in the plane of the first two axes, in degrees."""

    def __init__(self, angles: Mapping[str, float]) -> None:
        super().__init__()
        self.angles = angles

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = super().embed(texts)
        for row, text in enumerate(texts):
            if text in self.angles:
                turn = np.radians(self.angles[text])
                vectors[row] = [np.cos(turn), np.sin(turn), *[0.0] * (DIMENSION - 2)]
        return vectors


class TestFactEdges:
    def test_the_facts_of_one_type_on_one_pair_are_one_edge_that_weighs_their_confidences(self, record: Record) -> None:
        graph = graph_of(
            record,
            [passage_of("a", "", "x"), passage_of("b", "", "y")],
            {
                "a": [FOUNDED, ("1933", "saw the birth of", "nissan", TEMPORAL, 0.5), ("Nissan", "is", "NISSAN")],
                "b": [("NISSAN", "founded", "1933", TEMPORAL, 0.25), ("Nissan", "in", "1933", SPATIAL, 0.5)],
            },
        )
        edges = {edge.kind: (edge.weight, edge.count) for edge in edges_between(graph, "nissan", "1933")}
        assert edges == {
            EdgeKind(TEMPORAL): (pytest.approx(0.9 + 0.5 + 0.25), 3),
            EdgeKind(SPATIAL): (0.5, 1),
        }
        assert len(graph.facts) == 4
        assert edges_between(graph, "nissan", "nissan") == [], "a fact about itself is no edge"

    def test_a_fact_knows_its_ends_and_every_passage_that_holds_it_once(self, record: Record) -> None:
        passages = [passage_of(key, "", key) for key in "abc"]
        graph = graph_of(record, passages, {"a": [FOUNDED, FOUNDED], "c": [("nissan", "Founded", "1933", TEMPORAL)]})
        (fact,) = graph.facts.values()
        assert (graph.entity_names[fact.subject], graph.entity_names[fact.object]) == ("nissan", "1933")
        assert fact.passages == (0, 2)
        assert list(graph.facts) == [fact.fact.id]


class TestPassageEdges:
    text = "The carmaker Nissan of Yokohama was founded in 1933."

    def test_weight_is_role_similarity_and_position(self, record: Record) -> None:
        both: list[TripleParts] = [FOUNDED, ("Nissan", "in", "Japan"), ("Japan", "has", "Nissan")]
        similarity = (cosine(HashEmbedder(), self.text, "nissan") + 1) / 2
        for triples, role in ((both[:1], 1.0), (both[2:], 0.7), (both, (2 * 1.0 + 0.7) / 3)):
            graph = graph_of(record, [passage_of("a", "", self.text)], {"a": triples})
            edge = edge_between(graph, "nissan", "a")
            position = 1 - edge.offset / len(self.text)
            assert edge.offset == self.text.index("Nissan")
            assert edge.weight == pytest.approx(0.4 * role + 0.4 * similarity + 0.2 * position), triples
            assert edge.count == 1

    def test_an_entity_in_no_triple_has_the_middle_role_and_no_place_in_the_published_graph(
        self, record: Record
    ) -> None:
        Writer(record, HashEmbedder()).write([(passage_of("a", "", self.text), extraction_of(entities=["Yokohama"]))])
        edge = edge_between(derive_graph(record), "yokohama", "a")
        similarity = (cosine(HashEmbedder(), self.text, "yokohama") + 1) / 2
        position = 1 - self.text.index("Yokohama") / len(self.text)
        assert edge.weight == pytest.approx(0.4 * 0.5 + 0.4 * similarity + 0.2 * position)
        assert edge.count == 0

    def test_an_entity_that_the_text_does_not_spell_out_stands_in_the_middle(self, record: Record) -> None:
        extraction = Extraction(("Nissan",), extraction_of([("Datsun", "is", "Nissan")]).triples, "test")
        Writer(record, HashEmbedder()).write([(passage_of("a", "", self.text), extraction)])
        edge = edge_between(derive_graph(record), "datsun", "a")
        similarity = (cosine(HashEmbedder(), self.text, "datsun") + 1) / 2
        assert (edge.offset, edge.kind.link) == (-1, PassageLink.MENTION)
        assert edge.weight == pytest.approx(0.4 * 1.0 + 0.4 * similarity + 0.2 * 0.5)


class TestTitles:
    def test_a_title_is_an_entity_its_passage_is_about_it_and_others_mention_it(self, record: Record) -> None:
        passages = [passage_of("a", "Mercury (planet)", "It is hot."), passage_of("b", "", "Mercury is seen in 1933.")]
        graph = graph_of(record, passages, {"b": [("Mercury", "is seen in", "1933")]})
        assert edge_between(graph, "mercury", "a").kind == EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)
        assert edge_between(graph, "mercury", "b").kind.link is PassageLink.OTHER_TITLE
        assert edge_between(graph, "1933", "b").kind.link is PassageLink.MENTION
        assert graph.aliases == (("mercury (planet", graph.entity_index[entity_id("Mercury")]),)

    def test_the_chunks_of_a_document_share_its_title_edge(self, record: Record) -> None:
        def weights(chunks: int) -> list[float]:
            passages = [Passage(f"{chunks}-{i}", "Nissan", f"Part {i}", "doc", {"chunk": i}) for i in range(chunks)]
            write_passages(record, passages, {}, HashEmbedder(), removed=list(record.fingerprints()))
            graph = derive_graph(record)
            return [edge_between(graph, "nissan", passage.id).weight for passage in passages]

        alone = weights(1)[0]
        assert weights(4)[0] == pytest.approx(alone / 2)

    def test_documents_of_one_title_from_different_sources_do_not_share(self, record: Record) -> None:
        passages = [Passage(key, "Nissan", "Part", key, {"chunk": 0}) for key in "ab"]
        graph = graph_of(record, passages)
        alone = 0.4 * 0.5 + 0.4 * (cosine(HashEmbedder(), "Nissan\nPart", "nissan") + 1) / 2 + 0.2
        assert [edge_between(graph, "nissan", key).weight for key in "ab"] == pytest.approx([alone, alone])


class TestMentions:
    def test_a_known_name_spelled_in_another_passage_links_it_with_its_place(self, record: Record) -> None:
        passages = [passage_of("a", "Lake Sund", "A lake."), passage_of("b", "Marn", "Marn lies on lake SUND.")]
        edge = edge_between(graph_of(record, passages), "lake sund", "b")
        assert edge.kind.link is PassageLink.OTHER_TITLE
        assert edge.offset == len("Marn\nMarn lies on ")
        assert edge.count == 0

    def test_names_too_frequent_to_mean_anything_link_nothing_more(self, record: Record) -> None:
        """With the passage of that title, 20 passages are the limit of a small corpus."""
        for mentions, linked in [(19, 19), (20, 0)]:
            passages = [passage_of("title", "Nissan", "A carmaker.")]
            passages += [passage_of(f"p{i}", "", f"Nissan was mentioned, {i}.") for i in range(mentions)]
            graph = graph_of(record, passages)
            nissan = graph.entity_index[entity_id("Nissan")]
            assert graph.name_passages[nissan] == 1 + mentions, mentions
            assert (graph.edges.source == nissan).sum() == 1 + linked, mentions
            assert edge_between(graph, "nissan", "title").kind.link is PassageLink.OWN_TITLE, mentions


def test_a_name_share_is_how_often_the_corpus_writes_a_name_as_one(record: Record) -> None:
    """Of several words the last decides: the first of a sentence has a capital, whatever it is."""
    for name, text, share in [
        ("Create", "You create one; to create two, create more.", 0.25),
        ("Nissan", "NISSAN and Nissan.", 1),
        ("Net income", "Net income fell.", 0),
        ("Bank of Marn", "He left the bank of Marn.", 1),
        ("IBM", "See https://cloud.ibm.com/ibm/docs, you@ibm.com.", 1),
        ("日産自動車", "日産自動車.", 1),
        ("1933", "1933.", 1),
        ("سنوبور", "سنوبور.", 1),
    ]:
        graph = graph_of(record, [passage_of("a", name, "Here."), passage_of("b", "", text)])
        assert graph.name_shares[graph.entity_index[entity_id(name)]] == share, name
    write_passages(record, [], {}, HashEmbedder(), removed=["a", "b"])
    assert graph_of(record, [passage_of("c", "", "Here.")], {"c": [FOUNDED]}).name_shares.tolist() == [1, 1]


class TestSynonymEdges:
    def test_a_pair_is_one_edge_that_weighs_its_cosine_and_counts_with_both_names_in_triples(
        self, record: Record
    ) -> None:
        passages = [passage_of("a", "Nissan", "."), passage_of("b", "Nissan Motor", ".")]
        graph = graph_of(record, passages, {"a": [("Nissan", "is", "x")], "b": [("Nissan Motor", "is", "x")]})
        edge = edge_between(graph, "nissan", "nissan motor")
        assert edge.kind == EdgeKind(RelationType.SYNONYMY)
        assert edge.weight == edge.count == pytest.approx(cosine(HashEmbedder(), "nissan", "nissan motor"))
        graph = graph_of(record, passages, {"a": [("Nissan", "is", "x")]})
        assert edge_between(graph, "nissan", "nissan motor").count == 0

    def test_a_pair_is_kept_while_it_is_among_the_nearest_of_either_name(
        self, record: Record, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(edges, "SYNONYMS_PER_NAME", 1)
        angles = {"anna": 0.0, "anne": 10.0, "hanna": 13.0, "hannah": 30.0}
        passages = [passage_of(name, name.title(), "x") for name in angles]
        graph = graph_of(record, passages, embedder=Planned(angles))
        kept = {
            tuple(sorted(edge.ends))
            for edge in (Edge(graph, row) for row in range(len(graph.edges)))
            if edge.kind.relation is RelationType.SYNONYMY
        }
        assert kept == {("anne", "hanna"), ("anna", "anne"), ("hanna", "hannah")}


class TestNaming:
    def test_a_label_is_the_most_frequent_spelling_the_smallest_of_several(self, record: Record) -> None:
        triples: dict[str, list[TripleParts]] = {
            "a": [("Nissan", "is", "old"), ("NISSAN", "has", "Old")],
            "b": [("NISSAN", "in", "Japan")],
        }
        graph = graph_of(record, [passage_of("a", "", "x"), passage_of("b", "", "y")], triples)
        labels = dict(zip(graph.entity_names, graph.entity_labels, strict=True))
        assert labels == {"nissan": "NISSAN", "old": "Old", "japan": "Japan"}

    def test_of_a_facts_spellings_the_smallest_is_shown(self, record: Record) -> None:
        triples: dict[str, list[TripleParts]] = {
            "a": [("Nissan", "Founded", "1933")],
            "b": [("NISSAN", "founded", "1933")],
            "c": [("nissan", "founded", "1933.")],
        }
        (fact,) = graph_of(record, [passage_of(key, "", key) for key in "abc"], triples).facts.values()
        assert fact.fact.text == "NISSAN founded 1933"
