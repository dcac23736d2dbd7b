from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.offline.extractor import OfflineExtractor, acronyms, definitions
from graph.schema import Extraction, Passage, RelationType
from graph.sentences import sentence_spans
from graph.text import normalise_name

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


def test_what_a_sentence_says() -> None:
    for sentence, triple, relation in (
        ("Nissan was founded by Jun Aikawa.", ("Nissan", "founded by", "Jun Aikawa"), ATTRIBUTION),
        ("Anna Berg was born on 5 May 1933.", ("Anna Berg", "born", "5 May 1933"), TEMPORAL),
        ("Moorland is part of Iceland.", ("Moorland", "is part of", "Iceland"), HIERARCHICAL),
        ("Oslo, the capital of Norway, is old.", ("Oslo", "capital of", "Norway"), HIERARCHICAL),
        ("Anna Berg (1933–1950) was a poet.", ("Anna Berg", "dated", "1933–1950"), TEMPORAL),
        ("Anna Berg is a Norwegian poet.", ("Anna Berg", "is", "Norwegian poet"), HIERARCHICAL),
        ("Anna Berg directed Blue Tin in 1960.", ("Anna Berg", "directed in", "1960"), TEMPORAL),
        ("The Moor War caused famine.", ("Moor War", "caused", "famine"), CAUSALITY),
        ("Anna Berg's film Blue Tin is long.", ("Blue Tin", "film of", "Anna Berg"), ATTRIBUTION),
        ("Anna Berg, who was born in Oslo, sang.", ("Anna Berg", "born in", "Oslo"), SPATIAL),
        ("Blue Tin was shot by Welsh singer Mair Pugh.", ("Blue Tin", "shot by", "Mair Pugh"), ATTRIBUTION),
        ("Moor Works did not buy Blue Tin.", ("Moor Works", "not buy", "Blue Tin"), ATTRIBUTION),
        ("Anna Berg plays as a striker.", ("Anna Berg", "plays as", "striker"), ATTRIBUTION),
        ("Anna Berg is a singer from Oslo who won Blue Tin.", ("Anna Berg", "won", "Blue Tin"), ATTRIBUTION),
        ("Moor is a town in the old state of Ostra.", ("Moor", "is town in", "Ostra"), SPATIAL),
        ("Anna Berg tried very hard in vain to see Blue Tin.", ("Anna Berg", "tried to see", "Blue Tin"), ATTRIBUTION),
        (
            "Blue Tin is a hall in Graz, Styria designed by Mair Pugh.",
            ("Blue Tin", "designed by", "Mair Pugh"),
            ATTRIBUTION,
        ),
    ):
        assert typed(sentence).get(triple) is relation, sentence


def test_subjects_and_objects_are_shared_where_the_sentence_shares_them_and_no_further() -> None:
    written = "Anna Berg wrote Blue Tin, and Mair Pugh directed Red Tin."
    for text, triple in (
        ("Blue Tin is a film starring Anna Berg, Mair Pugh and Jun Aikawa.", ("Blue Tin", "starring", "Jun Aikawa")),
        (written, ("Mair Pugh", "directed", "Red Tin")),
        ("Anna Berg wrote Blue Tin and Mair Pugh left Oslo.", ("Mair Pugh", "left", "Oslo")),
        ("In 1933 Anna Berg, who was born in Oslo, founded Blue Tin.", ("Anna Berg", "founded", "1933")),
        ("Anna Berg lives in Graz, Styria.", ("Graz, Styria", "located in", "Styria")),
    ):
        assert triple in typed(text), triple
    for text, triple in (
        (written, ("Anna Berg", "directed", "Red Tin")),
        ("Anna Berg wrote Blue Tin, and Mair Pugh left Oslo.", ("Anna Berg", "wrote", "Mair Pugh")),
        ("Part of the church in Oslo and Rome was built by Jun Aikawa.", ("Rome", "built by", "Jun Aikawa")),
        ("Blue Tin is a part of Oslo's port.", ("Blue Tin", "is", "Oslo")),
    ):
        assert triple not in typed(text), triple


