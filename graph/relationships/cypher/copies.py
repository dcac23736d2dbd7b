"""The copies for Cypher in a workspace: made where they are behind, removed when nobody reads them.

The store lets nobody read while one writes. So each copy is made in a folder of its own, is put in place by a rename,
and is never written again.
"""

from __future__ import annotations

import glob
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
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
from graph.storage.workspace import write_atomically

COPIES = "cypher"
"""The folder of a workspace that holds its copies for Cypher."""

_CURRENT = "CURRENT"
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
        folder = _current(root)
        if folder is None or not _is_good(root, folder, with_vectors=with_vectors):
            folder = _renew(root, with_vectors=with_vectors, say=say)
        try:
            return embedded.EmbeddedCopy(folder)
        except FileNotFoundError:
            continue  # a newer one took its place meanwhile
        except WorkspaceDamaged:
            (folder / embedded.STAMP_FILE).unlink(missing_ok=True)
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
            fill(record, unfinished, with_vectors=with_vectors)
            finished = unfinished.rename(unfinished.with_name(unfinished.name.removeprefix(_UNFINISHED)))
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        write_atomically(root / COPIES / _CURRENT, f"{finished.name}\n")
        _prune(root)
        if say is not None:
            say(f"The copy for Cypher was behind and is made anew ({time.monotonic() - started:.1f} s)")
        return finished


def _is_good(root: Path, folder: Path, *, with_vectors: bool) -> bool:
    """Tell whether a copy holds what the records hold now, and vectors if they are wanted."""
    found = embedded.read_stamp(folder)
    if found is None:
        return False
    with RelationshipRecord.of(root) as record:
        wanted = stamp_of(record, with_vectors=with_vectors)
    if not with_vectors:
        found["dimension"] = 0
    return found == wanted


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


def _making(root: Path) -> AbstractContextManager[None]:
    """Let no other process make or remove copies meanwhile."""
    folder = root / COPIES
    folder.mkdir(exist_ok=True)
    return alone(folder / _LOCK, _LOCK_S, f"Another process makes a copy in {folder}", "Wait until it is done")


_PAGE = 1_000
_TYPES = {PropertyKind.INTEGER: "INT64", PropertyKind.REAL: "DOUBLE"}
_OPTIONS = "HEADER=false, PARALLEL=false, AUTO_DETECT=false, DELIM=',', QUOTE='\"', ESCAPE='\"', NULL_STRINGS=['']"


def fill(record: RelationshipRecord, folder: Path, *, with_vectors: bool) -> None:
    """Make a copy of a record as it stands now in an empty folder.

    Args:
        record: of relationships.
        folder: for the copy.
        with_vectors: whether the passages' vectors are copied.

    Raises:
        BadInput: the disk refuses.
    """
    with (
        _package_faults(),
        embedded.open_database(folder / embedded.GRAPH_FILE, read_only=False) as database,
        embedded.package().Connection(database) as connection,
        record.as_it_stands(),
    ):
        stamp = stamp_of(record, with_vectors=with_vectors)
        for statement in _tables(stamp["dimension"]):
            connection.execute(statement).close()
        connection.execute(f"CREATE (:`{tables.STAMP_LABEL}` {{id: 'stamp', revision: {stamp['revision']}}})").close()
        for table, rows, of_pair in _contents(record, with_vectors=bool(stamp["dimension"])):
            _copy(connection, table, rows, of_pair, folder / "rows.csv")
        connection.execute("CHECKPOINT").close()
    write_atomically(folder / embedded.STAMP_FILE, json.dumps(stamp))


def stamp_of(record: RelationshipRecord, *, with_vectors: bool) -> dict[str, Any]:
    """Return what tells a copy of this state from others."""
    return {
        "revision": record.revision,
        "computed": record.computed_state,
        "tables": stable_id("tables", *_tables(0)),
        "dimension": record.graph.passage_vectors.shape[1] if record.graph and with_vectors else 0,
    }


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
