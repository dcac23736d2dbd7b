from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HashEmbedder
from tests.workflows.explanation.browser import chromium
from tests.workflows.hashed_world import hashed_world
from tests.workflows.serving.page.site import Visitor, on_a_port, site_of, visitor
from tests.workflows.serving.page.window import Window
from workflows.runtime.resources import close_indexes
from workflows.serving.page.site import Site


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


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The browser, one for all tests of the module."""
    with chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def site(hashing: None, world: Path, tmp_path: Path) -> Site:
    """A page of the small world."""
    return site_of(world, tmp_path)


@pytest.fixture
def page(driver: Any, site: Site) -> Iterator[Window]:
    """The page as it is when it was just opened; afterwards the browser has no complaint."""
    with on_a_port(site) as address:
        window = Window(driver)
        window.resize(1360, 860)
        window.prefer_dark(False)
        window.open(address)
        yield window
        assert window.complaints() == []
