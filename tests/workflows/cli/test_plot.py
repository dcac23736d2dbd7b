"""``mara plot``: a picture for a question or a workspace, in words and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace
from tests.workflows.workspaces import use_embedder
from workflows.cli.graph import plot
from workflows.explanation.pictures import structure, style
from workflows.runtime.resources import close_indexes

pytest.importorskip("matplotlib")

QUESTION = "Where does the Velm flow?"
TRIPLES: dict[str, list[TripleParts]] = {
    "velm": [("Velm", "flows into", "Lake Sund")],
    "sund": [("Lake Sund", "lies in", "Ostra [north]")],
}

Plot = Callable[..., Result]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    texts = {"velm": "Velm flows into Lake Sund.", "sund": "Lake Sund lies in Ostra [north]."}
    passages = [passage_of(key, key.title(), text) for key, text in texts.items()]
    yield publish_workspace(tmp_path_factory.mktemp("plotted") / "workspace", passages, TRIPLES).root
    close_indexes()


@pytest.fixture
def draw(root: Path, monkeypatch: pytest.MonkeyPatch) -> Plot:
    """Run the command on the workspace, with few pixels."""
    use_embedder(monkeypatch, HashEmbedder())
    monkeypatch.setattr(style, "DPI", 20)

    def run(*arguments: str | Path) -> Result:
        return CliRunner().invoke(plot, [*map(str, arguments), "-w", str(root)])

    return run


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pictures of workspaces be empty: what they show is tested elsewhere."""
    from matplotlib.figure import Figure

    for name in ("relations_figure", "degrees_figure"):
        monkeypatch.setattr(structure, name, lambda *numbers: Figure(figsize=(1, 1)))


def test_a_walk_is_drawn_for_a_question_and_the_same_for_the_same(draw: Plot, tmp_path: Path) -> None:
    options = ("--model", "offline", "--mode", "hipporag2", "--nodes", "4", "--top-k", "1")
    done = draw("walk", QUESTION, "--out", tmp_path / "a.svg", "--json", *options)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["question"], told["mode"]) == (QUESTION, "hipporag2")
    assert told["shown"]["nodes"] == sum(told["nodes"].values()) > 2
    shown = draw("walk", QUESTION, "-o", tmp_path / "b.svg", *options)
    assert shown.exit_code == 0, shown.output
    assert f"drawn in {tmp_path / 'b.svg'}" in shown.stdout.replace("\n", "")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("command", ["relations", "degrees"])
def test_a_workspace_is_drawn_with_its_numbers(draw: Plot, tmp_path: Path, command: str) -> None:
    shown = draw(command, "--out", tmp_path / "a.png")
    assert shown.exit_code == 0, shown.output
    assert ("spatial" if command == "relations" else "best connected: Lake Sund") in shown.stdout
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(draw(command, "--out", tmp_path / "b.svg", "--json").stdout)
    assert told[command]
    assert told["picture"] == str(tmp_path / "b.svg")


@pytest.mark.parametrize(
    "arguments",
    [
        ("walk", QUESTION, "--out", "a.pdf"),
        ("walk", QUESTION, "--out", "a.png", "--mode", "dense"),
        ("walk", " ", "--out", "a.png"),
        ("walk", QUESTION, "--out", "a.png", "--top-k", "0"),
        ("walk", "", "--out", "no/such/folder/a.png"),
        ("walk", QUESTION, "--out", "folder.svg"),
        ("relations", "--out", "a"),
        ("degrees", "--out", "no/such/folder/a.png"),
    ],
)
def test_what_cannot_be_drawn_exits_with_2_and_writes_nothing(
    draw: Plot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.svg").mkdir()
    refused = draw(*arguments, "--json")
    assert refused.exit_code == 2
    assert json.loads(refused.stdout)["error"]["hint"]
    assert list(tmp_path.rglob("*")) == [tmp_path / "folder.svg"]


@pytest.mark.parametrize(("name", "told"), [("a.png", True), ("a.svg", False)])
def test_boxes_in_place_of_characters_are_told(
    draw: Plot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: bool
) -> None:
    monkeypatch.setattr(structure, "save_picture", lambda path, made: 3)
    assert ("3 characters are boxes" in draw("relations", "--out", tmp_path / name).stdout) is told
