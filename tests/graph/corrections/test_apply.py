"""What corrections make of one passage, worked out by hand."""

from __future__ import annotations

import pytest

from graph.corrections.apply import Corrections, Stated
from graph.corrections.kinds import Apart, Change, Correction, Drop, Merge, Pin, Split, Statement, What, what_from_json
from graph.corrections.kinds import what_to_json as to_json
from graph.errors import BadInput
from graph.schema import Passage, RelationType, Triple
from tests.builders import extraction_of

HR = Passage("p1", "", "John Smith works at I.B.M.", "hr.csv", {"document": "staff"})
NEWS = Passage("p2", "I.B.M. (company)", "John Smith won.", "news.csv")
WORKS = ("John Smith", "works at", "I.B.M.")
MERGED = Merge(("IBM", "I.B.M."), "IBM")
SPLIT = Split("John Smith", ("hr.csv",), "John Smith (hr.csv)")


def standing(*what: What) -> Corrections:
    return Corrections(Correction(id, one, "", "2026-01-01") for id, one in enumerate(what, start=1))


def stated(passage: Passage, *what: What, entities: tuple[str, ...] = (), triples: tuple = (WORKS,)) -> Stated:  # type: ignore[type-arg]
    return standing(*what).stated(passage, extraction_of(triples, entities))


def facts(says: Stated) -> list[tuple[str, str, str]]:
    return [(each.subject, each.predicate, each.object) for each in says.triples]


class TestNames:
    def test_a_merge_renames_title_entities_and_ends_of_facts(self) -> None:
        says = stated(NEWS, MERGED, entities=("i.b.m", "Karv"))
        assert (says.topic, says.entities, facts(says)) == (
            "IBM",
            ("IBM", "Karv"),
            [("John Smith", "works at", "IBM")],
        )
        assert (says.written, says.by) == ({"ibm": ("i.b.m",)}, (1,))

    def test_merges_add_up_and_those_that_leave_a_name_as_it_is_do_not_count(self) -> None:
        blue, other = Merge(("Big Blue", "I.B.M."), "Big Blue"), Merge(("John Smith", "J. Smith"), "J. Smith")
        assert facts(stated(HR, MERGED, blue)) == [("John Smith", "works at", "Big Blue")]
        assert standing(MERGED, blue).meaning("IBM") == "Big Blue"
        assert stated(NEWS, Merge(("Big Blue", "I.B.M."), "I.B.M."), other).by == (2,)
        assert stated(NEWS, MERGED, Merge(("IBM", "I.B.M."), "I.B.M."), other).by == (3,)

    def test_facts_that_become_one_keep_the_highest_confidence_and_one_of_one_name_goes(self) -> None:
        both = (("IBM", "is", "old", RelationType.TEMPORAL, 0.4), ("I.B.M.", "is", "old", RelationType.TEMPORAL, 0.9))
        (triple,) = stated(HR, MERGED, triples=both).triples
        assert triple == Triple("IBM", "is", "old", RelationType.TEMPORAL, 0.9)
        says = stated(HR, MERGED, triples=(("IBM", "also known as", "I.B.M."),))
        assert (facts(says), says.entities) == ([], ("IBM",))

    def test_a_split_holds_in_its_source_document_or_passage_alone(self) -> None:
        for place in ["hr.csv", "staff", "p1"]:
            split = Split("john smith", (place,), "Another")
            assert facts(stated(HR, split)) == [("Another", "works at", "I.B.M.")]
            assert facts(stated(NEWS, split)) == [WORKS]

    def test_a_split_and_a_merge_may_follow_each_other(self) -> None:
        merged = Merge(("John Smith (hr.csv)", "J. Smith"), "J. Smith")
        assert facts(stated(HR, SPLIT, merged)) == [("J. Smith", "works at", "I.B.M.")]
        assert facts(stated(NEWS, SPLIT, merged)) == [WORKS]
        split = Split("I.B.M.", ("hr.csv",), "International Beer Makers")
        assert facts(stated(HR, MERGED, split)) == [("John Smith", "works at", "International Beer Makers")]
        assert stated(NEWS, MERGED, split).topic == "IBM"


