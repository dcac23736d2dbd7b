"""Vectors of single words, looked up in the token table of the packaged embedding model: no network is run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.embedding.bert import unit_rows
from graph.embedding.minilm import model_folder

_TABLE = "embeddings.word_embeddings.weight"


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
    return np.stack([_vector(word) for word in words]) if words else np.zeros((0, 0), np.float32)


@lru_cache(maxsize=50_000)
def _vector(word: str) -> NDArray[np.float32]:
    tokenizer, table = _token_table()
    ids = tokenizer.encode(word, add_special_tokens=False).ids
    mean = table[ids].mean(axis=0) if ids else np.zeros(table.shape[1], np.float32)
    return np.asarray(unit_rows(mean[np.newaxis])[0])


@lru_cache(maxsize=1)
def _token_table() -> tuple[Any, NDArray[np.float32]]:
    from safetensors import safe_open
    from tokenizers import Tokenizer

    folder = model_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    with safe_open(folder / "model.safetensors", "numpy") as weights:
        table: NDArray[np.float32] = weights.get_tensor(_TABLE)
    return tokenizer, table - table.mean(axis=0)
