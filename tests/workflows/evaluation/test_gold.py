from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from graph.schema import Passage
from graph.sources.documents import read_documents
from workflows.runs.question_files import AskedQuestion, Gold, GoldLookup, ResolvedGold, read_questions


def asking(*gold: Gold) -> AskedQuestion:
    return AskedQuestion("q", "Who?", (), gold, "", None)


def resolved(passages: Sequence[Passage], *gold: Gold) -> ResolvedGold:
    return GoldLookup(passages).resolve(asking(*gold))


NISSAN = Passage("p1", "Nissan", "Founded in 1933. It grew.")
LEAF = Passage("p2", "Leaf", "A car.")


class TestById:
    def test_ids_keep_their_order_and_stand_once(self) -> None:
        found = resolved([NISSAN, LEAF], Gold(id="p2"), Gold(id="p1"), Gold(id="p2"))
        assert found == ResolvedGold(("p2", "p1"), 0)

    def test_an_id_that_the_workspace_lacks_stays_gold_and_is_counted(self) -> None:
        assert resolved([NISSAN], Gold(id="p1"), Gold(id="p9")) == ResolvedGold(("p1", "p9"), 1)
        assert resolved([NISSAN], Gold(id="p9")) == ResolvedGold(("p9",), 1)

    def test_a_question_without_gold_has_none(self) -> None:
        assert resolved([NISSAN]) == ResolvedGold((), 0)


class TestByTitleAndText:
    @pytest.mark.parametrize(
        "gold",
        [
            Gold("", "Nissan", "Founded in 1933. It grew."),
            Gold("", " nissan ", "Founded in 1933.It grew.\n"),
            Gold("", "ＮＩＳＳＡＮ", "founded  in 1933. it grew."),
            Gold("", "", "Founded in 1933. It grew."),
            Gold("", "Nissan", ""),
            Gold("", "Nissan", "Another edition of the article."),
        ],
    )
    def test_a_passage_is_found_whatever_its_case_and_spaces(self, gold: Gold) -> None:
        assert resolved([LEAF, NISSAN], gold) == ResolvedGold(("p1",), 0)

    @pytest.mark.parametrize(
        "gold", [Gold("", "Honda", "Founded in 1948."), Gold("", "Honda", "A car."), Gold("", "", "In 1948.")]
    )
    def test_what_the_workspace_lacks_stays_gold_that_no_passage_is(self, gold: Gold) -> None:
        lacking, found = resolved([LEAF, NISSAN], gold, Gold(id="p2")).ids
        assert found == "p2"
        assert lacking.startswith("missing-")
        assert resolved([LEAF, NISSAN], gold, gold) == ResolvedGold((lacking,), 2)
        assert resolved([LEAF, NISSAN], gold, Gold(id="p9")) == ResolvedGold((lacking, "p9"), 2)

    def test_among_passages_of_one_title_the_text_decides(self) -> None:
        other = Passage("p3", "Nissan", "A village.")
        assert resolved([NISSAN, other], Gold("", "Nissan", "A village.")).ids == ("p3",)

    def test_among_passages_of_one_text_the_title_decides(self) -> None:
        other = Passage("p3", "Datsun", NISSAN.text)
        assert resolved([NISSAN, other], Gold("", "Datsun", NISSAN.text)).ids == ("p3",)
        assert resolved([NISSAN, other], Gold("", "", NISSAN.text)).ids == ("p1", "p3")

    def test_a_title_that_several_passages_have_does_not_say_which(self) -> None:
        other = Passage("p3", "Nissan", "A village.")
        for gold in (Gold(title="Nissan"), Gold("", "Nissan", "A clan.")):
            found = resolved([NISSAN, other], gold)
            assert (len(found.ids), found.unresolved) == (1, 1)
            assert {"p1", "p3"}.isdisjoint(found.ids)

    def test_the_chunks_of_a_document_are_gold_where_they_hold_the_text_or_are_a_part_of_it(self) -> None:
        chunks = [
            Passage("c1", "Nissan", "Founded in 1933."),
            Passage("c2", "Nissan", "It  grew."),
            Passage("c3", "Nissan", "It has 130,000 employees."),
            Passage("c4", "Nissan", ""),
        ]
        assert resolved(chunks, Gold("", "Nissan", "Founded in 1933. It grew.")).ids == ("c1", "c2")
        assert resolved(chunks, Gold("", "Nissan", "130,000 employees")).ids == ("c3",)

    def test_passages_without_title_are_not_one_document(self) -> None:
        found = resolved([Passage("p1", "", "In 1933."), LEAF], Gold("", "", "In 1948."))
        assert found.unresolved == 1
        assert "p1" not in found.ids


class CountedPassages(list[Passage]):
    reads = 0

    def __iter__(self) -> Iterator[Passage]:
        self.reads += 1
        return super().__iter__()


def test_texts_are_looked_through_once_and_only_where_gold_is_named_by_them() -> None:
    passages = CountedPassages([NISSAN, LEAF])
    lookup = GoldLookup(passages)
    lookup.resolve(asking(Gold(id="p1")))
    assert passages.reads == 1
    lookup.resolve(asking(Gold(title="Leaf")))
    lookup.resolve(asking(Gold(text="A car.")))
    assert passages.reads == 2


@pytest.mark.parametrize("glue", ["", " "])
def test_a_question_file_finds_the_passages_that_were_indexed_from_it(tmp_path: Path, glue: str) -> None:
    context = [["Nissan", ["Founded in 1933.", f"{glue}It grew."]], ["Leaf", ["A car."]], ["Renault", ["In France."]]]
    entry = {"_id": "a", "question": "Who?", "context": context, "supporting_facts": [["Leaf", 0], ["Nissan", 1]]}
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([entry]))
    passages = list(read_documents([path]).passages.values())
    [question] = read_questions(path)
    found = GoldLookup(passages).resolve(question)
    titles = {passage.id: passage.title for passage in passages}
    assert [titles[key] for key in found.ids] == ["Leaf", "Nissan"]
    assert found.unresolved == 0
