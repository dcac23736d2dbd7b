"""The reference has every kind of error, every kind of a result's entries, and every note of an indexing run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from docs.site.references import error_table
from tests.docs.pages import ROOT, nodes, plain, read, strings_of_the_code, table

REFERENCE = read(ROOT / "docs" / "reference.md")
RUNS = "workflows.runtime.resources"
TELLS = (RUNS, "error")
"""The method that makes an entry."""

ASKS, FALLS_BACK = ("workflows.runtime.agents", "ask"), "fell_back"
"""The function that makes the entries of a reply that cannot be used, and the method that makes that of a fallback."""

NOTES = ("workflows.states.conversion", "notes_of")
"""The function that makes an entry of each note of an answer."""


@cache
def error_classes() -> dict[str, str]:
    """The subclasses of MaraError, and the module of each."""
    classes = {
        node.name: ({base.id for base in node.bases if isinstance(base, ast.Name)}, module)
        for module, of_module in nodes().items()
        for node in of_module
        if isinstance(node, ast.ClassDef)
    }
    found = {"MaraError"}
    while more := {name for name, (bases, _) in classes.items() if bases & found} - found:
        found |= more
    return {name: classes[name][1] for name in found}


Function = tuple[str, str]
"""A module, and the name of one of its functions."""


@cache
def functions() -> dict[Function, ast.FunctionDef]:
    return {
        (module, node.name): node
        for module, of_module in nodes().items()
        for node in of_module
        if isinstance(node, ast.FunctionDef)
    }


@cache
def imported(module: str) -> dict[str, Function]:
    """What names of a module stand for functions of others."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in nodes()[module]
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def calls_of(function: Function) -> Iterator[tuple[Function, ast.Call]]:
    """What a function calls; a method is looked for where open runs are."""
    module, _ = function
    for part in functions()[function].body:
        for call in ast.walk(part):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                yield imported(module).get(call.func.id, (module, call.func.id)), call
            elif isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
                yield (RUNS, call.func.attr), call


def kinds_made_by(function: Function) -> set[str]:
    """The kinds of the entries that a function makes itself."""
    made = set()
    for called, call in calls_of(function):
        if called == TELLS and isinstance(call.args[0], ast.Constant | ast.Name):
            made.add(value_of(call.args[0], function[0]))
        elif called == ASKS:
            made |= {"MalformedReply", "SlowReply", "BudgetSpent"}
        elif called == NOTES:
            made.add("Evidence")
        elif called[1] == FALLS_BACK:
            made.add("Fallback")
    return made


def value_of(expression: ast.expr, module: str) -> str:
    """The string that an expression is: a literal or a constant of its module; empty for anything else."""
    if isinstance(expression, ast.Constant):
        return str(expression.value)
    if isinstance(expression, ast.Name):
        return str(getattr(import_module(module), expression.id, ""))
    return ""


def test_every_error_is_in_the_table_and_the_page_has_its_exit_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `?(\w*)`? \| (\d+) \| (\S.*) \|$", error_table(), re.MULTILINE)
    assert {name for name, *_ in rows} == {"MaraError", *error_classes()}
    assert len(rows) == len(error_classes())
    codes = {name: code for name, _, code, _ in rows}
    for row in table(REFERENCE, "Errors"):
        named = re.findall(r"`(\w+)`", row["kinds"])
        assert {codes[name] for name in named} == {row["exit code"]}
    assert {row["exit code"] for row in table(REFERENCE, "Errors")} == set(codes.values())


def test_every_kind_of_entry_is_in_the_reference() -> None:
    made = {kind for function in functions() for kind in kinds_made_by(function)} - {""}
    assert {"MalformedReply", "Fallback", "OutsideFilter"} <= made
    assert made == {plain(row["kind"]) for row in table(REFERENCE, "Entries of a result's `errors`")}


def test_every_note_of_an_indexing_run_is_in_the_reference() -> None:
    section = REFERENCE.partition("## Counts of an indexing run")[2].partition("\n## ")[0]
    documented = {" ".join(name.split()) for name in re.findall(r"`([^`]+)`", section.partition("\n- ")[2])}
    counted = {
        value_of(node.slice, module)
        for module, found in nodes().items()
        for node in found
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "notes"
    }
    assert counted - {""} - documented == set()
    assert documented - strings_of_the_code() == set()
