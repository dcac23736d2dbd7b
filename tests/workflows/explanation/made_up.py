"""Explanations of a made-up graph, which is walked by plain power iteration."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

ENTITY_TYPES = ("HIERARCHICAL", "TEMPORAL", "SPATIAL", "CAUSALITY", "ATTRIBUTION")
PASSAGE_TYPES = ("PRIMARY", "SECONDARY", "PERIPHERAL")
STOPS = {"without β": 0.0, "with β": 1.0}
DAMPING = 0.5
CITED = ("p0", "p1")
BETA = {
    "entity_entity": {
        "HIERARCHICAL": 0.08,
        "TEMPORAL": 0.6,
        "SPATIAL": 0.17,
        "CAUSALITY": 0.05,
        "ATTRIBUTION": 0.1,
    },
    "entity_passage": {"PRIMARY": 0.7, "SECONDARY": 0.2, "PERIPHERAL": 0.1},
}


def explanation(entities: int = 14, passages: int = 6, seeds: int = 3) -> dict[str, Any]:
    """Return what ``Explanation.to_json()`` gives, for a graph of that size in which all is shown."""
    draw = random.Random(7)
    names = [f"e{i}" for i in range(entities)] + [f"p{i}" for i in range(passages)]
    edges = _edges(draw, entities, passages)
    restart = np.zeros(len(names))
    restart[:seeds] = 0.9 / seeds
    restart[entities:] = 0.1 / passages
    walks = [_walk(edges, names, restart, strength) for strength in STOPS.values()]
    for i, edge in enumerate(edges):
        edge["forward"] = [float(flows[i]) for _, flows, _ in walks]
        edge["backward"] = [float(flows[i]) for _, _, flows in walks]
    masses = [mass for mass, _, _ in walks]
    nodes = [_node(i, name, entities, masses, restart[i] * (1 - DAMPING)) for i, name in enumerate(names)]
    return _frame(nodes, edges)


def _edges(draw: random.Random, entities: int, passages: int) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for i in range(1, entities):
        for target in {int(draw.random() ** 2 * i) for _ in range(draw.choice((1, 1, 2)))}:
            kind = "SYNONYMY" if i % 11 == 10 else draw.choice(ENTITY_TYPES)
            made.append(_edge(len(made), f"e{target}", f"e{i}", kind, None, [f"is {kind.lower()} for", "knows"]))
    for i in range(passages):
        for place, target in enumerate(sorted({int(draw.random() ** 2 * entities) for _ in range(4)} | {i % entities})):
            kind = PASSAGE_TYPES[min(place, 2)]
            made.append(_edge(len(made), f"e{target}", f"p{i}", kind, "own title" if place == 0 else "mention", []))
    return made


def _edge(i: int, source: str, target: str, kind: str, link: str | None, predicates: list[str]) -> dict[str, Any]:
    ends = {"id": f"x{i}", "source": source, "target": target, "relation": kind, "link": link}
    return {**ends, "weight": 1.0 + i % 3, "predicates": predicates}


def _walk(
    edges: list[dict[str, Any]], names: list[str], restart: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the masses, and what each edge carries forward and backward."""
    place = {name: i for i, name in enumerate(names)}
    ends = np.array([[place[edge["source"]], place[edge["target"]]] for edge in edges])
    shares = {**BETA["entity_entity"], **BETA["entity_passage"]}
    factors = [(shares.get(edge["relation"], 0.2) * 5) ** strength for edge in edges]
    weights = np.array([edge["weight"] for edge in edges]) * factors
    degrees = np.bincount(ends.ravel(), weights.repeat(2), len(names))
    degrees[degrees == 0] = 1
    mass = restart.copy()
    for _ in range(60):
        forward = DAMPING * (mass / degrees)[ends[:, 0]] * weights
        backward = DAMPING * (mass / degrees)[ends[:, 1]] * weights
        arrived = np.bincount(ends[:, 1], forward, len(names)) + np.bincount(ends[:, 0], backward, len(names))
        mass = (1 - DAMPING) * restart + arrived
    return mass, forward, backward


