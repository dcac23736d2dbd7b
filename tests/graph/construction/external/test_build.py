"""A generation that is built on disk is the one that is built in memory, byte for byte."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from graph.construction.builder import GraphBuilder
from graph.construction.external.build import Sizes, build_on_disk
from graph.construction.knowledge_graph import save
from graph.schema import Extraction, Passage
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from graph.storage.writer import Writer
from tests.builders import HashEmbedder
from tests.graph.construction.test_builder_changes import extractions, passages

SMALL = Sizes(shard=2, names=3, edges=4)


def assert_same_files(workspace: Workspace, record: Record, *, processes: int = 0, sizes: Sizes = SMALL) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        builder = GraphBuilder()
        save(builder.build(record), Path(one))
        builder.sparse().save(Path(one) / "bm25")
        build_on_disk(workspace, record, Path(other), processes=processes, sizes=sizes)
        assert files_of(Path(other)) == files_of(Path(one))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(passages, extractions), max_size=8, unique_by=lambda item: item[0].id))
def test_any_corpus_gives_the_same_files(corpus: list[tuple[Passage, Extraction]]) -> None:
    with TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder) / "workspace")
        workspace.create()
        with workspace.open_record() as record:
            Writer(record, HashEmbedder()).write(corpus)
            assert_same_files(workspace, record)
