"""A multilingual embedding model behind an endpoint: documents in any script, questions in another language."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from graph.errors import EmbeddingMismatch
from tests.scripted_server import Reply, ScriptedServer, hashed_vector, scripted
from tests.workflows.small_world import write_lines
from tests.workflows.workspaces import ask
from workflows.indexing import index_sources, reembed_workspace
from workflows.runtime.resources import close_indexes

MODEL = "intfloat/multilingual-e5-large"

MEANINGS: dict[str, tuple[str, ...]] = {
    "bluestone": ("青石鎮", "Bluestone", "Blaustein"),
    "tea": ("茶", "tea", "Tee"),
    "belogorka": ("Белогорка", "Belogorka", "ベロゴルカ"),
    "boats": ("лодки", "boats", "舟"),
    "valley of light": ("وادي النور", "Valley of Light", "Долина света"),
    "pomegranates": ("الرمان", "pomegranates", "гранаты"),
    "pottery": ("मिट्टी के बर्तन", "pottery", "керамику"),
    "sonpura": ("सोनपुरा", "Sonpura", "Сонпура"),
    "dam": ("dam", "ダム", "плотина"),
}
"""Meanings, and the words of several languages that have them: all that this model of a model understands."""

PASSAGES = (
    ("han", "青石鎮", "青石鎮以茶聞名。", ("青石鎮", "以…聞名", "茶")),
    ("cyrillic", "Белогорка", "Белогорка строит лодки.", ("Белогорка", "строит", "лодки")),
    ("arabic", "وادي النور", "يزرع أهل وادي النور الرمان.", ("وادي النور", "يزرع", "الرمان")),
    ("devanagari", "सोनपुरा", "सोनपुरा में मिट्टी के बर्तन बनते हैं।", ("सोनपुरा", "बनाता है", "मिट्टी के बर्तन")),
    ("english", "Lake Sund", "Lake Sund has a dam.", ("Lake Sund", "has", "dam")),
)
"""(id, title, text, triple)."""

QUESTIONS = (
    ("Which town is known for its tea?", "han"),
    ("Where are boats built?", "cyrillic"),
    ("舟はどこで造られますか。", "cyrillic"),
    ("Где выращивают гранаты?", "arabic"),
    ("Где делают керамику?", "devanagari"),
    ("ダムがあるのはどこですか。", "english"),
)


def vector_of(text: str) -> list[float]:
    """The direction of what a text means; of a text that means nothing known, its own."""
    meant = [
        meaning for meaning, words in MEANINGS.items() if any(word.casefold() in text.casefold() for word in words)
    ]
    return hashed_vector(" ".join(meant) if meant else text, 64)


def understood(body: Mapping[str, Any]) -> Reply:
    """Reply as a multilingual model, which wants to be told what is a question and what is not."""
    marked = [text.partition(": ") for text in body["input"]]
    assert {mark for mark, _, _ in marked} <= {"query", "passage"}
    data = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)} for index, (*_, text) in enumerate(marked)
    ]
    return Reply(body=json.dumps({"object": "list", "model": MODEL, "data": data, "usage": {}}))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedServer]:
    with scripted({"embeddings": understood}) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MARA_EMBEDDING_MODEL", MODEL)
        patch.setenv("MARA_EMBEDDING_BASE_URL", server.base_url)
        yield server


@pytest.fixture(autouse=True)
def configured(endpoint: ScriptedServer, unconfigured: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MARA_EMBEDDING_MODEL", MODEL)
    monkeypatch.setenv("MARA_EMBEDDING_BASE_URL", endpoint.base_url)
    yield
    close_indexes()


def indexed(folder: Path) -> Path:
    """Index the corpus with the configured model."""
    corpus, triples = folder / "corpus.jsonl", folder / "triples.jsonl"
    write_lines(corpus, [{"id": key, "title": title, "text": text} for key, title, text, _ in PASSAGES])
    write_lines(triples, [{"id": key, "triples": [triple]} for key, *_, triple in PASSAGES])
    index_sources([corpus], folder / "workspace", triples)
    return folder / "workspace"


@pytest.fixture(scope="module")
def many_scripts(endpoint: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed(tmp_path_factory.mktemp("scripts"))


def test_a_question_finds_the_passage_of_another_language(many_scripts: Path) -> None:
    for question, passage in QUESTIONS:
        assert ask(many_scripts, question)["passages"][0]["id"] == passage, question


def test_questions_and_passages_go_out_marked_as_the_family_wants_it(
    endpoint: ScriptedServer, many_scripts: Path
) -> None:
    ask(many_scripts, "Are they marked?")
    sent = [text for request in endpoint.requests_of("embeddings") for text in request.body["input"]]
    assert "passage: 青石鎮\n青石鎮以茶聞名。" in sent
    assert "query: Are they marked?" in sent


def test_other_prefixes_are_refused_until_the_workspace_is_embedded_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, endpoint: ScriptedServer
) -> None:
    root = indexed(tmp_path)
    monkeypatch.setenv("MARA_EMBEDDING_PREFIXES", "query: 問: |passage: ")
    with pytest.raises(EmbeddingMismatch, match="mara doctor --reembed"):
        ask(root, "Where are boats built?")
    reembed_workspace(root)
    assert ask(root, "Where are boats built?")["passages"][0]["id"] == "cyrillic"
    sent = [text for request in endpoint.requests_of("embeddings") for text in request.body["input"]]
    assert "query: 問: Where are boats built?" in sent
    monkeypatch.delenv("MARA_EMBEDDING_PREFIXES")
    with pytest.raises(EmbeddingMismatch, match="問"):
        ask(root, "Where are boats built?")
