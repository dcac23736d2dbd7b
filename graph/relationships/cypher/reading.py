"""Queries that other people write: whether a text in Cypher only reads.

The text is split as every dialect splits it. Where dialects differ (escapes in texts, code outside of ASCII), it is
refused, so that no store takes for a clause what is a text or a comment here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graph.errors import BadInput
from graph.storage.database import Closing
from graph.text import has_controls

ROWS = 100
"""Rows of a query's result that are shown."""

TIMEOUT_S = 10.0
"""Seconds that a query may take."""

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
    [ \t\n]+ | //[^\n]* | /\*.*?\*/
  | (?P<text>'[^']*'|"[^"]*")
  | (?P<quoted>`[^`]*`)
  | (?P<parameter>\$[A-Za-z_][A-Za-z0-9_]*)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>(?:0[xX][0-9A-Fa-f]+|[0-9]+(?:[eE][-+]?[0-9]+)?)(?![A-Za-z0-9_]))
  | (?P<sign>/(?![/*])|[-+*%^=<>!~|&.,:;()\[\]{}?])
    """,
    re.VERBOSE | re.DOTALL,
)


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


class Queryable(Closing, ABC):
    """An open store that answers queries which only read: the embedded copy, or a server. It belongs to one thread."""

    def query(
        self,
        query: str,
        parameters: Mapping[str, CellValue] | None = None,
        *,
        limit: int = ROWS,
        timeout_s: float = TIMEOUT_S,
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
        if not 1 <= limit <= MAX_ROWS:
            raise BadInput(f"{limit} rows are asked for", f"Ask for 1 to {MAX_ROWS:,}")
        return self._read(check_reads_only(query), parameters or {}, limit, timeout_s)

    @abstractmethod
    def _read(self, query: str, parameters: Mapping[str, CellValue], limit: int, timeout_s: float) -> Rows:
        """Return what a query finds that was looked at."""


def took_too_long(timeout_s: float) -> BadInput:
    """Return the error for a query that was stopped."""
    return BadInput(f"The query took longer than {timeout_s:g} s", "Ask for less, or raise --timeout")


def check_reads_only(query: str) -> str:
    """Return a query as it may be run, if it is one statement that only reads.

    Raises:
        BadInput: it may do more than read, or cannot be split in one way alone.
    """
    query = query.replace("\r\n", "\n")
    if len(query) > MAX_QUERY:
        raise BadInput(f"The query has {len(query):,} characters", f"Write it in {MAX_QUERY:,} at most")
    matches = list(_TOKEN.finditer(query))
    is_split = sum(len(match.group()) for match in matches) == len(query)
    if not is_split or "\\" in query or has_controls(query.replace("\t", "").replace("\n", "")):
        raise BadInput(
            "The query cannot be read in one way alone",
            "Close what is quoted, put names in backticks, and give texts with a backslash or with other letters than"
            " ASCII's in the code as parameters: --param name=text",
        )
    _check_tokens([(str(match.lastgroup), match.group()) for match in matches if match.lastgroup])
    return query


def _check_tokens(tokens: list[tuple[str, str]]) -> None:
    """Raise BadInput unless tokens, as (kind, text), are one statement that only reads."""
    if tokens and tokens[-1][1] == ";":
        tokens.pop()
    if not tokens or tokens[0][0] != "word" or tokens[0][1].upper() not in _BEGIN:
        raise BadInput("The query does not begin as one that reads", f"Begin with {', '.join(sorted(_BEGIN))}")
    for kind, text in tokens:
        if text == ";" or (kind == "word" and text.upper() in _REFUSED):
            raise BadInput(
                f"{text.upper()} is not for a query that only reads",
                "Ask one statement at a time without it; a name that is spelled so goes in backticks",
            )
    for (_, before), (_, dot), (kind, name), (_, bracket) in zip(
        tokens, tokens[1:], tokens[2:], tokens[3:], strict=False
    ):
        is_call = dot == "." and bracket == "(" and kind in ("word", "quoted")
        if is_call and before.strip("`").upper() not in _NAMESPACES:
            raise BadInput(
                f"The function {before}.{name} may do more than compute", "Use the functions of Cypher itself"
            )
