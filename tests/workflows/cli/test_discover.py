"""`mara graph documents --next`, `mara show passage`, and the options of `mara ask` that use the relationship graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import HashEmbedder
from tests.workflows.command_line import Mara
from tests.workflows.reading_world import read, reading_world, talk
from tests.workflows.workspaces import use_embedder
from workflows.runtime.resources import close_indexes

QUESTION = "What happened at the lake?"
PERSONAL = ("--set", "personalise=true", "--user", "mia", "--set", "remember=[]")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    world = reading_world(tmp_path_factory.mktemp("discovering"))
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        read(world, "mia", "of-b-two")
        talk(world, "of mia", "Who founded the Amstel Office?", "mia", ["of-a-two"])
        yield world
    close_indexes()


@pytest.fixture(autouse=True)
def embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    use_embedder(monkeypatch, HashEmbedder())


class TestDiscover:
    def test_documents_come_with_reasons(self, mara: Mara, root: Path) -> None:
        out = mara("graph", "documents", "--next", "Olaf Amstel", "-w", root, "-k", "10").out
        assert "1. " in out
        assert "   the topic is about Olaf Amstel → " in out

    def test_who_did_nothing_is_told_so_and_something_has_to_be_named(self, mara: Mara, root: Path) -> None:
        nothing = mara("graph", "documents", "--next", "-w", root, "--user", "tom")
        assert nothing.out.startswith("Nothing to propose")
        done = mara("graph", "documents", "--next", "-w", root)
        assert (done.code, "Give a topic, a user or a conversation" in done.err) == (2, True)


class TestProvenance:
    def test_it_is_told_line_by_line_and_whole_as_json(self, mara: Mara, root: Path) -> None:
        out = mara("show", "passage", "of-a-two", "-w", root, "--user", "mia").out
        for words in ("Olaf Amstel (of-a-two)", "corpus.jsonl", "chunk 0", "hash (64)", "1 user", "of mia [1]"):
            assert words in out
        record = mara("show", "passage", "of-b-two", "-w", root, "--json").json
        assert (record["viewers"], record["cited_in"]) == (1, [])
        done = mara("show", "passage", "nope", "-w", root)
        assert (done.code, "no passage of that id" in done.err) == (2, True)


class TestAsking:
    def test_the_terminal_tells_which_passages_moved_and_why(self, mara: Mara, root: Path) -> None:
        assert "moved up from" in mara("ask", QUESTION, "-w", root, *PERSONAL, "--mode", "dense", "--verbose").out
        assert "moved" not in mara("ask", QUESTION, "-w", root, "--mode", "dense", "--verbose").out