def _node(i: int, name: str, entities: int, masses: list[np.ndarray], restart: float) -> dict[str, Any]:
    passage = i >= entities
    label = f"Title of passage {i - entities}" if passage else f"Entity number {i}"
    ranks = [1 + int((mass[entities:] > mass[i]).sum()) for mass in masses]
    return {
        "id": name,
        "kind": "passage" if passage else "entity",
        "ref": f"ref-{name}",
        "label": label,
        "text": f"The text of {label}. Its second sentence says more." if passage else "",
        "source": "corpus.jsonl" if passage else "",
        "number": CITED.index(name) + 1 if name in CITED else None,
        "rank": ranks if passage else None,
        "mass": [float(mass[i]) for mass in masses],
        "restart": [float(restart)] * len(masses),
        "hidden": [0.0] * len(masses),
        "type": "",
    }


def _frame(nodes: list[dict[str, Any]], edges: list[dict[str, Any]]) -> dict[str, Any]:
    labels = {node["id"]: node["label"] for node in nodes}
    paths = [_path(edge, labels) for cited in CITED for edge in edges if edge["target"] == cited][:4]
    facts = [
        ("Nissan", "founded in", "1933", "TEMPORAL", 0.91, True),
        ("Nissan", "is", "car maker", "HIERARCHICAL", 0.4, False),
    ]
    return {
        "question": "When was the car maker of Yokohama founded?",
        "answer": "Nissan was founded in 1933. [1] It is in Yokohama. [1, 2]",
        "mode": "mara",
        "ranked_by": "walk",
        "workspace": "made-up",
        "generation": "7",
        "models": {"chat": "offline", "embedding": "all-MiniLM-L6-v2", "store": "embedded"},
        "citations": [
            {"number": 1, "passage_id": "ref-p0", "start": 0, "end": 8},
            {"number": 2, "passage_id": "ref-p1", "start": None, "end": None},
        ],
        "facts": [
            dict(zip(("subject", "predicate", "object", "relation", "score", "kept"), fact, strict=True))
            for fact in facts
        ],
        "fact_outcome": "kept",
        "beta": BETA,
        "passage_weight": 0.05,
        "damping": DAMPING,
        "stops": [*STOPS],
        "nodes": nodes,
        "edges": edges,
        "paths": paths,
        "shown": {
            "nodes": len(nodes),
            "of_nodes": 4211,
            "edges": len(edges),
            "of_edges": 9120,
        },
        "walk": {"engine": "matrix", "error": 1e-6},
        "own_relations": {},
        "why": [
            [_piece("The search began at "), _piece("Nissan", "name"), _piece(".")],
            [_piece("The answer quotes its passages.")],
        ],
    }


def _piece(text: str, kind: str = "") -> dict[str, str]:
    return {"text": text, "kind": kind}


def _path(edge: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    source, target = edge["source"], edge["target"]
    step = {
        "from": source,
        "to": target,
        "edge": edge["id"],
        "predicate": "",
        "relation": edge["relation"],
        "reversed": False,
        "share": 0.21,
    }
    number = CITED.index(target) + 1
    words = f"{labels[source]} —{edge['relation']} (0.21)→ passage [{number}] {labels[target]}"
    return {"passage": target, "number": number, "seed": source, "mass": 0.02, "steps": [step], "words": words}


def without_walk(passages: int = 3) -> dict[str, Any]:
    """Return the explanation of a run that ranked passages without any walk."""
    data = explanation(passages=passages)
    nodes = [
        {**node, "rank": [], "mass": [], "restart": [], "hidden": []}
        for node in data["nodes"]
        if node["kind"] == "passage"
    ]
    shown = {"nodes": len(nodes), "of_nodes": 4211, "edges": 0, "of_edges": 9120}
    nothing: dict[str, Any] = {
        "stops": [],
        "edges": [],
        "paths": [],
        "facts": [],
        "beta": None,
        "walk": None,
        "passage_weight": None,
    }
    return {
        **data,
        **nothing,
        "mode": "dense",
        "fact_outcome": "",
        "ranked_by": "dense",
        "damping": None,
        "nodes": nodes,
        "shown": shown,
    }
