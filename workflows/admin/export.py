"""Exports of a workspace for other programs: its relation matrices, and its relationship graph as a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from graph.embedding.embeddings import configured_embedder
from graph.errors import BadInput
from graph.explain.matrices import write_matrices
from graph.relationships import exchange
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Node
from graph.retrieve.modes import MatrixWeights
from graph.retrieve.open_index import open_index
from graph.storage.workspace import Workspace


def export_matrices(root: Path, folder: Path, weights: MatrixWeights = MatrixWeights.COUNTS) -> dict[str, Any]:
    """Write a workspace's relation matrices into a folder; return what was written.

    Raises:
        WorkspaceMissing: there is no workspace, or it is empty.
        EmbeddingMismatch: another embedding model wrote it.
        BadInput: the folder lies in the workspace, is a file, or holds something else than an export.
    """
    if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root)):
        raise BadInput(f"{folder} lies in the workspace", "Name a folder outside: mara manages what is in there")
    index = open_index(root, configured_embedder())
    try:
        with Workspace(root).open_record() as record:
            workspace_id = record.workspace_id
        written = write_matrices(index.graph, folder, workspace_id=workspace_id, weights=weights)
    finally:
        index.close()
    return {"folder": str(folder), "workspace": str(root), **written}


def export_graph(root: Path, path: Path) -> dict[str, Any]:
    """Write a workspace's relationship graph, conversations and all, into a file; return what was written.

    Raises:
        BadInput: there is no relationship graph, or the file does not end in .jsonl, or cannot be written.
    """
    if path.suffix.lower() != ".jsonl":
        raise BadInput(f"{path} does not end in .jsonl", "Name a file that does")
    counts = {"nodes": 0, "edges": 0}
    with RelationshipRecord.of(root) as record, record.as_it_stands():
        parts = _counted(exchange.parts_of(record), counts)
        write_lines(path, (f"{exchange.to_json_line(part)}\n" for part in parts))
    return {"file": str(path), **counts}


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


def import_graph(root: Path, path: Path) -> dict[str, Any]:
    """Write the nodes and edges of a JSONL file of `export_graph` into a workspace's relationship graph, all or none.

    The folder of the workspace is made where there is none.

    Raises:
        BadInput: the file cannot be read, or the folder cannot be made.
        NotInSchema: the schema does not know what it holds.
        MissingEndpoint: an edge links a node that is neither in the file nor in the workspace.
    """
    try:
        with path.open(encoding="utf-8") as file:
            root.mkdir(parents=True, exist_ok=True)
            with RelationshipRecord.of(root, create=True) as record:
                nodes, edges = exchange.import_lines(record, file)
    except UnicodeDecodeError as fault:
        raise BadInput(f"{path} is not UTF-8 text", "Import what `mara graph export` wrote") from fault
    except OSError as fault:
        raise BadInput(f"{fault.filename} cannot be read or made ({fault.strerror})", "Check the path") from fault
    return {"file": str(path), "nodes": nodes, "edges": edges}


def _counted(parts: Iterator[exchange.Part], counts: dict[str, int]) -> Iterator[exchange.Part]:
    for part in parts:
        counts["nodes" if isinstance(part, Node) else "edges"] += 1
        yield part
