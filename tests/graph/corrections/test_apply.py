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

    def test_merges_add_up_whichever_name_they_name(self) -> None:
        says = stated(HR, MERGED, Merge(("Big Blue", "I.B.M."), "Big Blue"))
        assert facts(says) == [("John Smith", "works at", "Big Blue")]
        assert standing(MERGED, Merge(("Big Blue", "I.B.M."), "Big Blue")).meaning("IBM") == "Big Blue"

    def test_a_merge_that_leaves_a_name_as_it_is_does_not_count_beside_one_that_changes_the_passage(self) -> None:
        other = Merge(("John Smith", "J. Smith"), "J. Smith")
        assert stated(NEWS, Merge(("Big Blue", "I.B.M."), "I.B.M."), other).by == (2,)
        assert stated(NEWS, MERGED, Merge(("IBM", "I.B.M."), "I.B.M."), other).by == (3,)

    def test_facts_that_become_one_keep_the_highest_confidence(self) -> None:
        both = (("IBM", "is", "old", RelationType.TEMPORAL, 0.4), ("I.B.M.", "is", "old", RelationType.TEMPORAL, 0.9))
        (triple,) = stated(HR, MERGED, triples=both).triples
        assert triple == Triple("IBM", "is", "old", RelationType.TEMPORAL, 0.9)

    def test_a_fact_whose_ends_become_one_goes_and_its_name_stays(self) -> None:
        says = stated(HR, MERGED, triples=(("IBM", "also known as", "I.B.M."),))
        assert (facts(says), says.entities) == ([], ("IBM",))

    @pytest.mark.parametrize("place", ["hr.csv", "staff", "p1"])
    def test_a_split_holds_in_its_source_document_or_passage_alone(self, place: str) -> None:
        split = Split("john smith", (place,), "Another")
        assert facts(stated(HR, split)) == [("Another", "works at", "I.B.M.")]
        assert facts(stated(NEWS, split)) == [WORKS]

    def test_the_name_that_a_split_gives_can_be_merged_and_the_plain_one_stays(self) -> None:
        merged = Merge(("John Smith (hr.csv)", "J. Smith"), "J. Smith")
        assert facts(stated(HR, SPLIT, merged)) == [("J. Smith", "works at", "I.B.M.")]
        assert facts(stated(NEWS, SPLIT, merged)) == [WORKS]

    def test_a_written_name_can_be_split_after_it_was_merged(self) -> None:
        split = Split("I.B.M.", ("hr.csv",), "International Beer Makers")
        assert facts(stated(HR, MERGED, split)) == [("John Smith", "works at", "International Beer Makers")]
        assert stated(NEWS, MERGED, split).topic == "IBM"


