"""A graph server over Bolt, such as Memgraph or Neo4j, through the `neo4j` driver.

Servers say constraints, vector indexes and the search in them differently; everything else that is sent is the same for
all. Memgraph's words follow its manual and 003; no test runs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, unquote

from graph.endpoints.address import address_parts, unreadable
from graph.environment import environment
from graph.errors import BadInput, DependencyMissing, GraphUnavailable, faults_behind
from graph.relationships.cypher.reading import CellValue, NearChunk, Queryable, Rows, check_search, took_too_long
from graph.relationships.schema import NODES

URL_VARIABLE = "MARA_GRAPH_URL"
"""The address of the graph server, with name, password, database and dialect."""

VECTOR_INDEX = "vector_embedding_index"
"""The name of the index of the passages' vectors (003)."""

_NEO4J = re.compile(r"Neo4j/[0-9][\w.+-]*")
_EXACT = """\
MATCH (v:Vector)-[:EMBEDDING_OF]->(c:DocumentChunk)
WHERE v.embedding IS NOT NULL
WITH c, reduce(sum = 0.0, at IN range(0, size($vector) - 1) | sum + v.embedding[at] * $vector[at]) AS similarity
RETURN c.id AS id, c.content AS content, 1 - similarity AS distance, similarity
ORDER BY similarity DESC, id LIMIT $k
"""
_BY_INDEX = """\
MATCH (v)-[:EMBEDDING_OF]->(c:DocumentChunk)
RETURN c.id AS id, c.content AS content, distance, similarity
ORDER BY similarity DESC, id
"""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The settings of a vector index of cosines.

    Attributes:
        dimension: of the vectors, 1 or more.
        capacity: vectors that it is made for; Memgraph alone asks for it.
    """

    dimension: int
    capacity: int = 10_000


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of a kind of server.

    Attributes:
        search: the query for the chunks nearest to ``$vector``, ``$k`` of them, by the index ``$index`` if there is
            one. Without an index each vector is compared; all are unit vectors.
        constraint_of: the statement that lets an id stand for one node of a ``{label}``, and finds it by that.
        index_of: the statement that makes a vector index of a ``{dimension}`` and a ``{capacity}``; empty for none.
    """

    name: str
    search: str
    constraint_of: str = "CREATE CONSTRAINT `mara_{label}` IF NOT EXISTS FOR (n:`{label}`) REQUIRE n.id IS UNIQUE"
    index_of: str = ""

    def constraint(self, label: str) -> str:
        """Return the statement that makes the ids of a label unique; it changes nothing where they are so already."""
        return self.constraint_of.format(label=label)

    def vector_index(self, index: VectorIndex) -> str:
        """Return the statement that makes a vector index; empty where the server has none."""
        return self.index_of.format(dimension=index.dimension, capacity=index.capacity)


_DIALECTS = {
    each.name: each
    for each in (
        Dialect("opencypher", _EXACT),
        Dialect(
            "neo4j",
            # Neo4j's score of a cosine is (1 + cosine) / 2.
            "CALL db.index.vector.queryNodes($index, $k, $vector) YIELD node AS v, score\n"
            f"WITH v, 2 * score - 1 AS similarity, 2 - 2 * score AS distance\n{_BY_INDEX}",
            index_of=f"CREATE VECTOR INDEX `{VECTOR_INDEX}` IF NOT EXISTS FOR (v:`Vector`) ON (v.`embedding`)"
            " OPTIONS {{indexConfig: {{`vector.dimensions`: {dimension}, `vector.similarity_function`: 'cosine'}}}}",
        ),
        Dialect(
            "memgraph",
            "CALL vector_search.search($index, $k, $vector) YIELD node AS v, distance, similarity\n"
            f"WITH v, distance, similarity\n{_BY_INDEX}",
            constraint_of="CREATE CONSTRAINT ON (n:`{label}`) ASSERT n.id IS UNIQUE",
            index_of=f"CREATE VECTOR INDEX {VECTOR_INDEX} ON :`Vector`(embedding) WITH CONFIG"
            ' {{"dimension": {dimension}, "capacity": {capacity}, "metric": "cos", "resize_coefficient": 2}}',
        ),
    )
}
"""The dialects by name: any server that follows Neo4j 5 in its constraints and has no vector index, and two others."""


