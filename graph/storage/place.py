"""The place of a workspace's record: a SQLite file of its folder, or a schema of a Postgres database.

A folder whose record is in Postgres holds ``record.json``, which names the record and not the server: the address, with
its secrets, is that of ``MARA_RECORD_URL`` alone.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from graph.endpoints.address import address_parts, unreadable
from graph.environment import environment
from graph.errors import BadInput, WorkspaceDamaged

RECORD_URL_VARIABLE = "MARA_RECORD_URL"
"""The Postgres database that holds the records and the history of new workspaces; unset: each has SQLite files."""

RECORD_FILE = "record.sqlite"
"""The file of a workspace that holds its record, where that is in SQLite."""

RELATIONSHIPS_FILE = "relationships.sqlite"
"""The file of a workspace that holds its relationship graph, where that is in SQLite."""

PLACE_FILE = "record.json"
"""The file of a workspace that names its record, where that is in Postgres."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_FOLDER_LENGTH = 12
_SCHEMES = ("postgresql", "postgres")
_EXAMPLE = "postgresql://USER:PASSWORD@HOST/DATABASE"


@dataclass(frozen=True, slots=True)
class Place:
    """A record in Postgres.

    Attributes:
        name: of the record; its schema is named after it.
        url: of the database, with its secrets: for no message and no file.
    """

    name: str
    url: str = field(repr=False)

    @property
    def schema(self) -> str:
        """The schema of the record."""
        return f"mara_record_{self.name}"

    @property
    def relationships_schema(self) -> str:
        """The schema of the relationship graph: no record's, whatever that is named."""
        return f"mara_relations_{self.name}"


def place_of(path: Path) -> Place | None:
    """Return the place in Postgres of a record or a relationship graph; None where it is the SQLite file at ``path``.

    Args:
        path: where it lies, or would, in SQLite.

    Raises:
        BadInput: the folder names a record, and the setting gives no database for it.
        WorkspaceDamaged: what names the record cannot be read.
    """
    file = path.parent / PLACE_FILE
    if not file.exists():
        return None
    name, _ = _noted(file)
    if not environment().mara_record_url:
        raise BadInput(
            f"The record of {file.parent} is in Postgres, and {RECORD_URL_VARIABLE} is not set",
            f"Set {RECORD_URL_VARIABLE}=postgresql://USER@HOST/DATABASE to the database that holds it",
        )
    return Place(name, _url())


def name_record(root: Path, name: str, *, moved: bool = False, joins: bool = False) -> None:
    """Note in a folder which record in Postgres is its own; one that is noted already stays.

    Args:
        root: the folder, which exists.
        name: of the record.
        moved: the record and the history that the folder holds in SQLite were copied there.
        joins: another folder has the record, too, so that this one gets a name of its own for what lies on servers.

    Raises:
        BadInput: that is no name of a record, or the folder holds a record or history in SQLite.
    """
    check_name(name)
    if not moved and in_sqlite(root):
        raise BadInput(
            f"{root} holds a record or a history in SQLite",
            "Move it: `mara doctor --move-record`; or name another folder",
        )
    own = {"folder": uuid.uuid4().hex[:_FOLDER_LENGTH]} if joins else {}
    text = json.dumps({"record": name, **own}) + "\n"
    temporary = root / f".{PLACE_FILE}.{os.getpid()}"
    try:
        temporary.write_text(text, encoding="utf-8")
        put_new(temporary, root / PLACE_FILE)
    except OSError as fault:
        raise BadInput(f"{root} cannot be written ({fault.strerror})", "Check its permissions and the disk") from fault
    finally:
        temporary.unlink(missing_ok=True)


def put_new(file: Path, place: Path) -> None:
    """Let a file be at a place, whole at once, too, unless one is there; it is moved where links are not known."""
    try:
        os.link(file, place)
    except FileExistsError:
        pass
    except OSError:
        if not place.exists():
            file.rename(place)


def check_name(name: str) -> None:
    """Raise BadInput where a text is no name of a record."""
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"{name[:40]!a} is not the name of a record", "Give letters a to z, digits, '-' and '_', at most 40 of them"
        )


def check_chosen(root: Path) -> None:
    """Raise BadInput where a folder's record is in SQLite, and the setting says that records are in Postgres."""
    if environment().mara_record_url and (root / RECORD_FILE).exists() and not (root / PLACE_FILE).exists():
        raise BadInput(
            f"The record of {root} is in SQLite, and {RECORD_URL_VARIABLE} says that records are in Postgres",
            f"Move it: `mara doctor --move-record`; or unset {RECORD_URL_VARIABLE} for this workspace",
        )


def place_named(name: str = "") -> Place:
    """Return the place of the record of that name, or of a new one.

    Raises BadInput where ``MARA_RECORD_URL`` is not set, or no address of Postgres.
    """
    place = Place(name or uuid.uuid4().hex, _url())
    check_name(place.name)
    return place


def place_name(root: Path) -> str:
    """Return the name of a folder's record in Postgres; empty where it has none there."""
    place = place_of(root / RECORD_FILE)
    return place.name if place else ""


def collections_prefix(root: Path, workspace_id: str) -> str:
    """Return what the names of a workspace's collections on a Chroma server begin with.

    A folder that joined a record has collections of its own: no other folder knows which generations its readers hold.

    Raises WorkspaceDamaged where what names the record cannot be read.
    """
    file = root / PLACE_FILE
    own = _noted(file)[1] if file.exists() else ""
    return f"{workspace_id}-{own}-" if own else f"{workspace_id}-"


def in_sqlite(root: Path) -> bool:
    """Tell whether a folder holds a record or a history in SQLite."""
    return (root / RECORD_FILE).exists() or (root / RELATIONSHIPS_FILE).exists()


def _noted(file: Path) -> tuple[str, str]:
    """Return the name of a folder's record, and the folder's own, which is empty where it has none."""
    try:
        noted = json.loads(file.read_text(encoding="utf-8"))
        name, own = noted["record"], noted.get("folder", "")
        check_name(name)
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise WorkspaceDamaged(
            f"{file} does not name a record ({type(fault).__name__})", "Restore it from a backup"
        ) from fault
    return name, own


def _url() -> str:
    """Return the address of the database, as Postgres reads it."""
    text = environment().mara_record_url
    if not text:
        raise BadInput(f"{RECORD_URL_VARIABLE} is not set", f"Set it to {_EXAMPLE}")
    parts = address_parts(text)
    if parts is None or parts.scheme not in _SCHEMES or parts.fragment:
        raise unreadable_url()
    return parts.geturl()


def unreadable_url() -> BadInput:
    """Return the error of a ``MARA_RECORD_URL`` that cannot be read; it shows nothing of it."""
    return unreadable(RECORD_URL_VARIABLE, _EXAMPLE)
