"""The time to parse a reply, a passage or a question grows with its length alone, whatever it is made of."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.errors import MaraError
from tests.growth import grows_with_length_alone
from tests.parsing import FRAGMENTS, PASSAGES, QUESTIONS, REPLIES, Parser

PARSERS = {
    f"{kind}: {name}": parser
    for kind, parsers in (("reply", REPLIES), ("passage", PASSAGES), ("question", QUESTIONS))
    for name, parser in parsers.items()
}
# Texts that caught patterns that try again at every character, or loops that copy the rest.
CAUGHT = {
    "reply: thinking": ("<think>", "", ""),
    "reply: object": ("```a\n", "", ""),
    "reply: string in an object": ("<think>", "", "。"),
    "reply: no marks": ("[unsup", "", "orted]"),
    "reply: quote": (" ", "", ""),
    "reply: claims": ("\t", "", ""),
    "reply: claims rewritten": ("Bob. ", "", ""),
    "reply: claims of a text": ("# a\n", "", ""),
    "reply: no marks behind claims": ("»", "", " [unsupported]"),
    "reply: stream": (" ", "", ""),
    "passage: type of a triple": ("the ", "", ""),
    "passage: extractor": ("Bob, ", "", "("),
    "passage: entities": ("Bob, ", "", "("),
    "question: parts": ("\n ", "", "x"),
}
LONGEST = 40_000


def holds(parser: Parser, pieces: tuple[str, ...]) -> bool:
    """Whether a parser is linear in texts of these pieces, each repeated as often as the text's length allows."""

    def work(length: int) -> None:
        with suppress(MaraError):
            parser("".join(piece * (length // (len(pieces) * len(piece))) for piece in pieces if piece))

    return grows_with_length_alone(work, 1_000, LONGEST)


def test_what_was_quadratic_is_linear() -> None:
    for name, pieces in CAUGHT.items():
        assert holds(PARSERS[name], tuple(filter(None, pieces))), name


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(pieces=st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=3))
def test_no_text_is_worse_than_linear(name: str, pieces: list[str]) -> None:
    assert holds(PARSERS[name], tuple(pieces))


def test_a_square_behind_much_linear_work_is_seen() -> None:
    assert grows_with_length_alone(lambda length: sum(range(length)), 1_000)
    assert not grows_with_length_alone(lambda length: [sum(range(length)) for _ in range(length)], 400, 1)
