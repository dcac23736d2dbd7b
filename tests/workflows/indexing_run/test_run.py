"""Indexing, sync and removal: a workspace equals a fresh index of its documents, whatever changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.errors import BadInput, WorkspaceLocked, WorkspaceMissing
from graph.relationships.documents import is_in_step
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from graph.relationships.schema import NodeType
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder
from tests.damages import damage_pages
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import (
    BRANDT,
    KARV,
    ROWS,
    SUND,
    VELM,
    Indexer,
    ask,
    content_of,
    facts_in,
    texts_in,
    use_embedder,
)
from workflows.admin import removal
from workflows.admin.inspection import workspace_stats
from workflows.admin.removal import remove_passages
from workflows.admin.upkeep import run_doctor
from workflows.indexing import index_sources
from workflows.indexing_run import run
from workflows.indexing_run.preview import preview_changes
from workflows.runtime.resources import close_indexes
from workflows.settings.indexing import IndexingContext

pytestmark = pytest.mark.usefixtures("embedder")

NAMES = ("velm.txt", "sund.md", "deep/karv.txt", "deep/brandt.md", "rows.jsonl")
LONG = "\n\n".join(f"In {1700 + n} the dam of Karv was raised again by the guild of Ostra." for n in range(40))
CONTENTS = (
    "Velm\n\nThe Velm is a river in Ostra.",
    "# Lake Sund\n\nLake Sund was dammed in 1911 by Ida Brandt.",
    "Karv is a harbour in Белогорка. 青石鎮 lies near it.",
    f"# The dam\n\n{LONG}",
)
LINE = '{{"id": "{0}", "title": "Row {0}", "text": "Row {0} was written in 1{0} by Ida Brandt."}}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "documents"
    place.mkdir()
    return place


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    close_indexes()


def lay_out(folder: Path, files: Mapping[str, str]) -> None:
    """Make a folder hold these files and no others."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def content_for(name: str, choice: int) -> str:
    if name == "rows.jsonl":
        return "".join(LINE.format(100 * choice + row) for row in range(choice, 3 + choice))
    return CONTENTS[choice]


layouts = st.dictionaries(st.sampled_from(NAMES), st.integers(0, len(CONTENTS) - 1), min_size=1)


@settings(max_examples=2, deadline=None)
@given(st.lists(layouts, min_size=2, max_size=2))
def test_after_any_edits_of_a_folder_the_workspace_is_that_of_a_fresh_index(edits: list[dict[str, int]]) -> None:
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        folder, root = Path(place) / "documents", Path(place) / "workspace"
        for layout in edits:
            lay_out(folder, {name: content_for(name, choice) for name, choice in layout.items()})
            synced = index_sources([folder], root, sync=True, settings=IndexingContext(replace_all=True))
            assert synced.passages == synced.added + synced.replaced + synced.unchanged
            again = index_sources([folder], root, sync=True)
            assert (again.added, again.replaced, again.removed) == (0, 0, 0)
            assert again.generation == synced.generation
        index_sources([folder], Path(place) / "fresh")
        assert content_of(root) == content_of(Path(place) / "fresh")


def test_a_sync_counts_the_passages_that_it_adds_changes_and_removes(
    folder: Path, root: Path, embedder: HashEmbedder
) -> None:
    write_lines(folder / "corpus.jsonl", list(ROWS))
    index_sources([folder], root, sync=True)
    write_lines(folder / "corpus.jsonl", [VELM, {**KARV, "text": "Karv is gone."}, {**SUND, "id": "new"}])
    report = index_sources([folder], root, sync=True)
    assert (report.added, report.replaced, report.removed, report.unchanged) == (1, 1, 3, 1)
    assert texts_in(root).keys() == {"velm", "karv", "new"}
    asked = len(embedder.asked)
    write_lines(folder / "corpus.jsonl", [VELM])
    report = index_sources([folder], root, sync=True)
    assert (report.removed, report.passages, report.extracted) == (2, 1, 0)
    assert len(embedder.asked) == asked, "a sync that only removes embeds nothing"


