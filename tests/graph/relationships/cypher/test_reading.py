"""What counts as a query that only reads: clauses, texts and comments are told apart as every store does."""

from __future__ import annotations

import pytest

from graph.errors import BadInput
from graph.relationships.cypher.reading import MAX_QUERY, check_reads_only

READING = [
    "match (d:Document) where d.title = 'Create or Set' return d.id;",
    "// All that is created\nMATCH (u)-[:CREATED]->(m) RETURN count(*)",
    "OPTIONAL MATCH (n) /* CREATE (x) */ RETURN n.id AS `set`",
    "UNWIND [1, 2.5, 1e3, 0x1F] AS x RETURN x",
    "WITH date.truncate('day', $when) AS day RETURN day",
    "MATCH (a)-[:RELATED_TO*1..2]-(b)\r\nWHERE NOT (a)-->(b) AND a.x <> b.x RETURN {id: a.id, x: [x IN [1] WHERE x]}",
]
CLAUSES = ("CREATE", "DETACH DELETE", "MERGE", "REMOVE", "EXPLAIN", "IMPORT DATABASE", "COPY", "CALL")
WRITING = [
    *(f"{clause} n" for clause in CLAUSES),
    *(f"MATCH (n) {clause} n RETURN n" for clause in CLAUSES),
    "",
    "MATCH (n) sEt n.id = 'x' RETURN n",
    "MATCH (n) RETURN n; MATCH (m) RETURN m",
    "LOAD FROM 'secret.csv' RETURN *",
    "MATCH (n) CALL apoc.cypher.doIt('CREATE (x)', {}) YIELD value RETURN value",
    "RETURN apoc . util . sleep(1)",
    "RETURN `apoc`.`util`.`sleep`(1)",
    "MATCH (n) RETURN n UNION CREATE (x) RETURN x",
    "MATCH (n) RETURN 1CREATE (x)",
    "MATCH (n) RETURN 'a'CREATE (x)",
]
AMBIGUOUS = [
    "MATCH (n) WHERE n.id = 'a\\' DELETE n //' RETURN n",
    "MATCH (n) RETURN n // \r DELETE n",
    "MATCH (n) RETURN n /* DELETE n",
    "MATCH (n) RETURN 'open",
    "MATCH (n) \u017fET n.id = 1",
    "MATCH (n) RETURN n\u037e DELETE n",
    "MATCH (n)\x00RETURN n",
    "MATCH (n) RETURN $`x`",
]


def test_a_query_that_reads_is_left_as_it_is() -> None:
    for query in READING:
        assert check_reads_only(query) == query.replace("\r\n", "\n")


def test_a_query_that_may_do_more_or_could_be_split_in_two_ways_is_refused() -> None:
    for query in WRITING:
        with pytest.raises(BadInput):
            check_reads_only(query)
    for query in AMBIGUOUS:
        with pytest.raises(BadInput, match="cannot be read"):
            check_reads_only(query)


def test_a_query_has_a_limit() -> None:
    with pytest.raises(BadInput, match="characters"):
        check_reads_only("MATCH (n) RETURN n" + " " * MAX_QUERY)
