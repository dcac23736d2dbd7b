"""A graph server over Bolt, such as Memgraph or Neo4j, through the `neo4j` driver.

Servers say constraints, vector indexes and the search in them differently; everything else that is sent is the same for
all. Memgraph's words follow its manual and 003; no test runs them.
"""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from urllib.parse import parse_qsl, unquote

from graph.endpoints.address import address_parts, unreadable
from graph.environment import environment
from graph.errors import BadInput, DependencyMissing, GraphUnavailable, faults_behind
from graph.relationships.cypher.queries import nearest_chunks
from graph.relationships.cypher.reading import CellValue, Queryable, Rows, took_too_long
from graph.relationships.schema import NODES

URL_VARIABLE = "MARA_GRAPH_URL"
"""The address of the graph server, with name, password, database and dialect."""

VECTOR_INDEX = "vector_embedding_index"
"""The name of the index of the passages' vectors (003)."""

_NEO4J = re.compile(r"Neo4j/[0-9][\w.+-]*")
_EXACT = "reduce(sum = 0.0, place IN range(0, size($vector) - 1) | sum + v.embedding[place] * $vector[place])"
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
        Dialect("opencypher", nearest_chunks(_EXACT)),
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


T = TypeVar("T")

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
            self._connection = neo4j.GraphDatabase.driver(
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
                agent = self._connection.get_server_info().agent
            self.dialect = dialect_of(agent, settings.dialect)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def rows(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        """Return all rows of a query of ours. Raises GraphUnavailable."""
        work = _unit(query, parameters)
        with self._session() as session, self._faults_named():
            return list(session.execute_read(work))

    def write(self, statement: str, **parameters: object) -> None:
        """Run a statement of ours in a transaction, again where the server was busy. Raises GraphUnavailable."""
        work = _unit(statement, parameters)
        with self._session() as session, self._faults_named():
            session.execute_write(work)

    def define(self, statement: str) -> None:
        """Run a statement that makes a constraint or an index, outside of a transaction; one that is there stays.

        Raises GraphUnavailable where the server does not know it.
        """
        neo4j = _driver()
        with self._session() as session, self._faults_named():
            try:
                session.run(neo4j.Query(statement, timeout=_WRITE_S)).consume()
            except neo4j.exceptions.Neo4jError as fault:
                if "already exist" not in str(fault).lower():
                    raise

    def _search(self, vector: Sequence[float]) -> tuple[str, dict[str, CellValue]]:
        return self.dialect.search, {"index": VECTOR_INDEX}

    def _read(self, query: str, parameters: Mapping[str, CellValue], limit: int, timeout_s: float) -> Rows:
        """Return what a query finds; its transaction is for reading, and is never committed."""

        def read() -> Rows:
            with self._session(read_only=True) as session, session.begin_transaction(timeout=timeout_s) as transaction:
                result = transaction.run(query, dict(parameters))
                columns = tuple(result.keys())
                records = [record.values() for _, record in zip(range(limit + 1), result, strict=False)]
                transaction.rollback()
            rows = tuple(tuple(map(_plain, values)) for values in records[:limit])
            return Rows(columns, rows, len(records) > limit)

        with self._faults_named(asked=True, timeout_s=timeout_s):
            return _within(timeout_s, read)

    def _session(self, *, read_only: bool = False) -> Any:
        neo4j = _driver()
        return self._connection.session(
            database=self._settings.database or None,
            default_access_mode=neo4j.READ_ACCESS if read_only else neo4j.WRITE_ACCESS,
            fetch_size=1000,
        )

    @contextmanager
    def _faults_named(self, *, asked: bool = False, timeout_s: float = 0.0) -> Iterator[None]:
        """Turn the driver's errors into ours; with ``asked``, what the server refuses is somebody's own query."""
        neo4j = _driver()
        try:
            yield
        except TimeoutError as fault:
            raise took_too_long(timeout_s) from fault
        except (neo4j.exceptions.Neo4jError, neo4j.exceptions.DriverError, ValueError, OSError) as fault:
            refused = isinstance(fault, neo4j.exceptions.ClientError | neo4j.exceptions.DatabaseError)
            elsewhere = isinstance(fault, neo4j.exceptions.AuthError) or "DatabaseNotFound" in str(fault)
            if asked and refused and not elsewhere:
                raise _refused_query(fault, timeout_s) from fault
            raise unavailable(self._settings, fault) from fault


def unavailable(settings: ServerSettings, fault: BaseException) -> GraphUnavailable:
    """Return the error that tells why a server cannot be used, without what was sent to it."""
    from neo4j import exceptions

    named = f"The graph server at {settings.url}"
    causes = list(faults_behind(fault))
    if any(isinstance(each, exceptions.AuthError) for each in causes):
        return GraphUnavailable(f"{named} refuses the credentials", f"Set {URL_VARIABLE}=bolt://name:password@host")
    if any(isinstance(each, ssl.SSLError) for each in causes):
        hint = "Its certificate must be valid for the host; bolt+ssc:// takes one that it signed itself"
        return GraphUnavailable(f"{named} offers no TLS that can be trusted", hint)
    if isinstance(fault, exceptions.Neo4jError):
        code = fault.code or type(fault).__name__
        if "DatabaseNotFound" in code:
            return GraphUnavailable(
                f"{named} has no database of that name", f"Name another in {URL_VARIABLE}: bolt://host/database"
            )
        return GraphUnavailable(
            f"{named} refuses a statement ({code})",
            f"It may want another dialect: {URL_VARIABLE}=bolt://host?dialect=opencypher",
        )
    return GraphUnavailable(
        f"{named} does not answer as it should ({type(fault).__name__})",
        f"Start it, or correct or unset {URL_VARIABLE}; with TLS, the address begins with bolt+s://",
    )


def _refused_query(fault: BaseException, timeout_s: float) -> BadInput:
    code = str(getattr(fault, "code", ""))
    if "Timeout" in code or "TimedOut" in code:
        return took_too_long(timeout_s)
    said = " ".join(str(getattr(fault, "message", "") or fault).split())[:200]
    return BadInput(f"The server cannot run the query ({said})", "The schema is in docs/relationships.md")


def _within(seconds: float, work: Callable[[], T]) -> T:
    """Return what a function returns; raise TimeoutError where it takes longer: not every server keeps to a time."""
    outcome: list[T] = []
    fault: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            fault.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds + 0.5)
    if thread.is_alive():
        raise TimeoutError
    if fault:
        raise fault[0]
    return outcome[0]


def _unit(statement: str, parameters: Mapping[str, object]) -> Callable[[Any], list[tuple[Any, ...]]]:
    """Return the work of a transaction with a time limit."""

    def work(transaction: Any) -> list[tuple[Any, ...]]:
        return [tuple(record.values()) for record in transaction.run(statement, parameters)]

    limited: Callable[[Any], list[tuple[Any, ...]]] = _driver().unit_of_work(timeout=_WRITE_S)(work)
    return limited


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
