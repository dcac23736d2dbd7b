"""The tables of the record of relationships: their names and statements, which follow from the schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from graph.relationships.schema import EDGES, NODES, EdgeType, NodeType, Property, PropertyKind

_SQL_TYPES = {PropertyKind.TEXT: "TEXT", PropertyKind.TIME: "TEXT", PropertyKind.INTEGER: "INTEGER"}


PAGE_TABLES = (
    "CREATE TABLE conversations (id TEXT PRIMARY KEY, owner TEXT NOT NULL, title TEXT NOT NULL,"
    " version INTEGER NOT NULL, changed REAL NOT NULL)",
    "CREATE INDEX conversations_of_owner ON conversations (owner, changed)",
    "CREATE TABLE turns (place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,"
    " conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE, number INTEGER NOT NULL,"
    " question TEXT NOT NULL, alone INTEGER NOT NULL, settings TEXT NOT NULL, state TEXT NOT NULL,"
    " answer TEXT NOT NULL DEFAULT '', result TEXT, error TEXT NOT NULL DEFAULT '', touched REAL NOT NULL)",
    "CREATE INDEX turns_of_conversation ON turns (conversation, number, place)",
)
"""The tables of conversations on the page, made with the first one."""

RUN_TABLES = (
    "CREATE TABLE run_events (turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE, position INTEGER NOT NULL,"
    " event TEXT NOT NULL, PRIMARY KEY (turn, position)) WITHOUT ROWID",
    "CREATE INDEX turns_under_way ON turns (conversation) WHERE state = 'running'",
)
"""The table of what happens to turns that are being answered, beside those of conversations."""

VERSION_TABLES = (
    "CREATE TABLE turn_follows (turn TEXT PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE, follows TEXT NOT NULL)",
)
"""The table of what each turn follows, empty for the first: turns that follow the same one are its versions."""


def table_of_nodes(of: NodeType) -> str:
    """Return the name of the table that holds the nodes of a type."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in of).lstrip("_")


def table_of_edges(of: EdgeType, source: NodeType, target: NodeType) -> str:
    """Return the name of the table that holds the edges of a type between two types of nodes."""
    own = of.lower()
    return own if len(EDGES[of].pairs) == 1 else f"{own}_{table_of_nodes(source)}_{table_of_nodes(target)}"


def columns_of_nodes(of: NodeType) -> str:
    """Return the columns of a table of nodes: the id, and the properties as `NODES` has them."""
    return ", ".join(f'"{name}"' for name in ("id", *NODES[of]))


def columns_of_edges(of: EdgeType) -> str:
    """Return the columns of edges ``e`` that follow others: their properties as `EDGES` has them."""
    return "".join(f', e."{name}"' for name in EDGES[of].properties)


def joined_tables(of: EdgeType, source: NodeType, target: NodeType) -> str:
    """Return what follows FROM for the edges ``e`` of a type with the nodes ``a`` and ``b`` that they link."""
    return (
        f'"{table_of_edges(of, source, target)}" e JOIN "{table_of_nodes(source)}" a ON a.key = e.source'
        f' JOIN "{table_of_nodes(target)}" b ON b.key = e.target'
    )


def along(path: str) -> str:
    """Return what follows FROM for a path such as ``"user" -created-> message``: each table under its own name."""
    here, *steps = path.split()
    joined = [here]
    for edge, there in zip_longest(steps[::2], steps[1::2]):
        table = edge.strip("<->")
        near, far = ("target", "source") if edge.startswith("<") else ("source", "target")
        joined.append(f"JOIN {table} ON {table}.{near} = {here}.key")
        if there is not None:
            joined.append(f"JOIN {there} ON {there}.key = {table}.{far}")
        here = there
    return " ".join(joined)


VIEWS = {
    NodeType.VECTOR: "SELECT key, id, id AS chunk_id, revision FROM document_chunk",
    EdgeType.EMBEDDING_OF: "SELECT key AS source, key AS target, revision FROM document_chunk",
    EdgeType.STORED_IN: """
        SELECT c.key AS source, s.key AS target,
            CASE WHEN c.revision > s.revision THEN c.revision ELSE s.revision END AS revision
        FROM document_chunk c CROSS JOIN vector_store s""",
}
"""Selects the nodes and edges that others tell: each chunk has a vector of its id, in the one store."""


