from __future__ import annotations

from agents.offline.extractor import OfflineExtractor, acronyms, definitions
from graph.schema import Passage
from graph.sentences import sentence_spans

Parts = tuple[str, str, str]


def defined(text: str) -> list[Parts]:
    return [(each.subject, each.predicate, each.object) for each in definitions(text, sentence_spans(text))]


def test_a_sentence_that_says_what_a_term_is_in_general_defines_it() -> None:
    for text, expected in [
        ("A jumbo frame is an Ethernet frame with a large payload.", ("jumbo frame", "is", "Ethernet frame")),
        ("The term honeypot means a fake target for bots.", ("honeypot", "means", "fake target")),
        ("Hedge funds are private funds with few owners.", ("Hedge funds", "are", "private funds")),
        ("A time series is a sequence of values measured daily.", ("time series", "is", "sequence of values")),
    ]:
        assert defined(text) == [expected]


def test_other_sentences_define_nothing() -> None:
    for text in [
        "The pump is a problem.",
        "Bonds are safe.",
        "Quotas are shared between accounts.",
        "There are two kinds of bonds.",
        "One option is a loan.",
        "A rule is applied to each port.",
        "Measurements are taken every five minutes.",
        "This means a loss.",
    ]:
        assert defined(text) == []


def test_an_acronym_is_tied_to_the_words_that_begin_with_its_letters() -> None:
    for text, expected in [
        ("the maximum transmission unit (MTU) of it", [("maximum transmission unit", "MTU")]),
        ("Some exchange-traded funds (ETFs) rose.", [("exchange-traded fund", "ETF")]),
        ("the Net Investment Income Tax(NIIT)", [("Net Investment Income Tax", "NIIT")]),
        ("the usual fee (VAT) and more", []),
        ("(ABC)", []),
    ]:
        assert [(each.subject, each.object) for each in acronyms(text)] == expected


def test_terms_and_long_forms_are_entities_with_a_fact() -> None:
    text = "A jumbo frame is an Ethernet frame. It is limited by the maximum transmission unit (MTU)."
    extraction = OfflineExtractor().extract(Passage("p", "", text))
    assert {"jumbo frame", "maximum transmission unit", "MTU"} <= set(extraction.entities)
    facts = {(triple.subject, triple.predicate, triple.object) for triple in extraction.triples}
    assert facts >= {
        ("jumbo frame", "is", "Ethernet frame"),
        ("maximum transmission unit", "also known as", "MTU"),
    }