def test_what_may_be_said_of_something_else_is_uncertain() -> None:
    for sentence in (
        "Anna Berg met Oslo officials.",
        "Anna Berg sang, like all of the Moors that the mayor had sent to Oslo.",
    ):
        triples = [t for t in extract(sentence, "Anna Berg").triples if "Oslo" in (t.object, t.subject)]
        assert [t.confidence for t in triples] == [0.5], sentence


def test_nouns_and_adjectives_that_look_like_verbs_are_none() -> None:
    for sentence, verb in (
        ("It is the end of a play about Oslo.", "is"),
        ("Anna Berg wrote the acclaimed Blue Tin.", "wrote"),
        ("Anna Berg sang in the Welsh animated film.", "sang"),
    ):
        assert {triple.predicate.split()[0] for triple in extract(sentence, "Anna Berg").triples} == {verb}


def test_pronouns_class_nouns_and_surnames_stand_for_the_title_less_surely_than_its_name() -> None:
    for sentence in ("It was founded by Jun Aikawa.", "Founded by Jun Aikawa, it makes cars."):
        assert ("Moor Works", "founded by", "Jun Aikawa") in typed(sentence, "Moor Works (company)")
    game = "Blue Tin is a card game. The game was made by Jun Aikawa."
    for text, title, triple, sure in (
        ("Moor Works was founded by Jun Aikawa.", "Moor Works", ("Moor Works", "founded by", "Jun Aikawa"), 0.9),
        (game, "Blue Tin", ("Blue Tin", "made by", "Jun Aikawa"), 0.7),
        ("The end was made by Jun Aikawa.", "Blue Tin", ("Blue Tin", "end made by", "Jun Aikawa"), 0.5),
        ("He lived in Oslo.", "Jun Moor", ("Jun Moor", "lived in", "Oslo"), 0.7),
        ("Blue Tin is a lake. He lived in Oslo.", "Blue Tin", ("Blue Tin", "lived in", "Oslo"), 0.5),
    ):
        assert confidence(text, triple, title) == sure, text
    assert extract("It was founded by Jun Aikawa.").triples == (), "without title or name nothing is said"


def test_what_belongs_to_the_topic_is_part_of_the_predicate_and_others_are_subjects_of_their_own() -> None:
    assert ("Moor", "population peaked in", "1939") in typed("Its population peaked in 1939.", "Moor")
    text = "Blue Tin is a film. The film's director was Jun Aikawa."
    assert ("Blue Tin", "director is", "Jun Aikawa") in typed(text, "Blue Tin")
    murder = typed("The murder of Anna Berg caused the Moor War.", "Moor War")
    assert murder[("murder of Anna Berg", "caused", "Moor War")] is CAUSALITY


def test_the_longer_name_that_opens_the_text_is_the_topics_and_another_is_not() -> None:
    for opening in ("Anna Berg Moor (born 5 May 1933) is", "Anna Berg Moor is", "Anna Berg Moor, a singer, is"):
        triples = set(typed(f"{opening} a poet. Anna Berg Moor wrote Blue Tin.", "Anna Berg"))
        assert {("Anna Berg", "wrote", "Blue Tin"), ("Anna Berg", "is", "poet")} <= triples
        assert ("Anna Berg", "also known as", "Anna Berg Moor") in triples
    maria = typed("Anna Maria Berg (born 5 May 1933) is a poet. Berg wrote Blue Tin.", "Anna Berg")
    assert {("Anna Berg", "wrote", "Blue Tin"), ("Anna Berg", "born", "5 May 1933")} <= set(maria)
    assert ("Anna Berg", "also known as", "Anna Maria Berg") in maria
    another = typed("Anna Berg is a poet. Anna Berg Moor wrote Blue Tin.", "Anna Berg")
    assert ("Anna Berg", "also known as", "Anna Berg Moor") not in another


