"""The check that no other package hides ours: ``agents``, ``graph``, ``prompts`` and ``workflows`` are common names."""

from __future__ import annotations

from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
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
    try:
        ours = distribution("mara-rag")
    except PackageNotFoundError:
        return
    if Path(str(ours.locate_file(""))).resolve() == _HOME.resolve():
        _check_files(ours)


def _check_files(ours: Distribution) -> None:
    """Raise ImportError where a file of an installed wheel is gone, or another package has put its own in the place."""
    for file in ours.files or ():
        if file.suffix != ".py":
            continue
        path = Path(str(ours.locate_file(file)))
        if not path.exists():
            raise ImportError(f"mara's {file} is gone, as if a package that had it, too, was removed: {_APART}")
        # Of a module and a package with one name, Python imports the package.
        package = file.with_suffix("") / "__init__.py"
        is_package = Path(str(ours.locate_file(package))).exists()
        over = package if is_package else file if file.size not in (None, path.stat().st_size) else None
        if over and (owner := _other_owner(str(over))):
            raise ImportError(f"mara's {file} is hidden by {over} of the package {owner}: {_APART}")


def _other_owner(file: str) -> str:
    """Return the package beside ours that installed a file, with its version; empty where none did."""
    for other in distributions():
        if other.name != "mara-rag" and f"\n{file}," in f"\n{other.read_text('RECORD')}":
            return f"{other.name} {other.version}"
    return ""
