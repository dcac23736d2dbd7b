"""Qdrant's own local mode in place of a server: what it holds lasts as long as the process."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

LOCAL = "qdrant+http://name:secret@qdrant.test:6333"
"""What ``MARA_VECTORS`` is then."""


def use_local_qdrant(patch: pytest.MonkeyPatch) -> Any:
    """Let vectors go to a Qdrant in memory, made for this; return its client. Skips where the extra is missing."""
    qdrant_client = pytest.importorskip("qdrant_client", reason="the extra `qdrant` is not installed")
    # It says that what is set for large collections has no effect in it.
    warnings.filterwarnings("ignore", message=".*[lL]ocal (mode|Qdrant).*")
    client = qdrant_client.QdrantClient(":memory:")
    patch.setenv("MARA_VECTORS", LOCAL)
    patch.setattr("graph.publish.qdrant_store.connect", lambda address: client)
    return client
