"""The copies for Cypher in a workspace: made where they are behind.

The store allows no reader beside a writer. So each copy is made in a folder of its own, is put in place by a rename,
and is never written again. A process that has an older one open keeps reading it.
"""

from __future__ import annotations

import glob
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from graph.errors import BadInput, WorkspaceDamaged, needs
from graph.relationships.cypher.reading import CellValue, Queryable, Rows, took_too_long
from graph.relationships.exchange import STAMP_LABEL, Table, tables
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import PropertyKind
from graph.schema import stable_id
from graph.storage.lock import alone
from graph.storage.read_only import may_write

if TYPE_CHECKING:
    import ladybug

COPIES = "cypher"
"""The folder of a workspace that holds its copies for Cypher, each in a folder that its content names."""

GRAPH_FILE = "graph.lbug"
"""The file of a copy's folder that `ladybug` opens."""

_LOCK = "lock"
_LOCK_S = 600.0
_TYPES = {PropertyKind.INTEGER: "INT64", PropertyKind.REAL: "DOUBLE"}
_OPTIONS = "HEADER=false, PARALLEL=false, AUTO_DETECT=false, DELIM=',', QUOTE='\"', ESCAPE='\"', NULL_STRINGS=['']"
_POOL_BYTES = 2**30
_MAPPED_BYTES = 2**38
"""Of address space for one copy: the package's own choice, 8 TB, leaves room for 15 in a process."""

Say = Callable[[str], None]
"""Tells people what is done for them beside what they asked for."""


def open_copy(root: Path, *, say: Say | None = None) -> EmbeddedCopy:
    """Open the copy of a workspace's relationship graph; where there is none, or it is behind, it is made first.

    Args:
        root: the workspace.
        say: is told when a copy is made.

    Raises:
        DependencyMissing: `ladybug` is not installed.
        BadInput: the workspace has no relationship graph, or may not be written and its copy is behind.
        WorkspaceDamaged: the copy cannot be read.
        WorkspaceLocked: another process has been making a copy for ten minutes.
    """
    package()
    with RelationshipRecord.of(root) as record:
        if not may_write(root):
            folder = root / COPIES / _name(record)
            if not folder.exists():
                raise BadInput(f"{root} may not be written, and its copy for Cypher is behind", "Make it writable")
            return EmbeddedCopy(folder)
        with _making(root), record.as_it_stands():
            folder = root / COPIES / _name(record)
            if not folder.exists():
                _remove_all(root)
                with TemporaryDirectory(dir=root / COPIES) as unfinished:
                    made = Path(unfinished) / folder.name
                    made.mkdir()
                    _fill(record, made)
                    made.rename(folder)
                if say is not None:
                    say("The copy for Cypher was behind and is made anew")
            return EmbeddedCopy(folder)


def remove_copies(root: Path) -> None:
    """Remove all copies of a workspace, also those that are being read; raises as `open_copy` does."""
    if (root / COPIES).exists():
        with _making(root):
            _remove_all(root)


def _remove_all(root: Path) -> None:
    for path in (root / COPIES).iterdir():
        if path.is_dir():
            shutil.rmtree(path)


def _name(record: RelationshipRecord) -> str:
    """Return the name of the folder for a copy of a record as it stands: a hash."""
    return stable_id("copy", str(record.revision), record.computed_state, *_tables())


def _making(root: Path) -> AbstractContextManager[None]:
    """Let no other process make or remove copies meanwhile."""
    folder = root / COPIES
    folder.mkdir(exist_ok=True)
    return alone(folder / _LOCK, _LOCK_S, f"Another process makes a copy in {folder}", "Wait until it is done")


def _fill(record: RelationshipRecord, folder: Path) -> None:
    """Make a copy of a record, which stands still, in an empty folder. Raises BadInput where the disk refuses."""
    try:
        with (
            _open_database(folder / GRAPH_FILE, read_only=False) as database,
            package().Connection(database) as connection,
        ):
            for statement in _tables():
                connection.execute(statement).close()
            connection.execute(f"CREATE (:`{STAMP_LABEL}` {{id: 'stamp', revision: {record.revision}}})").close()
            for table in tables():
                _copy(connection, table, record, folder / "rows.csv")
            connection.execute("CHECKPOINT").close()
    except RuntimeError as fault:
        raise BadInput(f"The copy for Cypher cannot be made ({_first_line(fault)})", "Check the disk") from fault


