from __future__ import annotations

from collections.abc import Sequence

from graph.schema import Passage
from workflows.runs.question_files import AskedQuestion, Gold, GoldLookup, ResolvedGold


def asking(*gold: Gold) -> AskedQuestion:
    return AskedQuestion("q", "Who?", (), gold, "", None)


def resolved(passages: Sequence[Passage], *gold: Gold) -> ResolvedGold:
    return GoldLookup(passages).resolve(asking(*gold))


NISSAN = Passage("p1", "Nissan", "Founded in 1933. It grew.")
LEAF = Passage("p2", "Leaf", "A car.")


def test_ids_keep_their_order_and_stand_once_and_unknown_ones_are_counted() -> None:
    assert resolved([NISSAN, LEAF], Gold(id="p2"), Gold(id="p1"), Gold(id="p2")) == ResolvedGold(("p2", "p1"), 0)
    assert resolved([NISSAN], Gold(id="p1"), Gold(id="p9")) == ResolvedGold(("p1", "p9"), 1)
    assert resolved([NISSAN]) == ResolvedGold((), 0)


class TestByTitleAndText:
    def test_a_passage_is_found_in_any_case_and_spacing(self) -> None:
        for gold in (
            Gold("", " nissan ", "Founded in 1933.It grew.\n"),
            Gold("", "ＮＩＳＳＡＮ", "founded  in 1933. it grew."),
            Gold("", "Nissan", ""),
            Gold("", "Nissan", "Another edition of the article."),
        ):
            assert resolved([LEAF, NISSAN], gold) == ResolvedGold(("p1",), 0), gold

    def test_gold_that_the_workspace_lacks_stays_gold_that_no_passage_is(self) -> None:
        for gold in (Gold("", "Honda", "Founded in 1948."), Gold("", "Honda", "A car."), Gold("", "", "In 1948.")):
            lacking, known = resolved([LEAF, NISSAN], gold, Gold(id="p2")).ids
            assert known == "p2"
            assert lacking.startswith("missing-")
            assert resolved([LEAF, NISSAN], gold, gold) == ResolvedGold((lacking,), 2)

    def test_a_title_that_several_passages_have_does_not_say_which_but_the_text_does(self) -> None:
        other = Passage("p3", "Nissan", "A village.")
        assert resolved([NISSAN, other], Gold("", "Nissan", "A village.")).ids == ("p3",)
        for gold in (Gold(title="Nissan"), Gold("", "Nissan", "A clan.")):
            unclear = resolved([NISSAN, other], gold)
            assert (len(unclear.ids), unclear.unresolved) == (1, 1)
            assert {"p1", "p3"}.isdisjoint(unclear.ids)

    def test_the_chunks_of_a_document_are_gold_where_they_hold_the_text_or_are_a_part_of_it(self) -> None:
        chunks = [
            Passage("c1", "Nissan", "Founded in 1933."),
            Passage("c2", "Nissan", "It  grew."),
            Passage("c3", "Nissan", "It has 130,000 employees."),
            Passage("c4", "Nissan", ""),
        ]
        assert resolved(chunks, Gold("", "Nissan", "Founded in 1933. It grew.")).ids == ("c1", "c2")
        assert resolved(chunks, Gold("", "Nissan", "130,000 employees")).ids == ("c3",)
