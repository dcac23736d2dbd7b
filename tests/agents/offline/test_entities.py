from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agents.offline.entities import SpanKind, governed_name, scan_entities, title_names


def found(text: str, kind: SpanKind, title: str = "") -> list[str]:
    return [span.text for span in scan_entities(text, title).spans if span.kind is kind]


def names(text: str, title: str = "") -> list[str]:
    return found(text, SpanKind.NAME, title)


class TestNames:
    def test_capitalised_runs_with_connectors_are_one_name(self) -> None:
        for text, expected in [
            ("They met Anna Berg in Oslo.", ["Anna Berg", "Oslo"]),
            ("He saw Ludwig van Moor and Ana de la Cruz.", ["Ludwig van Moor", "Ana de la Cruz"]),
            ("It is in the Kingdom of the Isles.", ["Kingdom of the Isles"]),
            ("The Supreme Court of India sat.", ["Supreme Court of India"]),
            ("She left singer Mair Pugh of Blue Tin.", ["Mair Pugh", "Blue Tin"]),
            ("He read J. R. Moor and St. Clair.", ["J. R. Moor", "St. Clair"]),
            ("It landed on Ranger 7 in the U.S. today.", ["Ranger 7", "U.S."]),
            ("She works at Moor & Berg now.", ["Moor & Berg"]),
            ("It was sold by Hank Moor, Jr. in Rome.", ["Hank Moor, Jr", "Rome"]),
            ("He met Jung Eun-ji and O'Brien.", ["Jung Eun-ji", "O'Brien"]),
            ("They saw Anna's house.", ["Anna"]),
            ("It is at Moor–Berg College on the Oslo–Rome line, 9–1–1.", ["Moor–Berg College", "Oslo–Rome"]),
            ("They saw the Democratic Senator Anna Berg.", ["Anna Berg"]),
            ("They met Dr. Jun C. Aikawa and Sir Hank Moor.", ["Jun C. Aikawa", "Hank Moor"]),
            ("They met President Moor, then Prime Minister Anna Berg.", ["President Moor", "Anna Berg"]),
            ("It is near General Hospital Oslo Park.", ["General Hospital Oslo Park"]),
            ("It is at the 14th Moor Fair of Oslo.", ["14th Moor Fair", "Oslo"]),
            ("It is the 7th President of Norway.", ["President of Norway"]),
            ("She led the Ministry of Culture and Science.", ["Ministry of Culture and Science"]),
            ("She left Oslo for New Bergen City.", ["Oslo", "New Bergen City"]),
            ("She joined the Institute for Moor Studies.", ["Institute for Moor Studies"]),
        ]:
            assert names(text) == expected

    def test_the_first_word_of_a_sentence_needs_more_than_its_capital(self) -> None:
        for text, expected in [
            ("However, he left.", []),
            ("Originally it was built there.", []),
            ("Founded there, it grew.", []),
            ("Dogs bark. The dogs sleep.", []),
            ("Berg left.", ["Berg"]),
            ("It saw Berg. Berg left. The berg melted.", ["Berg", "Berg"]),
            ("In Oslo it rains.", ["Oslo"]),
            ("The Beatles sang.", ["Beatles"]),
        ]:
            assert names(text) == expected

    def test_a_verb_that_tells_what_to_do_is_no_name(self) -> None:
        for text in [
            "Enter the address.",
            "Use your own key.",
            "It stops. Create a copy.",
            "Select it now.",
            "See all parts.",
        ]:
            assert names(text) == []

    def test_no_part_of_an_address_is_a_name(self) -> None:
        for text in ["see https://cloud.Moor.com/Docs/Oslo now.", "write to Anna.Berg@moor.org soon."]:
            assert scan_entities(text).spans == ()

    def test_an_article_stays_where_the_title_has_it_or_a_sentence_goes_on_with_it(self) -> None:
        assert names("The Blue Tin Band sang.", title="The Blue Tin") == ["The Blue Tin", "Band"]
        assert names("They saw The Blue Tin.") == ["The Blue Tin"]

    def test_an_acronym_tells_how_far_the_name_before_it_reaches(self) -> None:
        for text, expected in [
            ("the Moor Guild for Trade and Tin (MGTT)", ["Moor Guild for Trade and Tin", "MGTT"]),
            ("the Moor Guild for Trade and Tin (OSLO)", ["Moor Guild", "Trade", "Tin", "OSLO"]),
            ("in Oslo and Bergen (XY)", ["Oslo", "Bergen", "XY"]),
        ]:
            assert names(f"They saw {text} there.") == expected

    def test_the_title_is_found_in_small_letters(self) -> None:
        assert names("A sea of grass is rare.", title="sea of grass") == ["sea of grass"]
        assert names("A seaside of grass.", title="sea") == []

    def test_a_year_belongs_to_an_event_after_an_article_and_not_after_in(self) -> None:
        assert names("She won at the 1998 Winter Fair.") == ["1998 Winter Fair"]
        assert names("It was in 1998 Winter Fair moved.") == ["Winter Fair"]

    def test_a_nickname_in_quotes_joins_its_name(self) -> None:
        assert names('They met Robert "Bob" Moor.') == ['Robert "Bob" Moor']

    def test_every_script_with_capitals_has_names(self) -> None:
        for text, expected in [
            ("Михаил Горбов родился в селе Привольное.", ["Михаил Горбов", "Привольное"]),
            ("Η Άννα ζει στην Αθήνα.", ["Άννα", "Αθήνα"]),
            ("Աննան ապրում է Երևանում։", ["Աննան", "Երևանում"]),
        ]:
            assert names(text) == expected

    def test_a_long_run_of_capitals_is_counted_and_no_name(self) -> None:
        scan = scan_entities("It says " + "Very " * 30 + "here.")
        assert scan.overlong_names == 1
        assert scan.spans == ()

    def test_days_months_and_letters_are_no_names(self) -> None:
        for text in ["He left on Monday.", "I am here.", "It was in May.", "A b C."]:
            assert [name for name in names(text) if len(name) > 1] == []