class TestFacts:
    def test_a_drop_matches_normal_forms_and_any_relation(self) -> None:
        assert facts(stated(HR, Drop(Statement("JOHN  SMITH", "Works at", "i.b.m")))) == []
        assert facts(stated(HR, Drop(Statement(*WORKS, "SPATIAL")))) == [WORKS]

    def test_a_drop_in_a_place_leaves_the_fact_elsewhere(self) -> None:
        drop = Drop(Statement(*WORKS), ("news.csv",))
        assert (facts(stated(HR, drop)), facts(stated(NEWS, drop))) == ([WORKS], [])

    def test_a_fact_dropped_before_its_names_were_merged_stays_dropped(self) -> None:
        assert facts(stated(HR, Drop(Statement(*WORKS)), MERGED)) == []
        assert facts(stated(HR, MERGED, Drop(Statement("John Smith", "works at", "IBM")))) == []
        assert facts(stated(HR, MERGED, Drop(Statement(*WORKS)))) == []

    def test_a_drop_after_a_split_is_about_the_entity_that_it_names(self) -> None:
        assert facts(stated(HR, SPLIT, Drop(Statement(*WORKS)))) == [("John Smith (hr.csv)", "works at", "I.B.M.")]
        assert facts(stated(HR, SPLIT, Drop(Statement("John Smith (hr.csv)", *WORKS[1:])))) == []

    def test_a_change_is_certain_and_keeps_the_relation_unless_it_names_one(self) -> None:
        given = ((*WORKS, RelationType.SPATIAL, 0.5),)
        right = Statement("John Smith", "owns", "I.B.M.")
        (kept,) = stated(HR, Change(Statement(*WORKS), right), triples=given).triples
        assert (kept.predicate, kept.relation, kept.confidence) == ("owns", RelationType.SPATIAL, 1.0)
        named = Statement("John Smith", "owns", "I.B.M.", "TEMPORAL")
        (other,) = stated(HR, Change(Statement(*WORKS), named), triples=given).triples
        assert other.relation is RelationType.TEMPORAL

    def test_corrections_are_applied_one_to_what_the_other_made(self) -> None:
        right = Statement("John Smith", "owns", "I.B.M.")
        assert facts(stated(HR, Change(Statement(*WORKS), right), Drop(right), MERGED)) == []
        assert facts(stated(HR, Drop(right), Change(Statement(*WORKS), right))) == [("John Smith", "owns", "I.B.M.")]

    def test_a_pinned_fact_stands_in_its_passage_alone_under_the_names_of_the_corrections(self) -> None:
        pin = Pin(Statement("I.B.M.", "founded in", "1911", "TEMPORAL"), "p1")
        says = stated(HR, MERGED, pin, triples=())
        assert says.triples == (Triple("IBM", "founded in", "1911", RelationType.TEMPORAL, 1.0),)
        assert stated(NEWS, MERGED, pin, triples=()).triples == ()

    def test_the_later_of_a_pin_and_a_drop_has_the_last_word(self) -> None:
        fact = Statement(*WORKS, "SPATIAL")
        assert facts(stated(HR, Drop(fact), Pin(fact, "p1"), triples=())) == [WORKS]
        assert facts(stated(HR, Pin(fact, "p1"), Drop(fact), triples=())) == []


def test_what_no_correction_is_about_is_stated_as_it_was_extracted() -> None:
    untouched = stated(NEWS, SPLIT, Drop(Statement("Karv", "is", "old")), triples=(WORKS,))
    assert untouched == Stated.of(NEWS, extraction_of((WORKS,)))
    assert not untouched.by


def test_names_are_kept_apart_by_hand_and_where_they_were_split() -> None:
    apart = standing(Apart(("IBM", "IBN")), SPLIT, Split("John Smith", ("p9",), "Jack")).kept_apart()
    assert apart == {
        ("ibm", "ibn"): 1,
        ("john smith", "john smith (hr.csv"): 2,
        ("jack", "john smith"): 3,
        ("jack", "john smith (hr.csv"): 3,
    }


@pytest.mark.parametrize(
    "what", [MERGED, SPLIT, Apart(("a", "b")), Drop(Statement(*WORKS)), Pin(Statement(*WORKS, "SPATIAL"), "p1")]
)
def test_a_correction_is_the_same_after_a_way_through_json(what: What) -> None:
    assert what_from_json(to_json(what)) == what


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"kind": "merge", "names": ["IBM", "ibm."], "name": "IBM"}, "one name already"),
        ({"kind": "merge", "names": ["IBM", " "], "name": "IBM"}, "is no name"),
        ({"kind": "merge", "names": ["IBM", "a\x00b"], "name": "IBM"}, "cannot be kept"),
        ({"kind": "merge", "names": ["IBM", "x" * 1001], "name": "IBM"}, "1,000 at most"),
        ({"kind": "apart", "names": ["IBM"]}, "are one"),
        ({"kind": "split", "name": "a", "places": [], "into": "b"}, "Nothing says where"),
        ({"kind": "split", "name": "a", "places": ["p"], "into": "A."}, "is the same name"),
        (
            {"kind": "pin", "fact": {"subject": "a", "predicate": "b", "object": "c"}, "passage": "p"},
            "no relation type",
        ),
        ({"kind": "drop", "fact": {"subject": "a", "predicate": "b", "object": "c"}, "drop table": 1}, "drop table"),
        (
            {"kind": "drop", "fact": {"subject": "a", "predicate": "b", "object": "c", "relation": "SYNONYMY"}},
            "relation type of a fact",
        ),
        (
            {"kind": "drop", "fact": {"subject": "a", "predicate": "b", "object": "c", "relation": "a b"}},
            "relation type of a fact",
        ),
        ({"kind": "explode"}, "kind"),
        ({}, "kind"),
    ],
)
def test_what_is_no_correction_is_refused(value: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        what_from_json(value)
