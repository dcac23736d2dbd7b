from __future__ import annotations

from agents.offline.extractor import OfflineExtractor
from graph.schema import Extraction, Passage
from tests.growth import grows_with_length_alone


def extracted(text: str, title: str = "") -> Extraction:
    return OfflineExtractor().extract(Passage("p", title, text, "a.csv", {}))


def told(found: Extraction) -> list[tuple[str, str, str]]:
    return [(triple.subject, triple.predicate, triple.object) for triple in found.triples]


class TestRows:
    TEXT = "customer: Moor Ltd; country: Corland; contact: Eva Lind, Bo Hale; until: 2026-12-31; number: 12"

    def test_a_row_tells_of_its_first_cell(self) -> None:
        found = extracted(self.TEXT, "Moor Ltd")
        assert told(found) == [
            ("Moor Ltd", "country", "Corland"),
            ("Moor Ltd", "contact", "Eva Lind"),
            ("Moor Ltd", "contact", "Bo Hale"),
            ("Moor Ltd", "until", "2026-12-31"),
        ]
        assert {triple.confidence for triple in found.triples} == {0.7}

    def test_the_names_of_columns_are_no_entities(self) -> None:
        found = extracted("Customer: Moor Ltd; Country of Origin: Corland", "Moor Ltd")
        assert set(found.entities) == {"Moor Ltd", "Corland"}

    def test_a_row_within_a_document_belongs_to_what_that_is_about(self) -> None:
        found = extracted("Part: Pump P-200; Price: EUR 4,800", "Offer")
        assert told(found) == [("Offer", "Part", "Pump P-200"), ("Pump P-200", "Price", "EUR 4,800")]

    def test_sentences_in_a_cell_say_nothing_of_the_row(self) -> None:
        assert told(extracted("part: bolt; note: Bo paid. Eva came.", "bolt")) == []


def test_a_key_value_line_tells_of_the_topic() -> None:
    found = extracted("- Supplier: Moor Ltd\n- **Place:** Upper Corl\n\nEva Lind signed it.", "Contract")
    assert told(found)[:2] == [("Contract", "Supplier", "Moor Ltd"), ("Contract", "Place", "Upper Corl")]
    assert "Supplier" not in found.entities


def test_without_a_topic_a_line_tells_nothing_and_a_row_of_its_first_cell() -> None:
    assert told(extracted("Supplier: Moor Ltd")) == []
    assert told(extracted("supplier: Moor Ltd; country: Corland")) == [("Moor Ltd", "country", "Corland")]


def test_numbers_of_a_list_are_part_of_no_sentence() -> None:
    found = extracted("1. Eva Lind founded Moor Ltd\n2. Bo Hale led Corl Ltd", "Notes")
    assert ("Eva Lind", "founded", "Moor Ltd") in told(found)
    assert ("Bo Hale", "led", "Corl Ltd") in told(found)
    assert not any("2" in statement for statement in told(found))


def test_a_long_table_takes_no_longer_than_its_length_explains() -> None:
    def work(length: int) -> None:
        extracted("part: Bolt A, Nut B; made by: Moor Ltd, Corl\n" * length, "Offer")

    assert grows_with_length_alone(work, 20)
