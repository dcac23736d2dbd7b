"""The catalogue of errors is complete, and its examples are messages of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain

import pytest

import graph.errors
from agents.chat.throttle import Cancelled
from graph.errors import MaraError
from tests.docs.pages import ROOT, nodes, plain, read, strings_of_the_code, table

CATALOGUE = read(ROOT / "docs" / "errors.md")
ENDING = table(CATALOGUE, "Errors that end a run")
SAYING = table(CATALOGUE, "What they say, and what to do")
ENTRIES = table(CATALOGUE, "Entries of a result's `errors`")
REASONS = table(CATALOGUE, "Why a reply is malformed")
RUNS = "workflows.runtime.resources"
TELLS = (RUNS, "error")
"""The method that makes an entry."""

ASKS, FALLS_BACK = ("workflows.runtime.agents", "ask"), "fell_back"
"""The function that makes the entries of a reply that cannot be used, and the method that makes that of a fallback."""

NOTES = ("workflows.states.conversion", "notes_of")
"""The function that makes an entry of each note of an answer."""

LEAST_FRAGMENT = 8
"""Letters that a message of the code needs to be told from another: a bare placeholder stands for anything."""


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


def is_node(function: ast.FunctionDef) -> bool:
    made_by = [
        each.func.id
        for each in function.decorator_list
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
    ]
    return "node" in made_by


def entries_of_the_code() -> Iterator[tuple[str, str]]:
    """(kind, node) of every entry that the code makes, in a node or in what it calls; node is empty where none does."""
    told = {TELLS}
    for function, definition in functions().items():
        if not is_node(definition):
            continue
        reached: set[Function] = set()
        left = [function]
        while left:
            each = left.pop()
            reached.add(each)
            left += [called for called, _ in calls_of(each) if called in functions() and called not in reached]
        told |= reached
        yield from ((kind, function[1]) for each in reached for kind in kinds_made_by(each))
    for function in functions().keys() - told:
        yield from ((kind, "") for kind in kinds_made_by(function) if kind)


def value_of(expression: ast.expr, module: str) -> str:
    """The string that an expression is: a literal or a constant of its module; empty for anything else."""
    if isinstance(expression, ast.Constant):
        return str(expression.value)
    if isinstance(expression, ast.Name):
        return str(getattr(import_module(module), expression.id, ""))
    return ""


@cache
def templates() -> list[re.Pattern[str]]:
    """Every string of the code with placeholders, which stand for anything."""
    found = set()
    for node in chain.from_iterable(nodes().values()):
        if isinstance(node, ast.JoinedStr):
            fixed = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
            if sum(len(str(text)) for text in fixed if text is not None) >= LEAST_FRAGMENT:
                found.add("".join(".+" if text is None else re.escape(str(text)) for text in fixed))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "{}" in node.value:
            if len(node.value.replace("{}", "")) >= LEAST_FRAGMENT:
                found.add(".+".join(map(re.escape, node.value.split("{}"))))
        elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.op, ast.Add):
            found.add(re.escape(str(node.left.value)) + ".+")
    return [re.compile(pattern, re.DOTALL) for pattern in sorted(found)]


def is_said(text: str) -> bool:
    return text in strings_of_the_code() or any(pattern.fullmatch(text) for pattern in templates())


def test_every_error_is_in_the_catalogue_with_its_root_and_exit_code() -> None:
    classes = {name: getattr(import_module(module), name) for name, module in error_classes().items()}
    documented = {plain(row["kind"]): (plain(row["is a"]), int(row["exit code"])) for row in ENDING}
    assert documented == {
        name: (each.__bases__[0].__name__ if each is not MaraError else "", each.exit_code)
        for name, each in classes.items()
    }
    assert {graph.errors.WorkspaceLocked, Cancelled} <= set(classes.values())


def test_every_error_that_is_raised_has_an_example() -> None:
    assert {plain(row["kind"]) for row in SAYING} == set(error_classes()) - {"MaraError"}


def test_every_kind_of_entry_is_in_the_catalogue_with_the_nodes_that_make_it() -> None:
    made = set(entries_of_the_code())
    assert {kind for kind, _ in made} == {plain(row["kind"]) for row in ENTRIES}
    documented = {(plain(row["kind"]), node) for row in ENTRIES for node in plain(row["node"]).split(", ")}
    assert {(kind, node) for kind, node in made if node} <= documented


@pytest.mark.parametrize(
    "example", [row["example"] for row in (*SAYING, *ENTRIES)] + [row["reason"] for row in REASONS]
)
def test_an_example_is_what_the_code_says(example: str) -> None:
    assert is_said(example) or is_said(plain(example))


def test_what_nobody_says_is_no_example() -> None:
    assert not is_said("The question is too hard")


def test_every_note_of_an_indexing_run_is_in_the_catalogue() -> None:
    section = CATALOGUE.split("| note | what it counts |")[1]
    documented = {
        name for cell in re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE) for name in cell[1:-1].split("`, `")
    }
    counted = {
        value_of(node.slice, module)
        for module, found in nodes().items()
        for node in found
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "notes"
    }
    assert counted - {""} - documented == set()
    assert documented - strings_of_the_code() == set()
