"""Embedding throughput: the embedded ONNX model beside sentence-transformers on torch, in one run.

    python -m benchmarks.embedding [--corpus FILE.jsonl] [--limit 300] [--rounds 3]

The rounds alternate, so that a noisy machine disturbs both alike; medians with their spread are reported.
sentence-transformers is not installed with mara: `pip install sentence-transformers` (and torch) beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from agents.offline.extractor import OfflineExtractor
from graph.minilm import MiniLMEmbedder, model_folder
from graph.schema import Passage

Encode = Callable[[Sequence[str]], Any]


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="JSONL of {id, title, text}; the sample corpus by default")
    parser.add_argument("--limit", type=int, default=300, help="passages to embed")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    passages = _read(options.corpus)[: options.limit]
    extractor = OfflineExtractor()
    facts = [f"{t.subject} {t.predicate} {t.object}" for p in passages for t in extractor.extract(p).triples]
    texts = {"passages": [passage.content for passage in passages], "facts": facts[: 5 * options.limit]}
    models: dict[str, Encode] = {"onnx": MiniLMEmbedder().embed}
    if find_spec("sentence_transformers"):
        models["torch"] = _torch_model()
    for encode in models.values():
        encode(["warm up"])
    for kind, some in texts.items():
        _report(kind, some, models, options.rounds)
    if "torch" not in models:
        print("sentence-transformers is not installed here: no comparison was made.")


def _read(path: Path | None) -> list[Passage]:
    source = path if path else files("workflows.sample").joinpath("corpus.jsonl")
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Passage(row["id"], row["title"], row["text"]) for row in rows]


def _torch_model() -> Encode:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(model_folder()), device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=32, normalize_embeddings=True, show_progress_bar=False)


def _report(kind: str, texts: Sequence[str], models: dict[str, Encode], rounds: int) -> None:
    rates: dict[str, list[float]] = {name: [] for name in models}
    vectors: dict[str, Any] = {}
    for _ in range(rounds):
        for name, encode in models.items():
            start = time.perf_counter()
            vectors[name] = np.asarray(encode(texts))
            rates[name].append(len(texts) / (time.perf_counter() - start))
    for name, found in rates.items():
        spread = f"{min(found):.0f}-{max(found):.0f}"
        print(f"| {kind} ({len(texts)}) | {name} | {statistics.median(found):.0f} a second | {spread} |")
    if "torch" in models:
        ratio = statistics.median(a / b for a, b in zip(rates["onnx"], rates["torch"], strict=True))
        difference = float(np.abs(vectors["onnx"] - vectors["torch"]).max())
        print(f"| {kind} | onnx / torch | {ratio:.2f} times | largest difference of a component {difference:.1e} |")


if __name__ == "__main__":
    main()
