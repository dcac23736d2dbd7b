"""Embedding models: the embedded one, or any OpenAI-compatible endpoint; chosen by the environment."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from graph.embedding.bert import MiniLMEmbedder, unit_rows
from graph.embedding.e5 import E5Embedder
from graph.endpoints.openai_protocol import as_mara_error, endpoint_address, timeout_s
from graph.environment import environment
from graph.errors import BadInput, EmbeddingMismatch, TransportFault

if TYPE_CHECKING:
    from langchain_openai import OpenAIEmbeddings

QUESTION_TO_FACT = "Given a question, retrieve facts that help to answer it"
QUESTION_TO_PASSAGE = "Given a question, retrieve passages that help to answer it"
EMBEDDED_MODELS: dict[str, type[MiniLMEmbedder | E5Embedder]] = {
    model.model_id: model for model in (MiniLMEmbedder, E5Embedder)
}
"""The models that run in this process, by the name in ``MARA_EMBEDDING_MODEL``."""

_BATCH = 256
_CACHED_TEXTS = 10_000


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def model_id(self) -> str:
        """The id that the workspace remembers; another one means other vectors."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, shape (len(texts), dimension)."""

    def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
        """Return the question's unit vector under an instruction, shape (dimension,)."""

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return in how many pieces each text is read."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The marks of an embedding model for questions and passages; ``{instruction}`` stands for the task."""

    question: str = ""
    passage: str = ""


def prefixes_of(model: str) -> Prefixes:
    """Return the prefixes that a model was trained with, by its published name; none for unknown models."""
    name = model.casefold().rsplit("/", 1)[-1]
    if "e5" in name and "instruct" not in name and "mistral" not in name:
        return Prefixes("query: ", "passage: ")
    if "instruct" in name or "nv-embed" in name or "qwen3-embedding" in name:
        return Prefixes("Instruct: {instruction}\nQuery: ")
    return Prefixes()


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible endpoint; ``prefixes`` are those of its family unless given.

    Raises BadInput where its address is none; from ``embed`` and ``embed_question``: TransportFault when the endpoint
    cannot be reached or is busy, ModelUnavailable when it refuses.
    """

    def __init__(self, model: str, base_url: str | None, api_key: str | None, prefixes: Prefixes | None = None) -> None:
        self._model = model
        self._address = endpoint_address(base_url, _address_variable())
        self._api_key = api_key
        self._prefixes = prefixes or prefixes_of(model)
        self._lock = threading.Lock()
        self._client: OpenAIEmbeddings | None = None
        self._dimension = 0

    @property
    def model_id(self) -> str:
        """``openai:`` and the model's name, with prefixes that are not its family's: the endpoint may move."""
        if self._prefixes == prefixes_of(self._model):
            return f"openai:{self._model}"
        return f"openai:{self._model} {json.dumps(astuple(self._prefixes), ensure_ascii=False)}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, shape (len(texts), dimension)."""
        return self._request([self._prefixes.passage + text for text in texts])

    def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
        """Return the question's unit vector under an instruction, shape (dimension,)."""
        prefix = self._prefixes.question.replace("{instruction}", instruction)
        vector: NDArray[np.float32] = self._request([prefix + question])[0]
        return vector

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return 1 for each text: what the endpoint does with long texts is its own affair."""
        return [1] * len(texts)

    def _request(self, texts: list[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        try:
            # A blank input is refused by OpenAI; a space stands for it.
            answer = self._open().embed_documents([text or " " for text in texts])
            with np.errstate(over="ignore"):
                vectors = np.asarray(answer, dtype=np.float32)
        except Exception as fault:
            raise as_mara_error(fault, "embedding") from None  # it may tell the key
        if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.size or not _have_lengths(vectors):
            raise TransportFault(
                "The embedding endpoint's reply is not one vector of numbers for each text",
                "Check that it is an OpenAI-compatible server and that MARA_EMBEDDING_MODEL is an embedding model",
            )
        self._dimension = vectors.shape[1]
        return unit_rows(vectors)

    def _open(self) -> OpenAIEmbeddings:
        from graph.endpoints.http_client import http_client, making_client

        with self._lock, making_client():
            if self._client is None:
                from langchain_openai import OpenAIEmbeddings
                from pydantic import SecretStr

                self._client = OpenAIEmbeddings(
                    model=self._model,
                    openai_api_base=self._address.url if self._address else None,
                    openai_proxy=None,
                    http_client=http_client(self._address),
                    openai_api_key=SecretStr(self._api_key or "none"),
                    request_timeout=timeout_s(),
                    max_retries=2,
                    chunk_size=_BATCH,
                    check_embedding_ctx_length=False,
                )
            return self._client


def _have_lengths(vectors: NDArray[np.float32]) -> bool:
    """Tell whether each row has a length: none where a number is missing, endless, or too large to be squared."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.linalg.norm(vectors, axis=1)).all())


