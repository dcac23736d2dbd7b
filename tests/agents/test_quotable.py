from __future__ import annotations

import pytest

from agents.answerer import OfflineAnswerer
from agents.answers.citations import quotable
from agents.roles import NumberedPassage
from tests.growth import grows_with_length_alone


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("The **term** is `two` years.", "The term is two years."),
        ("**Term:** two _whole_ years", "Term: two whole years"),
        ("See [the annex](https://ex.org/a) of it.", "See the annex of it."),
        ("bolt | 3 | steel", "bolt; 3; steel"),
        ("It rained\n> and stopped.", "It rained and stopped."),
        ("**It rained.", "It rained."),
        ("It was ~~May~~ June.[^1]", "It was May June."),
        ("Bo Lind<br>of the town", "Bo Lind of the town"),
        (
            "See [the annex][b1] at <https://ex.org/a> by Otto\\_Krause.",
            "See the annex at https://ex.org/a by Otto_Krause.",
        ),
        ("if a==b and c==d, then [a-z] and x < y", "if a==b and c==d, then [a-z] and x < y"),
        ("the name my_var_name and 2 * 3 * 4 or 2**3", "the name my_var_name and 2 * 3 * 4 or 2**3"),
    ],
)
def test_a_quote_holds_the_words_without_the_signs_of_markdown(sentence: str, words: str) -> None:
    assert quotable(sentence) == words


@pytest.mark.parametrize(
    "piece",
    ["*", "**a", "~~", "~~a ", "[^", "[^1]", "<", "<br", "\\", "][", "_a ", "`", "[a](", "[", "> ", "\n", "a | ", "!"],
)
def test_signs_take_no_longer_than_their_length_explains(piece: str) -> None:
    text = piece * 40_000
    assert grows_with_length_alone(lambda length: quotable(text[:length]), 2_000)


class TestQuotes:
    PASSAGE = NumberedPassage(
        1,
        "m",
        "Minutes",
        "# Minutes of May\n\n## Decisions of the board\n- The **kick-off** is on 3 June.\n> Eva Moor pays for it\n\n"
        "Risk: Data quality; Owner: Bo Lind\nRisk: Delay; Owner: Eva Moor",
    )

    @pytest.mark.parametrize(
        ("question", "quote"),
        [
            ("When is the kick-off?", "The kick-off is on 3 June."),
            ("Who is the owner of the risk of data quality?", "Data quality: Owner: Bo Lind"),
        ],
    )
    def test_an_answer_quotes_the_words_of_an_item_or_a_row(self, question: str, quote: str) -> None:
        answer = OfflineAnswerer().answer(question, [self.PASSAGE])
        assert quote in answer.plain_text.split("\n\n")[0]
        assert not set("#*>") & set(answer.plain_text)
        citation = answer.citations[0]
        cited = quotable(self.PASSAGE.text[citation.start : citation.end])
        assert cited.removeprefix("Risk: ").replace("; ", ": ") == quote
