"""The place of a record that may have to be made: a new folder's in Postgres where the settings say so."""

from __future__ import annotations

from pathlib import Path

from graph.environment import environment
from graph.errors import BadInput
from graph.storage.place import (
    PLACE_FILE,
    RECORD_URL_VARIABLE,
    Place,
    given_name,
    in_sqlite,
    name_record,
    place_named,
    place_of,
)


def place_to_make(path: Path) -> Place | None:
    """Return the place of a record or a relationship graph, as `place_of` does; where a folder has none yet, choose it.

    It is in Postgres where ``MARA_RECORD_URL`` is set.

    Raises:
        BadInput: as `place_of`; or the folder is new, and another one made the record that the setting names.
        WorkspaceDamaged: what names the record cannot be read.
        RecordUnavailable: the setting names the record of a new folder, and the server does not answer.
    """
    root = path.parent
    if not (root / PLACE_FILE).exists() and environment().mara_record_url and not in_sqlite(root):
        place = place_named()
        if given_name():
            _take(root, place)
        else:
            name_record(root, place.name)
    return place_of(path)


def _take(root: Path, place: Place) -> None:
    """Let a new folder have the record that the setting names. Raises BadInput where another folder made that."""
    from graph.storage.postgres import new_schema

    with new_schema(place) as made:
        if made is not None:
            name_record(root, place.name)
    if not (root / PLACE_FILE).exists():
        raise BadInput(
            f"The record {place.name!r} is there already, and {root} is a new folder",
            f"Let it have that record: `mara record join {place.name}`;"
            f" or leave `workspace` out of {RECORD_URL_VARIABLE}, and it gets a record of its own",
        )
