"""Corrections of a workspace: what questions find with them, through syncs, exports and kills."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graph.checks.doctor import examine_workspace
from graph.corrections.kinds import Apart, Drop, Merge, Split, Statement
from graph.errors import BadInput, WorkspaceLocked, WorkspaceMissing
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NodeType
from graph.schema import entity_id
from tests.builders import HOLD_LOCK, Child, HashEmbedder
from tests.workflows.workspaces import use_embedder
from workflows.admin.corrections import (
    correct,
    export_corrections,
    import_corrections,
    list_corrections,
    pinned,
    read_statement,
    undo,
)
from workflows.admin.inspection import published_graph
from workflows.answering import ask
from workflows.context import Context
from workflows.indexing import index_sources

QUESTION = "Who founded the company that built the Kestrel Engine?"
MAKERS = [
    ("Falke", "Oster Guild", "Nils Hove"),
    ("Sperber", "Tarn Yard", "Ole Grim"),
    ("Habicht", "Vold Union", "Liv Aas"),
    ("Milan", "Brek Shop", "Jan Dahl"),
    ("Adler", "Senn Trust", "Eva Lund"),
    ("Uhu", "Moor Forge", "Per Sand"),
]
ENGINES = [
    ("engine", "Kestrel Engine", "The Kestrel Engine was built by K.M.W. in 1921."),
    ("works", "Karst Motor Works", "Karst Motor Works was founded by Ida Brandt."),
    *((f"e{i}", f"{e} Engine", f"The {e} Engine was built by {w} in 1921.") for i, (e, w, _) in enumerate(MAKERS)),
    *((f"w{i}", w, f"{w} was founded by {p}.") for i, (_, w, p) in enumerate(MAKERS)),
]
MERGE = Merge(("Karst Motor Works", "K.M.W."), "Karst Motor Works")


def write(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    lines = [json.dumps({"id": key, "title": title, "text": text}) for key, title, text in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def indexed(folder: Path, root: Path) -> Path:
    """Bring a workspace in step with a folder of corpora."""
    index_sources([folder], root, sync=True)
    return root


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Documents about makers of engines with their workspace, by whether its vectors mean nothing."""
    folders = {is_hashed: tmp_path_factory.mktemp("engines") for is_hashed in (True, False)}
    for is_hashed, folder in folders.items():
        (folder / "docs").mkdir()
        write(folder / "docs" / "engines.jsonl", ENGINES)
        with pytest.MonkeyPatch.context() as patch:
            if is_hashed:
                use_embedder(patch, HashEmbedder())
            indexed(folder / "docs", folder / "workspace")
    return folders


@pytest.fixture
def engines(templates: dict[bool, Path], tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """These documents as a workspace."""
    is_hashed = "embedder" in request.fixturenames
    return Path(shutil.copytree(templates[is_hashed], tmp_path / "engines")) / "workspace"


@pytest.fixture
def folder(engines: Path) -> Path:
    """The documents of that workspace."""
    return engines.parent / "docs"


def asked(root: Path, question: str) -> dict[str, Any]:
    return dict(ask(question, Context(workspace=str(root), top_k=2, model="offline")))


def entities(root: Path) -> dict[str, set[str]]:
    """Return {entity: the passages it is linked with}."""
    with published_graph(root) as (_, graph):
        linked: dict[str, set[str]] = {label: set() for label in graph.entity_labels}
        for source, target in zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True):
            if target >= graph.n_entities:
                linked[graph.entity_labels[source]].add(graph.passages[target - graph.n_entities].id)
        return linked


class TestQuestions:
    def test_names_that_are_one_let_a_question_of_two_hops_through(self, engines: Path) -> None:
        for question in (QUESTION, "Who founded K.M.W.?"):
            assert "Ida Brandt" not in asked(engines, question)["answer"]
        done = correct(engines, [MERGE])
        assert (done["passages"], done["made"][0]["passages"]) == (1, 1)
        for question in (QUESTION, "Who founded K.M.W.?"):
            assert "Ida Brandt" in asked(engines, question)["answer"]
        undo(engines, [1])
        assert "Ida Brandt" not in asked(engines, QUESTION)["answer"]

    def test_a_fact_can_be_named_by_its_id(self, engines: Path) -> None:
        with published_graph(engines) as (_, graph):
            key, fact = next(iter(graph.facts.items()))
        named = read_statement(engines, key)
        assert (named.subject, named.relation) == (fact.fact.subject, fact.fact.relation.value)
        for text, says in (("fact-0", "No passage states"), ("a | b", "names no fact"), ("a|b|c|d", "names no fact")):
            with pytest.raises(BadInput, match=says):
                read_statement(engines, text)
        with pytest.raises(BadInput, match="is no relation type"):
            read_statement(engines, "a | b | c", "SYNONYMY")