def test_names_within_names_years_of_dates_and_the_title_without_its_parenthesis_are_entities() -> None:
    for text, title, entities in (("Anna Berg was born on 5 May 1933.", "", {"Anna Berg", "5 May 1933", "1933"}),):
        assert entities <= set(extract(text, title).entities)
    assert extract("", "Blue Tin (1960 film)").entities == ("Blue Tin",)


def test_parentheses_hold_dates_native_names_and_initials() -> None:
    lived = typed("Anna Berg (5 May 1933 – 3 June 1990) was a poet.")
    assert lived[("Anna Berg", "born", "5 May 1933")] is lived[("Anna Berg", "died", "3 June 1990")] is TEMPORAL
    for native in ("日産自動車", "نيسان"):
        text = f"Moor Works (Native: {native}) is a company of many people."
        assert native in extract(text, "Moor Works").entities
        assert ("Moor Works", "also known as", native) in typed(text)
    for text, alias in (
        ("Blue Tin (Italian: La casa blu, Welsh: Tun glas) is a film.", "Tun glas"),
        ("Blue Tin (in Welsh: Tun glas or TG, lit 'tin') is a film.", "Tun glas"),
    ):
        assert ("Blue Tin", "also known as", alias) in typed(text)
    assert ("Oslo Tin Works", "also known as", "OTW") in typed("Oslo Tin Works (OTW) is a company.")
    long = "Moor Works (its last great strike had begun there in 1950) made cars."
    assert confidence(long, ("Moor Works", "dated", "1950")) == 0.5
    assert confidence("Moor Works (strike in 1950) made cars.", ("Moor Works", "dated", "1950")) == 0.9
    assert typed("Anna Berg won in Oslo (1988, 2010) twice.")[("Oslo", "dated", "2010")] is TEMPORAL
    assert typed("Moor Works (1988 – 2010) made cars.").keys() & {
        ("Moor Works", "dated", "1988 – 2010"),
        ("Moor Works", "until", "2010"),
    }
    open_ones = typed("Anna Berg wrote (in Oslo Blue Tin.") | typed("Anna Berg wrote Blue Tin (in Oslo.")
    assert ("Anna Berg", "wrote", "Blue Tin") in open_ones


def test_names_of_other_languages_that_stand_together_are_related_uncertainly_in_their_own_words() -> None:
    text = "Михаил Горбов родился в 1931 году в селе Привольное."
    born = ("Михаил Горбов", "родился в", "1931")
    assert typed(text, "Михаил Горбов")[born] is TEMPORAL
    assert confidence(text, born, "Михаил Горбов") == 0.5
    assert ("カルロス・モア", "は", "横浜") in typed("カルロス・モアは横浜に住んでいる。")
    without_capitals = extract("जवाहर नेहरू का जन्म 1889 में हुआ था।", "जवाहर नेहरू")
    assert without_capitals.entities == ("जवाहर नेहरू", "1889")


def test_a_pronoun_is_no_name_unless_it_is_the_title_and_what_it_does_is_counted() -> None:
    entered = "It was entered on 26 December 1933 as Karv Sund, a name that means"
    extraction = extract(f'{entered} "sea", and became Velm Motor in June.', title="Velm")
    named = {name for triple in extraction.triples for name in (triple.subject, triple.object)}
    assert not {"It", "it"} & {*named, *extraction.entities}
    assert extraction.notes["pronoun"] == 1
    for title in ("It", "Her", "Us"):
        text = f"{title} is a 2013 film directed by Ada Brandt. It was shot in Karv."
        extraction = extract(text, title=f"{title} (film)")
        assert title in extraction.entities
        assert {triple.subject for triple in extraction.triples} >= {title}
        assert "pronoun" not in extraction.notes