def test_a_folder_that_holds_nothing_of_a_workspace_is_refused_unless_everything_may_go(
    folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(folder / "corpus.jsonl", list(ROWS))
    index_sources([folder], root, sync=True)
    before = content_of(root)
    write_lines(folder / "corpus.jsonl", [{**VELM, "id": "other"}])
    with pytest.raises(BadInput, match=r"None of the 5 passages.*--replace-all"):
        index_sources([folder], root, sync=True)
    with monkeypatch.context() as server:
        server.setattr(run, "serves_clients", lambda: True)
        with pytest.raises(BadInput, match=r"None of the 5 passages") as refused:
            index_sources([folder], root, sync=True)
    assert "replace" not in str(refused.value)
    assert content_of(root) == before
    report = index_sources([folder], root, sync=True, settings=IndexingContext(replace_all=True))
    assert (report.added, report.removed, report.passages) == (1, 5, 1)


def test_an_empty_folder_never_empties_a_workspace(folder: Path, root: Path) -> None:
    write_lines(folder / "corpus.jsonl", list(ROWS))
    index_sources([folder], root, sync=True)
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(BadInput, match="no text"):
        index_sources([folder], root, sync=True, settings=IndexingContext(replace_all=True))
    assert len(texts_in(root)) == 5


def test_passages_of_a_file_that_cannot_be_read_this_time_stay_and_are_counted(folder: Path, root: Path) -> None:
    lay_out(folder, {"deep/karv.txt": CONTENTS[2], "velm.txt": CONTENTS[0], "sund.md": CONTENTS[1]})
    first = index_sources([folder], root, sync=True)
    (folder / "deep" / "karv.txt").write_bytes(b"caf\xe9")
    (folder / "velm.txt").unlink()
    report = index_sources([folder], root, sync=True)
    assert (report.removed, report.kept_of_refused, report.refused_count) == (1, 1, 1)
    assert report.passages == first.passages - 1
    assert CONTENTS[2] in texts_in(root).values()


def test_a_dry_run_names_what_would_change_and_writes_nothing(folder: Path, root: Path) -> None:
    write_lines(folder / "corpus.jsonl", [VELM, SUND])
    fresh = preview_changes([folder], root, sync=True)
    assert (fresh["added"], fresh["changed"], fresh["removed"]) == (["velm", "sund"], [], [])
    assert not root.exists()

    index_sources([folder], root, sync=True)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    (folder / "corpus.jsonl").rename(folder / "moved.jsonl")
    write_lines(folder / "moved.jsonl", [VELM, KARV])
    plan = preview_changes([folder], root, sync=True, sample=2)
    assert (plan["added"], plan["changed"], plan["removed"]) == (["karv"], ["velm"], ["sund"])
    assert plan["sources"] == {"added": ["moved.jsonl"], "changed": ["moved.jsonl"], "removed": ["corpus.jsonl"]}
    assert plan["extraction"]["passages"] == 2
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of documents and the workspace that they were indexed into, side by side."""
    place = tmp_path_factory.mktemp("filled")
    lay_out(place / "documents", {"dam.md": CONTENTS[3], "velm.txt": CONTENTS[0]})
    write_lines(place / "documents" / "corpus.jsonl", list(ROWS))
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        index_sources([place / "documents"], place / "workspace")
    return place


def interrupted(*arguments: object, **settings: object) -> None:
    raise KeyboardInterrupt


class TestRemoving:
    @pytest.fixture
    def filled(self, template: Path, folder: Path, root: Path) -> Path:
        shutil.copytree(template / "documents", folder, dirs_exist_ok=True)
        return Path(shutil.copytree(template / "workspace", root))

    def test_passages_go_by_id_with_all_that_only_they_had(self, filled: Path, tmp_path: Path, folder: Path) -> None:
        done = remove_passages(filled, ["velm", "karv"])
        assert (done["removed"], done["workspace"]) == (["karv", "velm"], str(filled))
        write_lines(folder / "corpus.jsonl", [row for row in ROWS if row["id"] not in ("velm", "karv")])
        index_sources([folder], tmp_path / "fresh")
        assert content_of(filled) == content_of(tmp_path / "fresh")

    def test_all_passages_of_a_source_or_a_document_go(self, filled: Path) -> None:
        with Workspace(filled).open_record() as record:
            sources, documents = record.sources(), record.documents()
        parts = {key for key, source in sources.items() if source == "dam.md"}
        assert len(parts) > 2
        (document,) = {documents[key] for key in parts}
        assert set(remove_passages(filled, [document])["removed"]) == parts
        done = remove_passages(filled, sources=["velm.txt"])
        assert (len(done["removed"]), done["passages"]) == (1, 5)

    def test_unknown_names_are_refused_before_anything_goes(self, filled: Path) -> None:
        before = content_of(filled)
        with pytest.raises(BadInput, match=r"no passage or document named 'nobody'.* no source named 'none\.txt'"):
            remove_passages(filled, ["velm", "nobody"], ["velm.txt", "none.txt"])
        with pytest.raises(BadInput, match="Nothing is named"):
            remove_passages(filled)
        assert content_of(filled) == before

    def test_after_the_last_passage_readers_refuse_the_workspace(self, root: Path, tmp_path: Path) -> None:
        write_lines(tmp_path / "corpus.jsonl", [VELM])
        index_sources([tmp_path / "corpus.jsonl"], root)
        assert ask(root, "Where does the Velm flow?")["passages"]
        done = remove_passages(root, ["velm"])
        assert done["passages"] == 0
        assert run_doctor(root, repair=False)["ok"]
        with pytest.raises(WorkspaceMissing, match="holds no passage"):
            ask(root, "Where does the Velm flow?")
        for reader in (workspace_stats, lambda place: remove_passages(place, ["nobody"])):
            with pytest.raises(WorkspaceMissing, match="holds no passage"):
                reader(root)
        assert index_sources([tmp_path / "corpus.jsonl"], root).added == 1
        assert ask(root, "Where does the Velm flow?")["passages"]

    @pytest.mark.parametrize("last", [False, True])
    def test_one_that_was_broken_off_before_readers_knew_ends_when_it_is_asked_for_again(
        self, filled: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: bool
    ) -> None:
        with Workspace(filled).open_record() as record:
            every, sources = sorted(record.fingerprints()), sorted(set(record.sources().values()))
        ids, named = ([], sources) if last else (["velm", "karv"], [])
        gone = every if last else ["karv", "velm"]
        whole = Path(shutil.copytree(filled, tmp_path / "whole"))
        undisturbed = remove_passages(whole, ids, named)
        assert undisturbed["removed"] == gone
        with monkeypatch.context() as broken:
            for name in ("publish", "withdraw"):
                place = Workspace if name == "withdraw" else removal
                broken.setattr(place, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                remove_passages(filled, ids, named)
        fault = r"workspace at .* holds no passage" if last else "no passage or document named 'nobody'"
        with pytest.raises(BadInput, match=fault):
            remove_passages(filled, ["nobody"])
        for _ in range(2):
            again = remove_passages(filled, ids, named)
            assert again | {"workspace": "", "generation": 0} == undisturbed | {"workspace": "", "generation": 0}
        assert run_doctor(filled)["ok"]
        assert last or content_of(filled) == content_of(whole)
        write_lines(tmp_path / "more.jsonl", [{"id": "orlo", "title": "Orlo", "text": "Orlo lies in Ostra."}])
        index_sources([tmp_path / "more.jsonl"], filled)
        with pytest.raises(BadInput):
            remove_passages(filled, ids, named)

    def test_no_embedding_model_is_needed_but_the_lock(self, filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_embedder(monkeypatch, HashEmbedder("another"))
        with Workspace(filled).writing(), pytest.raises(WorkspaceLocked):
            remove_passages(filled, ["velm"])
        assert "velm" in texts_in(filled)
        assert remove_passages(filled, ["velm"])["removed"] == ["velm"]


def test_triples_are_taken_by_id_else_by_the_exact_text_and_the_rest_is_extracted(
    index: Indexer, root: Path, tmp_path: Path
) -> None:
    triples = tmp_path / "triples.jsonl"
    rows: list[Any] = [
        {"id": "velm", "triples": [["Velm", "ends at", "Lake Sund"]]},
        {"passage": f"{SUND['title']}\n{SUND['text']}", "triples": [["Lake Sund", "dammed by", "Ida Brandt"]]},
        {"passage": BRANDT["text"], "triples": [["Ida Brandt", "came from", "Karv", "SPATIAL", 0.8]]},
        {"id": "nobody", "triples": [["Nobody", "knows", "this"]]},
        {"passage": "A text that no passage has.", "triples": []},
    ]
    write_lines(triples, rows)
    report = index(ROWS, triples=triples)
    assert (report.imported, report.extracted, report.unmatched_triples) == (3, 2, 2)
    facts = facts_in(root)
    assert {("Velm", "ends at", "Lake Sund"), ("Ida Brandt", "came from", "Karv")} <= facts
    assert ("Nobody", "knows", "this") not in facts
    assert any(subject == "Ostra" for subject, _, _ in facts)


def test_a_source_that_gives_nothing_is_bad_input_and_leaves_no_workspace(root: Path, tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(b"%PDF")
    (tmp_path / "broken.jsonl").write_text("{\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    for name in ("missing.txt", "paper.pdf", "broken.jsonl", "empty.txt", "empty"):
        with pytest.raises(BadInput, match=name) as failure:
            index_sources([tmp_path / name], root)
        assert failure.value.hint
    assert not root.exists()


def test_a_corpus_without_a_single_fact_or_name_still_answers(root: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    write_lines(corpus, [{"id": "a", "text": "very slowly indeed"}, {"id": "b", "text": "and quite softly too"}])
    report = index_sources([corpus], root)
    assert (report.passages, report.facts) == (2, 0)
    for mode in ("mara", "hipporag2", "mara-matrix", "dense", "sparse", "hybrid"):
        result = ask(root, "who goes softly?", mode=mode)
        assert "b" in [hit["id"] for hit in result["passages"]]
        assert result["facts"] == []
        assert result["answer"]
    assert ask(root, "who goes softly?", mode="hipporag2")["ranked_by"] == "dense"
    assert ask(root, "who goes softly?")["fact_outcome"] == "nothing relevant"


def documents(root: Path) -> list[str]:
    with RelationshipRecord.of(root) as record:
        return [node.id for node in record.nodes(NodeType.DOCUMENT)]


def in_step(root: Path) -> bool:
    with Workspace(root).open_record() as record, RelationshipRecord.of(root) as relationships:
        return is_in_step(relationships, record)


def test_a_run_counts_its_changes_of_the_relationship_graph(index: Indexer, root: Path) -> None:
    first = index([VELM, SUND]).relationships
    assert (first["new"], first["changed"], first["gone"], first["chunks"]) == (2, 0, 0, 2)
    assert documents(root) == ["sund", "velm"]
    again = index([VELM, SUND]).relationships
    assert not any(again.values())
    changed = index([{**VELM, "text": "The Velm is a long river."}, KARV], sync=True).relationships
    assert (changed["new"], changed["changed"], changed["gone"]) == (1, 1, 1)
    assert documents(root) == ["karv", "velm"]


def test_a_damaged_relationship_graph_loses_no_run_which_says_how_to_mend_it(index: Indexer, root: Path) -> None:
    index([SUND])
    damage_pages(root / RELATIONSHIPS_FILE)
    report = index([SUND, VELM])
    assert report.passages == 2
    problem = str(report.relationships["problem"])
    assert "cannot be read" in problem
    assert problem.endswith("delete it: conversations and views in it are then lost")
    (root / RELATIONSHIPS_FILE).unlink()
    assert index([SUND, VELM]).relationships["new"] == 2


def test_removing_brings_the_relationship_graph_in_step_and_makes_none(index: Indexer, root: Path) -> None:
    index([VELM, SUND, KARV], settings=IndexingContext(relationships=False))
    assert remove_passages(root, ["karv"])["relationships"] == {}
    assert not (root / RELATIONSHIPS_FILE).exists()
    index([VELM, SUND])
    remove_passages(root, ["sund"])
    assert documents(root) == ["velm"]
    remove_passages(root, ["velm"])
    assert documents(root) == []
    assert in_step(root)


def test_a_removed_passage_is_in_no_byte_of_the_relationship_graph(index: Indexer, root: Path) -> None:
    index([VELM, {**SUND, "title": "A secret lake"}])
    assert any(b"A secret lake" in path.read_bytes() for path in root.glob(f"{RELATIONSHIPS_FILE}*"))
    remove_passages(root, ["sund"])
    assert not any(b"A secret lake" in path.read_bytes() for path in root.glob(f"{RELATIONSHIPS_FILE}*"))