class TestFacts:
    def test_a_drop_matches_normal_forms_any_relation_and_the_place_that_it_names(self) -> None:
        assert facts(stated(HR, Drop(Statement("JOHN  SMITH", "Works at", "i.b.m")))) == []
        assert facts(stated(HR, Drop(Statement(*WORKS, "SPATIAL")))) == [WORKS]
        drop = Drop(Statement(*WORKS), ("news.csv",))
        assert (facts(stated(HR, drop)), facts(stated(NEWS, drop))) == ([WORKS], [])
        untouched = stated(NEWS, SPLIT, Drop(Statement("Karv", "is", "old")))
        assert untouched == Stated.of(NEWS, extraction_of((WORKS,)))
        assert not untouched.by

    def test_a_drop_is_about_the_entities_that_it_names_before_and_after_a_merge_and_a_split(self) -> None:
        drop = Drop(Statement(*WORKS))
        for corrections in ((drop, MERGED), (MERGED, Drop(Statement("John Smith", "works at", "IBM"))), (MERGED, drop)):
            assert facts(stated(HR, *corrections)) == []
        assert facts(stated(HR, SPLIT, drop)) == [("John Smith (hr.csv)", "works at", "I.B.M.")]
        assert facts(stated(HR, SPLIT, Drop(Statement("John Smith (hr.csv)", *WORKS[1:])))) == []

    def test_a_change_is_certain_and_keeps_the_relation_unless_it_names_one(self) -> None:
        extracted = ((*WORKS, RelationType.SPATIAL, 0.5),)
        for relation, expected in {"": RelationType.SPATIAL, "TEMPORAL": RelationType.TEMPORAL}.items():
            right = Statement("John Smith", "owns", "I.B.M.", relation)
            (changed,) = stated(HR, Change(Statement(*WORKS), right), triples=extracted).triples
            assert (changed.predicate, changed.relation, changed.confidence) == ("owns", expected, 1.0)

    def test_a_pinned_fact_stands_in_its_passage_alone_under_the_names_of_the_corrections(self) -> None:
        pin = Pin(Statement("I.B.M.", "founded in", "1911", "TEMPORAL"), "p1")
        says = stated(HR, MERGED, pin, triples=())
        assert says.triples == (Triple("IBM", "founded in", "1911", RelationType.TEMPORAL, 1.0),)
        assert stated(NEWS, MERGED, pin, triples=()).triples == ()

    def test_the_later_of_a_pin_and_a_drop_has_the_last_word(self) -> None:
        fact = Statement(*WORKS, "SPATIAL")
        assert facts(stated(HR, Drop(fact), Pin(fact, "p1"), triples=())) == [WORKS]
        assert facts(stated(HR, Pin(fact, "p1"), Drop(fact), triples=())) == []


def test_names_are_kept_apart_by_hand_and_where_they_were_split() -> None:
    apart = standing(Apart(("IBM", "IBN")), SPLIT, Split("John Smith", ("p9",), "Jack")).kept_apart()
    assert apart == {
        ("ibm", "ibn"): 1,
        ("john smith", "john smith (hr.csv"): 2,
        ("jack", "john smith"): 3,
        ("jack", "john smith (hr.csv"): 3,
    }


def test_a_correction_is_read_from_json_and_what_is_none_is_refused() -> None:
    corrections: list[What] = [MERGED, SPLIT, Apart(("a", "b")), Drop(Statement(*WORKS))]
    for what in (*corrections, Pin(Statement(*WORKS, "SPATIAL"), "p1")):
        assert what_from_json(to_json(what)) == what
    fact = {"subject": "a", "predicate": "b", "object": "c"}
    wrong: list[tuple[dict[str, object], str]] = [
        ({"kind": "merge", "names": ["IBM", "ibm."], "name": "IBM"}, "one name already"),
        ({"kind": "apart", "names": ["IBM"]}, "are one"),
        ({"kind": "split", "name": "a", "places": [], "into": "b"}, "Nothing says where"),
        ({"kind": "split", "name": "a", "places": ["p"], "into": "A."}, "is the same name"),
        ({"kind": "pin", "fact": fact, "passage": "p"}, "no relation type"),
        ({"kind": "drop", "fact": {**fact, "relation": "a b"}}, "relation type of a fact"),
        ({}, "kind"),
    ]
    for value, says in wrong:
        with pytest.raises(BadInput, match=says):
            what_from_json(value)
