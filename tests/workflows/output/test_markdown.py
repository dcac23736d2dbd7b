"""Markdown as reports write it: text that stays in its place, and figures."""

from __future__ import annotations

from workflows.output.markdown import NOTHING, code, figure, interval, p_value, plain, signed, table


def test_text_and_code_stay_on_one_line_are_cut_and_never_empty() -> None:
    assert code("") == NOTHING
    assert code("a|b") == r"`a\|b`"
    assert code("a``b") == "``` a``b ```"
    assert code("x" * 400) == f"`{'x' * 79}…`"
    assert plain("x" * 400) == f"{'x' * 299}…"
    assert plain("*a*\n| [b] <i>\u202e") == r"\*a\* \| \[b\] \<i\>"


def test_a_table_sets_its_first_columns_left() -> None:
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"


def test_figures_have_their_decimals_and_no_negative_zero() -> None:
    assert [figure(None), signed(None), p_value(None), interval(None, 1.0), interval(0.5, None)] == [NOTHING] * 5
    assert [figure(1234.5678), figure(0.25, 1), figure(-0.0001)] == ["1,234.568", "0.2", "0.000"]
    assert [signed(0.5), signed(-0.25, 1), signed(-0.0001)] == ["+0.500", "-0.2", "+0.000"]
    assert interval(-0.5, 0.25) == "[-0.500, +0.250]"
    assert [p_value(0.0009), p_value(0.001)] == ["< 0.001", "0.001"]
