"""What counts as a query that only reads: clauses, texts and comments are told apart as every store does."""

from __future__ import annotations

import pytest

from graph.errors import BadInput
from graph.relationships.cypher import queries
from graph.relationships.cypher.reading import MAX_QUERY, MAX_ROWS, check_limit, check_reads_only

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
    searches = (queries.CONVERSATION_SEARCH, queries.DISCOVERY)
    nearest = queries.nearest_chunks("array_cosine_similarity(v.embedding, CAST($vector, 'FLOAT[3]'))")
    for query in (*READING, *searches, queries.THREAD, queries.VIEWS, queries.CITATIONS, nearest):
        assert check_reads_only(query) == query.replace("\r\n", "\n")


def test_a_query_that_may_do_more_or_could_be_split_in_two_ways_is_refused() -> None:
    for query in WRITING:
        with pytest.raises(BadInput):
            check_reads_only(query)
    for query in AMBIGUOUS:
        with pytest.raises(BadInput, match=r"backslash|control character|cannot be read"):
            check_reads_only(query)


def test_a_query_and_its_rows_have_a_limit() -> None:
    with pytest.raises(BadInput, match="characters"):
        check_reads_only("MATCH (n) RETURN n" + " " * MAX_QUERY)
    check_limit(MAX_ROWS)
    for limit in (0, -1, MAX_ROWS + 1):
        with pytest.raises(BadInput, match="rows are asked for"):
            check_limit(limit)


def test_each_parameter_has_a_value_and_each_value_a_parameter() -> None:
    query = "MATCH (n {id: $key}) WHERE n.name = '$quoted' RETURN n"
    assert check_reads_only(query, {"key": "x"})
    with pytest.raises(BadInput, match=r"wants a value for \$key"):
        check_reads_only(query, {})
    with pytest.raises(BadInput, match=r"has no \$quoted"):
        check_reads_only(query, {"key": "x", "quoted": "y"})