def dialect_of(agent: str, setting: str = "") -> Dialect:
    """Return the dialect of a server.

    Args:
        agent: what the server says it is, such as ``Neo4j/5.26.0``; others say that they are compatible with that.
        setting: the dialect's name, which then decides.

    Raises:
        BadInput: there is no dialect of that name.
    """
    if setting:
        if setting not in _DIALECTS:
            raise BadInput(
                f"The dialect of {URL_VARIABLE} is {setting[:40]!r}",
                f"Write ?dialect= and {', '.join(_DIALECTS)}, or leave it out",
            )
        return _DIALECTS[setting]
    if "memgraph" in agent.lower():
        return _DIALECTS["memgraph"]
    return _DIALECTS["neo4j" if _NEO4J.fullmatch(agent.strip()) else "opencypher"]


_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_PORT = 7687
_CONNECT_S = 10.0
_WRITE_S = 120.0
_RETRY_S = 30.0
_EXAMPLE = "bolt://name:password@localhost:7687/database?dialect=memgraph"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How to reach a graph server.

    Attributes:
        url: with scheme, host and port; without name and password; may be shown.
        database: the server's default one where it is empty.
        dialect: a name of `dialect`; asked of the server where it is empty.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    database: str = ""
    dialect: str = ""

    @classmethod
    def from_environment(cls) -> Self | None:
        """Return the settings of ``MARA_GRAPH_URL``; None where no server is named. Raises BadInput."""
        text = environment().mara_graph_url
        return cls.of(text) if text else None

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the settings of an address: ``bolt://`` and port 7687 where they are left out.

        ``localhost`` becomes 127.0.0.1, on which most servers listen, unless a certificate has to name the host.

        Raises:
            BadInput: it is no such address; the message shows nothing secret of it.
        """
        address_text = text.strip()
        address = address_parts(address_text if "://" in address_text else f"bolt://{address_text}")
        host = address.hostname if address and "," not in address.netloc else None
        database = unquote(address.path.strip("/")) if address else ""
        query = dict(parse_qsl(address.query)) if address else {}
        rest = "/" in database or query.keys() - {"dialect"} or (address and address.fragment)
        if address is None or not host or address.scheme not in _SCHEMES or rest:
            raise unreadable(URL_VARIABLE, f"{_EXAMPLE}, or with TLS bolt+s://host")
        if host == "localhost" and address.scheme in ("bolt", "neo4j"):
            host = "127.0.0.1"
        return cls(
            f"{address.scheme}://{f'[{host}]' if ':' in host else host}:{address.port or _PORT}",
            unquote(address.username or ""),
            unquote(address.password or ""),
            database,
            query.get("dialect", ""),
        )


class BoltServer(Queryable):
    """A connection to a graph server."""

    def __init__(self, settings: ServerSettings) -> None:
        """Connect.

        Raises:
            DependencyMissing: the driver is not installed.
            GraphUnavailable: the server does not answer, refuses the credentials, or cannot be trusted.
            BadInput: there is no such dialect.
        """
        self._settings = settings
        neo4j = _driver()
        auth = (settings.user, settings.password) if settings.user or settings.password else None
        with self._faults_named():
            self._db = neo4j.GraphDatabase.driver(
                settings.url,
                auth=auth,
                connection_timeout=_CONNECT_S,
                connection_acquisition_timeout=_CONNECT_S,
                max_transaction_retry_time=_RETRY_S,
                notifications_min_severity=None,
                user_agent="mara-rag",
            )
        try:
            with self._faults_named():
                agent = self._db.get_server_info().agent
            self.dialect = dialect_of(agent, settings.dialect)
        except BaseException:
            self.close()
            raise

    def rows(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        """Return all rows of a query of ours. Raises GraphUnavailable."""
        return self._run(query, parameters, _driver().READ_ACCESS)

    def write(self, statement: str, **parameters: object) -> None:
        """Run a statement of ours in a transaction, again where the server was busy. Raises GraphUnavailable."""
        self._run(statement, parameters, _driver().WRITE_ACCESS)

    def _run(self, statement: str, parameters: Mapping[str, object], access: str) -> list[tuple[Any, ...]]:
        """Run a statement in a transaction with a time limit; return its rows."""
        neo4j = _driver()

        @neo4j.unit_of_work(timeout=_WRITE_S)  # type: ignore[untyped-decorator]
        def work(transaction: Any) -> list[tuple[Any, ...]]:
            return [tuple(record.values()) for record in transaction.run(statement, parameters)]

        with self._session(access) as session, self._faults_named():
            execute = session.execute_read if access == neo4j.READ_ACCESS else session.execute_write
            rows: list[tuple[Any, ...]] = execute(work)
            return rows

    def define(self, statement: str) -> None:
        """Run a statement that makes a constraint or an index, outside of a transaction; one that is there stays.

        Raises GraphUnavailable where the server does not know it.
        """
        neo4j = _driver()
        with self._session(neo4j.WRITE_ACCESS) as session, self._faults_named():
            try:
                session.run(neo4j.Query(statement, timeout=_WRITE_S)).consume()
            except neo4j.exceptions.Neo4jError as fault:
                if "already exist" not in str(fault).lower():
                    raise

    def search_chunks(self, vector: Sequence[float], k: int = 5) -> list[NearChunk]:
        """Return the ``k`` chunks nearest to a unit vector, nearest first; none where no vectors were sent.

        Raises:
            BadInput: the vector has no direction, or ``k`` is out of range.
            GraphUnavailable: the server does not answer as it should.
        """
        check_search(vector, k)
        rows = self.rows(self.dialect.search, index=VECTOR_INDEX, vector=list(vector), k=k)
        return [NearChunk(*row) for row in rows]

    def _read(self, query: str, parameters: Mapping[str, CellValue], limit: int, timeout_s: float) -> Rows:
        """Return what a query finds; its transaction is for reading, and is never committed."""
        exceptions = _driver().exceptions
        with self._faults_named(), self._session(_driver().READ_ACCESS) as session:
            try:
                with session.begin_transaction(timeout=timeout_s) as transaction:
                    result = transaction.run(query, dict(parameters))
                    columns = tuple(result.keys())
                    records = [record.values() for _, record in zip(range(limit + 1), result, strict=False)]
                    transaction.rollback()
            except (exceptions.ClientError, exceptions.DatabaseError) as fault:
                if "Timeout" in str(fault.code) or "TimedOut" in str(fault.code):
                    raise took_too_long(timeout_s) from fault
                said = " ".join(str(fault.message or fault).split())[:200]
                hint = "The schema is in docs/relationships.md"
                raise BadInput(f"The server cannot run the query ({said})", hint) from fault
        rows = tuple(tuple(map(_plain, values)) for values in records[:limit])
        return Rows(columns, rows, len(records) > limit)

    def _session(self, access: str) -> Any:
        database = self._settings.database or None
        return self._db.session(database=database, default_access_mode=access, fetch_size=1000)

    @contextmanager
    def _faults_named(self) -> Iterator[None]:
        """Turn the driver's errors into ours, without what was sent to the server."""
        exceptions = _driver().exceptions
        named = f"The graph server at {self._settings.url}"
        try:
            yield
        except (exceptions.Neo4jError, exceptions.DriverError, ValueError, OSError) as fault:
            if any(isinstance(each, exceptions.AuthError) for each in faults_behind(fault)):
                hint = f"Set {URL_VARIABLE}=bolt://name:password@host"
                raise GraphUnavailable(f"{named} refuses the credentials", hint) from fault
            if isinstance(fault, exceptions.Neo4jError):
                raise GraphUnavailable(
                    f"{named} refuses a statement ({fault.code or type(fault).__name__})",
                    f"It may want another database or dialect: {URL_VARIABLE}=bolt://host/database?dialect=opencypher",
                ) from fault
            raise GraphUnavailable(
                f"{named} does not answer as it should ({type(fault).__name__})",
                f"Start it, or correct or unset {URL_VARIABLE}; with TLS, the address begins with bolt+s://, or with"
                " bolt+ssc:// where the server signed its certificate itself",
            ) from fault


def _driver() -> Any:
    try:
        import neo4j
    except ImportError as fault:
        raise DependencyMissing(
            "A graph server is reached with the package neo4j", "Install it with: pip install 'mara-rag[graph]'"
        ) from fault
    return neo4j


def _plain(value: Any) -> CellValue:
    """Return a value as JSON holds it, as the embedded copy does."""
    if isinstance(value, str | int | float | bool | None):
        return value
    from neo4j import graph

    if isinstance(value, graph.Path):
        return {"_nodes": [*map(_plain, value.nodes)], "_edges": [*map(_plain, value.relationships)]}
    if isinstance(value, graph.Node):
        label = next((of for of in NODES if of in value.labels), ":".join(sorted(value.labels)))
        return {"_label": str(label), **{key: _plain(each) for key, each in value.items()}}
    if isinstance(value, graph.Relationship):
        return {"_type": value.type, **{key: _plain(each) for key, each in value.items()}}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [*map(_plain, value)]
    return str(value)
