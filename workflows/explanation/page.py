"""The page that shows an explanation: one HTML file that needs nothing else and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from agents.roles import REFUSAL
from graph.relations import RELATIONS, relation_words
from workflows.wording import words_for

if TYPE_CHECKING:
    import igraph

_PLACE = re.compile(r"\{\{(\w+)\}\}")
_SCRIPTS = {
    "library": "cytoscape.min.js",
    "drawing": "drawing.js",
    "elements": "elements.js",
    "reasons": "reasons.js",
    "script": "page.js",
}
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


def render_page(data: Mapping[str, Any]) -> str:
    """Return an explanation as a self-contained page.

    The data is embedded as JSON in ASCII, without any sign that HTML knows, and the page's script writes it as text
    alone. The page may run its own scripts, which it names by their hashes, and may not load anything.

    Args:
        data: what ``Explanation.to_json`` gives.

    Raises:
        ValueError: a number is infinite or none.
    """
    if data["answer"] == REFUSAL:
        data = {**data, "answer": f"{words_for(data['question']).not_found}."}
    looks = dashes(data["own_relations"])
    words = {relation: relation_words(relation) for relation in looks}
    placed = {**data, "positions": positions(data), "dashes": looks, "words": words}
    scripts = {name: _asset(file) for name, file in _SCRIPTS.items()}
    parts = {
        **scripts,
        "policy": _policy(*scripts.values()),
        "style": palette_css(data["own_relations"]) + _asset("page.css"),
        "data": json.dumps(placed, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_ESCAPES),
    }
    return _PLACE.sub(lambda place: parts[place[1]], _asset("page.html"))


def _policy(*scripts: str) -> str:
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> str:
    return resources.files("workflows.explanation").joinpath(name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a relation type's line.

    The colours of relations between entities keep apart with protanopia, deuteranopia and tritanopia, too (by the model
    of Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency",
    2009); links to passages are greys. Dashes tell all of a sort apart without any colour.

    Attributes:
        colour: on white.
        on_dark: the same on a dark ground.
        dash: lengths of the line's dashes and gaps, for a line 3.5 wide; empty for a solid one.
    """

    colour: str
    on_dark: str
    dash: tuple[int, ...]


OWN_LOOKS = (
    Look("#b320f7", "#960df7", (8, 2)),
    Look("#b38c65", "#a9f717", (2, 2)),
    Look("#510d8c", "#a98c78", (14, 6)),
    Look("#82473e", "#9f3e9f", (8, 3, 2, 3)),
    Look("#0d0db3", "#515bd0", (16, 3, 3, 3, 3, 3)),
    Look("#da51ee", "#da2a0d", (6, 6)),
    Look("#3e2020", "#dac678", (4, 8)),
    Look("#0d0d20", "#6e655b", (20, 4)),
)
"""The looks of a user's own relation types, in the order of their names.

The first eight are told apart by their colours alone, from the built-in ones too, and by their dashes alone; of more,
each has a colour with a dash that no other has.
"""


