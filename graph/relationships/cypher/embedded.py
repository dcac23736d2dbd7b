"""A copy of the relationship graph that answers Cypher without a server: `ladybug`, filled by COPY and only read.

The store lets nobody read while one writes. So each copy is made in a folder of its own, is put in place by a rename,
and is never written again.
"""

from __future__ import annotations

import glob
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

from graph.errors import BadInput, DependencyMissing, WorkspaceDamaged, WorkspaceLocked, WorkspaceMissing
from graph.relationships.cypher.reading import CellValue, Rows, check_limit, check_reads_only
from graph.relationships.cypher.tables import CONTAINS, Row, edge_rows, links, node_rows, pages
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EDGES, NODES, EdgeType, NodeType, PropertyKind
from graph.schema import stable_id
from graph.storage.generation import GenerationHold
from graph.storage.read_only import may_write
from graph.storage.record import Record
from graph.storage.workspace import Workspace, write_atomically

if TYPE_CHECKING:
    import ladybug

COPIES = "cypher"
"""The folder of a workspace that holds its copies for Cypher."""

_FILE = "graph.lbug"
_STAMP = "copy.json"
_CURRENT = "CURRENT"
_UNFINISHED = "new-"
_LOCK = "lock"
_LOCK_S = 600.0
_PAGE = 1_000
_POOL_BYTES = 2**30
_MAPPED_BYTES = 2**38
"""Of address space for one copy: the package's own choice, 8 TB, leaves room for 15 in a process."""
_TYPES = {PropertyKind.INTEGER: "INT64", PropertyKind.REAL: "DOUBLE"}
_OPTIONS = "HEADER=false, PARALLEL=false, AUTO_DETECT=false, DELIM=',', QUOTE='\"', ESCAPE='\"', NULL_STRINGS=['']"

Say = Callable[[str], None]
"""Tells people what is done for them beside what they asked for."""


