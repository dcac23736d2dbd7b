"""The embedding model of a run whose vectors workers have computed: it looks them up, and computes what they lack."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from graph.embedding.embeddings import Embedder
from graph.schema import Passage
from workflows.distributed.shards import Shard


class ShardVectors:
    """An embedding model that knows the vectors of the shards that are being committed.

    A text's vector does not depend on where and with which others it was computed, so that a record is the same either
    way. What no shard holds (a name that a correction made) is computed here.

    Attributes:
        computed: how many texts were computed here.
    """

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._windows: dict[str, int] = {}
        self.computed = 0

    @property
    def model_id(self) -> str:
        """The model's own."""
        return self._model.model_id

    def learn(self, shard: Shard, passages: Iterable[Passage]) -> None:
        """Take in the vectors of a shard and its passages."""
        contents = [passage.content for passage in passages]
        self._vectors.update(zip(shard.texts, shard.text_vectors, strict=True))
        self._vectors.update(zip(contents, shard.vectors, strict=True))
        self._windows.update(zip(contents, shard.windows, strict=True))

    def forget(self) -> None:
        """Let go of all vectors."""
        self._vectors.clear()
        self._windows.clear()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, shape (len(texts), dimension)."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if not texts and self._vectors:
            return np.zeros((0, len(next(iter(self._vectors.values())))), dtype=np.float32)
        if not texts:
            return self._model.embed(texts)
        self.computed += len(missing)
        found = dict(zip(missing, self._model.embed(missing), strict=True)) if missing else {}
        return np.stack([found[text] if text in found else self._vectors[text] for text in texts])

    def embed_question(self, question: str, instruction: str) -> NDArray[np.float32]:
        """Return the question's unit vector under an instruction, shape (dimension,)."""
        return self._model.embed_question(question, instruction)

    def count_windows(self, texts: Sequence[str]) -> list[int]:
        """Return in how many pieces each text is read."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._windows]
        found = dict(zip(missing, self._model.count_windows(missing) if missing else (), strict=True))
        return [found[text] if text in found else self._windows[text] for text in texts]

    def understands(self, text: str) -> bool:
        """Tell whether the similarity of the text's vector to others means anything."""
        return self._model.understands(text)
