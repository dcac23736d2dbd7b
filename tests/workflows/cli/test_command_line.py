"""The command line before it is read."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st

from workflows.cli.command_line import in_present_names, options_first


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


def test_names_of_the_release_before_become_those_of_today_and_it_is_said() -> None:
    for typed, read in [
        ("stats --skipped", "show contents --skipped"),
        ("-w mine --json reembed", "-w mine --json doctor --reembed"),
        ("record join team", "doctor --join-record --record team"),
        ("correct pin 'a | b | c' --passage p1", "correct fact 'a | b | c' --pin p1"),
        ("ask x --alpha 0.5 --check-claims", "ask x --set alpha=0.5 --set check_claims=true"),
        ("ask x --alpha=0.5 -- --alpha", "ask x --set alpha=0.5 -- --alpha"),
        (
            "ask x --remember views --remember messages",
            """ask x --set 'remember=["views"]' --set 'remember=["views", "messages"]'""",
        ),
        ("ask x --remember nothing", "ask x --set remember=[]"),
        ("batch q --out o --concurrency 2 --n 1", "batch q --out o --concurrency 2 --set n=1"),
    ]:
        args, notices = in_present_names(shlex.split(typed))
        assert args == shlex.split(read)
        assert notices, typed
        assert all(line.endswith("; the earlier name goes with the next release") for line in notices), typed


@given(st.lists(st.sampled_from(["ask", "--json", "-w", "x", "--", "--set", "a=b", "--workspace=y"])))
def test_no_word_is_lost_or_made(args: list[str]) -> None:
    assert sorted(options_first(args)) == sorted(args)