class EmbeddedCopy:
    """An open copy. Any number may be open at once, in any number of processes; one belongs to one thread."""

    def __init__(self, folder: Path) -> None:
        """Open the copy in a folder.

        Raises:
            DependencyMissing: `ladybug` is not installed.
            FileNotFoundError: there is none.
            WorkspaceDamaged: it cannot be read.
        """
        self._hold = GenerationHold(folder)
        try:
            self._database = _database(folder / _FILE, read_only=True)
            self._connection = _package().Connection(self._database)
        except RuntimeError as fault:
            self._hold.release()
            raise WorkspaceDamaged(f"{folder} cannot be read ({_first_line(fault)})", f"Delete {folder}") from fault
        except BaseException:
            self._hold.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the copy; it may then be removed."""
        self._connection.close()
        self._database.close()
        self._hold.release()

    def query(
        self,
        query: str,
        parameters: Mapping[str, CellValue] | None = None,
        *,
        limit: int = 100,
        timeout_s: float = 10.0,
    ) -> Rows:
        """Return what a query that only reads finds.

        Args:
            query: in Cypher.
            parameters: the values of its ``$names``.
            limit: rows that are returned at most.
            timeout_s: seconds after which it is stopped.

        Raises:
            BadInput: the query may do more than read, cannot be run, or takes longer.
        """
        check_limit(limit)
        asked = check_reads_only(query, parameters or {})
        self._connection.set_query_timeout(max(1, round(timeout_s * 1000)))
        try:
            result = self._connection.execute(asked, dict(parameters or {}))
        except RuntimeError as fault:
            raise _refused(fault, timeout_s) from fault
        assert not isinstance(result, list)  # it is one statement
        with result:
            rows = []
            while result.has_next() and len(rows) < limit:
                values = result.get_next()
                assert isinstance(values, list)
                rows.append(tuple(map(_plain, values)))
            return Rows(tuple(result.get_column_names()), tuple(rows), result.has_next())


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
    _package()
    for _ in range(3):
        folder = _current(root)
        if folder is None or not _is_good(root, folder, with_vectors=with_vectors):
            folder = _renew(root, with_vectors=with_vectors, say=say)
        try:
            return EmbeddedCopy(folder)
        except FileNotFoundError:
            continue  # a newer one took its place meanwhile
        except WorkspaceDamaged:
            (folder / _STAMP).unlink(missing_ok=True)
    raise WorkspaceDamaged(f"No copy below {root / COPIES} can be read", f"Delete {root / COPIES}: it is made anew")


def remove_copies(root: Path) -> None:
    """Remove all copies of a workspace, also those that somebody reads; raises as `open_copy` does."""
    if not (root / COPIES).exists():
        return
    with _making(root):
        (root / COPIES / _CURRENT).unlink(missing_ok=True)
        for folder in _folders(root):
            shutil.rmtree(folder)


def _renew(root: Path, *, with_vectors: bool, say: Say | None) -> Path:
    """Make a copy and put it in place, unless another process did so meanwhile; return its folder."""
    if not may_write(root):
        raise BadInput(
            f"{root} may not be written, and holds no copy for Cypher that is up to date", "Make it writable"
        )
    with RelationshipRecord.of(root) as record, _making(root):
        folder = _current(root)
        if folder is not None and _is_good(root, folder, with_vectors=with_vectors):
            return folder
        started = time.monotonic()
        unfinished = root / COPIES / f"{_UNFINISHED}{uuid4().hex}"
        unfinished.mkdir()
        try:
            _make(record, root, unfinished, with_vectors=with_vectors)
            finished = unfinished.rename(unfinished.with_name(unfinished.name.removeprefix(_UNFINISHED)))
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        write_atomically(root / COPIES / _CURRENT, f"{finished.name}\n")
        _prune(root)
        if say is not None:
            say(f"The copy for Cypher was behind and is made anew ({time.monotonic() - started:.1f} s)")
        return finished


def _make(record: RelationshipRecord, root: Path, folder: Path, *, with_vectors: bool) -> None:
    """Write the record as it stands at one moment into a folder."""
    with _passages(root) as passages, _package_faults(), _database(folder / _FILE, read_only=False) as database:
        with _package().Connection(database) as connection, _snapshot(record):
            stamp = _stamp(record, passages, with_vectors=with_vectors)
            for statement in _tables(passages.dimension if passages and with_vectors else 0):
                connection.execute(statement).close()
            for table, rows, of_pair in _contents(record, passages, with_vectors=with_vectors):
                _copy(connection, table, rows, of_pair, folder / "rows.csv")
            connection.execute("CHECKPOINT").close()
    write_atomically(folder / _STAMP, json.dumps(stamp))


def _copy(connection: ladybug.Connection, table: str, rows: Iterator[Row], of_pair: str, path: Path) -> None:
    """Fill a table through a file: the one way that takes tens of thousands of rows a second."""
    with path.open("w", encoding="utf-8", newline="") as file:
        count = 0
        for page in pages(rows, _PAGE):
            file.writelines(",".join(map(_cell, row)) + "\n" for row in page)
            count += len(page)
    if count:
        place = glob.escape(str(path.absolute())).replace("\\", "\\\\").replace("'", "\\'")
        connection.execute(f"COPY `{table}` FROM '{place}' ({of_pair}{_OPTIONS})").close()
    path.unlink()


def _contents(
    record: RelationshipRecord, passages: Record | None, *, with_vectors: bool
) -> Iterator[tuple[str, Iterator[Row], str]]:
    """Yield each table's name, its rows, and the option that names the pair of an edge."""
    for of in NODES:
        rows = node_rows(record, of)
        if of is NodeType.CHUNK:
            rows = _with_passages(rows, 0, passages, _text)
        if of is NodeType.VECTOR and with_vectors:
            rows = _with_passages(rows, 1, passages, _vector)
        yield of, rows, ""
    for edge_type, source, target in links():
        yield edge_type, edge_rows(record, edge_type, source, target), f"from='{source}', to='{target}', "
        if edge_type is EdgeType.PART_OF:
            backwards = ((b, a, *rest) for a, b, *rest in edge_rows(record, edge_type, source, target))
            yield CONTAINS, backwards, f"from='{target}', to='{source}', "


def _with_passages(
    rows: Iterator[Row], place: int, passages: Record | None, value: Callable[[Any], CellValue]
) -> Iterator[Row]:
    """Append to each row a value of the passage that it names at that place; null where there is no such passage."""
    for page in pages(rows, _PAGE):
        entries = passages.entries([row[place] for row in page]) if passages else ()
        found = {entry.passage.id: value(entry) for entry in entries}
        yield from ((*row, found.get(row[place])) for row in page)


def _text(entry: Any) -> str:
    return str(entry.passage.text)


def _vector(entry: Any) -> str:
    return "[" + ",".join(map(repr, entry.vector.tolist())) + "]"


def _tables(dimension: int) -> Iterator[str]:
    """Yield the statements that make the tables; vectors are left out where the dimension is 0."""
    extra = {NodeType.CHUNK: ", `content` STRING"}
    if dimension:
        extra[NodeType.VECTOR] = f", `embedding` FLOAT[{dimension}]"
    for of, declared in NODES.items():
        columns = "".join(f", `{name}` {_TYPES.get(each.kind, 'STRING')}" for name, each in declared.items())
        yield f"CREATE NODE TABLE `{of}`(`id` STRING PRIMARY KEY{columns}{extra.get(of, '')})"
    for edge_type, schema in EDGES.items():
        columns = "".join(f", `{name}` {_TYPES.get(each.kind, 'STRING')}" for name, each in schema.properties.items())
        ends = ", ".join(f"FROM `{source}` TO `{target}`" for source, target in schema.pairs)
        yield f"CREATE REL TABLE `{edge_type}`({ends}{columns})"
        if edge_type is EdgeType.PART_OF:
            backwards = ", ".join(f"FROM `{target}` TO `{source}`" for source, target in schema.pairs)
            yield f"CREATE REL TABLE `{CONTAINS}`({backwards}{columns})"


