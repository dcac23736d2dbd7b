"""The page that shows an explanation: one HTML file that needs nothing else and asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from workflows.explanation.layout import positions
from workflows.explanation.palette import dashes, palette_css

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
