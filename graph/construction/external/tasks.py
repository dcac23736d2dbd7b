"""Tasks of a build as lines of JSON, for processes of their own: the name of a stage's function, and its argument."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import graph.errors
from graph.construction.external.layout import Layout, load_layout
from graph.errors import MaraError


def written(function: Callable[[Any], None], task: Any) -> bytes:
    """Return a call of a module's function with a task, a dataclass, as a line without its end."""
    names = [[each.__module__, each.__name__] for each in (function, type(task))]
    return json.dumps([*names, _plain(task)]).encode()


def read(line: bytes) -> tuple[Callable[[Any], None], Any]:
    """Return the function and the task that a line says."""
    *names, task = json.loads(line)
    function, kind = (getattr(import_module(module), name) for module, name in names)
    return function, _typed(task, kind)


def _plain(value: Any) -> Any:
    if isinstance(value, Layout):
        return str(value.scratch)
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return str(value) if isinstance(value, Path) else value


def _typed(value: Any, wanted: Any) -> Any:
    """Return what `_plain` made of a value of some type."""
    if wanted is Layout:
        return load_layout(Path(value))
    if is_dataclass(wanted) and isinstance(wanted, type):
        return wanted(**{name: _typed(value[name], kind) for name, kind in _types(wanted).items()})
    if wanted is Path:
        return Path(value)
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=64)
def _types(of: type) -> dict[str, Any]:
    return get_type_hints(of)


def told_fault(fault: Exception) -> dict[str, Any]:
    """Return an error as JSON holds it."""
    if isinstance(fault, MaraError):
        return {"error": fault.kind, "message": fault.message, "hint": fault.hint}
    if isinstance(fault, OSError):
        return {"errno": fault.errno, "message": fault.strerror or str(fault), "file": str(fault.filename or "")}
    return {"message": f"{type(fault).__name__}: {fault}"}


def fault_of(said: dict[str, Any]) -> Exception:
    """Return the error that `told_fault` told: ours and the system's as they were, any other by its name."""
    if "error" in said:
        kind = getattr(graph.errors, said["error"], MaraError)
        fault: Exception = kind(said["message"], said["hint"])
        return fault
    if "errno" in said:
        return OSError(said["errno"], said["message"], said["file"])
    return RuntimeError(said["message"])