def _copy(connection: Any, table: Table, record: RelationshipRecord, path: Path) -> None:
    """Fill a table through a file: the one way that takes tens of thousands of rows a second."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(",".join(map(_cell, row)) + "\n" for row in table.rows(record))
    if path.stat().st_size:
        place = glob.escape(str(path.absolute())).replace("\\", "\\\\").replace("'", "\\'")
        of_pair = "from='{}', to='{}', ".format(*table.ends) if table.ends else ""
        connection.execute(f"COPY `{table.name}` FROM '{place}' ({of_pair}{_OPTIONS})").close()
    path.unlink()


def _tables() -> Iterator[str]:
    """Yield the statements of the tables and of what queries may call."""
    yield f"CREATE NODE TABLE `{STAMP_LABEL}`(`id` STRING PRIMARY KEY, `revision` INT64)"
    links: dict[str, list[Table]] = {}
    for table in tables():
        if table.ends:
            links.setdefault(table.name, []).append(table)
        else:
            yield f"CREATE NODE TABLE `{table.name}`(`id` STRING PRIMARY KEY{_columns(table)})"
    for name, each in links.items():
        ends = ", ".join("FROM `{}` TO `{}`".format(*table.ends) for table in each)
        yield f"CREATE REL TABLE `{name}`({ends}{_columns(each[0])})"
    yield "CREATE MACRO type(edge) AS label(edge)"  # Cypher's own name of it, which graph servers have alone


def _columns(table: Table) -> str:
    kinds = {name: _TYPES.get(each.kind, "STRING") for name, each in table.declared.items()}
    names = table.columns[len(table.ends) or 1 :]
    return "".join(f", `{name}` {kinds.get(name, 'STRING')}" for name in names)


def _cell(value: str | int | float | None) -> str:
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else repr(value)


class EmbeddedCopy(Queryable):
    """An open copy. Any number may be open at once, in any number of processes; one belongs to one thread."""

    def __init__(self, folder: Path) -> None:
        """Open the copy in a folder. Raises DependencyMissing without `ladybug`, WorkspaceDamaged for an odd file."""
        try:
            self._db = _open_database(folder / GRAPH_FILE, read_only=True)
        except RuntimeError as fault:
            raise WorkspaceDamaged(
                f"{folder} cannot be read ({_first_line(fault)})", f"Delete {folder}: it is made anew"
            ) from fault
        self._connection = package().Connection(self._db)

    def close(self) -> None:
        """Close the copy."""
        self._connection.close()
        super().close()

    def _read(self, query: str, parameters: Mapping[str, CellValue], limit: int, timeout_s: float) -> Rows:
        self._connection.set_query_timeout(max(1, round(timeout_s * 1000)))
        try:
            result = self._connection.execute(query, dict(parameters))
        except RuntimeError as fault:
            said = _first_line(fault)
            if "Interrupted" in said:
                raise took_too_long(timeout_s) from fault
            raise BadInput(f"The query cannot be run ({said})", "The schema is in docs/relationships.md") from fault
        with result:
            rows: list[tuple[CellValue, ...]] = []
            while result.has_next() and len(rows) < limit:
                rows.append(tuple(map(_plain, result.get_next())))
            return Rows(tuple(map(_column, result.get_column_names())), tuple(rows), result.has_next())


def _open_database(path: Path, *, read_only: bool) -> ladybug.Database:
    """Open a file of the package. Raises DependencyMissing, or RuntimeError where the file cannot be used."""
    database: ladybug.Database = package().Database(
        path, read_only=read_only, buffer_pool_size=_POOL_BYTES, max_db_size=_MAPPED_BYTES, lazy_init=False
    )
    return database


def package() -> Any:
    """Return the package `ladybug`. Raises DependencyMissing where it is not installed."""
    with needs("graph", "Cypher without a server"):
        import ladybug
    return ladybug


def _first_line(fault: BaseException) -> str:
    """Return what a fault says, on one line of bounded length."""
    return " ".join(str(fault).split())[:200]


def _column(name: str) -> str:
    """Return the name of a column without the store's own keys and tables, which it spells a label with."""
    return re.sub(r"LABEL\((\w+)\._ID,\[[^\]]*\]\)", r"label(\1)", name)


def _plain(value: Any) -> CellValue:
    """Return a value as JSON holds it: nodes and edges by their properties and label, without the store's own keys."""
    if isinstance(value, Mapping):
        if value.keys() == {"_NODES", "_RELS"}:
            return {"_nodes": _plain(value["_NODES"]), "_edges": _plain(value["_RELS"])}
        if "_LABEL" in value and "_ID" in value:
            name = "_type" if "_SRC" in value else "_label"
            values = {key: _plain(each) for key, each in value.items() if not key.startswith("_") and each is not None}
            return {name: str(value["_LABEL"]), **values}
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)  # what a sum of whole numbers is here
    return value if isinstance(value, str | int | float | bool | None) else str(value)
