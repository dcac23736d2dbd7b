"""A layer over a base answers as one search index of the same content would."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph.publish.search_indexes import LayeredStore, open_layers
from graph.publish.vector_store import VectorStore
from graph.publish.vectors import Vectors, passage_metadata
from graph.storage.generation import Layer

Content = Mapping[str, int]
"""By id of a passage, the state that it is in: another state, another vector and other metadata."""

KEYS = "abcdefghijkl"
CONTENTS = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 3), max_size=len(KEYS))
DIMENSION = 8


def unit_vector(seed: str) -> NDArray[np.float32]:
    vector = np.random.default_rng(int.from_bytes(seed.encode())).normal(size=DIMENSION)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def vector_of(key: str, state: int) -> NDArray[np.float32]:
    """All passages in state 0 have one vector: ties."""
    return unit_vector(f"{key}{state}" if state else "same")


def vectors_of(content: Content) -> Vectors:
    vectors = np.array([vector_of(*item) for item in content.items()], dtype=np.float32).reshape(-1, DIMENSION)
    metadata = [passage_metadata(str(state), f"{key}.txt", {"state": state}) for key, state in content.items()]
    return Vectors(list(content), vectors, metadata)


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorStore]:
    store = VectorStore.embedded(tmp_path_factory.mktemp("chroma"))
    yield store
    store.close()


def store_of(chroma: VectorStore, content: Content, commit: str) -> VectorStore:
    """Return a store of its own in one Chroma: making a Chroma takes many times as long."""
    store = VectorStore(chroma._client, "embedded", f"{uuid.uuid4().hex}-")
    store.synchronise("passages", vectors_of(content), "m", commit=commit)
    return store


def layered(chroma: VectorStore, base: Content, wanted: Content) -> LayeredStore:
    changed = {key: state for key, state in wanted.items() if base.get(key) != state}
    hidden = [key for key in base if key in changed or key not in wanted]
    layer = Layer(1, "older", removed={"passages": hidden})
    return LayeredStore(store_of(chroma, base, "older"), store_of(chroma, changed, "newer"), layer)


def assert_nearest(found: Sequence[tuple[str, float]], among: Content, question: NDArray[np.float32], k: int) -> None:
    """The ``k`` nearest are found, each once and with its own cosine; which of several equal ones does not matter."""
    cosines = {key: float(vector_of(key, state) @ question) for key, state in among.items()}
    assert [cosine for _, cosine in found] == pytest.approx(sorted(cosines.values(), reverse=True)[:k], abs=1e-5)
    assert dict(found) == pytest.approx({key: cosines[key] for key, _ in found}, abs=1e-5)
    assert len(dict(found)) == len(found)


class TestALayerOverABase:
    @settings(max_examples=8)
    @given(
        base=CONTENTS,
        wanted=CONTENTS,
        within=st.sets(st.sampled_from(KEYS)),
        question=st.sampled_from(["one", "another", "same"]),
    )
    @pytest.mark.slow
    def test_they_are_one_store(
        self, chroma: VectorStore, base: Content, wanted: Content, within: set[str], question: str
    ) -> None:
        store = layered(chroma, base, wanted)
        single = store_of(chroma, wanted, "newer")
        assert store.count("passages") == single.count("passages") == len(wanted)
        assert store.fingerprints("passages") == single.fingerprints("passages")
        assert store.stamp("passages") == single.stamp("passages")
        for states in (0, 1), (2, 3), (3,):
            where = {"state": {"$in": [*states]}}
            assert store.select(where) == single.select(where)
        inner = {key: state for key, state in wanted.items() if key in within}
        vector = unit_vector(question)
        for k in {0, 1, len(wanted) // 2, len(inner), len(wanted) + 1}:
            assert_nearest(store.search("passages", vector, k), wanted, vector, k)
            assert_nearest(store.search("passages", vector, k, within=list(inner)), inner, vector, k)
        held = store.vectors("passages", KEYS)
        assert held.keys() == wanted.keys()
        for key, state in wanted.items():
            assert held[key] == pytest.approx(vector_of(key, state), abs=1e-6)

    def test_what_is_hidden_does_not_crowd_out_what_is_asked_for(self, chroma: VectorStore) -> None:
        """All that lies around the question is gone since."""
        question = unit_vector("question")
        near = np.array([question + 0.2 * unit_vector(f"near {i}") for i in range(300)], dtype=np.float32)
        base, top = store_of(chroma, {"far": 1}, "older"), store_of(chroma, {"other": 1}, "newer")
        hidden = [f"near {i}" for i in range(300)]
        vectors = np.vstack([near / np.linalg.norm(near, axis=1, keepdims=True), vector_of("far", 1)])
        base.synchronise("facts", Vectors([*hidden, "far"], vectors), "m", commit="older")
        top.synchronise("facts", Vectors(["other"], vector_of("other", 1)[None]), "m", commit="newer")
        store = LayeredStore(base, top, Layer(1, "older", removed={"facts": hidden}))
        assert {key for key, _ in store.search("facts", question, 2)} == {"far", "other"}

    def test_a_base_that_has_moved_on_has_no_stamp(self, chroma: VectorStore) -> None:
        base, top = store_of(chroma, {"a": 1}, "older"), store_of(chroma, {"b": 1}, "newer")
        store = LayeredStore(base, top, Layer(1, "older"))
        assert store.stamp("facts") is None
        assert store.stamp("passages") == top.stamp("passages") is not None
        base.synchronise("passages", vectors_of({"a": 2}), "m", commit="another")
        assert store.stamp("passages") is None

    def test_a_base_is_closed_when_its_layer_cannot_be_opened(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        closed: list[VectorStore] = []
        monkeypatch.setattr(VectorStore, "close", lambda store: closed.append(store))
        (tmp_path / "top").write_text("a file, not a folder")
        with pytest.raises(Exception, match="cannot be used"):
            open_layers(tmp_path / "top", tmp_path / "base", Layer(1, "older"))
        assert len(closed) == 1


class TestWhatAGenerationLiesOn:
    def test_it_is_read_as_it_was_saved(self, tmp_path: Path) -> None:
        layer = Layer(7, "commit", "vectors", {"facts": ["a"], "passages": []})
        layer.save(tmp_path)
        assert Layer.load(tmp_path) == layer

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "null",
            "[]",
            "7",
            "[" * 100_000,
            '{"base": 1}',
            '{"base": 1, "commit": "c", "more": 1}',
            '{"base": null, "commit": "c"}',
            '{"base": true, "commit": "c"}',
            '{"base": "../..", "commit": "c"}',
            '{"base": 1, "commit": 1}',
            '{"base": 1, "commit": "c", "vectors": null}',
            '{"base": 1, "commit": "c", "removed": 5}',
            '{"base": 1, "commit": "c", "removed": {"facts": 5}}',
            '{"base": 1, "commit": "c", "removed": {"facts": "abc"}}',
            '{"base": 1, "commit": "c", "removed": {"facts": [["a"]]}}',
        ],
        ids=lambda text: text[:60],
    )
    def test_what_is_not_whole_says_nothing(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "search.json").write_text(text)
        assert Layer.load(tmp_path) is None

    def test_nor_does_what_is_not_there_or_no_text(self, tmp_path: Path) -> None:
        assert Layer.load(tmp_path / "nowhere") is None
        (tmp_path / "search.json").write_bytes(b"\xff\x00")
        assert Layer.load(tmp_path) is None
