"""The command line before it is read."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from workflows.cli.app import options_first


def test_options_of_every_command_stand_anywhere() -> None:
    for typed, read in [
        ("ask x --json -w mine", "--json -w mine ask x"),
        ("ask --workspace=mine x", "--workspace=mine ask x"),
        ("ask -wmine x", "-wmine ask x"),
        ("ask x -w", "-w ask x"),
        ("ask -- --json", "ask -- --json"),
        ("ask x --where a=b", "ask x --where a=b"),
    ]:
        assert options_first(shlex.split(typed)) == shlex.split(read)


@given(st.lists(st.sampled_from(["ask", "--json", "-w", "x", "--", "--set", "a=b", "--workspace=y"])))
def test_no_word_is_lost_or_made(args: list[str]) -> None:
    assert sorted(options_first(args)) == sorted(args)
