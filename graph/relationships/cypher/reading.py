"""Queries that other people write: whether a text in Cypher only reads.

The text is split as every dialect splits it. Where dialects differ (escapes in texts, code outside of ASCII), it is
refused, so that no store takes for a clause what is a text or a comment here.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from graph.errors import BadInput
from graph.text import has_controls

MAX_QUERY = 20_000
"""Characters of a query, at most."""

MAX_ROWS = 10_000
"""Rows that a query may be asked for, at most."""

CellValue = str | int | float | bool | None | Sequence["CellValue"] | Mapping[str, "CellValue"]
"""A value of a result: what JSON holds."""

_BEGIN = frozenset(("MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN"))
_REFUSED = frozenset(
    (
        *("ALTER", "ATTACH", "BEGIN", "CALL", "CHECKPOINT", "COMMIT", "COPY", "CREATE", "DELETE", "DENY", "DETACH"),
        *("DROP", "DUMP", "EXPLAIN", "EXPORT", "FOREACH", "GRANT", "IMPORT", "INSERT", "INSTALL", "LOAD", "MERGE"),
        *("PERIODIC", "PROFILE", "REMOVE", "RENAME", "REVOKE", "ROLLBACK", "SET", "SHOW", "START", "STOP"),
        *("TERMINATE", "UNINSTALL", "UPDATE", "USE"),
    )
)
"""Words of clauses that write, run procedures, read files or leave the graph, in any of the dialects."""
_NAMESPACES = frozenset(("DATE", "DATETIME", "DURATION", "LOCALDATETIME", "LOCALTIME", "POINT", "TIME", "VECTOR"))
"""Namespaces whose functions only compute; those of plug-ins may run queries of their own."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\n]+)
  | (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<text>'[^']*'|"[^"]*")
  | (?P<quoted>`[^`]*`)
  | (?P<parameter>\$[A-Za-z_][A-Za-z0-9_]*)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>(?:0[xX][0-9A-Fa-f]+|[0-9]+(?:[eE][-+]?[0-9]+)?)(?![A-Za-z0-9_]))
  | (?P<sign>/(?![/*])|[-+*%^=<>!~|&.,:()\[\]{}?])
  | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a query.

    Attributes:
        columns: their names.
        rows: at most as many as were asked for.
        cut: whether there are more.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[CellValue, ...], ...]
    cut: bool


@dataclass(frozen=True, slots=True)
class NearChunk:
    """A chunk that a search by vector found.

    Attributes:
        distance: 1 - similarity.
        similarity: the cosine, in [-1, 1].
    """

    id: str
    content: str | None
    distance: float
    similarity: float


class Queryable(ABC):
    """An open store that answers queries which only read: the embedded copy, or a server. It belongs to one thread."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def query(
        self,
        query: str,
        parameters: Mapping[str, CellValue] | None = None,
        *,
        limit: int = 100,
        timeout_s: float = 10.0,
    ) -> Rows:
        """Return what a query that only reads finds.

        Args:
            query: in Cypher.
            parameters: the values of its ``$names``.
            limit: rows that are returned at most.
            timeout_s: seconds after which it is stopped.

        Raises:
            BadInput: the query may do more than read, cannot be run, or takes longer.
            GraphUnavailable: the server does not answer as it should.
        """
        check_limit(limit)
        return self._read(check_reads_only(query, parameters or {}), parameters or {}, limit, timeout_s)

    def search_chunks(self, vector: Sequence[float], k: int = 5, *, timeout_s: float = 10.0) -> list[NearChunk]:
        """Return the ``k`` chunks nearest to a unit vector, nearest first.

        Raises:
            BadInput: the copy holds no vectors, or the query takes longer.
            EmbeddingMismatch: its vectors have another dimension.
            GraphUnavailable: the server does not answer as it should.
        """
        check_search(vector, k)
        query, parameters = self._search(vector)
        rows: Any = self._read(query, {**parameters, "vector": list(vector), "k": k}, k, timeout_s).rows
        return [NearChunk(*row) for row in rows]

    @abstractmethod
    def _read(self, query: str, parameters: Mapping[str, CellValue], limit: int, timeout_s: float) -> Rows:
        """Return what a query finds that was looked at."""

    @abstractmethod
    def _search(self, vector: Sequence[float]) -> tuple[str, dict[str, CellValue]]:
        """Return the query for the chunks nearest to ``$vector``, ``$k`` of them, and its other parameters."""


def took_too_long(timeout_s: float) -> BadInput:
    """Return the error for a query that was stopped."""
    return BadInput(f"The query took longer than {timeout_s:g} s", "Ask for less, or raise --timeout")


def check_reads_only(query: str, parameters: Mapping[str, object] | None = None) -> str:
    """Return a query as it may be run, if it is one statement that only reads.

    Args:
        query: in Cypher.
        parameters: the values of its ``$names``; with None, they are not looked at.

    Raises:
        BadInput: it may do more than read, cannot be split in one way alone, or wants a parameter that is not given.
    """
    query = query.replace("\r\n", "\n")
    _check_characters(query)
    tokens = [token for token in _split(query) if token.kind not in ("space", "comment")]
    if tokens and tokens[-1].kind == "end":
        tokens.pop()
    _check_tokens(tokens)
    if parameters is not None:
        _check_parameters({token.text[1:] for token in tokens if token.kind == "parameter"}, parameters)
    return query


def check_limit(limit: int) -> None:
    """Raise BadInput where so many rows may not be asked for."""
    if not 1 <= limit <= MAX_ROWS:
        raise BadInput(f"{limit} rows are asked for", f"Ask for 1 to {MAX_ROWS:,}")


def check_search(vector: Sequence[float], k: int) -> None:
    """Raise BadInput where ``k`` chunks near to a vector may not be asked for."""
    if not vector or not all(map(math.isfinite, vector)) or not any(vector):
        raise BadInput("The vector has no direction", "Give finite numbers that are not all 0")
    if k < 1:
        raise BadInput(f"{k} chunks are asked for", "Ask for at least one")
    check_limit(k)


def _check_characters(query: str) -> None:
    if len(query) > MAX_QUERY:
        raise BadInput(f"The query has {len(query):,} characters", f"Write it in {MAX_QUERY:,} at most")
    if "\\" in query:
        raise BadInput("The query holds a backslash", "Give the text that has it as a parameter: --param name=text")
    if has_controls(query.replace("\t", "").replace("\n", "")):
        raise BadInput("The query holds a control character", "Write it in lines of plain text")


def _split(query: str) -> Iterator[_Token]:
    place = 0
    while place < len(query):
        match = _TOKEN.match(query, place)
        if match is None or match.lastgroup is None:
            raise BadInput(
                f"The query cannot be read from {query[place : place + 20]!r} on",
                "Put names in backticks, close what is quoted, and give other texts as parameters: --param name=text",
            )
        place = match.end()
        yield _Token(match.lastgroup, match.group())


def _check_tokens(tokens: list[_Token]) -> None:
    if not tokens or tokens[0].kind != "word" or tokens[0].text.upper() not in _BEGIN:
        raise BadInput("The query does not begin as one that reads", f"Begin with {', '.join(sorted(_BEGIN))}")
    if any(token.kind == "end" for token in tokens):
        raise BadInput("The query holds more than one statement", "Ask one at a time")
    for token in tokens:
        if token.kind == "word" and token.text.upper() in _REFUSED:
            raise BadInput(
                f"{token.text.upper()} is not for a query that only reads",
                "Leave it out; a name that is spelled so goes in backticks",
            )
    for before, dot, name, bracket in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        is_call = dot.text == "." and bracket.text == "(" and name.kind in ("word", "quoted")
        if is_call and before.text.strip("`").upper() not in _NAMESPACES:
            raise BadInput(
                f"The function {before.text}.{name.text} may do more than compute", "Use the functions of Cypher itself"
            )


def _check_parameters(wanted: set[str], parameters: Mapping[str, object]) -> None:
    if missing := sorted(wanted - parameters.keys()):
        raise BadInput(f"The query wants a value for ${missing[0]}", f"Give one: --param {missing[0]}=VALUE")
    if unused := sorted(parameters.keys() - wanted):
        raise BadInput(f"The query has no ${unused[0][:60]}", "Leave that value out, or name it in the query")
