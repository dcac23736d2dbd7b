from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.offline.extractor import OFFLINE_EXTRACTOR, OfflineExtractor
from graph.schema import Extraction, Passage, RelationType
from graph.text import normalise_name
from tests.cases import mostly_slow
from tests.growth import grows_with_length_alone

HIERARCHICAL = RelationType.HIERARCHICAL
TEMPORAL = RelationType.TEMPORAL
SPATIAL = RelationType.SPATIAL
CAUSALITY = RelationType.CAUSALITY
ATTRIBUTION = RelationType.ATTRIBUTION

Parts = tuple[str, str, str]


def extract(text: str, title: str = "") -> Extraction:
    return OfflineExtractor().extract(Passage("p", title, text))


def typed(text: str, title: str = "") -> dict[Parts, RelationType]:
    return {(fact.subject, fact.predicate, fact.object): fact.relation for fact in extract(text, title).triples}


def confidence(text: str, parts: Parts, title: str = "") -> float:
    triples = extract(text, title).triples
    return next(fact.confidence for fact in triples if (fact.subject, fact.predicate, fact.object) == parts)


def test_a_founding_year_is_a_temporal_triple_without_its_preposition() -> None:
    extraction = extract("Nissan was founded in 1933.", "Nissan")
    assert extraction.entities == ("Nissan", "1933")
    assert typed("Nissan was founded in 1933.", "Nissan") == {("Nissan", "founded", "1933"): TEMPORAL}
    assert extraction.triples[0].confidence == 0.9
    assert extraction.extractor == OfflineExtractor().name == OFFLINE_EXTRACTOR


