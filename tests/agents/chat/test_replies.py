"""The replies of a chat model: one valid object is taken, all else refused with a reason, and no thinking is shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agents.chat.replies import ThinkFilter, parse_object, without_thinking
from graph.errors import MalformedReply
from tests.chatting import TEXT, VERDICT, Verdict

ACCEPTED = (
    TEXT,
    f"```json\n{TEXT}\n```",
    f"Sure [1]! Here it is:\n\n{TEXT}\n\nI hope this helps.",
    f"Is it {{}}?\n</think>\n{TEXT}",
)

REFUSED = (
    ("", "empty"),
    (f"<think>{TEXT}</think>", "empty"),
    (f"<think>{TEXT}", "never ends"),
    ("The lake, I would say.", "no JSON object"),
    (TEXT[:-8], "not valid JSON, or is cut"),
    (TEXT + "}", "not valid JSON"),
    ("{" + TEXT, "not valid JSON"),
    (TEXT + "\n" + TEXT, "not valid JSON"),
    (f"[{TEXT}]", "a list"),
    ('{"name": "a", "share": NaN}', "finite"),
    ('{"name": "a", "share": 1e999}', "finite"),
    ('{"name": "a", "share": ' + "1" * 5_000 + "}", "not valid JSON|finite"),
    ('{"name": "a", "share": "0.5"}', "share: .*number"),
    ('{"name": "a"}', "share: Field required"),
    ('{"name": "\\ud800", "share": 1}', "not valid JSON"),
    ('{"name": ' + "[" * 50_000, "not valid JSON"),
)


def test_one_valid_object_is_taken_wherever_it_stands_and_all_else_refused_with_a_reason() -> None:
    for reply in ACCEPTED:
        assert parse_object(reply, Verdict) == VERDICT
    assert parse_object('{"name": "a", "share": 1}', Verdict).share == 1.0
    for reply, reason in REFUSED:
        with pytest.raises(MalformedReply, match=reason) as caught:
            parse_object(reply, Verdict)
        assert caught.value.raw == reply


@given(st.builds(Verdict, name=st.text(), share=st.floats(allow_nan=False, allow_infinity=False)), st.data())
def test_a_whole_object_reads_back_and_a_cut_one_never_does(verdict: Verdict, data: st.DataObject) -> None:
    text = json.dumps(verdict.model_dump())
    if "think>" not in text:
        assert parse_object(text, Verdict) == verdict
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(MalformedReply):
        parse_object(text[:cut], Verdict)


def test_thinking_is_taken_out() -> None:
    for reply, rest in (
        ("<think>no</think> yes", "yes"),
        ("<think>a</think>y<think>b</think>es", "yes"),
        ("no, wait</think>\nyes", "yes"),
        ("yes, a <think> tag", "yes, a <think> tag"),
    ):
        assert without_thinking(reply) == rest
    with pytest.raises(MalformedReply, match="says more than 100,000"):
        without_thinking("and " * 26_000)


FRAGMENTS = st.lists(st.sampled_from(["<think>", "</think>", "lake", " ", "\n", "<", "<th", "ink>", "/"]), max_size=10)


def shown(pieces: list[str]) -> str:
    """The text on a screen that is wiped where a swallowed tag turns up."""
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


def test_thinking_whose_opening_tag_was_swallowed_shows_at_its_end_or_never_where_that_is_known() -> None:
    spoken = ThinkFilter()
    assert spoken.feed("Is it 1203?") == "Is it 1203?"
    assert not spoken.swallowed
    assert spoken.feed(" Yes.</think> In 1203") == "In 1203"
    assert spoken.swallowed
    known = ThinkFilter(thinks_first=True)
    pieces = ("Is it", " 1203?</th", "ink>", " In", " 1203")
    assert [known.feed(piece) for piece in pieces] == ["", "", "", "In", " 1203"]
