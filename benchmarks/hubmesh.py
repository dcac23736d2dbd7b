"""Recall and latency beside hubmesh, a peer that needs no model either: same passages, vectors and names.

    pip install --no-deps hubmesh networkx
    python -m benchmarks.hubmesh DATA/NAME --workspace DIR [--limit N]

DATA/NAME holds ``corpus.jsonl`` and ``questions.jsonl``, DIR the index of that corpus. hubmesh gets each passage as
title and text, as in its own protocol, with the vectors of mara's embedding model (all-MiniLM-L6-v2, in both). It reads
names with a model of spaCy that no package registry holds; here it gets the names that mara's offline extractor finds,
so that both walk from the same ones. Questions are asked in turns of ten. Latency is from the question to ranked
passages, the question's vector included.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agents.offline.entities import scan_entities
from graph.embedding.embeddings import configured_embedder
from graph.retrieve.modes import Mode
from workflows.context import Context, Question
from workflows.retrieval import graph
from workflows.runtime.resources import open_workspace_index

_DEPTHS = (2, 5, 10)
_TURN = 10
_BUDGET_TOKENS = 10_000
"""Room for passages in hubmesh's own benchmark."""

Row = dict[str, Any]
Ranking = Callable[[str], list[str]]


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--workspace", "-w", required=True)
    parser.add_argument("--limit", type=int, metavar="N", help="ask the first N questions alone")
    options = parser.parse_args()
    corpus, questions = (_rows(options.data / f"{name}.jsonl") for name in ("corpus", "questions"))
    contexts = [Context(workspace=options.workspace, mode=mode) for mode in (Mode.MARA, Mode.HYBRID, Mode.DENSE)]
    systems = {f"mara, mode `{each.mode.value}`": _mara(each) for each in contexts}
    systems |= _hubmesh(corpus)
    asked = [each for each in questions if each["gold_ids"]][: options.limit]
    print(table(measure(asked, systems, open_workspace_index(contexts[0]).forget_vectors)))


def measure(questions: Sequence[Row], systems: dict[str, Ranking], forget: Callable[[], None]) -> dict[str, list[Row]]:
    """Return each system's recall at each depth and milliseconds, by question; the first question warms up.

    Args:
        questions: with the ids of their gold passages.
        systems: what ranks passages for a question, by name.
        forget: empties what one system's answer would spare the next.
    """
    rows: dict[str, list[Row]] = {name: [] for name in systems}
    for ranked in systems.values():
        ranked(questions[0]["question"])
    for start in range(0, len(questions), _TURN):
        for name, ranked in systems.items():
            forget()
            for question in questions[start : start + _TURN]:
                began = time.perf_counter()
                ids = ranked(question["question"])
                milliseconds = (time.perf_counter() - began) * 1000
                gold = set(question["gold_ids"])
                recall = {str(depth): len(gold & set(ids[:depth])) / len(gold) for depth in _DEPTHS}
                rows[name].append({**recall, "ms": milliseconds})
    return rows


def table(rows: dict[str, list[Row]]) -> str:
    """Return recall, averaged over questions, and the median latency of each system as a Markdown table."""
    lines = ["| system | R@2 / 5 / 10 | ms a question |", "|---|--:|--:|"]
    for name, measured in rows.items():
        recall = " / ".join(f"{statistics.fmean(row[str(depth)] for row in measured):.3f}" for depth in _DEPTHS)
        lines.append(f"| {name} | {recall} | {statistics.median(row['ms'] for row in measured):.1f} |")
    return "\n".join(lines)


def _rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def _mara(context: Context) -> Ranking:
    def ranked(question: str) -> list[str]:
        result = graph.invoke(Question(question=question), context=context)
        return [passage["id"] for passage in result["passages"]]

    return ranked


def _names(text: str) -> Any:
    """Return the names of a text in the shape of what spaCy returns."""
    names = [text[span.start : span.end] for span in scan_entities(text).spans if span.is_name]
    return SimpleNamespace(ents=[SimpleNamespace(text=name, label_="ORG") for name in names])


def _hubmesh(corpus: Sequence[Row]) -> dict[str, Ranking]:
    """Return hubmesh with its defaults, and without convergence as it advises for few passages."""
    from hubmesh import Document, Planner
    from hubmesh.adapters import InMemoryStore
    from hubmesh.kg import build_entity_kg
    from hubmesh.planner import PlannerConfig

    embedder = configured_embedder()
    texts = [f"{row['title']}\n\n{row['text']}" for row in corpus]
    pairs = zip(corpus, texts, embedder.embed(texts), strict=True)
    documents = [Document(id=row["id"], text=text, vector=vector) for row, text, vector in pairs]
    store, names = InMemoryStore(documents), build_entity_kg(documents, nlp=_names)

    def ranking(*, convergence: bool) -> Ranking:
        planner = Planner(store, kg=names, nlp=_names, config=PlannerConfig(use_convergence=convergence))

        def ranked(question: str) -> list[str]:
            vector = embedder.embed([question])[0]
            found = planner.retrieve(question, query_vec=vector, top_k=max(_DEPTHS), budget_tokens=_BUDGET_TOKENS)
            return [each.doc.id for each in found.sources]

        return ranked

    return {"hubmesh": ranking(convergence=True), "hubmesh without convergence": ranking(convergence=False)}


if __name__ == "__main__":
    main()
