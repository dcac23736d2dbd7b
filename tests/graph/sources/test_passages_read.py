"""The passages that a run reads: they come back as they were, from memory or a file, and memory holds their ids."""

from __future__ import annotations

import resource
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.errors import DiskFull
from graph.schema import Passage
from graph.sources import documents
from graph.sources.documents import PassagesRead

TEXTS = st.text(st.characters(exclude_categories=()), max_size=40)
METADATA = st.dictionaries(
    TEXTS, TEXTS | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=3
)
PASSAGES = st.lists(
    st.builds(Passage, id=TEXTS, title=TEXTS, text=TEXTS, source=TEXTS, metadata=METADATA),
    unique_by=lambda passage: passage.id,
    max_size=12,
)


@pytest.fixture(params=["in memory", "in a file"])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in a file":
        monkeypatch.setattr(documents, "_IN_MEMORY", 1)


def read_in(passages: list[Passage]) -> PassagesRead:
    read = PassagesRead()
    for passage in passages:
        read.add(passage)
    return read


def passages_of(count: int, length: int = 10) -> list[Passage]:
    return [Passage(f"p{n}", f"Lake {n}", f"{n} " * (length // 2)) for n in range(count)]


@pytest.mark.usefixtures("held")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(passages=PASSAGES)
def test_they_come_back_as_they_were_and_in_their_order(passages: list[Passage]) -> None:
    read = read_in(passages)
    assert [*read.items()] == [(passage.id, passage) for passage in passages]
    assert [type(value) for each in read.values() for value in each.metadata.values()] == [
        type(value) for each in passages for value in each.metadata.values()
    ]
    assert len(read) == len(passages)
    assert all(passage.id in read for passage in passages)
    assert "\x00 nobody's" not in read
    with pytest.raises(KeyError):
        read["\x00 nobody's"]


def test_memory_holds_ids_and_no_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_IN_MEMORY", 1)
    tracemalloc.start()
    try:
        read = read_in(passages_of(500, length=20_000))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(passage.text) for passage in read.values()) > 9_000_000
    assert held < 1_000_000


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may grow beyond 4,096 bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_without_room_it_says_where_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for length in [100, 50_000]:
        monkeypatch.setattr(documents, "_IN_MEMORY", 1)
        with pytest.raises(DiskFull, match=r"There is no room in .* for the passages that are read .*TMPDIR"):
            [*read_in(passages_of(1_000, length)).values()]
