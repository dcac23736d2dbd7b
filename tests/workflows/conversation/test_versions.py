"""The versions of turns: a tree, of which one way is shown."""

from __future__ import annotations

from workflows.conversation.kept import Versions

FOLLOWS = {"a": "", "b": "a", "c": "b", "a2": "", "b2": "a", "d": "b2"}
"""In the order in which they were asked; the last one leads back by ``b2`` to ``a``."""


def test_the_way_to_the_turn_asked_last_is_shown() -> None:
    assert Versions(FOLLOWS).shown() == ["a", "b2", "d"]
    assert Versions({}).shown() == []


def test_a_version_is_shown_with_what_was_asked_last_after_it() -> None:
    versions = Versions(FOLLOWS)
    assert versions.shown("b") == ["a", "b", "c"]
    assert versions.shown("a2") == ["a2"]
    assert versions.shown("a") == ["a", "b2", "d"]
    assert versions.shown("not there") == versions.shown()


def test_turns_that_follow_the_same_one_are_versions_of_each_other() -> None:
    versions = Versions(FOLLOWS)
    assert [versions.beside(key) for key in "abcd"] == [("a", "a2"), ("b", "b2"), ("c",), ("d",)]
    assert versions.last == ("c", "a2", "d")
