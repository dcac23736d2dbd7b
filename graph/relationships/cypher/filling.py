"""Making a copy for Cypher: tables that follow from the schema, filled by COPY from files of rows."""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.relationships.cypher.embedded import GRAPH_FILE, STAMP_FILE, first_line, open_database, package
from graph.relationships.cypher.tables import (
    STAMP_LABEL,
    Link,
    Row,
    copied_columns,
    copied_rows,
    edge_rows,
    links,
    pages,
    passages_of,
)
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EDGES, NODES, PropertyKind
from graph.schema import stable_id
from graph.storage.record import Record
from graph.storage.workspace import write_atomically

_PAGE = 1_000
_TYPES = {PropertyKind.INTEGER: "INT64", PropertyKind.REAL: "DOUBLE"}
_OPTIONS = "HEADER=false, PARALLEL=false, AUTO_DETECT=false, DELIM=',', QUOTE='\"', ESCAPE='\"', NULL_STRINGS=['']"


def fill(record: RelationshipRecord, root: Path, folder: Path, *, with_vectors: bool) -> None:
    """Make a copy of a record as it stands now in an empty folder.

    Args:
        record: of relationships.
        root: the workspace, whose passages give chunks their texts.
        folder: for the copy.
        with_vectors: whether the passages' vectors are copied.

    Raises:
        BadInput: the disk refuses.
    """
    with (
        passages_of(root) as passages,
        _package_faults(),
        open_database(folder / GRAPH_FILE, read_only=False) as database,
        package().Connection(database) as connection,
        record.as_it_stands(),
    ):
        stamp = stamp_of(record, passages, with_vectors=with_vectors)
        for statement in _tables(stamp["dimension"]):
            connection.execute(statement).close()
        connection.execute(f"CREATE (:`{STAMP_LABEL}` {{id: 'stamp', revision: {stamp['revision']}}})").close()
        for table, rows, of_pair in _contents(record, passages, with_vectors=bool(stamp["dimension"])):
            _copy(connection, table, rows, of_pair, folder / "rows.csv")
        connection.execute("CHECKPOINT").close()
    write_atomically(folder / STAMP_FILE, json.dumps(stamp))


def stamp_of(record: RelationshipRecord, passages: Record | None, *, with_vectors: bool) -> dict[str, Any]:
    """Return what tells a copy of this state from others."""
    return {
        "revision": record.revision,
        "commit": passages.commit_id if passages else "",
        "tables": stable_id("tables", *_tables(0)),
        "dimension": passages.dimension if passages and with_vectors else 0,
    }


def _copy(connection: Any, table: str, rows: Iterator[Row], of_pair: str, path: Path) -> None:
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
        yield of, copied_rows(record, of, passages, with_vectors=with_vectors), ""
    for link in links():
        yield link.name, edge_rows(record, link), f"from='{link.source}', to='{link.target}', "


def _tables(dimension: int) -> Iterator[str]:
    """Yield the statements of the tables and of what queries may call; without vectors where the dimension is 0."""
    yield f"CREATE NODE TABLE `{STAMP_LABEL}`(`id` STRING PRIMARY KEY, `revision` INT64)"
    for of, declared in NODES.items():
        kinds = {name: _TYPES.get(each.kind, "STRING") for name, each in declared.items()}
        kinds["embedding"] = f"FLOAT[{dimension}]"
        names = copied_columns(of, with_vectors=bool(dimension))[1:]
        columns = "".join(f", `{name}` {kinds.get(name, 'STRING')}" for name in names)
        yield f"CREATE NODE TABLE `{of}`(`id` STRING PRIMARY KEY{columns})"
    pairs: dict[str, list[Link]] = {}
    for link in links():
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
        raise BadInput(f"The copy for Cypher cannot be made ({first_line(fault)})", "Check the disk") from fault
