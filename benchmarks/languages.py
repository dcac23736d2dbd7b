"""Questions in four languages over the English sample corpus, with each embedded embedding model.

    python -m benchmarks.languages

The sample corpus is indexed with each model that is installed, and each question of benchmarks/languages.jsonl is
asked in English, German, French and Spanish. A question is a hit where its passage is among the first one or five.
"""

from __future__ import annotations

import json
import tempfile
from importlib.resources import as_file, files
from pathlib import Path
from statistics import mean

from graph.embedding.embeddings import EMBEDDED_MODELS, configured_embedder
from graph.environment import set_variables
from graph.errors import DependencyMissing
from graph.retrieve.modes import Mode
from workflows.context import Context, Question
from workflows.indexing import index_sources
from workflows.retrieval import graph

LANGUAGES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish"}
_MODES = (Mode.DENSE, Mode.HYBRID, Mode.MARA)
_DEPTHS = (1, 5)


def main() -> None:
    """Measure and print a Markdown table: hits at 1 and at 5."""
    questions = [
        json.loads(line) for line in (Path(__file__).parent / "languages.jsonl").read_text("utf-8").splitlines()
    ]
    print(f"| {len(questions)} questions, hit@1 / hit@5 | " + " | ".join(LANGUAGES.values()) + " |")
    print("|---|" + "--:|" * len(LANGUAGES))
    for model in EMBEDDED_MODELS:
        set_variables({"MARA_EMBEDDING_MODEL": model})
        try:
            configured_embedder().embed(["warm up"])
        except DependencyMissing as fault:
            print(f"{model} was not measured: {fault}")
            continue
        with tempfile.TemporaryDirectory() as folder, as_file(files("workflows.sample")) as sample:
            index_sources([sample / "corpus.jsonl"], Path(folder))
            for mode in _MODES:
                context = Context(workspace=folder, mode=mode)
                cells = [_hits(questions, language, context) for language in LANGUAGES]
                print(f"| {model}, {mode} | " + " | ".join(cells) + " |", flush=True)


def _hits(questions: list[dict[str, str]], language: str, context: Context) -> str:
    found = [
        [passage["id"] for passage in graph.invoke(Question(question=row[language]), context=context)["passages"]]
        for row in questions
    ]
    pairs = list(zip(questions, found, strict=True))
    return " / ".join(f"{mean(row['gold_ids'][0] in ids[:depth] for row, ids in pairs):.2f}" for depth in _DEPTHS)


if __name__ == "__main__":
    main()
