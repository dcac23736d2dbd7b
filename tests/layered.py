"""Workspaces whose search index lies in layers, and whether they answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.retrieve.open_index import Index, open_index
from graph.schema import Fact, Passage
from graph.storage.workspace import Layer, Workspace
from graph.text import normalise_name
from tests.builders import HashEmbedder, Silent, TripleParts, passage_of, publish_workspace

Content = Mapping[str, int]
"""By id of a passage, the state that it is in: another state, another text, metadata and facts."""


def a_passage(key: str, state: int = 0) -> Passage:
    return passage_of(key, f"Title {key}", f"{key} is text in state {state}", state=state)


def triples_of(key: str, state: int = 0) -> list[TripleParts]:
    """One fact that only this passage states, one that changes with it, one of several passages."""
    return [(f"{key} thing", "is", "text"), (f"{key} thing", "is in", f"state {state}"), ("all", "are", f"of {state}")]


def write(workspace: Path, changed: Content, removed: Sequence[str] = (), embedder: HashEmbedder | None = None) -> None:
    passages = [a_passage(*item) for item in changed.items()]
    triples = {key: triples_of(key, state) for key, state in changed.items()}
    publish_workspace(workspace, passages, triples, embedder, removed)


def facts_of(content: Content) -> set[str]:
    """The facts of a corpus, spelled as they are embedded."""
    triples = (triple for item in content.items() for triple in triples_of(*item))
    return {" ".join(normalise_name(part) for part in triple[:3]) for triple in triples}


def spelled(fact: Fact) -> str:
    return " ".join(map(normalise_name, (fact.subject, fact.predicate, fact.object)))


def assert_ranked(
    found: Sequence[tuple[str, float]], vectors: Mapping[str, NDArray[np.float32]], question: NDArray[np.float32]
) -> None:
    """As many as are asked for are found, each with its cosine, and none is nearer."""
    cosines = {key: float(vector @ question) for key, vector in vectors.items()}
    expected = sorted(cosines.values(), reverse=True)[: len(found)]
    assert [cosine for _, cosine in found] == pytest.approx([max(0.0, cosine) for cosine in expected], abs=1e-5)
    assert {key: cosine for key, cosine in found if cosine > 0} == pytest.approx(
        {key: cosines[key] for key, cosine in found if cosine > 0}, abs=1e-5
    )
    assert len(dict(found)) == len(found)


def assert_answers(index: Index, content: Content, embedder: HashEmbedder | None = None) -> None:
    """Every search of an index answers as the corpus has it."""
    embedder = embedder or HashEmbedder()
    contents = {key: a_passage(key, state).content for key, state in content.items()}
    texts = {key: embedder.embed([text])[0] for key, text in contents.items()}
    facts = {text: embedder.embed([text])[0] for text in facts_of(content)}
    state = max(content.values())
    in_state = {key for key, held in content.items() if held == state}
    question = next(contents[key] for key in content if key in in_state)
    vector = embedder.embed([question])[0]
    passages = [(index.graph.passages[row].id, max(0.0, cosine)) for row, cosine in index.search_passages(question, 99)]
    assert len(passages) == len(content)
    assert_ranked(passages, texts, vector)
    for asked in ("all are of 0", question):
        for k in (1, 3, 99):
            found = [(spelled(hit.fact), cosine) for hit, cosine in index.search_facts(asked, k)]
            assert len(found) == min(k, len(facts))
            assert_ranked(found, facts, embedder.embed([asked])[0])
    selection = index.select({"state": state})
    assert selection is not None
    assert {index.graph.passages[row].id for row in selection.rows} == in_state
    own = facts_of(dict.fromkeys(in_state, state))
    shown = index.search_facts(question, 99, selection)
    assert {spelled(hit.fact) for hit, _ in shown} == own
    assert len(index.search_facts(question, 2, selection)) == 2


def assert_opens(workspace: Workspace, content: Content) -> int:
    """Open a workspace without a model: it answers; returns the generation that does."""
    index = open_index(workspace.root, Silent())
    try:
        assert_answers(index, content)
        return index.graph.generation
    finally:
        index.close()


def layer_of(workspace: Workspace, generation: int | None = None) -> Layer:
    layer = Layer.load(workspace.index_folder(generation or workspace.current() or 0))
    assert layer is not None
    return layer


def generations(workspace: Workspace) -> set[str]:
    return {path.name for path in (workspace.root / "index").iterdir()}
