"""Of a reply that comes in pieces, the same is shown as of the whole reply: all but the thinking."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from agents.chat.replies import ThinkFilter, without_thinking

FRAGMENTS = st.lists(st.sampled_from(["<think>", "</think>", "lake", " ", "\n", "<", "<th", "ink>", "/"]), max_size=10)


def shown(pieces: list[str]) -> str:
    """What stands on a screen that is wiped where a swallowed tag turns up."""
    spoken, screen = ThinkFilter(), ""
    for piece in pieces:
        before = spoken.swallowed
        more = spoken.feed(piece)
        screen = more if spoken.swallowed and not before else screen + more
    return screen


@given(FRAGMENTS, st.data())
def test_wherever_a_reply_is_cut_the_same_is_shown_as_of_the_whole(fragments: list[str], data: st.DataObject) -> None:
    text = "".join([*fragments, "."])
    assume("<think>" not in text.rpartition("</think>")[2])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert shown(pieces) == without_thinking(text)


def test_thinking_is_never_shown_and_text_as_soon_as_it_cannot_be_a_tag() -> None:
    for pieces, parts in (
        (("It", " is", " <", "3", " km."), ["It", " is", "", " <3", " km."]),
        (("<think>", "on", " and on"), ["", "", ""]),
        (("<th", "ink>Is it 1203?\n</think", ">\n\nIn 1203 [1]. "), ["", "", "In 1203 [1]."]),
    ):
        spoken = ThinkFilter()
        assert [spoken.feed(piece) for piece in pieces] == parts
        assert not spoken.swallowed


def test_thinking_whose_opening_tag_was_swallowed_shows_at_its_end_or_never_where_that_is_known() -> None:
    spoken = ThinkFilter()
    assert spoken.feed("Is it 1203?") == "Is it 1203?"
    assert not spoken.swallowed
    assert spoken.feed(" Yes.</think> In 1203") == "In 1203"
    assert spoken.swallowed
    known = ThinkFilter(thinks_first=True)
    pieces = ("Is it", " 1203?</th", "ink>", " In", " 1203")
    assert [known.feed(piece) for piece in pieces] == ["", "", "", "In", " 1203"]
