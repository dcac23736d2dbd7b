"""Cues and shapes: what they find, what they refuse, and that no text makes them slow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.own_types import any_cue, any_shape, cue_pattern, shape_pattern


@pytest.mark.parametrize(
    ("cue", "text"),
    [
        ("supplies", "Orrin supplies castings"),
        ("supplies", "ORRIN SUPPLIES"),
        ("suppl*", "is a supplier of"),
        ("suppl*", "suppl"),
        ("deliver* to", "delivered  to"),
        ("deliver* to", "delivers_to"),
        ("on-call", "on call"),
        ("beliefert", "Orrin beliefert Halden"),
        ("供应", "厂供应零件"),
        ("C++", "written in C++ by"),
        ("(a+)+", "the (a+)+ sign"),
    ],
)
def test_a_cue_is_found_as_whole_words_in_any_case(cue: str, text: str) -> None:
    assert any_cue([cue]).search(text)


@pytest.mark.parametrize(
    ("cue", "text"),
    [
        ("port", "transport of"),
        ("port", "portal"),
        ("suppl*", "resupplied"),
        ("deliver* to", "deliver it to"),
        ("a.b", "aXb"),
        ("(a+)+", "aaaa"),
    ],
)
def test_it_is_found_nowhere_else(cue: str, text: str) -> None:
    assert not any_cue([cue]).search(text)


@pytest.mark.parametrize("cue", ["", " ", "*", "a*", "s*pply", "**", "su*pl*", "...", "x" * 61, "un* *"])
def test_a_cue_that_would_find_anything_or_nothing_is_refused(cue: str) -> None:
    with pytest.raises(ValueError, match=r"letter|characters|\*"):
        cue_pattern(cue)


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ("@@-###", "HX-200"),
        ("MV *", "MV Aurora"),
        ("IMO #######", "IMO 9074729"),
        ("* AG", "Orrin AG"),
        ("*-#", "ab-1"),
    ],
)
def test_a_shape_is_the_form_of_a_whole_name(shape: str, name: str) -> None:
    assert any_shape([shape]).fullmatch(name)
    assert any_shape([shape]).search(f"see {name}, or")
    assert not any_shape([shape]).search(f"see x{name}x")


@pytest.mark.parametrize(("shape", "name"), [("@@-###", "hx-200"), ("@@-###", "HX-2000"), ("MV *", "MV"), ("#", "a")])
def test_it_is_no_other_form(shape: str, name: str) -> None:
    assert not any_shape([shape]).fullmatch(name)


@pytest.mark.parametrize("shape", ["", "*", "* *", "**", "*#", "#*", "*a", "* - * - *a*", "* a * b *", "-" * 61])
def test_a_shape_that_would_find_anything_or_be_slow_is_refused(shape: str) -> None:
    with pytest.raises(ValueError, match=r"letter|characters|\*"):
        shape_pattern(shape)


def test_of_several_that_begin_alike_the_longest_is_found() -> None:
    found = any_cue(["deliver*", "deliver* to"]).search("delivers to Halden")
    assert found
    assert found[0] == "delivers to"


def test_of_none_nothing_is_found() -> None:
    assert not any_cue([]).search("")
    assert not any_shape([]).search("a")


@given(st.text(max_size=30), st.text(max_size=60))
def test_whatever_is_accepted_is_a_pattern_that_finds_no_empty_text(cue: str, text: str) -> None:
    for compiled, accepted in ((any_cue, cue_pattern), (any_shape, shape_pattern)):
        try:
            accepted(cue)
        except ValueError:
            continue
        assert all(match[0] for match in compiled([cue]).finditer(text))
