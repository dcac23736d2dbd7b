"""The check that no other module hides ours: ``agents``, ``graph``, ``prompts`` and ``workflows`` are common names."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

_HOME = Path(__file__).parents[1]

_APART = (
    "install mara in a virtual environment of its own, and ask it from others over HTTP (`mara serve`) or MCP"
    " (`mara serve mcp`)"
)


@cache
def check_packages() -> None:
    """Raise ImportError where a module of another package would be imported in place of one of mara's."""
    for name in ("agents", "graph", "prompts"):
        spec = find_spec(name)
        origin = spec.origin if spec else None
        if origin is None or Path(origin).resolve() != (_HOME / name / "__init__.py").resolve():
            raise ImportError(
                f"mara's package {name!r} is hidden by {origin or 'a module of that name'}: rename that, start Python"
                f" in another folder, or {_APART}",
                name=name,
                path=origin,
            )