class TestOtherEntities:
    def test_identifiers_and_code_in_backticks(self) -> None:
        for text, expected in [
            ("Set MAX_RETRIES to 3, or job_mode.", ["MAX_RETRIES", "job_mode"]),
            ("Run `kubectl apply -f x.yaml` first.", ["kubectl apply -f x.yaml"]),
            ("Snake _case_ and ``` fences are none.", []),
        ]:
            assert found(text, SpanKind.CODE) == expected

    def test_dates_and_quantities(self) -> None:
        text = "In 1933 it had 1,045 rooms, 12 cars, 5 km of road, $3.5 million and 40 % more; on 5 May 1934 two left."
        assert found(text, SpanKind.DATE) == ["1933", "5 May 1934"]
        assert found(text, SpanKind.QUANTITY) == ["1,045 rooms", "12 cars", "5 km", "$3.5 million", "40 %"]

    def test_numbers_with_what_they_count(self) -> None:
        for text, expected in [
            ("It has 4 electoral districts.", ["4 electoral districts"]),
            ("It made A$20 million and 18.9 million barrels.", ["A$20 million", "18.9 million barrels"]),
            ("It is sold from 7 a.m. to 10:30 pm.", ["7 a.m.", "10:30 pm"]),
            ("The population was 806, the rate 5.1.", ["806", "5.1"]),
            ("The engine has 1,340 cc and 12 °C.", ["1,340 cc", "12 °C"]),
            ("It is among the 12 most populous.", []),
            ("It lost $3,500, then all.", ["$3,500"]),
        ]:
            assert found(text, SpanKind.QUANTITY) == expected

    def test_bare_numbers_are_no_quantities(self) -> None:
        for text in ["He has 7.", "In 1933 films began.", "room 12 was here"]:
            assert found(text, SpanKind.QUANTITY) == []

    def test_quoted_titles(self) -> None:
        for text in [
            'She sang "Blue Tin" there.',
            "She sang “Blue Tin” there.",
            "Elle chante «Blue Tin» ici.",
            '"" "Blue Tin"',
            "She sang ‘Blue Tin’ there.",
            "She sang 'Blue Tin' there.",
            "She sang ``Blue Tin '' there.",
        ]:
            assert found(text, SpanKind.QUOTED) == ["Blue Tin"]

    def test_quoted_speech_is_no_title(self) -> None:
        assert found('He said "I really never wanted this to happen again".', SpanKind.QUOTED) == []
        assert found('He said "yes".', SpanKind.QUOTED) == []
        assert found("उसने कहा “मैं कल सुबह बहुत जल्दी यहाँ से चला गया था”।", SpanKind.QUOTED) == []

    def test_an_apostrophe_is_no_quotation_mark(self) -> None:
        assert found("The Bergs' house and Anna's 'barn' stood in the Moors' land.", SpanKind.QUOTED) == []
        assert found("She sang 'Anna's Tin' there.", SpanKind.QUOTED) == ["Anna's Tin"]

    def test_quoted_names_in_scripts_without_capitals(self) -> None:
        for text in ["यह पुस्तक “नील नदी” है।", "كتب الرواية «نهر النور» هناك.", "הספר „נהר האור” כאן."]:
            assert len(found(text, SpanKind.QUOTED)) == 1

    def test_names_in_another_script_within_latin_text(self) -> None:
        for native in ["日産自動車", "Москва", "नेहरू जी", "القاهرة", "서울", "กรุงเทพ"]:
            assert found(f"It is also called ({native}) by many people there.", SpanKind.FOREIGN) == [native]

    def test_katakana_and_han_runs_in_japanese_and_chinese_text(self) -> None:
        assert "カルロス・モア" in found("カルロス・モアは横浜に住んでいる。", SpanKind.FOREIGN)
        assert "横浜" in found("カルロス・モアは横浜に住んでいる。", SpanKind.FOREIGN)
        assert found("北京是首都。", SpanKind.FOREIGN) == ["北京", "首都"]

    def test_the_title_is_found_within_text_without_spaces(self) -> None:
        for text, title in [
            ("서울은 큰 도시이다.", "서울"),
            ("เมืองนครนอร์ใหญ่", "นครนอร์"),
            ("我住在清川市里。", "清川市"),
        ]:
            assert names(text, title) == [title]

    def test_the_title_is_not_found_within_a_longer_word(self) -> None:
        assert names("मोरपुरा में", "मोरपुर") == []


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=120), st.text(max_size=10))
def test_spans_are_ordered_apart_and_hold_their_text(text: str, title: str) -> None:
    scan = scan_entities(text, title)
    position = 0
    for span in scan.spans:
        assert position <= span.start < span.end <= len(text)
        assert text[span.start : span.end] == span.text
        position = span.end


def test_an_office_or_institution_holds_the_name_of_its_place() -> None:
    for name, expected in [
        ("Supreme Court of Norway", "Norway"),
        ("Earl of Moor", "Moor"),
        ("Minister of State of Moorland", "Moorland"),
        ("King of the Isles", ""),
        ("Lord of Moor", ""),
        ("Supreme Court", ""),
    ]:
        assert governed_name(name) == expected


def test_a_title_that_is_a_phrase_holds_names() -> None:
    for title, expected in [
        ("Military history of Norway during the Moor War", ["Norway", "Moor War"]),
        ("Tennis at the 1936 Moor Games", ["1936 Moor Games"]),
        ("Moorland's electoral districts", ["Moorland"]),
        ("List of Moor Works cars", ["Moor Works"]),
        ("Kingdom of the Isles", []),
        ("Anna Berg", []),
        ("grass", []),
        ("", []),
    ]:
        assert title_names(title) == expected
