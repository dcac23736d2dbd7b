"""The versions of packages, and of our own code, that an answer was made with."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ANSWERING = (
    *("agents/**/*.py", "graph/**/*.py", "prompts/*.py", "prompts/*.md"),
    *("workflows/mara.py", "workflows/ragenta.py", "workflows/retrieval.py", "workflows/context.py"),
    *("workflows/nodes/*.py", "workflows/states/*.py", "workflows/settings/*.py", "workflows/runtime/*.py"),
    *("workflows/access/*.py", "workflows/installation.py"),
)
"""The files that an answer depends on; how runs are stored, summed up and shown is none of it."""

_PACKAGES = (
    *("mara-rag", "langgraph", "langchain-core", "langchain-openai", "chromadb", "numpy", "scipy", "igraph"),
    *("bm25s", "onnxruntime", "numba"),
)
_ROOT = Path(__file__).parents[2]


def versions_of(code: Iterable[str]) -> dict[str, str]:
    """Return the versions of what takes part; that of our own code is a hash of it, since any change may matter.

    Args:
        code: patterns of files, from the root of the project.
    """
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    digest = hashlib.sha256()
    for path in sorted({path for pattern in code for path in _ROOT.glob(pattern)}):
        digest.update(path.read_bytes())
    return {**versions, "code": digest.hexdigest()[:16]}
