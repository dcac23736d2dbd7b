from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.missed import FEW, Cause, cause_of, report
from graph.construction.knowledge_graph import KnowledgeGraph
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes, open_workspace_index

FILES = {
    "Nissan": "Nissan was founded in Yokohama by Yoshisuke Aikawa. It sells cars in Japan.",
    "Yokohama": "Yokohama is a city in Japan.",
    "Yoshisuke Aikawa": "Yoshisuke Aikawa was a senator.",
    "Datsun": "Datsun was a brand of Nissan.",
    "Orlo": "Orlo lies beside a lake.",
    **{f"Town {n}": f"Town {n} is a town in Japan." for n in range(FEW + 1)},
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("missed")
    documents = folder / "documents"
    documents.mkdir()
    for title, text in FILES.items():
        (documents / f"{title}.txt").write_text(f"{title}\n\n{text}\n", encoding="utf-8")
    index_sources([documents], folder / "workspace")
    yield folder / "workspace"
    close_indexes()


@pytest.fixture(scope="module")
def graph(workspace: Path) -> KnowledgeGraph:
    return open_workspace_index(Context(workspace=str(workspace))).graph


def named(graph: KnowledgeGraph, *names: str) -> list[int]:
    """Return the passages of some files."""
    return [next(n for n, each in enumerate(graph.passages) if each.text.startswith(name)) for name in names]


def test_the_cause_is_what_connects_a_passage_with_the_others(graph: KnowledgeGraph) -> None:
    for missed, other, cause in [
        ("Yoshisuke Aikawa", "Nissan", Cause.OUTRANKED),
        ("Town 1", "Yokohama", Cause.HUB),
        ("Datsun", "Yokohama", Cause.OTHER_FORM),
        ("Orlo", "Nissan", Cause.APART),
    ]:
        place, beside = named(graph, missed, other)
        assert cause_of(graph, place, [beside]) is cause, missed


def test_the_table_counts_what_is_missed_of_questions_with_several_gold_passages(
    workspace: Path, graph: KnowledgeGraph
) -> None:
    orlo, nissan = (graph.passage_ids[place] for place in named(graph, "Orlo", "Nissan"))
    context = Context(workspace=str(workspace), top_k=50)
    questions = [("Who founded Nissan?", [nissan, orlo]), ("Who founded Nissan?", [orlo])]
    head, *rows = report(questions, context).splitlines()
    assert head.startswith("| 1 of 2 missed, in 1 questions |")
    assert [row.split("|")[-2].strip() for row in rows[1:]] == ["0", "0", "0", "1"]
