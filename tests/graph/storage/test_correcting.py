"""Making and undoing corrections in a record: what is written, what is refused, and what names in text then mean."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.construction.build import derive_graph
from graph.construction.edges import EDGE_KINDS
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.corrections.kinds import Apart, Drop, Merge, Split, Statement, What
from graph.errors import BadInput
from graph.relations import RelationType
from graph.storage.correcting import plan_corrections, plan_undoing
from graph.storage.record import Record
from tests.builders import HashEmbedder, passage_of, write_passages

pytestmark = pytest.mark.usefixtures("database")

PASSAGES = [
    passage_of("hr", "", "John Smith works at I.B.M. in Velm."),
    passage_of("news", "", "John Smith won the cup. IBM paid."),
    passage_of("plain", "", "Nobody but John Smith and I.B.M. knew."),
]
TRIPLES = {
    "hr": [("John Smith", "works at", "I.B.M.")],
    "news": [("John Smith", "won", "the cup"), ("IBM", "paid", "the cup")],
}


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    with Record(tmp_path / "record.sqlite", create=True) as record:
        write_passages(record, PASSAGES, TRIPLES, HashEmbedder())
        yield record


def make(record: Record, *what: What) -> None:
    plan_corrections(record, [(one, "") for one in what]).commit(record, HashEmbedder())


def linked(graph: KnowledgeGraph, name: str) -> set[str]:
    """Return the passages that an entity is linked with."""
    node = graph.entity_names.index(name)
    return {
        graph.passages[target - graph.n_entities].id
        for source, target in zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True)
        if source == node and target >= graph.n_entities
    }


def test_a_merged_name_is_one_entity_in_facts_in_text_and_in_questions(record: Record) -> None:
    make(record, Merge(("IBM", "I.B.M."), "IBM"))
    graph = derive_graph(record)
    assert "i.b.m" not in graph.entity_names
    assert linked(graph, "ibm") == {"hr", "news", "plain"}
    (found,) = graph.names.find(["who", "runs", "i", "b", "m"])
    assert graph.entity_labels[found.name] == "IBM"
    assert ("i.b.m", found.name) in graph.aliases


def test_no_edge_of_synonymy_joins_what_is_kept_apart(record: Record) -> None:
    def synonyms() -> int:
        graph = derive_graph(record)
        return sum(EDGE_KINDS[kind].relation is RelationType.SYNONYMY for kind in graph.edges.kind.tolist())

    write_passages(
        record, [passage_of("more", "", ".")], {"more": [("John Smythe", "is", "John Smith")]}, HashEmbedder()
    )
    assert synonyms() == 1
    make(record, Apart(("John Smith", "John Smythe")))
    assert synonyms() == 0


def test_what_was_extracted_stays_and_an_undone_correction_stays_listed(record: Record) -> None:
    before, raw = derive_graph(record), list(record.entries())
    make(record, Merge(("IBM", "I.B.M."), "IBM"), Drop(Statement("IBM", "paid", "the cup")))
    assert [entry.extraction for entry in record.entries()] == [entry.extraction for entry in raw]
    plan_undoing(record, [1, 2]).commit(record, HashEmbedder())
    assert [each.stands for each in record.corrections()] == [False, False]
    assert derive_graph(record).entity_names == before.entity_names
    assert not record.corrected()


def test_one_that_stands_already_changes_nothing(record: Record) -> None:
    merge = Merge(("IBM", "I.B.M."), "IBM")
    plan = plan_corrections(record, [(merge, "")])
    assert [each.entry.passage.id for each in plan.restated] == ["hr"], "the passages concerned alone"
    plan.commit(record, HashEmbedder())
    generation = record.generation
    plan = plan_corrections(record, [(merge, "again")])
    plan.commit(record, HashEmbedder())
    assert ([each.id for each in plan.known], plan.made, record.generation) == ([1], (), generation)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Apart(("IBM", "I.B.M.")), Merge(("IBM", "I.B.M."), "IBM")),
        (Merge(("IBM", "I.B.M."), "IBM"), Apart(("IBM", "I.B.M."))),
        (Split("John Smith", ("hr.txt",), "Jack"), Merge(("Jack", "John Smith"), "Jack")),
    ],
)
def test_names_cannot_be_merged_and_kept_apart(record: Record, first: What, second: What) -> None:
    make(record, first)
    with pytest.raises(BadInput, match="would be merged and kept apart, and correction 1 stands"):
        make(record, second)
    assert len(record.corrections()) == 1


def test_what_is_not_there_or_was_undone_cannot_be_undone(record: Record) -> None:
    make(record, Apart(("a1", "c3")))
    plan_undoing(record, [1]).commit(record, HashEmbedder())
    for ids, says in (([1], "was undone before"), ([7], "There is no correction 7")):
        with pytest.raises(BadInput, match=says):
            plan_undoing(record, ids)