class TestPatterns:
    def test_what_a_sentence_says(self) -> None:
        for sentence, triple, relation in [
            ("Nissan was founded by Jun Aikawa.", ("Nissan", "founded by", "Jun Aikawa"), ATTRIBUTION),
            ("Anna Berg was born in Oslo.", ("Anna Berg", "born in", "Oslo"), SPATIAL),
            ("Anna Berg was born on 5 May 1933.", ("Anna Berg", "born", "5 May 1933"), TEMPORAL),
            ("Mount Moor is located in Iceland.", ("Mount Moor", "located in", "Iceland"), SPATIAL),
            ("Moorland is part of Iceland.", ("Moorland", "is part of", "Iceland"), HIERARCHICAL),
            ("Oslo is the capital of Norway.", ("Oslo", "is the capital of", "Norway"), HIERARCHICAL),
            ("Oslo, the capital of Norway, is old.", ("Oslo", "capital of", "Norway"), HIERARCHICAL),
            ("Anna Berg (1933–1950) was a poet.", ("Anna Berg", "dated", "1933–1950"), TEMPORAL),
            ("Anna Berg is a Norwegian poet.", ("Anna Berg", "is", "Norwegian poet"), HIERARCHICAL),
            ("Anna Berg directed Blue Tin in 1960.", ("Anna Berg", "directed", "Blue Tin"), ATTRIBUTION),
            ("Anna Berg directed Blue Tin in 1960.", ("Anna Berg", "directed in", "1960"), TEMPORAL),
            ("Blue Tin was published in 1951.", ("Blue Tin", "published", "1951"), TEMPORAL),
            ("The Moor War caused famine.", ("Moor War", "caused", "famine"), CAUSALITY),
            ("The Moor War led to the Oslo Treaty.", ("Moor War", "led to", "Oslo Treaty"), CAUSALITY),
            ("Anna Berg's film Blue Tin is long.", ("Blue Tin", "film of", "Anna Berg"), ATTRIBUTION),
            ("Anna Berg, who was born in Oslo, sang.", ("Anna Berg", "born in", "Oslo"), SPATIAL),
            ("Blue Tin was shot by singer Mair Pugh.", ("Blue Tin", "shot by", "Mair Pugh"), ATTRIBUTION),
            ("Blue Tin was shot by Welsh singer Mair Pugh.", ("Blue Tin", "shot by", "Mair Pugh"), ATTRIBUTION),
            ("Moor Works did not buy Blue Tin.", ("Moor Works", "not buy", "Blue Tin"), ATTRIBUTION),
            ("Anna Berg plays as a striker.", ("Anna Berg", "plays as", "striker"), ATTRIBUTION),
            ("Anna Berg worked as a nurse and baker.", ("Anna Berg", "worked as", "baker"), ATTRIBUTION),
            ("Moor is a town in the old state of Ostra.", ("Moor", "is town in", "Ostra"), SPATIAL),
            ("Moor lies 5 km west of Oslo.", ("Moor", "west of", "Oslo"), SPATIAL),
            (
                "Anna Berg tried very hard in vain to see Blue Tin.",
                ("Anna Berg", "tried to see", "Blue Tin"),
                ATTRIBUTION,
            ),
            (
                "Blue Tin is a hall in Graz, Styria designed by Mair Pugh.",
                ("Blue Tin", "designed by", "Mair Pugh"),
                ATTRIBUTION,
            ),
            ("Anna Berg is a singer from Oslo who won Blue Tin.", ("Anna Berg", "won", "Blue Tin"), ATTRIBUTION),
        ]:
            assert typed(sentence).get(triple) is relation

    def test_a_list_shares_the_verb(self) -> None:
        assert {
            ("Blue Tin", "starring", "Anna Berg"),
            ("Blue Tin", "starring", "Mair Pugh"),
            ("Blue Tin", "starring", "Jun Aikawa"),
        } <= set(typed("Blue Tin is a film starring Anna Berg, Mair Pugh and Jun Aikawa."))

    def test_a_second_clause_has_its_own_subject(self) -> None:
        triples = set(typed("Anna Berg wrote Blue Tin, and Mair Pugh directed Red Tin."))
        assert ("Mair Pugh", "directed", "Red Tin") in triples
        assert ("Anna Berg", "directed", "Red Tin") not in triples

    def test_the_subject_of_the_next_clause_is_no_object_of_this_one(self) -> None:
        assert ("Anna Berg", "wrote", "Mair Pugh") not in typed("Anna Berg wrote Blue Tin, and Mair Pugh left Oslo.")
        assert ("Anna Berg", "met", "Mair Pugh") in typed("Anna Berg met Jun Moor, Tom Oak and Mair Pugh.")

    def test_what_may_be_said_of_something_else_is_uncertain(self) -> None:
        for sentence in [
            "Anna Berg met Oslo officials.",
            "Anna Berg grew famous after they had left Oslo.",
            "Anna Berg sang, like all of the Moors that the mayor had sent to Oslo.",
            "Anna Berg left between Oslo and Rome.",
            "Besides Oslo, she saw Rome.",
        ]:
            found = [t for t in extract(sentence, "Anna Berg").triples if "Oslo" in (t.object, t.subject)]
            assert [t.confidence for t in found] == [0.5]

    def test_nouns_and_adjectives_that_look_like_verbs_are_none(self) -> None:
        for sentence, expected in [
            ("It is the end of a play about Oslo.", {"is"}),
            ("Anna Berg wrote the acclaimed Blue Tin.", {"wrote"}),
            ("Anna Berg saw the cut at Blue Tin.", {"saw"}),
            ("Anna Berg sang in the Welsh animated film.", {"sang"}),
        ]:
            assert {triple.predicate.split()[0] for triple in extract(sentence, "Anna Berg").triples} == expected

    def test_the_second_name_after_a_preposition_is_no_subject(self) -> None:
        text = "Part of the church in Oslo and Rome was built by Jun Aikawa."
        assert ("Rome", "built by", "Jun Aikawa") not in typed(text, "Moor")
        assert ("Mair Pugh", "left", "Oslo") in typed("Anna Berg wrote Blue Tin and Mair Pugh left Oslo.")

    def test_the_class_does_not_reach_into_what_a_name_owns(self) -> None:
        assert ("Blue Tin", "is", "Oslo") not in typed("Blue Tin is a part of Oslo's port.")

    def test_an_adjunct_at_the_front_belongs_to_the_verb(self) -> None:
        assert ("Anna Berg", "founded", "1933") in typed("In 1933, Anna Berg founded Blue Tin.")
        assert typed("In 1933 Anna Berg, who was born in Oslo, founded Blue Tin.")[
            ("Anna Berg", "founded", "1933")
        ] is (TEMPORAL)

    def test_a_place_within_a_place(self) -> None:
        text = "Anna Berg lives in Graz, Styria."
        assert ("Anna Berg", "lives in", "Graz, Styria") in typed(text)
        assert ("Graz, Styria", "located in", "Styria") in typed(text)
        assert ("Anna Berg", "lives in", "Graz") in typed("Anna Berg lives in Graz, Oslo and Rome.")

    def test_negation_stays_in_the_predicate(self) -> None:
        assert ("Blue Tin", "not written by", "Anna Berg") in typed("Blue Tin was not written by Anna Berg.")