def test_what_is_left_out_is_counted_and_what_is_said_twice_keeps_its_highest_confidence() -> None:
    extraction = extract("Moor beat Oslo. Moor beat Oslo. Moor beat Moor.")
    assert extraction.notes == {"untyped": 2, "repeated": 1, "self_reference": 1}
    extraction = extract("It was founded by Jun Aikawa. Moor Works was founded by Jun Aikawa.", "Moor Works")
    assert extraction.notes == {"repeated": 1}
    assert extract("It says " + "Very " * 30).notes == {"overlong_name": 1}


def test_a_row_tells_of_its_first_cell_which_belongs_to_what_the_document_is_about() -> None:
    row = "customer: Moor Ltd; country: Corland; contact: Eva Lind, Bo Hale; until: 2026-12-31; number: 12"
    extraction = extract(row, "Moor Ltd")
    assert [*typed(row, "Moor Ltd")] == [
        ("Moor Ltd", "country", "Corland"),
        ("Moor Ltd", "contact", "Eva Lind"),
        ("Moor Ltd", "contact", "Bo Hale"),
        ("Moor Ltd", "until", "2026-12-31"),
    ]
    assert {triple.confidence for triple in extraction.triples} == {0.7}
    offer = typed("Part: Pump P-200; Price: EUR 4,800", "Offer")
    assert [*offer] == [("Offer", "Part", "Pump P-200"), ("Pump P-200", "Price", "EUR 4,800")]
    names = extract("Customer: Moor Ltd; Country of Origin: Corland", "Moor Ltd").entities
    assert set(names) == {"Moor Ltd", "Corland"}, "names of columns are no entities"
    assert typed("part: bolt; note: Bo paid. Eva came.", "bolt") == {}, "sentences in a cell"


def test_a_key_value_line_tells_of_the_topic_and_numbers_of_a_list_are_part_of_no_sentence() -> None:
    text = "- Supplier: Moor Ltd\n- **Place:** Upper Corl\n\nEva Lind signed it."
    assert [*typed(text, "Contract")][:2] == [("Contract", "Supplier", "Moor Ltd"), ("Contract", "Place", "Upper Corl")]
    assert "Supplier" not in extract(text, "Contract").entities
    numbered = typed("1. Eva Lind founded Moor Ltd\n2. Bo Hale led Corl Ltd", "Notes")
    assert {("Eva Lind", "founded", "Moor Ltd"), ("Bo Hale", "led", "Corl Ltd")} <= set(numbered)
    assert not any("2" in triple for triple in numbered)


def defined(text: str) -> list[Parts]:
    return [(each.subject, each.predicate, each.object) for each in definitions(text, sentence_spans(text))]


def test_a_sentence_that_says_what_a_term_is_in_general_defines_it_and_others_define_nothing() -> None:
    for text, expected in (
        ("A jumbo frame is an Ethernet frame with a large payload.", ("jumbo frame", "is", "Ethernet frame")),
        ("Hedge funds are private funds with few owners.", ("Hedge funds", "are", "private funds")),
        ("The term honeypot means a fake target for bots.", ("honeypot", "means", "fake target")),
        ("A time series is a sequence of values measured daily.", ("time series", "is", "sequence of values")),
    ):
        assert defined(text) == [expected]
    for text in ("The pump is a problem.", "Bonds are safe.", "This means a loss."):
        assert defined(text) == [], text


def test_an_acronym_is_tied_to_the_words_that_begin_with_its_letters() -> None:
    cases: list[tuple[str, list[tuple[str, str]]]] = [
        ("the maximum transmission unit (MTU) of it", [("maximum transmission unit", "MTU")]),
        ("Some exchange-traded funds (ETFs) rose.", [("exchange-traded fund", "ETF")]),
        ("the Net Investment Income Tax(NIIT)", [("Net Investment Income Tax", "NIIT")]),
    ]
    for text, expected in cases:
        assert [(each.subject, each.object) for each in acronyms(text)] == expected


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
