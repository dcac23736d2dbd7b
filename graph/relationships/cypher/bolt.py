"""A graph server over Bolt, such as Memgraph or Neo4j, through the `neo4j` driver.

Memgraph says constraints differently, by its manual, which no test runs; all else that is sent is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import unquote

from graph.endpoints.address import address_parts, unreadable
from graph.environment import environment
from graph.errors import BadInput, GraphUnavailable, faults_behind, needs
from graph.relationships.cypher.reading import CellValue, Queryable, Rows, took_too_long
from graph.relationships.schema import NODES

URL_VARIABLE = "MARA_GRAPH_URL"
"""The address of the graph server, with name, password and database."""

_CONSTRAINT = "CREATE CONSTRAINT `mara_{label}` IF NOT EXISTS FOR (n:`{label}`) REQUIRE n.id IS UNIQUE"
_MEMGRAPH_CONSTRAINT = "CREATE CONSTRAINT ON (n:`{label}`) ASSERT n.id IS UNIQUE"
_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
_CONNECT_S = 10.0
_WRITE_S = 120.0
_RETRY_S = 30.0
_EXAMPLE = "bolt://name:password@localhost:7687/database"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How to reach a graph server.

    Attributes:
        url: with scheme and host; without name and password; may be shown.
        database: the server's default one where it is empty.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    database: str = ""

    @classmethod
    def from_environment(cls) -> Self | None:
        """Return the settings of ``MARA_GRAPH_URL``; None where no server is named. Raises BadInput."""
        text = environment().mara_graph_url
        return cls.of(text) if text else None

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the settings of an address. Raises BadInput where it is none; the message shows no secret of it."""
        address = address_parts(text)
        database = unquote(address.path.strip("/")) if address else ""
        is_one = address and address.hostname and address.scheme in _SCHEMES and "," not in address.netloc
        if address is None or not is_one or "/" in database or address.query or address.fragment:
            raise unreadable(URL_VARIABLE, f"{_EXAMPLE}, or with TLS bolt+s://host")
        return cls(
            f"{address.scheme}://{address.netloc.rpartition('@')[2]}",
            unquote(address.username or ""),
            unquote(address.password or ""),
            database,
        )


class BoltServer(Queryable):
    """A connection to a graph server."""

    def __init__(self, settings: ServerSettings) -> None:
        """Connect.

        Raises:
            DependencyMissing: the driver is not installed.
            GraphUnavailable: the server does not answer, refuses the credentials, or cannot be trusted.
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
            self._constraint = _MEMGRAPH_CONSTRAINT if "memgraph" in agent.lower() else _CONSTRAINT
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

    def make_unique(self, label: str) -> None:
        """Let an id stand for one node of a label, and find it by that, outside of a transaction.

        Raises GraphUnavailable where the server does not know it.
        """
        neo4j = _driver()
        with self._session(neo4j.WRITE_ACCESS) as session, self._faults_named():
            try:
                session.run(neo4j.Query(self._constraint.format(label=label), timeout=_WRITE_S)).consume()
            except neo4j.exceptions.Neo4jError as fault:
                if "already exist" not in str(fault).lower():
                    raise

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
                    f"It may want another database: {URL_VARIABLE}=bolt://host/database",
                ) from fault
            raise GraphUnavailable(
                f"{named} does not answer as it should ({type(fault).__name__})",
                f"Start it, or correct or unset {URL_VARIABLE}; with TLS, the address begins with bolt+s://, or with"
                " bolt+ssc:// where the server signed its certificate itself",
            ) from fault


def _driver() -> Any:
    with needs("graph", "A graph server"):
        import neo4j
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
