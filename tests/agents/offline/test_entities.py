from __future__ import annotations

from agents.offline.entities import SpanKind, governed_name, scan_entities, title_names


def spans(text: str, kind: SpanKind, title: str = "") -> list[str]:
    return [span.text for span in scan_entities(text, title).spans if span.kind is kind]


def names(text: str, title: str = "") -> list[str]:
    return spans(text, SpanKind.NAME, title)


def test_capitalised_runs_with_connectors_are_one_name() -> None:
    for text, expected in (
        ("He saw Ludwig van Moor and Ana de la Cruz.", ["Ludwig van Moor", "Ana de la Cruz"]),
        ("He read J. R. Moor and St. Clair.", ["J. R. Moor", "St. Clair"]),
        ("It was sold by Hank Moor, Jr. in Rome.", ["Hank Moor, Jr", "Rome"]),
        ("She led the Ministry of Culture and Science.", ["Ministry of Culture and Science"]),
        ("It landed on Ranger 7 in the U.S. today.", ["Ranger 7", "U.S."]),
        ("It is at Moor–Berg College on the Oslo–Rome line, 9–1–1.", ["Moor–Berg College", "Oslo–Rome"]),
        ("They met Dr. Jun C. Aikawa and Sir Hank Moor.", ["Jun C. Aikawa", "Hank Moor"]),
        ("It is at the 14th Moor Fair of Oslo.", ["14th Moor Fair", "Oslo"]),
        ("She won at the 1998 Winter Fair.", ["1998 Winter Fair"]),
        ("It was in 1998 Winter Fair moved.", ["Winter Fair"]),
        ('They met Robert "Bob" Moor.', ['Robert "Bob" Moor']),
        ("They saw the Moor Guild for Trade and Tin (MGTT) there.", ["Moor Guild for Trade and Tin", "MGTT"]),
        ("They saw the Moor Guild for Trade and Tin (OSLO) there.", ["Moor Guild", "Trade", "Tin", "OSLO"]),
        ("Михаил Горбов родился в селе Привольное.", ["Михаил Горбов", "Привольное"]),
    ):
        assert names(text) == expected


def test_the_first_word_of_a_sentence_needs_more_than_its_capital() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("However, he left.", []),
        ("Dogs bark. The dogs sleep.", []),
        ("It saw Berg. Berg left. The berg melted.", ["Berg", "Berg"]),
        ("It stops. Create a copy.", []),
    ]
    for text, expected in cases:
        assert names(text) == expected


def test_addresses_days_months_letters_and_endless_runs_are_no_names() -> None:
    for text in ("see https://cloud.Moor.com/Docs/Oslo now.", "write to Anna.Berg@moor.org soon."):
        assert scan_entities(text).spans == ()
    for text in ("He left on Monday.", "I am here.", "It was in May.", "A b C."):
        assert [name for name in names(text) if len(name) > 1] == []
    scan = scan_entities("It says " + "Very " * 30 + "here.")
    assert (scan.overlong_names, scan.spans) == (1, ())


def test_the_title_is_found_in_small_letters_and_within_text_without_spaces_but_not_within_a_word() -> None:
    for text, title, expected in (
        ("The Blue Tin Band sang.", "The Blue Tin", ["The Blue Tin", "Band"]),
        ("A sea of grass is rare.", "sea of grass", ["sea of grass"]),
        ("A seaside of grass.", "sea", []),
        ("เมืองนครนอร์ใหญ่", "นครนอร์", ["นครนอร์"]),
        ("मोरपुरा में", "मोरपुर", []),
    ):
        assert names(text, title) == expected


def test_code_dates_and_quantities_are_entities() -> None:
    text = "In 1933 it had 1,045 rooms, 12 cars, 5 km of road, $3.5 million and 40 % more; on 5 May 1934 two left."
    quantities = ["1,045 rooms", "12 cars", "5 km", "$3.5 million", "40 %"]
    cases: list[tuple[str, SpanKind, list[str]]] = [
        ("Set MAX_RETRIES to 3, or job_mode.", SpanKind.CODE, ["MAX_RETRIES", "job_mode"]),
        ("Run `kubectl apply -f x.yaml` first.", SpanKind.CODE, ["kubectl apply -f x.yaml"]),
        ("Snake _case_ and ``` fences are none.", SpanKind.CODE, []),
        (text, SpanKind.DATE, ["1933", "5 May 1934"]),
        (text, SpanKind.QUANTITY, quantities),
        ("The population was 806, the rate 5.1.", SpanKind.QUANTITY, ["806", "5.1"]),
        ("The engine has 1,340 cc and 12 °C.", SpanKind.QUANTITY, ["1,340 cc", "12 °C"]),
        ("It is among the 12 most populous.", SpanKind.QUANTITY, []),
    ]
    for sentence, kind, expected in cases:
        assert spans(sentence, kind) == expected


def test_quoted_titles_are_entities_and_quoted_speech_and_apostrophes_are_not() -> None:
    for text in (
        'She sang "Blue Tin" there.',
        "Elle chante «Blue Tin» ici.",
        '"" "Blue Tin"',
        "She sang 'Blue Tin' there.",
        "She sang ``Blue Tin '' there.",
    ):
        assert spans(text, SpanKind.QUOTED) == ["Blue Tin"]
    assert spans("She sang 'Anna's Tin' there.", SpanKind.QUOTED) == ["Anna's Tin"]
    for text in ("यह पुस्तक “नील नदी” है।", "كتب الرواية «نهر النور» هناك.", "הספר „נהר האור” כאן."):
        assert len(spans(text, SpanKind.QUOTED)) == 1
    for text in (
        'He said "I really never wanted this to happen again".',
        "उसने कहा “मैं कल सुबह बहुत जल्दी यहाँ से चला गया था”।",
        "The Bergs' house and Anna's 'barn' stood in the Moors' land.",
    ):
        assert spans(text, SpanKind.QUOTED) == []


def test_names_in_another_script_and_runs_of_katakana_and_han_are_entities() -> None:
    for native in ("日産自動車", "Москва", "नेहरू जी", "القاهرة", "서울", "กรุงเทพ"):
        assert spans(f"It is also called ({native}) by many people there.", SpanKind.FOREIGN) == [native]
    assert {"カルロス・モア", "横浜"} <= set(spans("カルロス・モアは横浜に住んでいる。", SpanKind.FOREIGN))
    assert spans("北京是首都。", SpanKind.FOREIGN) == ["北京", "首都"]


def test_an_office_or_institution_holds_the_name_of_its_place_and_a_title_that_is_a_phrase_names() -> None:
    for name, place in (("Supreme Court of Norway", "Norway"), ("Minister of State of Moorland", "Moorland")):
        assert governed_name(name) == place
    for title, expected in (
        ("Military history of Norway during the Moor War", ["Norway", "Moor War"]),
        ("Moorland's electoral districts", ["Moorland"]),
        ("List of Moor Works cars", ["Moor Works"]),
        ("Anna Berg", []),
    ):
        assert title_names(title) == expected
