"""The LangGraph state machines and the ways to run them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

_HOME = Path(__file__).parents[1]


def _check_packages() -> None:
    """Raise ImportError where another module has taken the name of a package that this one needs."""
    for name in ("agents", "graph", "prompts"):
        found = find_spec(name)
        origin = found.origin if found else None
        if origin is None or Path(origin).resolve() != (_HOME / name / "__init__.py").resolve():
            raise ImportError(
                f"mara's package {name!r} is hidden by {origin or 'a module of that name'}: rename that, start Python"
                " in another folder, or install mara in a virtual environment of its own",
                name=name,
                path=origin,
            )


_check_packages()
