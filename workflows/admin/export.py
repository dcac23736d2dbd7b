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
from graph.relationships.surroundings import Surroundings, surroundings_of
from graph.retrieve.modes import MatrixWeights
from graph.retrieve.open_index import open_index
from graph.storage.workspace import Workspace
from workflows.settings.enums import GraphFormat


def export_matrices(root: Path, folder: Path, weights: MatrixWeights = MatrixWeights.COUNTS) -> dict[str, Any]:
    """Write a workspace's relation matrices into a folder; return what was written.

    Raises:
        WorkspaceMissing: there is no workspace, or it is empty.
        EmbeddingMismatch: another embedding model wrote it.
        BadInput: the folder lies in the workspace, is a file, or holds something else than an export.
    """
    if _lies_within(folder, root):
        raise BadInput(f"{folder} lies in the workspace", "Name a folder outside: mara manages what is in there")
    index = open_index(root, configured_embedder())
    try:
        with Workspace(root).open_record() as record:
            workspace_id = record.workspace_id
        written = write_matrices(index.graph, folder, workspace_id=workspace_id, weights=weights)
    finally:
        index.close()
    return {"folder": str(folder), "workspace": str(root), **written}


def _lies_within(folder: Path, root: Path) -> bool:
    try:
        return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root))
    except ValueError as fault:
        raise BadInput(f"No disk takes the path {str(folder)!r} ({fault})", "Name another folder") from fault


def export_surroundings(root: Path, name: str, path: Path) -> dict[str, Any]:
    """Write the surroundings of a document as GraphML; return what was written.

    Args:
        root: the workspace.
        name: id of the document or of a passage of it, or its path.
        path: a file that ends in .graphml.

    Raises:
        BadInput: there is no relationship graph, it knows no such document, or the file cannot be written.
    """
    if path.suffix.lower() != ".graphml":
        raise BadInput(f"{path} is no file that can be drawn", "Name a file that ends in .graphml")
    with RelationshipRecord.of(root) as record, record.as_it_stands():
        surroundings = surroundings_of(record, name)
    write_lines(path, exchange.to_graphml(surroundings.parts, {"messages": surroundings.messages}))
    return {"file": str(path), **_described(surroundings)}


def _described(surroundings: Surroundings) -> dict[str, Any]:
    names = {concept.id: concept.properties["name"] for concept in surroundings.concepts}
    return {
        "document": surroundings.document.id,
        "title": surroundings.document.properties["title"],
        "chunks": [chunk.id for chunk in surroundings.chunks],
        "of_chunks": surroundings.of_chunks,
        "concepts": list(names.values()),
        "of_concepts": surroundings.of_concepts,
        "related": [
            {
                "id": other.id,
                "title": other.properties["title"],
                "shared": [names[key] for key in surroundings.explains(other.id)],
            }
            for other in surroundings.related
        ],
        "messages": surroundings.messages,
    }


def form_of(path: Path) -> GraphFormat:
    """Return the form that the ending of a file names; JSON lines where it names none."""
    ending = path.suffix.removeprefix(".").lower()
    return next((form for form in GraphFormat if form.value == ending), GraphFormat.JSONL)


def export_graph(root: Path, path: Path, form: GraphFormat) -> dict[str, Any]:
    """Write a workspace's relationship graph, conversations and all, into a file; return what was written.

    Raises:
        BadInput: there is no relationship graph, or the file cannot be written.
    """
    counts = {"nodes": 0, "edges": 0}
    with RelationshipRecord.of(root) as record, record.as_it_stands():
        write_lines(path, _lines(_counted(exchange.parts_of(record), counts), form))
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
            _make_folder(root)
            with RelationshipRecord.of(root, create=True) as record:
                nodes, edges = exchange.import_lines(record, file)
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


def _lines(parts: Iterator[exchange.Part], form: GraphFormat) -> Iterator[str]:
    if form is GraphFormat.GRAPHML:
        yield from exchange.to_graphml(parts)
    else:
        yield from (f"{exchange.to_json_line(part)}\n" for part in parts)


def _counted(parts: Iterator[exchange.Part], counts: dict[str, int]) -> Iterator[exchange.Part]:
    for part in parts:
        counts["nodes" if isinstance(part, Node) else "edges"] += 1
        yield part
