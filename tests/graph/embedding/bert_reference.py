"""BERT's forward pass in numpy, for one text at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


class Reference:
    """A network of these weights, read as their published names say."""

    def __init__(self, weights: dict[str, Array], layers: int) -> None:
        self.weights = weights
        self.layers = layers

    def linear(self, x: Array, name: str) -> Array:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def normalise(self, x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return np.asarray(scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"])

    def attend(self, x: Array, name: str) -> Array:
        query, key, value = (
            self.linear(x, f"{name}.self.{part}").reshape(len(x), 12, 32).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(32)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = (shares @ value).transpose(1, 0, 2).reshape(len(x), 384)
        return self.normalise(x + self.linear(mixed, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def embed(self, ids: list[int]) -> Array:
        word, position, kind = (
            self.weights[f"embeddings.{part}_embeddings.weight"] for part in ("word", "position", "token_type")
        )
        x = word[ids] + position[: len(ids)] + kind[0]
        x = self.normalise(x, "embeddings.LayerNorm")
        for layer in range(self.layers):
            name = f"encoder.layer.{layer}"
            x = self.attend(x, f"{name}.attention")
            inner = self.linear(x, f"{name}.intermediate.dense")
            inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
            x = self.normalise(x + self.linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        mean = x.mean(0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)