def looks_of(own: Iterable[str] = ()) -> Mapping[str, Look]:
    """Return the look of every relation type, built-in ones first, where a graph has some own ones."""
    looks = {str(relation): Look(about.colour, about.on_dark, about.dash) for relation, about in RELATIONS.items()}
    count = len(OWN_LOOKS)
    for place, name in enumerate(sorted(own)):
        dash = OWN_LOOKS[(place + place // count) % count].dash
        looks[str(name)] = Look(OWN_LOOKS[place % count].colour, OWN_LOOKS[place % count].on_dark, dash)
    return looks


def dashes(own: Iterable[str] = ()) -> dict[str, list[int]]:
    """Return {relation type: the lengths of its dashes and gaps}."""
    return {relation: list(look.dash) for relation, look in looks_of(own).items()}


def palette_css(own: Iterable[str] = ()) -> str:
    """Return the colours as CSS variables that are named for the relation types, dark ones for a dark ground."""
    looks = looks_of(own)
    light = " ".join(f"--{relation}: {look.colour};" for relation, look in looks.items())
    dark = " ".join(f"--{relation}: {look.on_dark};" for relation, look in looks.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root:not(.printing) {{ {dark} }} }}\n"


Position = tuple[float, float]

_WIDTH, _HEIGHT = 1200.0, 840.0
_BEST_RANKS = 5
_FEW = 140
_ROOM = (104.0, 30.0)
_PUSHES = 80
_ANYWHERE = 1e9


def positions(data: Mapping[str, Any]) -> dict[str, Position]:
    """Return x and y of each node, by id: seeds at the left, the best passages at the right, the rest by forces.

    The same data gives the same positions. Forces are those of Fruchterman and Reingold ("Graph drawing by
    force-directed placement", 1991) in igraph's implementation; seeds and best passages move up and down in their
    columns. Few nodes are pushed apart until there is room for labels.

    Args:
        data: an explanation, as ``Explanation.to_json`` gives it.
    """
    nodes: Sequence[Mapping[str, Any]] = data["nodes"]
    if not nodes:
        return {}
    network = _held_together(_network(nodes, data["edges"]))
    sides = [_side(node) for node in nodes]
    placed = _fitted(_nearer(_forced(network, sides), math.sqrt(len(nodes))))
    if len(nodes) <= _FEW:
        placed = _fitted(_apart(placed, sides))
    return {node["id"]: (round(x, 1), round(y, 1)) for node, (x, y) in zip(nodes, placed, strict=True)}


def _network(nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> igraph.Graph:
    import igraph

    place = {node["id"]: i for i, node in enumerate(nodes)}
    network = igraph.Graph(len(nodes), [(place[edge["source"]], place[edge["target"]]) for edge in edges])
    flows = [edge["forward"][-1] + edge["backward"][-1] if edge["forward"] else 0.0 for edge in edges]
    top = max(flows, default=0.0) or 1.0
    network.es["flow"] = [max(flow / top, 1e-6) for flow in flows]
    return network


def _side(node: Mapping[str, Any]) -> int:
    """Return -1 for seed entities, which stand at the left, 1 for the best passages, at the right, 0 for the rest."""
    if node["kind"] == "entity":
        return -1 if node["restart"] and node["restart"][-1] > 0 else 0
    return 1 if node["number"] is not None or (node["rank"] and node["rank"][-1] <= _BEST_RANKS) else 0


def _held_together(network: igraph.Graph) -> igraph.Graph:
    """Return the network with its components tied to the largest one, so that none drifts away."""
    tied_network = network.copy()
    components = sorted(network.connected_components(), key=len, reverse=True)
    ties = [(components[0][0], component[0]) for component in components[1:]]
    tied_network.add_edges(ties, {"flow": [1e-3] * len(ties)})
    return tied_network


def _forced(network: igraph.Graph, sides: Sequence[int]) -> list[Position]:
    import igraph

    far, draw = math.sqrt(len(sides)), random.Random(0)
    start = [(side * far if side else draw.uniform(-far, far), draw.uniform(-far, far)) for side in sides]
    igraph.set_random_number_generator(random.Random(0))
    try:
        made = network.layout_fruchterman_reingold(
            weights=[flow**0.25 for flow in network.es["flow"]],
            niter=max(60, 300 - network.vcount() // 5),
            grid=False,
            seed=start,
            minx=[side * far if side else -_ANYWHERE for side in sides],
            maxx=[side * far if side else _ANYWHERE for side in sides],
            miny=[-_ANYWHERE] * len(sides),
            maxy=[_ANYWHERE] * len(sides),
        )
    finally:
        igraph.set_random_number_generator(random)
    return [(x, y) for x, y in made.coords]


def _nearer(placed: Sequence[Position], far: float) -> list[Position]:
    """Draw in what lies beyond the columns, the farther the more, each in its own place still."""

    def within(at: float) -> float:
        return at if abs(at) <= far else math.copysign(far * (1 + math.log(abs(at) / far)), at)

    return [(within(x), within(y)) for x, y in placed]


def _apart(placed: Sequence[Position], sides: Sequence[int]) -> list[Position]:
    """Push nodes apart that are too near for a label between them; those in a column move up and down alone."""
    moved = [list(position) for position in placed]
    for _ in range(_PUSHES):
        for i, j in itertools.combinations(range(len(moved)), 2):
            dx, dy = moved[j][0] - moved[i][0], moved[j][1] - moved[i][1]
            lack_x, lack_y = _ROOM[0] - abs(dx), _ROOM[1] - abs(dy)
            if lack_x <= 0 or lack_y <= 0:
                continue
            push = math.copysign(lack_y * 0.25, dy if dy else j - i)
            moved[i][1] -= push
            moved[j][1] += push
            aside = math.copysign(lack_x * 0.05, dx if dx else 1)
            moved[i][0] -= aside * (sides[i] == 0)
            moved[j][0] += aside * (sides[j] == 0)
    return [(x, y) for x, y in moved]


def _fitted(coords: Sequence[Sequence[float]]) -> list[Position]:
    xs, ys = [x for x, _ in coords], [y for _, y in coords]
    across, down = _WIDTH / ((max(xs) - min(xs)) or 1), _HEIGHT / ((max(ys) - min(ys)) or 1)
    return [((x - min(xs)) * across, (y - min(ys)) * down) for x, y in coords]