class TestTopic:
    def test_pronouns_and_class_nouns_stand_for_the_title(self) -> None:
        for sentence in [
            "It was founded by Jun Aikawa.",
            "The company was founded by Jun Aikawa.",
            "They were founded by Jun Aikawa.",
            "Founded by Jun Aikawa, it makes cars.",
        ]:
            assert ("Moor Works", "founded by", "Jun Aikawa") in typed(sentence, "Moor Works (company)")

    def test_the_noun_that_defines_the_title_stands_for_it_later(self) -> None:
        text = "Blue Tin is a card game. The game was made by Jun Aikawa."
        assert confidence(text, ("Blue Tin", "made by", "Jun Aikawa"), "Blue Tin") == 0.7
        assert (
            confidence("The end was made by Jun Aikawa.", ("Blue Tin", "end made by", "Jun Aikawa"), "Blue Tin") == 0.5
        )

    def test_what_belongs_to_the_topic_is_part_of_the_predicate(self) -> None:
        assert ("Moor", "population peaked in", "1939") in typed("Its population peaked in 1939.", "Moor")
        text = "Blue Tin is a film. The film's director was Jun Aikawa."
        assert ("Blue Tin", "director is", "Jun Aikawa") in typed(text, "Blue Tin")
        assert confidence("His widow, Mair Pugh, lives in Oslo.", ("Jun Moor", "lives in", "Oslo"), "Jun Moor") == 0.5

    def test_he_and_she_are_not_a_thing(self) -> None:
        text = "Blue Tin is a lake. He lived in Oslo."
        assert confidence(text, ("Blue Tin", "lived in", "Oslo"), "Blue Tin") == 0.5
        assert confidence("He lived in Oslo.", ("Jun Moor", "lived in", "Oslo"), "Jun Moor") == 0.7

    def test_a_surname_and_a_full_name_stand_for_a_person(self) -> None:
        text = "Anna Maria Berg (born 5 May 1933) is a poet. Berg wrote Blue Tin."
        triples = typed(text, "Anna Berg")
        assert ("Anna Berg", "wrote", "Blue Tin") in triples
        assert ("Anna Berg", "born", "5 May 1933") in triples
        assert ("Anna Berg", "also known as", "Anna Maria Berg") in triples

    def test_the_longer_name_that_opens_the_text_is_the_topics(self) -> None:
        for opening in ["Anna Berg Moor (born 5 May 1933) is", "Anna Berg Moor is", "Anna Berg Moor, a singer, is"]:
            triples = typed(f"{opening} a poet. Anna Berg Moor wrote Blue Tin.", "Anna Berg")
            assert {
                ("Anna Berg", "wrote", "Blue Tin"),
                ("Anna Berg", "is", "poet"),
                ("Anna Berg", "also known as", "Anna Berg Moor"),
            } <= set(triples)

    def test_another_longer_name_is_not(self) -> None:
        triples = typed("Anna Berg is a poet. Anna Berg Moor wrote Blue Tin.", "Anna Berg")
        assert ("Anna Berg", "also known as", "Anna Berg Moor") not in triples

    def test_a_place_within_a_longer_name_does_not(self) -> None:
        assert ("Bonn", "is", "old city") in typed("Bonn is an old city.", "University of Bonn")

    def test_a_named_subject_is_surer_than_a_pronoun(self) -> None:
        parts = ("Moor Works", "founded by", "Jun Aikawa")
        assert confidence("Moor Works was founded by Jun Aikawa.", parts, "Moor Works") == 0.9
        assert confidence("It was founded by Jun Aikawa.", parts, "Moor Works") == 0.7

    def test_what_something_did_to_the_topic_has_its_own_subject(self) -> None:
        text = "The murder of Anna Berg caused the Moor War."
        assert typed(text, "Moor War")[("murder of Anna Berg", "caused", "Moor War")] is CAUSALITY

    def test_without_title_or_name_nothing_is_said(self) -> None:
        assert extract("It was founded by Jun Aikawa.").triples == ()

    def test_names_within_the_title_and_within_names_are_entities(self) -> None:
        assert {"Norway", "Moor War"} <= set(extract("", "History of Norway during the Moor War").entities)
        assert {"Supreme Court of Norway", "Norway"} <= set(extract("She led the Supreme Court of Norway.").entities)

    def test_the_year_of_a_date_is_an_entity_too(self) -> None:
        assert extract("Anna Berg was born on 5 May 1933.").entities == ("Anna Berg", "5 May 1933", "1933")

    def test_the_title_without_its_parenthesis_is_an_entity(self) -> None:
        assert extract("", "Blue Tin (1960 film)").entities == ("Blue Tin",)
        assert extract("", "").entities == ()