def _cell(value: str | int | float | None) -> str:
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else repr(value)


@contextmanager
def _passages(root: Path) -> Iterator[Record | None]:
    """Open the record of passages; None where the workspace has none."""
    try:
        record = Workspace(root).open_record()
    except WorkspaceMissing:
        yield None
        return
    with record:
        yield record


@contextmanager
def _snapshot(record: RelationshipRecord) -> Iterator[None]:
    """Read the record as it stands now, whatever is written meanwhile."""
    record.execute("BEGIN")
    try:
        yield
    finally:
        record.execute("ROLLBACK")


def _stamp(record: RelationshipRecord, passages: Record | None, *, with_vectors: bool) -> dict[str, Any]:
    """Return what tells a copy of this state from others."""
    return {
        "revision": record.revision,
        "commit": passages.commit_id if passages else "",
        "tables": stable_id("tables", *_tables(0)),
        "vectors": with_vectors,
    }


def _is_good(root: Path, folder: Path, *, with_vectors: bool) -> bool:
    """Tell whether a copy holds what the records hold now, and vectors if they are wanted."""
    try:
        found = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    with RelationshipRecord.of(root) as record, _passages(root) as passages:
        wanted = _stamp(record, passages, with_vectors=with_vectors)
    if isinstance(found, dict) and not with_vectors:
        found["vectors"] = False
    return bool(found == wanted)


def _current(root: Path) -> Path | None:
    with suppress(OSError, UnicodeDecodeError):
        name = (root / COPIES / _CURRENT).read_text(encoding="ascii").strip()
        return root / COPIES / name if name.isalnum() else None
    return None


def _prune(root: Path) -> None:
    """Remove the copies that are not current and that nobody reads."""
    current = _current(root)
    for folder in _folders(root):
        if folder != current and not GenerationHold.is_held(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _folders(root: Path) -> list[Path]:
    return [path for path in (root / COPIES).iterdir() if path.is_dir()]


@contextmanager
def _making(root: Path) -> Iterator[None]:
    """Let no other process make or remove copies meanwhile."""
    from filelock import FileLock, Timeout

    (root / COPIES).mkdir(exist_ok=True)
    try:
        with FileLock(root / COPIES / _LOCK, timeout=_LOCK_S):
            yield
    except Timeout as fault:
        raise WorkspaceLocked(f"Another process makes a copy in {root / COPIES}", "Wait until it is done") from fault


@contextmanager
def _package_faults() -> Iterator[None]:
    try:
        yield
    except RuntimeError as fault:
        raise BadInput(f"The copy for Cypher cannot be made ({_first_line(fault)})", "Check the disk") from fault


def _database(path: Path, *, read_only: bool) -> ladybug.Database:
    return _package().Database(
        path, read_only=read_only, buffer_pool_size=_POOL_BYTES, max_db_size=_MAPPED_BYTES, lazy_init=False
    )


def _package() -> Any:
    try:
        import ladybug
    except ImportError as fault:
        raise DependencyMissing(
            "Cypher without a server needs the package ladybug", "Install it with: pip install 'mara-rag[graph]'"
        ) from fault
    return ladybug


def _refused(fault: RuntimeError, timeout_s: float) -> BadInput:
    said = _first_line(fault)
    if "Interrupted" in said:
        return BadInput(f"The query took longer than {timeout_s:g} s", "Ask for less, or raise --timeout")
    if "buffer pool is full" in said:
        return BadInput("The query needs more memory than it may take", "Ask for less: narrow what it matches")
    return BadInput(f"The query cannot be run ({said})", "The schema is in docs/relationships.md")


def _first_line(fault: BaseException) -> str:
    return " ".join(str(fault).split())[:200]


def _plain(value: Any) -> CellValue:
    """Return a value as JSON holds it: nodes and edges by their properties and label, without the store's own keys."""
    if isinstance(value, Mapping):
        if value.keys() == {"_NODES", "_RELS"}:
            return {"_nodes": _plain(value["_NODES"]), "_edges": _plain(value["_RELS"])}
        if "_LABEL" in value and "_ID" in value:
            name = "_type" if "_SRC" in value else "_label"
            held = {key: _plain(each) for key, each in value.items() if not key.startswith("_") and each is not None}
            return {name: str(value["_LABEL"]), **held}
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
