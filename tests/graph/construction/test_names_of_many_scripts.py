"""Names in every script: distinct entities, found by question, and unharmed by what happens to other passages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from graph.retrieve.open_index import Index, open_index
from graph.schema import entity_id
from graph.text import tokens
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace


@dataclass(frozen=True)
class Place:
    """A passage in one script: its title, another name in it, and a question that spells the title out."""

    key: str
    title: str
    other: str
    predicate: str
    question: str

    @property
    def triple(self) -> TripleParts:
        return (self.title, self.predicate, self.other)


PLACES = [
    Place("chinese", "清川市", "白石省", "位于", "清川市位于哪里？"),
    Place("near-chinese", "清山市", "黑石省", "位于", "清山市位于哪里？"),
    Place("japanese", "ノルカワ", "シマノ県", "は", "ノルカワはどこですか？"),
    Place("korean", "노르시", "서도", "있다", "노르시는 어디에 있습니까?"),
    Place("arabic", "مدينة نورا", "وادي السلام", "تقع في", "أين تقع مدينة نورا ؟"),
    Place("hebrew", "נורביל", "הגליל הרחוק", "שוכנת", "היכן נמצאת נורביל?"),
    Place("cyrillic", "Норогорск", "Белый край", "находится в", "Где находится Норогорск?"),
    Place("near-cyrillic", "Норегорск", "Чёрный край", "находится в", "Где находится Норегорск?"),
    Place("greek", "Νορόπολη", "Άσπρη Γη", "βρίσκεται", "Πού βρίσκεται η ΝΟΡΌΠΟΛΗ;"),
    Place("devanagari", "नोरपुर", "श्वेत प्रदेश", "में है", "नोरपुर कहाँ है?"),
    Place("near-devanagari", "नोरापुर", "नील प्रदेश", "में है", "नोरापुर कहाँ है?"),
    Place("thai", "นครนอร์", "จังหวัดขาว", "อยู่ใน", "นครนอร์อยู่ที่ไหน"),
    Place("accents", "Nörvík", "Hvítaland", "liegt in", "Wo liegt Nörvík?"),
    Place("no-accents", "Norvik", "Hvitaland", "liegt in", "Wo liegt Norvik?"),
]


def spelled_out(index: Index, question: str) -> set[str]:
    """The entities that a question names, as they are most often spelled."""
    return {index.graph.entity_labels[found.name] for found in index.graph.names.find(tokens(question))}


def passages_of(index: Index, name: str) -> set[str]:
    """The passages linked with the entity of a name; none where there is no such entity."""
    graph = index.graph
    entity = graph.entity_index.get(entity_id(name))
    targets = [int(t) for s, t in zip(graph.edges.source, graph.edges.target, strict=True) if s == entity]
    return {graph.passages[target - graph.n_entities].id for target in targets if target >= graph.n_entities}


def test_every_name_is_an_entity_that_its_question_finds_and_that_leads_to_its_own_passages(tmp_path: Path) -> None:
    mentions = [
        passage_of("m-chinese", "北湖", "北湖在清川市以北。"),
        passage_of("m-arabic", "بحيرة", "بحيرة قرب مدينة نورا الجديدة."),
        passage_of("m-devanagari", "झील", "झील नोरपुर के पास है।"),
        passage_of("m-cyrillic", "Озеро", "Озеро у города Норогорск."),
        passage_of("m-thai", "ทะเลสาบ", "ทะเลสาบใกล้นครนอร์มาก"),
    ]
    passages = [
        passage_of(place.key, place.title, f"{place.title} {place.predicate} {place.other}.") for place in PLACES
    ]
    publish_workspace(tmp_path, [*passages, *mentions], {place.key: [place.triple] for place in PLACES})
    index = open_index(tmp_path, HashEmbedder())
    names = {name for place in PLACES for name in (place.title, place.other)}
    assert set(index.graph.entity_labels) == names | {passage.title for passage in mentions}
    assert len({entity_id(name) for name in names}) == len(names) == 2 * len(PLACES)
    mentioned = {passage.id.removeprefix("m-"): passage.id for passage in mentions}
    for place in PLACES:
        assert spelled_out(index, place.question) == {place.title}, place
        assert passages_of(index, place.title) == {place.key, mentioned.get(place.key, place.key)}, place
        assert passages_of(index, place.other) == {place.key}, place


def test_spellings_that_differ_in_form_alone_are_one_name() -> None:
    for one, other in [
        ("ΝΟΡΌΠΟΛΗ", "Νορόπολη"),
        ("НОРОГОРСК", "Норогорск"),
        ("NÖRVÍK", "No\u0308rvi\u0301k"),
        ("ﾉﾙｶﾜ", "ノルカワ"),
        ("नोरपुर", "\u200bनोरपुर"),
        ("노르시", "\u1102\u1169\u1105\u1173\u1109\u1175"),
    ]:
        assert entity_id(one) == entity_id(other), one