class TestParentheses:
    def test_life_dates(self) -> None:
        triples = typed("Anna Berg (5 May 1933 – 3 June 1990) was a poet.")
        assert triples[("Anna Berg", "born", "5 May 1933")] is TEMPORAL
        assert triples[("Anna Berg", "died", "3 June 1990")] is TEMPORAL

    def test_native_names(self) -> None:
        for native in ["日産自動車", "Ниссан", "निसान", "نيسان"]:
            extraction = extract(f"Moor Works (Native: {native}) is a company of many people.", "Moor Works")
            assert native in extraction.entities
            assert ("Moor Works", "also known as", native) in typed(f"Moor Works (Native: {native}) is a company.")

    def test_native_names_keep_their_small_letters(self) -> None:
        text = "Blue Tin (Italian: La casa blu, Welsh: Tun glas) is a film."
        assert ("Blue Tin", "also known as", "La casa blu") in typed(text)
        assert ("Blue Tin", "also known as", "Tun glas") in typed(text)

    def test_a_native_name_ends_before_what_is_said_of_it(self) -> None:
        text = "Blue Tin (in Welsh: Tun glas or TG, lit 'tin') is a film."
        assert ("Blue Tin", "also known as", "Tun glas") in typed(text)

    def test_a_date_in_a_long_parenthesis_is_uncertain(self) -> None:
        text = "Moor Works (its last great strike had begun there in 1950) made cars."
        assert confidence(text, ("Moor Works", "dated", "1950")) == 0.5
        assert confidence("Moor Works (strike in 1950) made cars.", ("Moor Works", "dated", "1950")) == 0.9

    def test_years_in_a_list_end_nothing(self) -> None:
        assert typed("Anna Berg won in Oslo (1988, 2010) twice.")[("Oslo", "dated", "2010")] is TEMPORAL
        assert typed("Moor Works (1988 – 2010) made cars.").keys() & {
            ("Moor Works", "dated", "1988 – 2010"),
            ("Moor Works", "until", "2010"),
        }

    def test_initials(self) -> None:
        assert ("Oslo Tin Works", "also known as", "OTW") in typed("Oslo Tin Works (OTW) is a company.")

    def test_an_open_parenthesis_swallows_nothing(self) -> None:
        assert ("Anna Berg", "wrote", "Blue Tin") in typed("Anna Berg wrote (in Oslo Blue Tin.") | typed(
            "Anna Berg wrote Blue Tin (in Oslo."
        )


class TestOtherLanguages:
    def test_names_that_stand_together_are_related_uncertainly_in_their_own_words(self) -> None:
        text = "Михаил Горбов родился в 1931 году в селе Привольное."
        triples = typed(text, "Михаил Горбов")
        assert triples[("Михаил Горбов", "родился в", "1931")] is TEMPORAL
        assert confidence(text, ("Михаил Горбов", "родился в", "1931"), "Михаил Горбов") == 0.5

    def test_text_without_spaces(self) -> None:
        assert ("カルロス・モア", "は", "横浜") in typed("カルロス・モアは横浜に住んでいる。")

    def test_a_script_without_capitals_still_gives_title_and_years(self) -> None:
        entities = extract("जवाहर नेहरू का जन्म 1889 में हुआ था।", "जवाहर नेहरू").entities
        assert entities == ("जवाहर नेहरू", "1889")


