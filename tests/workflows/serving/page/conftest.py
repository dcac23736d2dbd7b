from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import HashEmbedder
from tests.workflows.hashed_world import hashed_world
from tests.workflows.serving.page.site import Visitor, site_of, visitor
from workflows.runtime.resources import close_indexes


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small world; whoever asks it uses the hashing embedder."""
    return hashed_world(tmp_path_factory.mktemp("page"))


@pytest.fixture
def hashing(embedder: HashEmbedder) -> Iterator[None]:
    yield
    close_indexes()


@pytest.fixture
def me(hashing: None, world: Path, tmp_path: Path) -> Visitor:
    """A visitor of a page of the small world."""
    return visitor(site_of(world, tmp_path))
