"""Workspaces of a few rows, embedded without a model, and all that is in them as values that compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graph.embedding import embeddings
from graph.embedding.embeddings import Embedder
from graph.retrieve.open_index import Index, open_index
from tests.builders import HashEmbedder
from tests.scripted_server import ScriptedServer
from tests.workflows.small_world import run
from workflows.context import Context
from workflows.indexing_run.report import IndexReport

Row = dict[str, Any]
Indexer = Callable[..., IndexReport]

VELM: Row = {"id": "velm", "title": "Velm", "text": "The Velm is a river in Ostra. It flows into Lake Sund."}
SUND: Row = {"id": "sund", "title": "Lake Sund", "text": "Lake Sund was dammed in 1911 by Ida Brandt."}
BRANDT: Row = {"id": "brandt", "title": "Ida Brandt", "text": "Ida Brandt was an engineer. She was born in Karv."}
KARV: Row = {"id": "karv", "title": "Karv", "text": "Karv is a harbour town in Belavia."}
OSTRA: Row = {"id": "ostra", "title": "Ostra", "text": "Ostra is a province of Belavia."}
ROWS = [VELM, SUND, BRANDT, KARV, OSTRA]

_CONFIGURED = embeddings._embedder


def use_embedder(monkeypatch: pytest.MonkeyPatch, embedder: Embedder) -> None:
    """Make it the configured embedding model, whatever the environment says."""
    monkeypatch.setattr(embeddings, "_embedder", lambda *configured: embedder)


@contextmanager
def served_embeddings(monkeypatch: pytest.MonkeyPatch, server: ScriptedServer) -> Iterator[None]:
    """Let the environment name an embedding endpoint, and nothing stand in for it."""
    with monkeypatch.context() as patch:
        patch.setattr(embeddings, "_embedder", _CONFIGURED)
        patch.setenv("MARA_EMBEDDING_MODEL", "scripted")
        patch.setenv("MARA_EMBEDDING_BASE_URL", server.base_url)
        yield


def content_of(root: Path) -> dict[str, Any]:
    """Return everything of a workspace's newest graph but its generation."""
    index = open_index(root, HashEmbedder())
    try:
        return content_of_index(index)
    finally:
        index.close()


def content_of_index(index: Index) -> dict[str, Any]:
    """Return everything of a graph but its generation."""
    graph = index.graph
    edges = graph.edges
    return {
        "passages": graph.passages,
        "vectors": graph.passage_vectors.tolist(),
        "entities": list(zip(graph.entity_names, graph.entity_labels, strict=True)),
        "counts": (graph.triple_passages.tolist(), graph.name_passages.tolist()),
        "facts": dict(graph.facts),
        "aliases": graph.aliases,
        "edges": [getattr(edges, name).tolist() for name in edges.__dataclass_fields__],
        "found": sorted((hit.fact.id, cosine) for hit, cosine in index.search_facts("Velm", 100)),
    }


def texts_in(root: Path) -> dict[str, str]:
    """Return {passage id: text}."""
    return {passage.id: passage.text for passage in content_of(root)["passages"]}


def facts_in(root: Path) -> set[tuple[str, str, str]]:
    """Return the facts of all passages."""
    return {(hit.fact.subject, hit.fact.predicate, hit.fact.object) for hit in content_of(root)["facts"].values()}


def ask(root: Path, question: str, **changes: Any) -> dict[str, Any]:
    """Ask a workspace."""
    return run(Context(workspace=str(root), **changes), question).result
