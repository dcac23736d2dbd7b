"""The small world, indexed without weights: for tests that ask it as a client of a server does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import HashEmbedder
from tests.workflows.small_world import write_corpus
from tests.workflows.workspaces import use_embedder
from workflows.indexing import index_sources


def hashed_world(folder: Path) -> Path:
    """Index the small world into a workspace in a folder; a question to it must use the same embedder."""
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        corpus, triples = write_corpus(folder)
        index_sources([corpus], folder / "workspace", triples)
    return folder / "workspace"
