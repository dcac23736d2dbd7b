"""A command made of a function: its groups of options, its workspace, and what it prints."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.testing import CliRunner

from workflows.cli.command import Everywhere, Group, Shown, command


@dataclass
class Sizes(Group):
    width: int = 1
    height: Annotated[int, typer.Option("--tall", help="How tall it is.")] = 2


def drawn(name: str, sizes: Sizes, *, workspace: Path, refused: bool = False) -> Shown:
    """Draw it."""
    value = {"name": name, "area": sizes.width * sizes.height, "workspace": str(workspace)}
    return Shown(value, "It is [bold]drawn[/]", 5 if refused else 0)


def run(*arguments: str, workspace: str = "", as_json: bool = False) -> Any:
    app = typer.Typer()
    app.command()(command(drawn))
    everywhere = Everywhere(Path(workspace) if workspace else None, as_json)
    return CliRunner().invoke(app, [*arguments], obj=everywhere)


def test_a_group_stands_for_its_options() -> None:
    assert json.loads(run("box", "--width", "3", "--tall", "4", as_json=True).stdout)["area"] == 12
    assert json.loads(run("box", as_json=True).stdout)["area"] == 2


def test_people_read_words_and_the_exit_code_tells_what_was_refused() -> None:
    outcome = run("box", "--refused")
    assert (outcome.stdout, outcome.exit_code) == ("It is drawn\n", 5)
