"""The reference has every kind of error, and names entries of a result that there are."""

from __future__ import annotations

import re

from docs.site.references import error_table
from tests.docs.pages import ROOT, plain, read, sources, table

REFERENCE = read(ROOT / "docs" / "reference.md")


def error_classes() -> set[str]:
    """The names of MaraError and its subclasses."""
    named = (re.findall(r"^class (\w+)\((.+?)\):", text, re.MULTILINE) for text in sources().values())
    bases = {name: set(of.split(", ")) for each in named for name, of in each}
    found = {"MaraError"}
    while more := {name for name in bases if bases[name] & found} - found:
        found |= more
    return found


def test_every_error_is_in_the_table_and_the_page_has_its_exit_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `?(\w*)`? \| (\d+) \| (\S.*) \|$", error_table(), re.MULTILINE)
    assert {name for name, *_ in rows} == error_classes()
    assert len(rows) == len(error_classes())
    codes = {name: code for name, _, code, _ in rows}
    for row in table(REFERENCE, "Errors"):
        named = re.findall(r"`(\w+)`", row["kinds"])
        assert {codes[name] for name in named} == {row["exit code"]}
    assert {row["exit code"] for row in table(REFERENCE, "Errors")} == set(codes.values())


def test_entries_of_a_result_have_kinds_that_the_code_names() -> None:
    kinds = {plain(row["kind"]) for row in table(REFERENCE, "Entries of a result's `errors`")}
    strings = {string for text in sources().values() for string in re.findall(r'"(\w+)"', text)}
    assert kinds - error_classes() <= strings
