"""A copy of the relationship graph that answers Cypher without a server, in the package `ladybug`; it is only read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graph.embedding.embeddings import check_dimension
from graph.errors import BadInput, DependencyMissing, WorkspaceDamaged
from graph.relationships.cypher.queries import nearest_chunks
from graph.relationships.cypher.reading import CellValue, Queryable, Rows, took_too_long
from graph.storage.generation import GenerationHold

if TYPE_CHECKING:
    import ladybug

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
            held = {key: _plain(each) for key, each in value.items() if not key.startswith("_") and each is not None}
            return {name: str(value["_LABEL"]), **held}
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)  # what a sum of whole numbers is here
    return value if isinstance(value, str | int | float | bool | None) else str(value)
