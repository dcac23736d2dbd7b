"""The relationship graph of a workspace, asked in Cypher."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graph.errors import BadInput
from graph.relationships.cypher.bolt import BoltServer
from graph.relationships.cypher.copies import Say, open_copy
from graph.relationships.cypher.reading import ROWS, TIMEOUT_S, CellValue, Rows
from workflows.runtime.graph_server import configured_server


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
