from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.embedding import e5 as module
from graph.embedding.e5 import E5Embedder
from graph.errors import WorkspaceDamaged
from tests.graph.embedding.bert_reference import Array, Reference

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", ":", "query", "passage", "fluss", "river", "s", "▁the"]
SCORES = [0.0, 0.0, 0.0, 0.0, -1.0, -1.0, -2.0, -2.0, -2.0, -2.0, -9.0, -3.0]
REPLACEMENTS = {ord("ﬂ"): "fl", ord("\n"): " "}
INNER, POSITIONS = 1536, 512


class WeightsFile:
    """A small model in the packaged file's format: random weights of one layer, and a dozen tokens."""

    def __init__(self, path: Path) -> None:
        self._random = np.random.default_rng(0)
        self.published: dict[str, Array] = {}
        self.words: Array
        path.write_bytes(self._content())
        self.digest = hashlib.sha256(path.read_bytes()).hexdigest()

    def _content(self) -> bytes:
        head = b"E5S1" + struct.pack("<I7ifi", 1, 384, 1, 12, INNER, len(PIECES), POSITIONS, 2, 1e-12, 32)
        encoded = [piece.encode() for piece in PIECES]
        starts = np.cumsum([0, *map(len, encoded)]).astype("<u4")
        tokens = struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, encoded)))
        tokens += starts.tobytes() + np.asarray(SCORES, "<f4").tobytes() + b"".join(encoded)
        rows = b"".join(
            struct.pack(f"<IB{len(text)}I", character, len(text), *map(ord, text))
            for character, text in REPLACEMENTS.items()
        )
        head += tokens + struct.pack("<iI", len(REPLACEMENTS), len(rows)) + rows
        tensors = self._tensors()
        size = len(head) + 4 + sum(2 + len(name) + 21 for name in tensors)
        directory = struct.pack("<i", len(tensors))
        for name, (kind, values) in tensors.items():
            directory += struct.pack("<H", len(name)) + name.encode()
            directory += struct.pack("<BIQQ", kind, 0, size, len(values))
            size += len(values)
        return head + directory + b"".join(values for _, values in tensors.values())

    def _tensors(self) -> dict[str, tuple[int, bytes]]:
        found = {"emb.word": self._quantised("", len(PIECES), 384)}
        found["emb.pos"] = self._plain("embeddings.position_embeddings.weight", POSITIONS, 384)
        found["emb.type"] = self._plain("embeddings.token_type_embeddings.weight", 2, 384)
        found["emb.ln.w"] = self._plain("embeddings.LayerNorm.weight", 384)
        found["emb.ln.b"] = self._plain("embeddings.LayerNorm.bias", 384)
        for part, name, rows, columns in (
            ("q", "attention.self.query", 384, 384),
            ("k", "attention.self.key", 384, 384),
            ("v", "attention.self.value", 384, 384),
            ("ao", "attention.output.dense", 384, 384),
            ("fi", "intermediate.dense", INNER, 384),
            ("fo", "output.dense", 384, INNER),
        ):
            found[f"l0.{part}.w"] = self._quantised(f"encoder.layer.0.{name}.weight", rows, columns)
            found[f"l0.{part}.b"] = self._plain(f"encoder.layer.0.{name}.bias", rows)
        for part, name in (("aln", "attention.output.LayerNorm"), ("oln", "output.LayerNorm")):
            found[f"l0.{part}.w"] = self._plain(f"encoder.layer.0.{name}.weight", 384)
            found[f"l0.{part}.b"] = self._plain(f"encoder.layer.0.{name}.bias", 384)
        return found

    def _plain(self, name: str, *shape: int) -> tuple[int, bytes]:
        values = self._random.normal(0, 0.3, shape).astype("<f4")
        self.published[name] = values
        return 0, values.tobytes()

    def _quantised(self, name: str, rows: int, columns: int) -> tuple[int, bytes]:
        weights = self._random.integers(0, 16, (rows, columns // 32, 32), dtype=np.uint8)
        scales = self._random.uniform(0.01, 0.03, (rows, columns // 32)).astype("<f2")
        values = ((weights.astype(np.float32) - 8) * scales[..., None].astype(np.float32)).reshape(rows, columns)
        if name:
            self.published[name] = values
        else:
            self.words = values
        blocks = np.zeros(scales.shape, dtype=[("scale", "<f2"), ("nibbles", "u1", 16)])
        blocks["scale"], blocks["nibbles"] = scales, weights[..., :16] | weights[..., 16:] << 4
        return 1, blocks.tobytes()


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeightsFile:
    """A small model in the place of the packaged one."""
    file = WeightsFile(tmp_path / "weights.bin")
    monkeypatch.setattr(module, "_weights_path", lambda: tmp_path / "weights.bin")
    monkeypatch.setattr(module, "_WEIGHTS_SHA256", file.digest)
    return file


def expected(weights: WeightsFile, *tokens: str) -> NDArray[np.float32]:
    """What the network makes of tokens, before the mean is taken off."""
    ids = [PIECES.index(token) for token in tokens]
    table = {"embeddings.word_embeddings.weight": weights.words, **weights.published}
    return Reference(table, layers=1).embed(ids)


def without_mean(vectors: NDArray[np.float32], mean: NDArray[np.float32]) -> NDArray[np.float32]:
    rest = vectors - mean
    return np.asarray(rest / np.linalg.norm(rest, axis=-1, keepdims=True))


class TestVectors:
    def test_a_passage_is_what_the_weights_say_of_its_tokens_after_the_prefix(self, weights: WeightsFile) -> None:
        embedder = E5Embedder()
        vectors = embedder.embed(["the river", "ﬂuss\n  ﬂuss"])
        tokens = [["▁the", "▁", "river"], ["▁", "fluss", "▁", "fluss"]]
        plain = np.stack([expected(weights, "<s>", "▁", "passage", ":", *row, "</s>") for row in tokens])
        assert vectors == pytest.approx(without_mean(plain, embedder._mean("passage:")), abs=1e-3)

    def test_a_question_has_a_prefix_and_a_mean_of_its_own(self, weights: WeightsFile) -> None:
        embedder = E5Embedder()
        plain = expected(weights, "<s>", "▁", "query", ":", "▁", "river", "</s>")
        question = embedder.embed_question("river", "any instruction")
        assert question == pytest.approx(without_mean(plain, embedder._mean("query:")), abs=1e-3)
        assert not np.allclose(embedder._mean("query:"), embedder._mean("passage:"))

    @pytest.mark.usefixtures("weights")
    def test_a_vector_is_the_same_to_the_last_bit_in_whatever_batch_its_text_was(self) -> None:
        texts = ["river", "fluss fluss", "the river", "fluss", "", "unknown ☃"]
        together = E5Embedder().embed(texts)
        assert np.array_equal(together, np.concatenate([E5Embedder().embed([text]) for text in texts]))
        assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)

    @pytest.mark.usefixtures("weights")
    def test_long_texts_are_read_in_windows_that_leave_room_for_the_prefix(self) -> None:
        room = 512 - 2 - len(["▁", "passage", ":"])
        words = ["fluss " * (room // 2), "fluss " * (room // 2 + 1)]
        assert E5Embedder().count_windows(words) == [1, 2]
        assert all(map(E5Embedder().understands, ["Nissan", "日産自動車", "Белогорка", "وادي النور"]))


class TestLoading:
    def test_weights_that_are_not_the_published_ones_are_refused(
        self, weights: WeightsFile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_WEIGHTS_SHA256", "0" * 64)
        with pytest.raises(WorkspaceDamaged, match=r"weights.bin are not the published ones.*pip install"):
            E5Embedder().embed(["x"])
