"""The page that shows an explanation: one HTML file that needs nothing else and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import cycle
from typing import Any

from agents.roles import REFUSAL
from graph.relations import RELATIONS, relation_words
from workflows.wording import words_for

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
    looks = looks_of(data["own_relations"])
    words = {relation: relation_words(relation) for relation in looks}
    dashes = {relation: list(look.dash) for relation, look in looks.items()}
    placed = {**data, "positions": positions(data), "dashes": dashes, "words": words}
    scripts = {name: _asset(file) for name, file in _SCRIPTS.items()}
    parts = {
        **scripts,
        "policy": _policy(*scripts.values()),
        "style": _palette_css(looks) + _asset("page.css"),
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
"""The looks of a user's own relation types, in the order of their names; those of more than eight repeat them.

They are told apart by their colours alone, from the built-in ones too, and by their dashes alone.
"""


def looks_of(own: Iterable[str] = ()) -> Mapping[str, Look]:
    """Return the look of every relation type, built-in ones first, where a graph has some own ones."""
    looks = {str(relation): Look(about.colour, about.on_dark, about.dash) for relation, about in RELATIONS.items()}
    return looks | dict(zip(map(str, sorted(own)), cycle(OWN_LOOKS), strict=False))


def _palette_css(looks: Mapping[str, Look]) -> str:
    """Return the colours as CSS variables that are named for the relation types, dark ones for a dark ground."""
    light = " ".join(f"--{relation}: {look.colour};" for relation, look in looks.items())
    dark = " ".join(f"--{relation}: {look.on_dark};" for relation, look in looks.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root:not(.printing) {{ {dark} }} }}\n"


Position = tuple[float, float]

_WIDTH, _HEIGHT = 1200.0, 840.0
_BEST_RANKS = 5


def positions(data: Mapping[str, Any]) -> dict[str, Position]:
    """Return x and y of each node, by id: seeds at the left, the best passages at the right, the rest by forces.

    The same data gives the same positions. Forces are those of Fruchterman and Reingold ("Graph drawing by
    force-directed placement", 1991) in igraph's implementation, within the picture; seeds and best passages move up and
    down in their columns.

    Args:
        data: an explanation, as ``Explanation.to_json`` gives it.
    """
    nodes: Sequence[Mapping[str, Any]] = data["nodes"]
    if not nodes:
        return {}
    import igraph

    far, draw = math.sqrt(len(nodes)), random.Random(0)
    columns = [_column(node, far) for node in nodes]
    place = {node["id"]: i for i, node in enumerate(nodes)}
    edges = data["edges"]
    flows = [edge["forward"][-1] + edge["backward"][-1] if edge["forward"] else 0.0 for edge in edges]
    top = max(flows, default=0.0) or 1.0
    network = igraph.Graph(len(nodes), [(place[edge["source"]], place[edge["target"]]) for edge in edges])
    igraph.set_random_number_generator(random.Random(0))
    try:
        layout = network.layout_fruchterman_reingold(
            weights=[max(flow / top, 1e-6) ** 0.25 for flow in flows],
            niter=max(60, 300 - len(nodes) // 5),
            grid=False,
            seed=[(draw.uniform(least, most), draw.uniform(-far, far)) for least, most in columns],
            minx=[least for least, _ in columns],
            maxx=[most for _, most in columns],
            miny=[-far] * len(nodes),
            maxy=[far] * len(nodes),
        )
    finally:
        igraph.set_random_number_generator(random)
    layout.fit_into((0, 0, _WIDTH, _HEIGHT), keep_aspect_ratio=False)
    return {node["id"]: (round(x, 1), round(y, 1)) for node, (x, y) in zip(nodes, layout.coords, strict=True)}


def _column(node: Mapping[str, Any], far: float) -> tuple[float, float]:
    """Return between which x a node may stand: seed entities at the left, the best passages at the right."""
    if node["kind"] == "entity":
        return (-far, -far) if node["restart"] and node["restart"][-1] > 0 else (-far, far)
    is_best = node["number"] is not None or (node["rank"] and node["rank"][-1] <= _BEST_RANKS)
    return (far, far) if is_best else (-far, far)
