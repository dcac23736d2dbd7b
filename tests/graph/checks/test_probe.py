"""Damage to a search index that ends whatever process reads it: a process of its own finds it out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graph.checks.doctor import examine_workspace, repair_workspace, why_unreadable
from tests.builders import DIMENSION, TripleParts, passage_of, publish_workspace
from tests.damages import problems, said

FACTS: list[TripleParts] = [(f"{n} thing", "is", "text") for n in range(1_100)]
"""Enough of them that Chroma writes their links to the disk."""

_COUNT = 4
_LINKS = _COUNT + 32 * 4
_ROW = _LINKS + DIMENSION * 4 + 8


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("probe") / "workspace"
    publish_workspace(root, [passage_of("ab", "Title ab", "text")], {"ab": FACTS})
    return root


def damage_links(folder: Path) -> None:
    """Let the neighbours of every vector be ones far outside; a row is links, a vector and a label."""
    path = max(folder.glob("*/*/data_level0.bin"), key=lambda path: path.stat().st_size)
    content = np.frombuffer(bytearray(path.read_bytes()), dtype=np.uint8)
    rows = content[: len(content) // _ROW * _ROW].reshape(-1, _ROW)
    rows[:, _COUNT:_LINKS] = 0x7F
    path.write_bytes(content.tobytes())


@pytest.mark.slow
def test_what_ends_its_reader_is_found_and_repaired(root: Path) -> None:
    damage_links(root / "index" / "1" / "chroma")
    before, _, after = repair_workspace(root)
    assert problems(before) == {"search index": True}
    assert "ends the process that reads it" in said(before, "search index")
    assert after.ok
    assert examine_workspace(root).ok


@pytest.mark.slow
def test_what_cannot_be_opened_is_told_in_chromas_words(tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path, [passage_of("ab", "Title ab", "text")])
    for path in workspace.index_folder(1).glob("chroma/*/chroma.sqlite3"):
        path.write_bytes(b"garbage" * 100)
    assert "not a database" in why_unreadable(tmp_path, 1)
