from __future__ import annotations

import regex
from hypothesis import given
from hypothesis import strategies as st

from graph.sentences import key_values, sentence_spans, text_units
from graph.text import normalise_name, title_name, token_spans
from tests.growth import grows_with_length_alone

SIGN = regex.compile(r"[\s>|#*•–—`~=_:+-]*(?:\[[ xX]\]|\(?(?:[0-9.]+[.)]|[a-zA-Z]\)|[ivxIVX]+\)))?[\s|#]*")


def units(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


class TestSentences:
    def test_they_end_where_a_reader_would_end_them(self) -> None:
        for text in [
            "Dr. Moor met Mr. Hale.|They left.|It cost 3.5 million.|Then 4.",
            "He said “stop.”|She did.|The **term is two years.**|It ends.",
        ]:
            assert units(text.replace("|", " ")) == text.split("|")
        assert units("日産は会社。横浜にある。") == ["日産は会社。", "横浜にある。"]
        assert units("A heading\n\nand its text") == ["A heading", "and its text"]
        assert units("  \n ") == []

    def test_the_stop_of_an_abbreviation_ends_one_only_where_the_next_visibly_begins(self) -> None:
        for text in [
            "Der Vertrag ruht z.Z. Verhandlungen laufen noch.|Z.z. Verhandlungen mit dem Kunden.",
            "Siehe Abs. 2, Nr. 5 und Art. 3 gem. Abs. 4.",
            "It costs approx. 12 euros, see p. 12 and No. 7.|DR. MOOR left.",
            "The answer is No.|He studied Art.|She did not.",
            "Er zahlt bis zum 31. Dezember 2024.|Im 19. Jahrhundert war der 2. Stock leer.",
            "Prof. Dr. Eva Moor, Dipl.-Ing. Bo Lind und St. Gallen.|Die Muster GmbH. & Co. KG liefert.",
            "The supplier is Muster GmbH.|The contract runs two years.|The buyer is Moor Inc.|It pays.",
            "He works at IBM.|Then he left.|She moved to the U.S.|The flat is hers.",
            "It opens at 5 p.m.|Tickets are free.|It grew by 12 %.|Costs fell.",
        ]:
            assert units(text.replace("|", " ")) == text.split("|")


class TestLines:
    def test_an_item_of_a_list_is_one_without_its_sign(self) -> None:
        for sign in ["- ", "* ", "• ", "+ ", "1. ", "2) ", "(a) ", "b) ", "iv) ", "- [x] ", "> - ", "  – "]:
            text = f"{sign}Eva Moor pays\n{sign}Bo Lind signs"
            assert units(text) == ["Eva Moor pays", "Bo Lind signs"]

    def test_wrapped_lines_are_one(self) -> None:
        for text in [
            "The museum was built for the town by\nEva Moor.",
            "- Eva Moor takes over the kick-off and all of what follows from\nVertrag und Angebot",
            "The contract begins on 12. May 1933 and it ends with the delivery on\n12. May 1934 or later.",
            "The two halves of it were built by the same hand, as the town\n– it paid – was told.",
        ]:
            assert len(units(text)) == 1

    def test_lines_that_are_broken_by_choice_pairs_and_rows_are_units(self) -> None:
        for text in [
            "Nordwind GmbH\nHafenstraße 12\n20457 Hamburg",
            "Margaret Osei, for the Supplier\nPetra Lindemann, for the Buyer",
            "customer: Moor Ltd; note: They pay. On time; city: Upper Moor\ncustomer: Hale; note: none; city: Corl",
        ]:
            assert units(text) == text.split("\n")

    def test_sentences_of_an_item_a_quote_or_with_a_bar_or_a_colon_are_told_apart(self) -> None:
        assert units("- It rained. It stopped.\n- It was dry.") == ["It rained.", "It stopped.", "It was dry."]
        assert units("> It rained.\n> It stopped.\n\n•\nIt was dry") == ["It rained.", "It stopped.", "It was dry"]
        assert len(units("The odds P(A | B) are even. It has three parts: two halls and a yard. It grew.")) == 3

    def test_rows_between_bars_lose_those_at_their_ends_and_the_line_below_the_header(self) -> None:
        assert units("| part | price |\n|---|---:|\n| bolt | 3 |") == ["part | price", "bolt | 3"]


class TestHeadings:
    def test_one_is_not_glued_to_what_follows_and_is_no_quote(self) -> None:
        for text in [
            "# Payment terms\nThe buyer pays at once.",
            "Payment terms\n-------------\nThe buyer pays at once.",
            "Payment terms\n\nThe buyer pays at once.",
            "§ 3 Payment terms\n\nThe buyer pays at once.",
            "Payment terms\nThe buyer pays at once, and not later than thirty days after he received it.",
        ]:
            (rest,) = (text[unit.start : unit.end] for unit in text_units(text) if not unit.is_heading)
            assert rest.startswith("The buyer pays at once")
            assert "Payment terms" in "".join(
                text[unit.start : unit.end] for unit in text_units(text) if unit.is_heading
            )

    def test_a_line_that_tells_something_is_no_heading(self) -> None:
        for text in [
            "14 March 2026\n\nWe met at noon.",
            "Moor Ltd\nLeeds LS1 4AP\nThe firm was founded by Ida Moor, and sold within the year.",
            "1. Bolt\n2. Nut\n\nAll prices are net.",
            "> The auditor praised the casting hall\n\nIt is of brick.",
        ]:
            assert not any(unit.is_heading for unit in text_units(text))


class TestKeyValues:
    @staticmethod
    def pairs(text: str) -> list[list[tuple[str, str]]]:
        units = [key_values(text, start, end) for start, end in sentence_spans(text)]
        for pair in (pair for pairs in units for pair in pairs):
            assert text[pair.start : pair.end].strip("*_") == pair.key
        return [[(pair.key, pair.value) for pair in pairs] for pairs in units]

    def test_a_row_and_a_line_are_their_pairs(self) -> None:
        assert self.pairs("part: bolt; made of: steel\n- **Term:** two years\n> Company: Acme Inc.") == [
            [("part", "bolt"), ("made of", "steel")],
            [("Term", "two years")],
            [("Company", "Acme Inc.")],
        ]

    def test_a_sentence_has_none(self) -> None:
        for text in [
            "Star Wars: The Clone Wars is a film of 2008.",
            "It has three parts: two halls and a yard.",
            "It rained. Note: it stopped",
            "bolt | steel",
        ]:
            assert not any(self.pairs(text))


@given(st.text(st.sampled_from('aB1 .!?"”)\n\t。।…।é日-#>|*:;(•'), max_size=80) | st.text(max_size=80))
def test_spans_cover_all_but_space_and_signs_in_order_and_begin_and_end_on_text(text: str) -> None:
    position = 0
    for unit in text_units(text):
        assert position <= unit.opens <= unit.start < unit.end
        assert text[unit.start : unit.end] == text[unit.start : unit.end].strip()
        for left in text[position : unit.start].split("\n"):
            assert SIGN.fullmatch(left) or not regex.search(r"\p{L}", left)
        position = unit.end
    assert not regex.search(r"\p{L}", regex.sub(r"(?:`{3}|~{3}).*", "", text[position:]))


def test_pathological_text_takes_no_longer_than_its_length_explains() -> None:
    signs = [".", "a. ", "(", 'a."""', "Mr. ", "- x\n", "| a ", "a: b; ", "Key ", "#", "`~", "Word\n", "\n" + " " * 50]
    around = ["x{}x|!", "a.{}b| ", "\n{}x| ", "{}. B|a", "{}x|> ", "{} x|1."]
    texts = [sign * (50_000 // len(sign)) for sign in signs]
    texts += [frame.format(sign * (50_000 // len(sign))) for frame, sign in (each.split("|") for each in around)]

    for text in texts:

        def work(length: int, text: str = text) -> None:
            piece = text[:length]
            for start, end in sentence_spans(piece):
                key_values(piece, start, end)
            token_spans(piece)
            title_name(piece)
            normalise_name.__wrapped__(piece)

        assert grows_with_length_alone(work, len(text) // 8), text[:6]
