"""The relationship graph of a workspace as a file, and on a graph server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any

from graph.errors import BadInput, WorkspaceMissing
from graph.relationships.cypher.bolt import URL_VARIABLE, BoltServer, ServerSettings
from graph.relationships.cypher.dialect import VectorIndex
from graph.relationships.cypher.mirror import mirror
from graph.relationships.exchange.lines import (
    Part,
    from_json_line,
    from_statement,
    import_lines,
    parts_of,
    to_graphml,
    to_json_line,
    to_statement,
)
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Node
from graph.storage.workspace import Workspace

_HEADER = "// The relationship graph of a workspace of mara, one statement a line; ids are unique within their label.\n"


class GraphFormat(StrEnum):
    """The forms of a file that holds a relationship graph."""

    JSONL = "jsonl"
    CYPHER = "cypher"
    GRAPHML = "graphml"


_READERS: dict[GraphFormat, Callable[[str], Part | None]] = {
    GraphFormat.JSONL: from_json_line,
    GraphFormat.CYPHER: from_statement,
}


def form_of(path: Path) -> GraphFormat:
    """Return the form that the ending of a file names; JSON lines where it names none."""
    ending = path.suffix.removeprefix(".").lower()
    return next((form for form in GraphFormat if form.value == ending), GraphFormat.JSONL)


def configured_server() -> ServerSettings:
    """Return how to reach the graph server that the environment names. Raises BadInput where it names none."""
    settings = ServerSettings.from_environment()
    if settings is None:
        raise BadInput("No graph server is configured", f"Set {URL_VARIABLE}, for example to bolt://localhost:7687")
    return settings


def publish_graph(root: Path, *, whole: bool = False, with_vectors: bool = False) -> dict[str, Any]:
    """Bring the configured graph server up to date with a workspace; return what was sent.

    Raises:
        BadInput: no server is configured, there is no relationship graph, or the server's database holds another.
        GraphUnavailable: the server does not answer as it should.
    """
    settings = configured_server()
    vectors = _vectors(root) if with_vectors else None
    with BoltServer(settings) as server:
        done = mirror(root, server, whole=whole, vectors=vectors)
        return {"server": settings.url, "dialect": server.dialect.name, **asdict(done)}


def export_graph(root: Path, path: Path, form: GraphFormat) -> dict[str, Any]:
    """Write a workspace's relationship graph, conversations and all, into a file; return what was written.

    Raises:
        BadInput: there is no relationship graph, or the file cannot be written.
    """
    counts = {"nodes": 0, "edges": 0}
    with RelationshipRecord.of(root) as record, record.as_it_stands():
        write_lines(path, _lines(_counted(parts_of(record), counts), form))
    return {"file": str(path), "format": form.value, **counts}


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a file and put it in place whole. Raises BadInput where it cannot be written."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        temporary.replace(path)
    except OSError as fault:
        raise BadInput(f"{path} cannot be written ({fault.strerror})", "Name another file") from fault
    finally:
        temporary.unlink(missing_ok=True)


def import_graph(root: Path, path: Path, form: GraphFormat) -> dict[str, Any]:
    """Write the nodes and edges of a file that `export_graph` wrote into a workspace's relationship graph, all or none.

    The folder of the workspace is made where there is none.

    Raises:
        BadInput: the file cannot be read, is of a form that cannot be imported, or the folder cannot be made.
        NotInSchema: the schema does not know what it holds.
        MissingEndpoint: an edge links a node that is neither in the file nor in the workspace.
    """
    if form not in _READERS:
        raise BadInput(f"{form} cannot be imported", f"Import {' or '.join(_READERS)}")
    try:
        with path.open(encoding="utf-8") as file:
            _make_folder(root)
            with RelationshipRecord.of(root, create=True) as record:
                nodes, edges = import_lines(record, file, _READERS[form])
    except UnicodeDecodeError as fault:
        raise BadInput(f"{path} is not UTF-8 text", "Import what `mara graph export` wrote") from fault
    except OSError as fault:
        raise BadInput(f"{path} cannot be read ({fault.strerror})", "Check the path") from fault
    return {"file": str(path), "nodes": nodes, "edges": edges}


def _make_folder(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise BadInput(f"{root} cannot be made ({fault.strerror})", "Name another folder with --workspace") from fault


def _lines(parts: Iterator[Part], form: GraphFormat) -> Iterator[str]:
    if form is GraphFormat.GRAPHML:
        yield from to_graphml(parts)
        return
    if form is GraphFormat.CYPHER:
        yield _HEADER
    write = to_json_line if form is GraphFormat.JSONL else to_statement
    yield from (f"{write(part)}\n" for part in parts)


def _counted(parts: Iterator[Part], counts: dict[str, int]) -> Iterator[Part]:
    for part in parts:
        counts["nodes" if isinstance(part, Node) else "edges"] += 1
        yield part


def _vectors(root: Path) -> VectorIndex:
    """Return the index for the vectors of a workspace. Raises WorkspaceMissing where it holds none."""
    with Workspace(root).open_record() as record:
        if not record.dimension:
            raise WorkspaceMissing(f"The workspace at {root} holds no vectors", "Index some documents first")
        return VectorIndex(record.dimension, capacity=max(1_000, 2 * record.count_passages()))