class TestNotes:
    def test_a_pronoun_is_nobodys_name_and_what_it_does_is_counted(self) -> None:
        text = (
            'It was entered on 26 December 1933 as Karv Sund, a name that means "sea", and became Velm Motor in June.'
        )
        extraction = extract(text, title="Velm")
        named = {name for triple in extraction.triples for name in (triple.subject, triple.object)}
        assert not {"It", "it"} & {*named, *extraction.entities}
        assert extraction.notes["pronoun"] == 1

    def test_a_title_that_is_a_pronoun_is_a_name_with_its_facts(self) -> None:
        for title in ["It", "Her", "Us"]:
            extraction = extract(
                f"{title} is a 2013 film directed by Ada Brandt. It was shot in Karv.", title=f"{title} (film)"
            )
            assert title in extraction.entities
            assert {triple.subject for triple in extraction.triples} >= {title}
            assert "pronoun" not in extraction.notes

    def test_untyped_repeated_and_self_references_are_counted(self) -> None:
        extraction = extract("Moor beat Oslo. Moor beat Oslo. Moor beat Moor.")
        assert extraction.notes == {"untyped": 2, "repeated": 1, "self_reference": 1}

    def test_what_is_said_twice_keeps_its_highest_confidence(self) -> None:
        text = "It was founded by Jun Aikawa. Moor Works was founded by Jun Aikawa."
        extraction = extract(text, "Moor Works")
        assert [triple.confidence for triple in extraction.triples] == [0.9]
        assert extraction.notes == {"repeated": 1}

    def test_an_overlong_run_of_capitals_is_counted(self) -> None:
        assert extract("It says " + "Very " * 30).notes == {"overlong_name": 1}


WORDS = (
    "Anna Berg Oslo It The the was is founded by in of , . ( ) ; : ' \" 's 1933 5 and who a 日産 カルロス Горбов नेहरू "
    "caused led to located born – May km $3 U.S. \n\n"
)
words = st.sampled_from(WORDS.split(" "))
wild_text = st.one_of(st.text(max_size=150), st.lists(words, max_size=40).map(" ".join))


@given(wild_text, st.one_of(st.text(max_size=20), st.just("Anna Berg (poet)")))
@settings(max_examples=120, deadline=None)
def test_any_text_gives_triples_of_listed_entities_once_each_and_always_the_same(text: str, title: str) -> None:
    extraction = extract(text, title)
    listed = {normalise_name(entity) for entity in extraction.entities}
    assert len(listed) == len(extraction.entities)
    keys = set()
    for triple in extraction.triples:
        subject, predicate, object_ = map(normalise_name, (triple.subject, triple.predicate, triple.object))
        assert subject in listed or object_ in listed
        assert subject != object_
        assert subject
        assert predicate
        assert object_
        assert 0.5 <= triple.confidence <= 1
        keys.add((subject, predicate, object_, triple.relation))
    assert len(keys) == len(extraction.triples)
    assert extraction == extract(text, title)


REPEATED = [
    "A ",
    "Ab ",
    "a, the ",
    "(",
    "a (b) ",
    "In Ab ",
    "is in Ab ",
    "in Ab, ",
    "Ab's ",
    "1,",
    "日",
    '"',
    '"A ',
    "Ab noun ",
    "Ab of ",
    "'A ",
    "``A ''",
    "1 ab ",
    "1.",
    "1-",
    "May 1 and ",
    "population 111",
    "Dr. Ab ",
    "Ab and (AB) ",
    "(Ab: ",
    "as a ab ",
    "not ",
    "'s ab ",
]


@pytest.mark.parametrize("unit", mostly_slow(REPEATED, 6))
def test_time_grows_with_the_length_alone(unit: str) -> None:
    assert grows_with_length_alone(lambda length: extract(unit * (length // len(unit)), "T"), 3_000)
