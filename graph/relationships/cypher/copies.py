"""The copies for Cypher in a workspace: made where they are behind, removed when no process reads them.

The store allows no reader beside a writer. So each copy is made in a folder of its own, is put in place by a rename,
and is never written again.
"""

from __future__ import annotations

import glob
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from graph.embedding.embeddings import check_dimension
from graph.errors import BadInput, DependencyMissing, WorkspaceDamaged
from graph.relationships.cypher.queries import nearest_chunks
from graph.relationships.cypher.reading import CellValue, Queryable, Rows, took_too_long
from graph.relationships.exchange import STAMP_LABEL, Table, tables
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import PropertyKind
from graph.schema import stable_id
from graph.storage.lock import GenerationHold, alone
from graph.storage.read_only import may_write

if TYPE_CHECKING:
    import ladybug

COPIES = "cypher"
"""The folder of a workspace that holds its copies for Cypher, each in a folder that its content names."""

_UNFINISHED = "new-"
_LOCK = "lock"
_LOCK_S = 600.0

Say = Callable[[str], None]
"""Tells people what is done for them beside what they asked for."""


def open_copy(root: Path, *, with_vectors: bool = False, say: Say | None = None) -> EmbeddedCopy:
    """Open the copy of a workspace's relationship graph; where there is none, or it is behind, it is made first.

    Args:
        root: the workspace.
        with_vectors: whether the copy has to hold the passages' vectors.
        say: is told when a copy is made.

    Raises:
        DependencyMissing: `ladybug` is not installed.
        BadInput: the workspace has no relationship graph, or may not be written and its copy is behind.
        WorkspaceLocked: another process has been making a copy for ten minutes.
    """
    package()
    for _ in range(3):
        with RelationshipRecord.of(root) as record:
            folder = _present(root, record, with_vectors) or _made(root, record, with_vectors, say)
        try:
            return EmbeddedCopy(folder)
        except FileNotFoundError:
            continue  # a newer one took its place meanwhile
        except WorkspaceDamaged:
            shutil.rmtree(folder, ignore_errors=True)
    raise WorkspaceDamaged(f"No copy below {root / COPIES} can be read", f"Delete {root / COPIES}: it is made anew")


def remove_copies(root: Path) -> None:
    """Remove all copies of a workspace, also those that somebody reads; raises as `open_copy` does."""
    if (root / COPIES).exists():
        with _making(root):
            for folder in _folders(root):
                shutil.rmtree(folder)


def _present(root: Path, record: RelationshipRecord, with_vectors: bool) -> Path | None:
    """Return the copy of a record as it stands; None where there is none. One with vectors serves without them."""
    names = [_name(record, wanted) for wanted in dict.fromkeys((True, with_vectors))]
    return next((root / COPIES / name for name in names if (root / COPIES / name).exists()), None)


def _made(root: Path, record: RelationshipRecord, with_vectors: bool, say: Say | None) -> Path:
    """Make a copy and put it in place, unless another process did so meanwhile; return its folder."""
    if not may_write(root):
        raise BadInput(
            f"{root} may not be written, and holds no copy for Cypher that is up to date", "Make it writable"
        )
    with _making(root), record.as_it_stands():
        if present := _present(root, record, with_vectors):
            return present
        started = time.monotonic()
        unfinished = root / COPIES / f"{_UNFINISHED}{uuid4().hex}"
        unfinished.mkdir()
        try:
            fill(record, unfinished, with_vectors=with_vectors)
            finished = unfinished.rename(root / COPIES / _name(record, with_vectors))
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        for folder in _folders(root):
            if folder != finished and not GenerationHold.is_held(folder):
                shutil.rmtree(folder, ignore_errors=True)
        if say is not None:
            say(f"The copy for Cypher was behind and is made anew ({time.monotonic() - started:.1f} s)")
        return finished


