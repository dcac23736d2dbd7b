"""A generation is the same, byte for byte, however much is worked on at once, and by how many processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.build import Sizes, build_generation, derive_graph
from graph.construction.edges import PASSAGE_CLASSES
from graph.construction.knowledge_graph import load
from graph.corrections.kinds import Apart, Merge, Pin, Split, Statement, What
from graph.errors import WorkspaceDamaged
from graph.relations import PassageClasses
from graph.schema import Extraction, Passage, RelationType
from graph.storage.correcting import plan_corrections
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace, write_passages
from tests.graph.storage import test_correcting_any_sequence as correcting

SMALL = Sizes(shard=2, names=3, edges=4)
"""So that every boundary is crossed."""

WRITTEN_AS = [
    passage_of("hr", "", "John Smith works at I.B.M. in Velm."),
    passage_of("news", "IBM (company)", "John Smith won the cup. IBM paid, says ibm.com."),
    passage_of("part 1", "Big Blue", "Nobody but John Smith and I.B.M. knew.", chunk=0, document="d"),
    passage_of("part 2", "Big Blue", "big blue again, and 日産.", chunk=1, document="d"),
]
STATED: dict[str, Sequence[TripleParts]] = {
    "hr": [("John Smith", "works at", "I.B.M.", RelationType("EMPLOYS"))],
    "news": [("John Smith", "won", "the cup"), ("IBM", "paid", "the cup")],
    "part 2": [("john smith", "Won", "the cup")],
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return publish_workspace(tmp_path / "workspace", WRITTEN_AS, STATED)


@pytest.fixture
def record(workspace: Workspace) -> Iterator[Record]:
    with workspace.open_record() as record:
        yield record


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def built(workspace: Workspace, record: Record, folder: Path, *, sizes: Sizes = SMALL) -> dict[str, bytes]:
    folder.mkdir()
    build_generation(record, folder, workspace.build_cache, sizes=sizes)
    return files_of(folder)


def built_at_once(record: Record, folder: Path) -> dict[str, bytes]:
    """Return the files that a build writes that holds all in one shard and one range, and takes nothing over."""
    folder.mkdir()
    derive_graph(record, folder)
    return files_of(folder)


def assert_same_files(workspace: Workspace, record: Record, *, sizes: Sizes = SMALL) -> None:
    with TemporaryDirectory() as folder:
        in_parts = built(workspace, record, Path(folder) / "parts", sizes=sizes)
        at_once = built_at_once(record, Path(folder) / "once")
        assert {name for name in in_parts if in_parts[name] != at_once.get(name)} == set()
        assert in_parts.keys() == at_once.keys()


@settings(max_examples=4, deadline=None)
@given(correcting.first, st.lists(correcting.corrections, min_size=1, max_size=4))
def test_any_corrections_give_the_same_files(corpus: list[tuple[Passage, Extraction]], corrections: list[What]) -> None:
    with TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder) / "workspace")
        workspace.create()
        with workspace.open_record() as record:
            world = correcting.World(record, Path(folder))
            world.take((corpus, set()))
            for correction in corrections:
                world.take(correction)
            assert_same_files(workspace, record)


def test_corrections_and_published_classes_give_the_same_files(workspace: Workspace, record: Record) -> None:
    made: list[What] = [
        Merge(("IBM", "I.B.M."), "IBM"),
        Split("John Smith", ("news",), "John Smith the younger"),
        Pin(Statement("Velm", "is near", "the cup", "OWNS"), "part 1"),
        Apart(("John Smith", "John Smith the younger")),
    ]
    plan_corrections(record, [(one, "") for one in made]).commit(record, HashEmbedder())
    assert_same_files(workspace, record)
    record.change_setting(PASSAGE_CLASSES, PassageClasses.PUBLISHED)
    assert_same_files(workspace, record)


def test_what_a_passage_says_is_read_again_only_where_its_neighbourhood_changed(
    workspace: Workspace, record: Record, tmp_path: Path
) -> None:
    built(workspace, record, tmp_path / "first")
    before = {folder.name for folder in workspace.build_cache.iterdir()}
    write_passages(record, [passage_of("part 3", "Velm", "Velm is a town.")], {}, HashEmbedder())
    assert_same_files(workspace, record)
    after = {folder.name for folder in workspace.build_cache.iterdir()}
    assert before & after
    assert len(after - before) == 1


def test_a_build_that_fails_leaves_no_snapshot_and_nothing_to_tidy_up(
    workspace: Workspace, record: Record, tmp_path: Path
) -> None:
    with record.transaction():
        record._db.execute("DELETE FROM names WHERE name = 'velm'")
        record._db.execute("DELETE FROM names WHERE name = 'john smith'")
    with pytest.raises(WorkspaceDamaged, match="lacks the vectors"):
        built(workspace, record, tmp_path / "failed")
    assert not (tmp_path / "failed" / "building").exists()
    with pytest.raises(OSError, match=r"snapshot\.json"):
        load(tmp_path / "failed")
