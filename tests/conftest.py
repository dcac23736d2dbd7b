from __future__ import annotations

import gc
import os

import pytest
from hypothesis import settings

from graph.minilm import MiniLMEmbedder
from tests.builders import HashEmbedder

# The same examples in every run, however busy the machine is; `--hypothesis-profile=default` looks for new ones.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.load_profile("suite")

# What is imported and collected stays: looking through it for garbage again and again is a tenth of the suite's time.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


CONFIGURING = ("OPENAI_", "MARA_", "LANGSMITH_", "LANGCHAIN_")


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(CONFIGURING):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


@pytest.fixture
def hash_embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbedder:
    """The embedded model: loading it takes seconds."""
    return MiniLMEmbedder()
