"""What counts as a query that only reads: clauses, texts and comments are told apart as every store does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import BadInput
from graph.relationships.cypher import queries
from graph.relationships.cypher.reading import MAX_QUERY, MAX_ROWS, check_limit, check_reads_only

READING = [
    "MATCH (n) RETURN n",
    "match (d:Document) where d.title = 'Create or Set' return d.id;",
    'MATCH (d) WHERE d.title = "it\'s; DELETE" RETURN d',
    "// All that is created\nMATCH (u)-[:CREATED]->(m) RETURN count(*)",
    "MATCH (n) /* CREATE (x) */ RETURN n.id AS `set`",
    "OPTIONAL MATCH (n) RETURN n",
    "UNWIND [1, 2.5, 1e3, 0x1F] AS x RETURN x",
    "WITH date.truncate('day', $when) AS day RETURN day",
    "MATCH (n)\r\nRETURN n\r\n",
    "MATCH (a)-[:RELATED_TO*1..2]-(b) WHERE NOT (a)-->(b) AND a.x <> b.x RETURN {id: a.id, all: [x IN [1] WHERE x]}",
]
WRITING = [
    "",
    "   // nothing\n",
    "CREATE (n:Concept {id: 'x'})",
    "MATCH (n) DELETE n",
    "MATCH (n) DETACH DELETE n",
    "MATCH (n) SET n.id = 'x'",
    "MATCH (n) sEt n.id = 'x' RETURN n",
    "MATCH (n) REMOVE n.id",
    "MERGE (n:Concept {id: 'x'})",
    "MATCH (n) FOREACH (x IN [1] | CREATE (:Concept))",
    "MATCH (n) RETURN n; MATCH (m) RETURN m",
    "MATCH (n) RETURN n; DROP TABLE Concept",
    "COPY (MATCH (n) RETURN n.id) TO 'stolen.csv'",
    "LOAD FROM 'secret.csv' RETURN *",
    "MATCH (n) LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
    "LOAD EXTENSION 'library.so'",
    "INSTALL httpfs",
    "ATTACH 'other.db' AS other (dbtype lbug)",
    "EXPORT DATABASE 'folder'",
    "IMPORT DATABASE 'folder'",
    "CALL show_tables() RETURN *",
    "MATCH (n) CALL apoc.cypher.doIt('CREATE (x)', {}) YIELD value RETURN value",
    "MATCH (n) CALL { CREATE (x) } RETURN n",
    "RETURN apoc.cypher.runFirstColumnSingle('CREATE (x) RETURN x', {})",
    "RETURN apoc . util . sleep(1)",
    "RETURN `apoc`.`util`.`sleep`(1)",
    "USE other MATCH (n) RETURN n",
    "EXPLAIN MATCH (n) RETURN n",
    "PROFILE MATCH (n) RETURN n",
    "BEGIN TRANSACTION",
    "MATCH (n) RETURN n UNION CREATE (x) RETURN x",
    "MATCH (n) RETURN 1CREATE (x)",
    "MATCH (n) RETURN 'a'CREATE (x)",
    "INSERT (n:Concept)",
    "SHOW INDEXES",
    "DROP INDEX x",
]
AMBIGUOUS = [
    "MATCH (n) WHERE n.id = 'a\\' DELETE n //' RETURN n",
    "MATCH (n) WHERE n.id = '\\u0027' DELETE n",
    "MATCH (n) RETURN n // \r DELETE n",
    "MATCH (n) RETURN n /* DELETE n",
    "MATCH (n) RETURN 'open",
    "MATCH (n) RETURN `open",
    "MATCH (n) \u017fET n.id = 1",
    "MATCH (n) RETURN n\u037e DELETE n",
    "MATCH (n)\x00RETURN n",
    "MATCH (n)\xa0RETURN n",
    "MATCH (n) RETURN $`x`",
    "MATCH (n) RETURN # n",
]


@pytest.mark.parametrize("query", READING)
def test_a_query_that_reads_is_left_as_it_is(query: str) -> None:
    assert check_reads_only(query) == query.replace("\r\n", "\n")


@pytest.mark.parametrize("query", WRITING)
def test_a_query_that_may_do_more_is_refused(query: str) -> None:
    with pytest.raises(BadInput):
        check_reads_only(query)


@pytest.mark.parametrize("query", AMBIGUOUS)
def test_a_query_that_could_be_split_in_two_ways_is_refused(query: str) -> None:
    with pytest.raises(BadInput, match=r"backslash|control character|cannot be read"):
        check_reads_only(query)


@pytest.mark.parametrize(
    "query",
    [
        queries.CONVERSATION_SEARCH,
        queries.CONVERSATION_SEARCH_OF_SCORES,
        queries.DISCOVERY,
        queries.THREAD,
        queries.VIEWS,
        queries.CITATIONS,
        queries.nearest_chunks("array_cosine_similarity(v.embedding, CAST($vector, 'FLOAT[3]'))"),
    ],
)
def test_the_searches_of_ours_pass(query: str) -> None:
    assert check_reads_only(query) == query


@given(st.text(), st.sampled_from(["DELETE n", "CREATE (x)", "SET n.x = 1", "; DROP TABLE x"]))
def test_what_stands_in_quotes_is_a_text_whatever_it_says(text: str, clause: str) -> None:
    quoted = "'" + "".join(sign for sign in f"{text} {clause}" if sign not in "'\\" and sign.isprintable()) + "'"
    assert check_reads_only(f"MATCH (n) WHERE n.id = {quoted} RETURN n")
    with pytest.raises(BadInput):
        check_reads_only(f"MATCH (n) WHERE n.id = {quoted} {clause} RETURN n")


def test_each_parameter_has_a_value_and_each_value_a_parameter() -> None:
    query = "MATCH (n {id: $key}) WHERE n.name = '$quoted' RETURN n"
    assert check_reads_only(query, {"key": "x"})
    with pytest.raises(BadInput, match=r"wants a value for \$key"):
        check_reads_only(query, {})
    with pytest.raises(BadInput, match=r"has no \$quoted"):
        check_reads_only(query, {"key": "x", "quoted": "y"})


def test_a_query_may_be_so_long() -> None:
    with pytest.raises(BadInput, match="characters"):
        check_reads_only("MATCH (n) RETURN n" + " " * MAX_QUERY)


@pytest.mark.parametrize("limit", [0, -1, MAX_ROWS + 1])
def test_so_many_rows_may_be_asked_for(limit: int) -> None:
    with pytest.raises(BadInput, match="rows are asked for"):
        check_limit(limit)
    check_limit(MAX_ROWS)