def create_views() -> Iterator[str]:
    """Yield the statements that create the views of a record."""
    for view, selected in VIEWS.items():
        yield f"CREATE VIEW {view.lower()} AS {selected}"


def create_statements() -> Iterator[str]:
    """Yield the statements that create every table, index and view of a record."""
    yield "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
    for of, declared in NODES.items():
        if of in VIEWS:
            continue
        columns = "".join(f", {_column(name, each)}" for name, each in declared.items())
        yield (
            f'CREATE TABLE "{table_of_nodes(of)}" (key INTEGER PRIMARY KEY AUTOINCREMENT,'
            f" id TEXT NOT NULL UNIQUE{columns}, revision INTEGER NOT NULL)"
        )
    for edge_type, schema in EDGES.items():
        for source, target in schema.pairs if edge_type not in VIEWS else ():
            table = table_of_edges(edge_type, source, target)
            columns = "".join(f", {_column(name, each)}" for name, each in schema.properties.items())
            yield (
                f'CREATE TABLE "{table}" ('
                f'source INTEGER NOT NULL REFERENCES "{table_of_nodes(source)}"(key) ON DELETE CASCADE,'
                f' target INTEGER NOT NULL REFERENCES "{table_of_nodes(target)}"(key) ON DELETE CASCADE{columns},'
                f" revision INTEGER NOT NULL, PRIMARY KEY (source, target)"
                f"{', CHECK (source <> target)' if source is target else ''}) WITHOUT ROWID"
            )
            yield f'CREATE INDEX "{table}_by_target" ON "{table}" (target, source)'
    yield "CREATE INDEX part_of_ranked_at_target ON part_of (target, position DESC, source)"
    yield from create_views()


def _column(name: str, declared: Property) -> str:
    """Return the declaration of a column, which refuses what the schema refuses, for every writer."""
    conditions = []
    if declared.least is not None:
        conditions.append(f'"{name}" >= {declared.least}')
    if declared.most is not None:
        conditions.append(f'"{name}" <= {declared.most}')
    if declared.choices:
        choices = ", ".join(f"'{choice}'" for choice in declared.choices)
        conditions.append(f'"{name}" IN ({choices})')
    kind = _SQL_TYPES.get(declared.kind, "REAL") + (" NOT NULL" if declared.required else "")
    return f'"{name}" {kind}' + (f" CHECK ({' AND '.join(conditions)})" if conditions else "")


def upsert(table: str, keys: Sequence[str], names: Sequence[str], values: str = "") -> str:
    """Return the statement that inserts a row or, where one has the same keys, changes it if it differs."""
    columns = ", ".join(f'"{name}"' for name in (*keys, *names, "revision"))
    marks = values or ", ".join("?" * (len(keys) + len(names) + 1))
    statement = f'INSERT INTO "{table}" ({columns}) VALUES ({marks}) ON CONFLICT ({", ".join(keys)})'
    if not names:
        return f"{statement} DO NOTHING"
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in (*names, "revision"))
    differs = " OR ".join(_differs(f'"{table}"."{name}"', f'excluded."{name}"') for name in names)
    return f"{statement} DO UPDATE SET {changes} WHERE {differs}"


def _differs(one: str, other: str) -> str:
    """Return the condition that two values differ, where either may be none."""
    return f"NOT coalesce({one} = {other}, {one} IS NULL AND {other} IS NULL)"


def insert_edge(of: EdgeType, source: NodeType, target: NodeType) -> str:
    """Return the statement that creates or changes an edge, given the ids of its ends, its properties, the revision."""
    names = list(EDGES[of].properties)
    ends = (f'(SELECT key FROM "{table_of_nodes(end)}" WHERE id = ?)' for end in (source, target))
    values = ", ".join([*ends, *("?" * (len(names) + 1))])
    return upsert(table_of_edges(of, source, target), ["source", "target"], names, values)
