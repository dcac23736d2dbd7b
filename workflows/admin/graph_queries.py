"""The relationship graph of a workspace: asked in Cypher, and pruned."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graph.errors import BadInput
from graph.relationships.concept_view import CONCEPT_EDGES
from graph.relationships.cypher.bolt import BoltServer
from graph.relationships.cypher.copies import Say, open_copy
from graph.relationships.cypher.reading import ROWS, TIMEOUT_S, CellValue, Rows
from graph.relationships.record import RelationshipRecord
from workflows.runtime.graph_server import configured_server

_QUARTILES = (0, 25, 50, 75, 100)


def query_graph(
    root: Path,
    query: str,
    parameters: Sequence[str] = (),
    *,
    limit: int = ROWS,
    timeout_s: float = TIMEOUT_S,
    on_server: bool = False,
    say: Say | None = None,
) -> dict[str, Any]:
    """Return what a query finds in the embedded copy or on the graph server, as JSON holds it.

    Args:
        root: the workspace.
        query: in Cypher; it may only read.
        parameters: the values of its ``$names``, as ``name=value``; see `parse_parameters`.
        limit: rows that are returned at most.
        timeout_s: seconds after which the query is stopped.
        on_server: ask the configured server as it stands, not the embedded copy.
        say: is told when the copy is made anew.

    Raises:
        BadInput: the query or a parameter cannot be used, or the query takes longer.
        DependencyMissing: the package that is needed is not installed.
        GraphUnavailable: the server does not answer as it should.
    """
    values = parse_parameters(parameters)
    if on_server:
        with BoltServer(configured_server()) as server:
            return _as_json(server.query(query, values, limit=limit, timeout_s=timeout_s))
    with open_copy(root, say=say) as copy:
        return _as_json(copy.query(query, values, limit=limit, timeout_s=timeout_s))


def parse_parameters(pairs: Sequence[str]) -> dict[str, CellValue]:
    """Return the parameters of a query by name: what reads as a number or as true, false, null or a list is one.

    Anything else is a text; one in double quotes is the text in them. Raises BadInput.
    """
    parameters: dict[str, CellValue] = {}
    for one in pairs:
        name, sign, text = one.partition("=")
        if not sign or not name.isidentifier() or not name.isascii():
            raise BadInput(f"{one[:60]!r} is no parameter", "Give name=value")
        if name in parameters:
            raise BadInput(f"The parameter {name!r} is given twice", "Give it once")
        try:
            parameters[name] = json.loads(text)
        except ValueError:
            parameters[name] = text
    return parameters


def _as_json(rows: Rows) -> dict[str, Any]:
    return {"columns": list(rows.columns), "rows": [list(row) for row in rows.rows], "cut": rows.cut}


def graph_values(root: Path) -> dict[str, Any]:
    """Return what the edges of concepts are worth, by type: the least value, the quartiles, the largest, those pruned.

    Raises:
        BadInput: the workspace has no relationship graph.
    """
    with RelationshipRecord.of(root) as record:
        values = {of: record.concepts.unpruned(of).values(of) for of in CONCEPT_EDGES}
        return {
            "workspace": str(root),
            "below": record.bar,
            "values": [
                {
                    "type": of.value,
                    "edges": len(each),
                    "pruned": int((each < record.bar).sum()),
                    "quartiles": np.percentile(each, _QUARTILES).round(4).tolist() if len(each) else [],
                }
                for of, each in values.items()
            ],
        }


def prune_graph(root: Path, below: float) -> dict[str, Any]:
    """Hide the edges of concepts that are worth less than ``below``; return what `graph_values` does.

    Raises:
        BadInput: the workspace has no relationship graph.
        WorkspaceLocked: another process is writing.
    """
    with RelationshipRecord.of(root) as record:
        record.prune(below)
    return graph_values(root)
