from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

from graph.minilm import MiniLMEmbedder
from graph.schema import Passage
from graph.workspace import Workspace
from tests.builders import HashEmbedder, TripleParts, publish_workspace

# The same examples in every run, however busy the machine is; `--hypothesis-profile=default` looks for new ones.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")

CONFIGURING = ("OPENAI_", "MARA_", "LANGSMITH_", "LANGCHAIN_")


class WorkspaceFactory(Protocol):
    """Publishes a workspace of passages and, by passage id, their triples."""

    def __call__(
        self, passages: Sequence[Passage], triples: Mapping[str, Sequence[TripleParts]] | None = None
    ) -> Workspace: ...


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(CONFIGURING):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


@pytest.fixture
def hash_embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def workspace_of(tmp_path: Path, hash_embedder: HashEmbedder) -> WorkspaceFactory:
    def make(passages: Sequence[Passage], triples: Mapping[str, Sequence[TripleParts]] | None = None) -> Workspace:
        return publish_workspace(tmp_path / "workspace", passages, triples, hash_embedder)

    return make


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbedder:
    """The embedded model: loading it takes seconds."""
    return MiniLMEmbedder()
