"""The copies for Cypher in a workspace: made where they are behind, removed when nobody reads them.

The store lets nobody read while one writes. So each copy is made in a folder of its own, is put in place by a rename,
and is never written again.
"""

from __future__ import annotations

import glob
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from graph.errors import BadInput, WorkspaceDamaged
from graph.relationships.cypher import embedded, tables
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EDGES, NODES, PropertyKind
from graph.schema import stable_id
from graph.storage.generation import GenerationHold
from graph.storage.lock import alone
from graph.storage.read_only import may_write

COPIES = "cypher"
"""The folder of a workspace that holds its copies for Cypher, each in a folder that its content names."""

_UNFINISHED = "new-"
_LOCK = "lock"
_LOCK_S = 600.0

Say = Callable[[str], None]
"""Tells people what is done for them beside what they asked for."""


def open_copy(root: Path, *, with_vectors: bool = False, say: Say | None = None) -> embedded.EmbeddedCopy:
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
    embedded.package()
    for _ in range(3):
        with RelationshipRecord.of(root) as record:
            folder = _present(root, record, with_vectors) or _made(root, record, with_vectors, say)
        try:
            return embedded.EmbeddedCopy(folder)
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
    told = stable_id("copy", str(record.revision), record.computed_state, *_tables(0))
    return f"{told}-{_dimension(record) if with_vectors else 0}"


def _dimension(record: RelationshipRecord) -> int:
    return int(record.graph.passage_vectors.shape[1]) if record.graph else 0


def _folders(root: Path) -> list[Path]:
    return [path for path in (root / COPIES).iterdir() if path.is_dir()]


def _making(root: Path) -> AbstractContextManager[None]:
    """Let no other process make or remove copies meanwhile."""
    folder = root / COPIES
    folder.mkdir(exist_ok=True)
    return alone(folder / _LOCK, _LOCK_S, f"Another process makes a copy in {folder}", "Wait until it is done")


_PAGE = 1_000
_TYPES = {PropertyKind.INTEGER: "INT64", PropertyKind.REAL: "DOUBLE"}
_OPTIONS = "HEADER=false, PARALLEL=false, AUTO_DETECT=false, DELIM=',', QUOTE='\"', ESCAPE='\"', NULL_STRINGS=['']"


def fill(record: RelationshipRecord, folder: Path, *, with_vectors: bool) -> None:
    """Make a copy of a record, which stands still, in an empty folder. Raises BadInput where the disk refuses."""
    dimension = _dimension(record) if with_vectors else 0
    with (
        _package_faults(),
        embedded.open_database(folder / embedded.GRAPH_FILE, read_only=False) as database,
        embedded.package().Connection(database) as connection,
    ):
        for statement in _tables(dimension):
            connection.execute(statement).close()
        connection.execute(f"CREATE (:`{tables.STAMP_LABEL}` {{id: 'stamp', revision: {record.revision}}})").close()
        for table, rows, of_pair in _contents(record, with_vectors=dimension > 0):
            _copy(connection, table, rows, of_pair, folder / "rows.csv")
        connection.execute("CHECKPOINT").close()


def _copy(connection: Any, table: str, rows: Iterator[tables.Row], of_pair: str, path: Path) -> None:
    """Fill a table through a file: the one way that takes tens of thousands of rows a second."""
    with path.open("w", encoding="utf-8", newline="") as file:
        count = 0
        for page in tables.pages(rows, _PAGE):
            file.writelines(",".join(map(_cell, row)) + "\n" for row in page)
            count += len(page)
    if count:
        place = glob.escape(str(path.absolute())).replace("\\", "\\\\").replace("'", "\\'")
        connection.execute(f"COPY `{table}` FROM '{place}' ({of_pair}{_OPTIONS})").close()
    path.unlink()


def _contents(record: RelationshipRecord, *, with_vectors: bool) -> Iterator[tuple[str, Iterator[tables.Row], str]]:
    """Yield each table's name, its rows, and the option that names the pair of an edge."""
    for of in NODES:
        yield of, tables.copied_rows(record, of, with_vectors=with_vectors), ""
    for link in tables.links():
        yield link.name, tables.edge_rows(record, link), f"from='{link.source}', to='{link.target}', "


def _tables(dimension: int) -> Iterator[str]:
    """Yield the statements of the tables and of what queries may call; without vectors where the dimension is 0."""
    yield f"CREATE NODE TABLE `{tables.STAMP_LABEL}`(`id` STRING PRIMARY KEY, `revision` INT64)"
    for of, declared in NODES.items():
        kinds = {name: _TYPES.get(each.kind, "STRING") for name, each in declared.items()}
        kinds["embedding"] = f"FLOAT[{dimension}]"
        names = tables.copied_columns(of, with_vectors=bool(dimension))[1:]
        columns = "".join(f", `{name}` {kinds.get(name, 'STRING')}" for name in names)
        yield f"CREATE NODE TABLE `{of}`(`id` STRING PRIMARY KEY{columns})"
    pairs: dict[str, list[tables.Link]] = {}
    for link in tables.links():
        pairs.setdefault(link.name, []).append(link)
    for name, each in pairs.items():
        declared = EDGES[each[0].type].properties
        columns = "".join(f", `{key}` {_TYPES.get(value.kind, 'STRING')}" for key, value in declared.items())
        ends = ", ".join(f"FROM `{link.source}` TO `{link.target}`" for link in each)
        yield f"CREATE REL TABLE `{name}`({ends}{columns})"
    yield "CREATE MACRO type(edge) AS label(edge)"  # Cypher's own name of it, which graph servers have alone


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
        raise BadInput(
            f"The copy for Cypher cannot be made ({embedded.first_line(fault)})", "Check the disk"
        ) from fault
