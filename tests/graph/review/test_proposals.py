"""Proposals: names that may be one, and what speaks for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.review.proposals import Likeness, Review, alike_pairs
from graph.storage.record import Record
from tests.builders import HashEmbedder, TripleParts, passage_of, write_passages


def graph_of(folder: Path, triples: Sequence[TripleParts]) -> KnowledgeGraph:
    """Return the graph of passages with one fact each."""
    passages = [passage_of(f"p{i}", "", f"{t[0]} {t[1]} {t[2]}.") for i, t in enumerate(triples)]
    with Record(folder / "record.sqlite", create=True) as record:
        write_passages(record, passages, {f"p{i}": [t] for i, t in enumerate(triples)}, HashEmbedder())
        return derive_graph(record)


def test_names_are_alike_by_letters_first_letters_and_spelling() -> None:
    for likeness, pairs in {
        Likeness.LETTERS: [("IBM", "I.B.M."), ("Avilés", "Aviles"), ("Palais-Royal", "Palais Royal")],
        Likeness.ACRONYM: [("EFTA", "European Free Trade Association"), ("U.C.L.", "University College of London")],
        Likeness.SHORTENED: [("J. Smith", "John Smith")],
        Likeness.SPELLING: [("Katharine Hepburn", "Katherine Hepburn"), ("Philippe Burn", "Philipe Burn")],
    }.items():
        for names in pairs:
            assert ((0, 1), likeness) in set(alike_pairs(names)), names
    for names in [
        ("Apollo 11", "Apollo 1-1"),
        ("Class 7 engine", "Class 8 engine"),
        ("Legislature LX of Karv", "Legislature LXI of Karv"),
        ("North America", "North American"),
        ("ID", "I'd"),
        ("J. Smith", "Karl Smith"),
        ("CIBQ-FM", "CIBW-FM"),
    ]:
        assert not set(alike_pairs(names)), names


def test_an_ending_has_to_follow_several_names_and_to_be_set_off() -> None:
    firms = ["Velm", "Karv", "Oster", "Velm GmbH", "Karv GmbH", "Oster GmbH", "Velm Island", "Karv Island"]
    proposal = {pair for pair, likeness in alike_pairs(firms) if likeness is Likeness.ENDING}
    assert proposal == {(0, 3), (1, 4), (2, 5)}
    assert not set(alike_pairs(["Velm", "Velm GmbH"]))


def test_a_proposal_has_its_evidence(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, [("V.W.K.", "made", "Falke"), ("VWK", "made", "Falke")])
    (merge,) = Review(graph).merges()
    assert set(merge.names) == {"V.W.K.", "VWK"}
    assert merge.likeness == (Likeness.LETTERS,)
    assert [fact.split(" made ")[1] for fact in merge.shared_facts] == ["Falke"]
    assert sorted(merge.passages) == [("p0",), ("p1",)]
    assert merge.score == 1.0
    assert not Review(graph, kept_apart=[("v.w.k", "vwk")]).merges()
