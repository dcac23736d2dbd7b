"""The page that shows an explanation: one HTML file that needs nothing else and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from graph.relations import RELATIONS
from workflows.explanation.layout import positions

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
    placed = {**data, "positions": positions(data), "dashes": dashes(data["own_relations"])}
    scripts = {name: _asset(file) for name, file in _SCRIPTS.items()}
    parts = {
        **scripts,
        "policy": _policy(*scripts.values()),
        "style": palette_css(data["own_relations"]) + _asset("page.css"),
        "data": json.dumps(placed, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_ESCAPES),
    }
    return _PLACE.sub(lambda place: parts[place[1]], _asset("page.html"))


def _policy(*scripts: str) -> str:
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


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
