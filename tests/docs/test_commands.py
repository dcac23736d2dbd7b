"""Every command line of the documentation is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer.main
from typer.exceptions import TyperException

from tests.docs.pages import PAGES, blocks, inline_code, read
from workflows.cli.app import app
from workflows.cli.command_line import options_first

SHELL = ("", "bash", "sh", "console")
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
ENDS = ("|", "||", "&&", ";", ">", ">>", "2>", "<", "&")
SYNOPSIS = re.compile(r"\[-|\.\.\.(?=\s|$)|\|")


@cache
def commands() -> Any:
    return typer.main.get_command(app)


def command_lines(page: Path) -> Iterator[str]:
    """The command lines that a page's blocks show, whole and without the prompt."""
    for block in blocks(read(page)):
        if block.kind in SHELL:
            body = re.sub(r"<<'?(\w+)'?\n.*?^\1$", "", block.body, flags=re.DOTALL | re.MULTILINE)
            for line in body.replace("\\\n", " ").splitlines():
                yield from split_commands(line.removeprefix("$ "))


def split_commands(line: str) -> Iterator[str]:
    """The runs of `mara` in a line of a shell; what stands in double quotes does not end one."""
    for part in re.split(r"\s(?:&&|\|\||;|\|)\s(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", line):
        words = part.strip()
        if words.startswith("mara "):
            yield words


def arguments(line: str) -> list[str]:
    """The words of a command line up to where the shell takes over."""
    words = shlex.split(line, comments=True)[1:]
    end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
    return words[:end]


def behind_the_options_of_every_command(words: list[str]) -> list[str]:
    """The words behind the options that every command takes."""
    ordered = options_first(words)
    while ordered and ordered[0].startswith(("-w", "--workspace", "--json")):
        del ordered[: 2 if ordered[0] in ("-w", "--workspace") else 1]
    return ordered


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that words name, and what is left of them."""
    command = commands()
    rest = behind_the_options_of_every_command(words)
    while known := getattr(command, "commands", {}):
        if rest and rest[0] in known:
            command = known[rest.pop(0)]
        elif default := getattr(command, "default", ""):
            command = known[default]
        elif rest and not rest[0].startswith("-"):
            raise LookupError(f"no such command: {rest[0]}")
        else:
            break
    return command, rest


def problem_of(line: str) -> str:
    """What is wrong with a command line; empty where nothing is. A synopsis is looked through for its options alone."""
    try:
        if SYNOPSIS.search(line):
            command, _ = command_of(
                [word for word in re.split(r"\s+", line)[1:] if re.fullmatch(r"[a-z][a-z-]*", word)][:2]
            )
            known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)} | {
                "--help",
                "--workspace",
                "--json",
            }
            unknown = [flag for flag in FLAG.findall(line) if flag not in known]
            return f"no such option: {', '.join(unknown)}" if unknown else ""
        command, rest = command_of(arguments(line))
        if "--help" not in rest and rest != []:
            command.make_context("mara", rest)
    except (TyperException, LookupError) as fault:
        return str(getattr(fault, "message", fault)) or type(fault).__name__
    return ""


def test_command_lines_are_taken() -> None:
    found = {(page.name, line): problem_of(line) for page in PAGES for line in command_lines(page)}
    assert len(found) > 100
    assert {line: problem for line, problem in found.items() if problem} == {}


def test_commands_named_in_the_text_exist_with_their_options() -> None:
    named = [(page.name, code) for page in PAGES for code in inline_code(read(page)) if code.startswith("mara ")]
    problems = {(page, code): problem_of(f"{code} ...") for page, code in named if "COMMAND" not in code}
    assert {line: problem for line, problem in problems.items() if problem} == {}