def _name(record: RelationshipRecord, with_vectors: bool) -> str:
    """Return the name of the folder for a copy of a record as it stands: a hash, and the dimension of its vectors."""
    state = stable_id("copy", str(record.revision), record.computed_state, *_tables(0))
    return f"{state}-{_dimension(record) if with_vectors else 0}"


def _dimension(record: RelationshipRecord) -> int:
    return int(record.graph.passage_vectors.shape[1]) if record.graph else 0


def _folders(root: Path) -> list[Path]:
    return [path for path in (root / COPIES).iterdir() if path.is_dir()]


def _making(root: Path) -> AbstractContextManager[None]:
    """Let no other process make or remove copies meanwhile."""
    folder = root / COPIES
    folder.mkdir(exist_ok=True)
    return alone(folder / _LOCK, _LOCK_S, f"Another process makes a copy in {folder}", "Wait until it is done")


_TYPES = {PropertyKind.INTEGER: "INT64", PropertyKind.REAL: "DOUBLE"}
_OPTIONS = "HEADER=false, PARALLEL=false, AUTO_DETECT=false, DELIM=',', QUOTE='\"', ESCAPE='\"', NULL_STRINGS=['']"


def fill(record: RelationshipRecord, folder: Path, *, with_vectors: bool) -> None:
    """Make a copy of a record, which stands still, in an empty folder. Raises BadInput where the disk refuses."""
    dimension = _dimension(record) if with_vectors else 0
    with (
        _package_faults(),
        open_database(folder / GRAPH_FILE, read_only=False) as database,
        package().Connection(database) as connection,
    ):
        for statement in _tables(dimension):
            connection.execute(statement).close()
        connection.execute(f"CREATE (:`{STAMP_LABEL}` {{id: 'stamp', revision: {record.revision}}})").close()
        for table in tables(with_vectors=dimension > 0):
            _copy(connection, table, record, folder / "rows.csv")
        connection.execute("CHECKPOINT").close()


def _copy(connection: Any, table: Table, record: RelationshipRecord, path: Path) -> None:
    """Fill a table through a file: the one way that takes tens of thousands of rows a second."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(",".join(map(_cell, row)) + "\n" for row in table.rows(record))
    if path.stat().st_size:
        place = glob.escape(str(path.absolute())).replace("\\", "\\\\").replace("'", "\\'")
        of_pair = "from='{}', to='{}', ".format(*table.ends) if table.ends else ""
        connection.execute(f"COPY `{table.name}` FROM '{place}' ({of_pair}{_OPTIONS})").close()
    path.unlink()


def _tables(dimension: int) -> Iterator[str]:
    """Yield the statements of the tables and of what queries may call; without vectors where the dimension is 0."""
    yield f"CREATE NODE TABLE `{STAMP_LABEL}`(`id` STRING PRIMARY KEY, `revision` INT64)"
    links: dict[str, list[Table]] = {}
    for table in tables(with_vectors=dimension > 0):
        if table.ends:
            links.setdefault(table.name, []).append(table)
        else:
            yield f"CREATE NODE TABLE `{table.name}`(`id` STRING PRIMARY KEY{_columns(table, dimension)})"
    for name, each in links.items():
        ends = ", ".join("FROM `{}` TO `{}`".format(*table.ends) for table in each)
        yield f"CREATE REL TABLE `{name}`({ends}{_columns(each[0], dimension)})"
    yield "CREATE MACRO type(edge) AS label(edge)"  # Cypher's own name of it, which graph servers have alone


def _columns(table: Table, dimension: int) -> str:
    kinds = {name: _TYPES.get(each.kind, "STRING") for name, each in table.declared.items()}
    kinds["embedding"] = f"FLOAT[{dimension}]"
    names = table.columns[len(table.ends) or 1 :]
    return "".join(f", `{name}` {kinds.get(name, 'STRING')}" for name in names)


def _cell(value: str | int | float | list[float] | None) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return '"[' + ",".join(map(repr, value)) + ']"'
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else repr(value)


@contextmanager
def _package_faults() -> Iterator[None]:
    try:
        yield
    except RuntimeError as fault:
        raise BadInput(f"The copy for Cypher cannot be made ({first_line(fault)})", "Check the disk") from fault


GRAPH_FILE = "graph.lbug"
"""The file of a copy's folder that `ladybug` opens."""