@lru_cache(maxsize=8)
def _embedder(model: str, base_url: str | None, api_key: str | None, prefixes: Prefixes | None) -> Embedder:
    embedded = EMBEDDED_MODELS.get(model)
    return embedded() if embedded else OpenAIEmbedder(model, base_url, api_key, prefixes)


def understanding_of(model_id: str) -> Callable[[str], bool]:
    """Return what tells whether a model understands a text, by the id that workspaces remember; nothing is loaded.

    An endpoint's model is taken to know every script.
    """
    embedded = EMBEDDED_MODELS.get(model_id)
    return embedded().understands if embedded else lambda text: True


def configured_embedder() -> Embedder:
    """Return the embedding model that the environment names, the embedded one if it names none.

    ``MARA_EMBEDDING_MODEL`` is the model, ``MARA_EMBEDDING_BASE_URL`` its endpoint (``OPENAI_BASE_URL`` if unset),
    ``OPENAI_API_KEY`` the key. A chat key alone changes no embedding: a workspace keeps its model. The
    prefixes of ``MARA_EMBEDDING_PREFIXES`` take the place of those of the endpoint's model.

    Raises:
        BadInput: that variable does not hold two.
    """
    base_url = environment().value(_address_variable()) or None
    prefixes = environment().mara_embedding_prefixes
    return _embedder(
        environment().mara_embedding_model or MiniLMEmbedder.model_id,
        base_url,
        environment().openai_api_key or None,
        _prefixes_of(prefixes) if prefixes else None,
    )


def _prefixes_of(text: str) -> Prefixes:
    """Return the prefixes of a variable: that of questions, a `|`, that of passages."""
    of_questions, bar, of_passages = text.partition("|")
    if not bar:
        raise BadInput(
            f"MARA_EMBEDDING_PREFIXES is {text!r}",
            'Set it to the prefix of questions, a |, and that of passages, such as "query: |passage: "',
        )
    return Prefixes(of_questions, of_passages)


def _address_variable() -> str:
    """Return the variable that holds the endpoint's address."""
    return "MARA_EMBEDDING_BASE_URL" if environment().mara_embedding_base_url else "OPENAI_BASE_URL"


def check_embedder(embedder: Embedder, model_id: str) -> None:
    """Raise EmbeddingMismatch when a workspace was written by another model than the configured one."""
    if embedder.model_id != model_id:
        raise EmbeddingMismatch(
            f"The workspace was embedded with {model_id!r}, but {embedder.model_id!r} is configured",
            "Set MARA_EMBEDDING_MODEL back, or run `mara doctor --reembed` to embed the workspace again",
        )


def check_dimension(vectors: NDArray[np.float32], dimension: int) -> None:
    """Raise EmbeddingMismatch when vectors are of another length than those of the workspace."""
    if vectors.shape[-1] != dimension:
        raise EmbeddingMismatch(
            f"The workspace holds vectors of length {dimension}, the configured model gives {vectors.shape[-1]}",
            "Point MARA_EMBEDDING_BASE_URL back at the same model, or run `mara doctor --reembed`",
        )


class TextCache:
    """Vectors of texts that were asked for; safe across threads."""

    def __init__(self, embed: Callable[[Sequence[str]], NDArray[np.float32]], limit: int = _CACHED_TEXTS) -> None:
        """Take what gives a unit vector a text, and how many vectors are kept."""
        self._embed = embed
        self._limit = limit
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, shape (n, dimension); those that are not kept are computed together."""
        kept = self._vectors
        vector_of = {text: kept[text] for text in texts if text in kept}
        missing = [text for text in dict.fromkeys(texts) if text not in vector_of]
        if missing:
            vector_of.update(zip(missing, self._embed(missing), strict=True))
            self._vectors = vector_of if len(kept) + len(missing) > self._limit else {**kept, **vector_of}
        return np.stack([vector_of[text] for text in texts]) if texts else self._embed(texts)

    def forget(self) -> None:
        """Empty the cache."""
        self._vectors = {}
