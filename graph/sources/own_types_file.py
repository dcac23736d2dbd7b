"""Reading the file of a user's own types: TOML, with the tables ``[relations.NAME]`` and ``[entities.Name]``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from graph.errors import BadInput
from graph.own_types import OwnTypes, own_types_of
from graph.sources.loaders.files import read_text, readable_path

MAX_TYPES_BYTES = 2**20
"""Size of a file of types."""


def read_own_types(path: Path) -> OwnTypes:
    """Read a file of types.

    Raises:
        BadInput: it cannot be read, is no TOML, or states something that is no type; the error says what and where.
    """
    where = readable_path(path)
    try:
        found = tomllib.loads(read_text(path, MAX_TYPES_BYTES))
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise BadInput(f"{where} is no TOML file ({fault})", "docs/types.md has a whole example") from fault
    try:
        types = own_types_of(found)
    except ValueError as fault:
        raise BadInput(f"{where}: {fault}", "docs/types.md has a whole example") from fault
    if not types:
        raise BadInput(f"{where} declares no type", "Declare types in it: [relations.NAME] or [entities.Name]")
    return types