_POOL_BYTES = 2**30
_MAPPED_BYTES = 2**38
"""Of address space for one copy: the package's own choice, 8 TB, leaves room for 15 in a process."""


class EmbeddedCopy(Queryable):
    """An open copy. Any number may be open at once, in any number of processes; one belongs to one thread."""

    def __init__(self, folder: Path) -> None:
        """Open the copy in a folder, whose name ends in the dimension of its vectors, 0 for none.

        Raises:
            DependencyMissing: `ladybug` is not installed.
            FileNotFoundError: there is none.
            WorkspaceDamaged: it cannot be read.
        """
        self._hold = GenerationHold(folder)
        self._dimension = int(folder.name.rpartition("-")[2])
        try:
            self._database = open_database(folder / GRAPH_FILE, read_only=True)
            self._connection = package().Connection(self._database)
        except RuntimeError as fault:
            self._hold.release()
            raise WorkspaceDamaged(f"{folder} cannot be read ({first_line(fault)})", f"Delete {folder}") from fault
        except BaseException:
            self._hold.release()
            raise

    def close(self) -> None:
        """Close the copy; it may then be removed."""
        self._connection.close()
        self._database.close()
        self._hold.release()

    def _read(self, query: str, parameters: Mapping[str, CellValue], limit: int, timeout_s: float) -> Rows:
        self._connection.set_query_timeout(max(1, round(timeout_s * 1000)))
        try:
            result = self._connection.execute(query, dict(parameters))
        except RuntimeError as fault:
            raise _refused(fault, timeout_s) from fault
        assert not isinstance(result, list)  # it is one statement
        with result:
            rows: list[tuple[CellValue, ...]] = []
            while result.has_next() and len(rows) < limit:
                values = result.get_next()
                assert isinstance(values, list)
                rows.append(tuple(map(_plain, values)))
            return Rows(tuple(map(_column, result.get_column_names())), tuple(rows), result.has_next())

    def _search(self, vector: Sequence[float]) -> tuple[str, dict[str, CellValue]]:
        """Return a search that looks at every vector."""
        if not self._dimension:
            raise BadInput("This copy holds no vectors", "Open one with vectors")
        check_dimension(np.asarray(vector), self._dimension)
        return nearest_chunks(f"array_cosine_similarity(v.embedding, CAST($vector, 'FLOAT[{self._dimension}]'))"), {}


def open_database(path: Path, *, read_only: bool) -> ladybug.Database:
    """Open a file of the package. Raises DependencyMissing, or RuntimeError where the file cannot be used."""
    database: ladybug.Database = package().Database(
        path, read_only=read_only, buffer_pool_size=_POOL_BYTES, max_db_size=_MAPPED_BYTES, lazy_init=False
    )
    return database


def package() -> Any:
    """Return the package `ladybug`. Raises DependencyMissing where it is not installed."""
    try:
        import ladybug
    except ImportError as fault:
        raise DependencyMissing(
            "Cypher without a server needs the package ladybug", "Install it with: pip install 'mara-rag[graph]'"
        ) from fault
    return ladybug


def _refused(fault: RuntimeError, timeout_s: float) -> BadInput:
    said = first_line(fault)
    if "Interrupted" in said:
        return took_too_long(timeout_s)
    if "buffer pool is full" in said:
        return BadInput("The query needs more memory than it may take", "Ask for less: narrow what it matches")
    return BadInput(f"The query cannot be run ({said})", "The schema is in docs/relationships.md")


def first_line(fault: BaseException) -> str:
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