@pytest.mark.usefixtures("embedder")
class TestSurviving:
    def test_what_was_exported_corrects_a_workspace_of_the_same_documents(
        self, folder: Path, engines: Path, tmp_path: Path
    ) -> None:
        correct(engines, [MERGE, Apart(("Oster Guild", "Oster Gild"))], "seen in the register")
        correct(engines, [Drop(Statement("a", "b", "c"))])
        undo(engines, [3])
        assert export_corrections(engines, tmp_path / "c.jsonl")["standing"] == 2
        other = indexed(folder, tmp_path / "other")
        done = import_corrections(other, tmp_path / "c.jsonl")
        assert ([each["note"] for each in done["made"]], done["left_out"]) == (["seen in the register"] * 2, 1)
        assert entities(other) == entities(engines)
        assert examine_workspace(other).ok
        again = import_corrections(other, tmp_path / "c.jsonl")
        assert (again["made"], len(again["known"])) == ([], 2)


KILLED = """
import os, signal, sys
from pathlib import Path
from graph.corrections.kinds import Merge
from graph.storage.record import Record
from workflows.admin import corrections
place = sys.argv[2]
def kill(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
if place == "within the transaction":
    Record._count_up = kill
else:
    corrections.publish = kill
corrections.correct(Path(sys.argv[1]), [Merge(("Karst Motor Works", "K.M.W."), "Karst Motor Works")])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("place", "made"), [("within the transaction", 0), ("before it is published", 1)])
def test_a_correction_that_is_killed_was_made_whole_or_not_at_all(engines: Path, place: str, made: int) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(engines), place], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(list_corrections(engines)["corrections"]) == made
    assert ("Ida Brandt" in asked(engines, QUESTION)["answer"]) == bool(made)
    assert len(correct(engines, [MERGE])["known"]) == made
    assert "Ida Brandt" in asked(engines, QUESTION)["answer"]
    assert examine_workspace(engines).ok


@pytest.mark.usefixtures("embedder")
def test_the_relationship_graph_follows(engines: Path) -> None:
    def concepts() -> set[str]:
        with RelationshipRecord.of(engines) as relationships:
            return {node.id for node in relationships.nodes(NodeType.CONCEPT)}

    assert entity_id("K.M.W.") in concepts()
    correct(engines, [MERGE])
    assert entity_id("K.M.W.") not in concepts()
    undo(engines, [1])
    assert entity_id("K.M.W.") in concepts()


@pytest.mark.usefixtures("embedder")
class TestRefusals:
    def test_a_place_that_is_not_there(self, engines: Path) -> None:
        with pytest.raises(BadInput, match="no source, document or passage 'hr"):
            correct(engines, [Split("John Smith", ("hr.csv",), "Another")])
        with pytest.raises(BadInput, match="is no passage"):
            correct(engines, [pinned(engines, "a | b | c", "engines.jsonl")])

    def test_no_workspace_and_another_writer_at_work(self, engines: Path, tmp_path: Path) -> None:
        for dry_run in (True, False):
            with pytest.raises(WorkspaceMissing):
                correct(tmp_path / "none", [MERGE], dry_run=dry_run)
        with pytest.raises(WorkspaceMissing):
            list_corrections(tmp_path / "none")
        with Child(HOLD_LOCK, engines) as other:
            other.hear()
            with pytest.raises(WorkspaceLocked):
                correct(engines, [MERGE])
        assert correct(engines, [MERGE], dry_run=True)["examples"][0]["now"]
        assert not list_corrections(engines)["corrections"], "a dry run writes nothing"

    def test_a_line_that_is_no_correction(self, engines: Path, tmp_path: Path) -> None:
        for line in ["{", "[]", '{"kind": "merge"}', "nonsense", '{"kind": "drop", "fact": 7}']:
            export_corrections(engines, tmp_path / "c.jsonl")
            (tmp_path / "c.jsonl").write_text(f'{{"kind": "apart", "names": ["a", "b"]}}\n{line}\n', encoding="utf-8")
            with pytest.raises(BadInput, match="line 2"):
                import_corrections(engines, tmp_path / "c.jsonl")
            assert not list_corrections(engines)["corrections"], line
