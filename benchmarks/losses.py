"""Where a walk finds less than a similarity ranking, and what it started from there.

    python -m benchmarks.losses RUN --workspace DIR [--system mara] [--baseline hybrid] [--show 3]

RUN is a folder of ``mara eval`` that asked both. The questions stand in three groups by recall@5: lost, level and won.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.storage.workspace import Workspace
from graph.text import normalise_name

HUB_PASSAGES = 20
"""An entity in more passages than these is a hub."""

COLUMNS = ("restart: passages", "facts", "names", "of those: common words", "hubs", "first five: long", "untitled")
"""Shares, means over the questions of a group.

Of the restart mass: passage seeds, entities of facts, names in the question. Of the mass on entities: on words that the
corpus writes in small letters more often than not, on hubs. Of the first five passages: those longer than the median
passage, those without a title.
"""

Line = Mapping[str, Any]


def main() -> None:
    """Print a Markdown table of the groups, and the questions that lost most."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("--system", default="mara")
    parser.add_argument("--baseline", default="hybrid")
    parser.add_argument("--show", type=int, default=3, help="how many lost questions to print")
    options = parser.parse_args()
    graph = _open(options.workspace)
    pairs = list(_pairs(options.run / "results.jsonl", options.system, options.baseline))
    groups = by_outcome(pairs)
    print("| questions | n | " + " | ".join(COLUMNS) + " |\n" + "|---" * (len(COLUMNS) + 2) + "|")
    for outcome, members in groups.items():
        shares = [mass_shares(graph, line) for line, _ in members]
        means = (f"{fmean(share[column] for share in shares):.2f}" if shares else "" for column in range(len(COLUMNS)))
        print(f"| {outcome} | {len(members)} | " + " | ".join(means) + " |")
    for line, baseline in sorted(groups["lost"], key=lambda pair: recall(pair[0]) - recall(pair[1]))[: options.show]:
        print("\n" + described(graph, line, baseline))


def _open(root: Path) -> KnowledgeGraph:
    """Return the published graph. Raises SystemExit where there is none."""
    workspace = Workspace(root)
    generation = workspace.current()
    if generation is None:
        raise SystemExit(f"{root} holds no index: make one with `mara index`")
    return load(workspace.index_folder(generation))


def _pairs(results: Path, system: str, baseline: str) -> Iterator[tuple[Line, Line]]:
    """Each question's line of the system and of the baseline. Raises SystemExit where the run lacks one."""
    lines = [json.loads(text) for text in results.read_text(encoding="utf-8").splitlines()]
    of = {name: {line["id"]: line for line in lines if line["system"] == name} for name in (system, baseline)}
    lacking = [name for name, found in of.items() if not found]
    if lacking:
        raise SystemExit(f"The run holds nothing of {' and '.join(lacking)}: ask them with `mara eval --mode`")
    yield from ((line, of[baseline][key]) for key, line in of[system].items() if line["gold_ids"])


def recall(line: Line, k: int = 5) -> float:
    """Return the share of the gold passages that are among the first ``k``."""
    gold = set(line["gold_ids"])
    return len(gold & set(line["retrieved_ids"][:k])) / len(gold)


def by_outcome(pairs: Sequence[tuple[Line, Line]]) -> dict[str, list[tuple[Line, Line]]]:
    """Return the pairs (system, baseline) that the system lost, levelled and won."""
    groups: dict[str, list[tuple[Line, Line]]] = {"lost": [], "level": [], "won": []}
    for pair in pairs:
        difference = recall(pair[0]) - recall(pair[1])
        groups["lost" if difference < 0 else "won" if difference > 0 else "level"].append(pair)
    return groups


def mass_shares(graph: KnowledgeGraph, line: Line) -> tuple[float, ...]:
    """Return the shares of `COLUMNS` for one question."""
    entities = {graph.entity_index[seed["id"]]: seed["weight"] for seed in line["seeds"]["entities"]}
    in_facts = {normalise_name(fact[end]) for fact in line["facts"] if fact["kept"] for end in ("subject", "object")}
    of_entities = sum(entities.values())
    whole = of_entities + sum(seed["weight"] for seed in line["seeds"]["passages"])

    def on(kept: Mapping[int, bool]) -> float:
        return float(sum(weight for entity, weight in entities.items() if kept[entity]))

    from_facts = on({entity: graph.entity_names[entity] in in_facts for entity in entities})
    common = on({entity: graph.name_shares[entity] < 0.5 for entity in entities})
    hubs = on({entity: graph.name_passages[entity] > HUB_PASSAGES for entity in entities})
    first = [graph.passages[graph.passage_index[key]] for key in line["retrieved_ids"][:5]]
    typical = median(len(passage.text) for passage in graph.passages)
    return (
        *((part / whole if whole else 0.0) for part in (whole - of_entities, from_facts, of_entities - from_facts)),
        *((part / of_entities if of_entities else 0.0) for part in (common, hubs)),
        fmean(len(passage.text) > typical for passage in first),
        fmean(not passage.title for passage in first),
    )


def described(graph: KnowledgeGraph, line: Line, baseline: Line) -> str:
    """Return a question with the seeds of its walk, its facts, and the ranks of its gold passages on both sides."""
    seeds = sorted(line["seeds"]["entities"], key=lambda seed: -seed["weight"])
    entities = (
        f"{seed['text']} {seed['weight']:.2f} ({graph.name_passages[graph.entity_index[seed['id']]]} passages,"
        f" written as a name {graph.name_shares[graph.entity_index[seed['id']]]:.0%})"
        for seed in seeds
    )
    facts = (
        f"{fact['subject']} {fact['predicate']} {fact['object']} {fact['score']:.2f}"
        for fact in line["facts"]
        if fact["kept"]
    )
    ranks = (", ".join(str(_rank(one, key)) for key in one["gold_ids"]) for one in (line, baseline))
    return "\n".join(
        (
            line["question"],
            f"  entity seeds: {'; '.join(entities)}",
            f"  facts: {'; '.join(facts)}",
            "  gold passages at {} with {}, at {} with {}".format(
                next(ranks), line["system"], next(ranks), baseline["system"]
            ),
        )
    )


def _rank(line: Line, key: str) -> int | str:
    return line["retrieved_ids"].index(key) + 1 if key in line["retrieved_ids"] else "none"


if __name__ == "__main__":
    main()
