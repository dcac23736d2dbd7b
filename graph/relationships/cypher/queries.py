"""The searches of the relationship graph in Cypher, in words that every store here understands (003).

They give what `conversation_search` and `discover` give, which read the record. RELATED_TO is kept once for both
directions, so it is matched without an arrow, and no path may end where it began.
"""

from __future__ import annotations

from graph.relationships.conversation_search import SIMILARITY_SHARE
from graph.relationships.discovery import STEPS

CONVERSATION_SEARCH = f"""\
OPTIONAL MATCH (:Conversation {{id: $conversation_id}})-[:CONTAINS]->(:Message)-[:MENTIONS]->(known:Concept)
    <-[:EXPLAINS]-(explainer:Document)
WITH explainer.id AS explaining, count(DISTINCT known.id) AS number
WITH max(number) AS most
MATCH (:Query {{id: $query_id}})-[s:SIMILARITY]->(d:Document)
WITH d, s.score AS similarity, most
OPTIONAL MATCH (d)-[:EXPLAINS]->(concept:Concept)<-[:MENTIONS]-(:Message)
    <-[:CONTAINS]-(:Conversation {{id: $conversation_id}})
WITH d, similarity, most, count(DISTINCT concept.id) AS concepts
WITH d, similarity, concepts, CASE WHEN most > 0 THEN 1.0 * concepts / most ELSE 0.0 END AS relevance
RETURN d.id AS id, d.path AS path, similarity, concepts, relevance,
    {SIMILARITY_SHARE} * similarity + (1 - {SIMILARITY_SHARE}) * relevance AS score
ORDER BY score DESC, id LIMIT 5
"""
"""Five documents by similarity to a stored query, ``$query_id``, and by the concepts of ``$conversation_id``."""

DISCOVERY = f"""\
MATCH (u:User {{id: $user_id}})-[:CREATED]->(:Message {{role: 'user'}})-[:MENTIONS]->(asked:Concept)
WITH DISTINCT u, asked
MATCH way = (asked)-[:RELATED_TO*1..{STEPS}]-(found:Concept)
WHERE asked.id <> found.id
WITH u, found, min(length(way)) AS steps
MATCH (d:Document)-[:EXPLAINS]->(found)
WHERE NOT (u)-[:VIEWED]->(d)
RETURN d.id AS id, d.path AS path, count(DISTINCT found.id) AS relevance, sum(steps) AS steps
ORDER BY relevance DESC, steps, id LIMIT 3
"""
"""Three documents that ``$user_id`` did not view, one or two steps from what this user asked about."""

THREAD = """\
MATCH (:Conversation {id: $conversation_id})-[place:CONTAINS]->(m:Message)
OPTIONAL MATCH (m)-[:FOLLOWS]->(earlier:Message)
RETURN m.id AS id, m.role AS role, m.content AS content, earlier.id AS follows
ORDER BY place.position
"""
"""The messages of ``$conversation_id`` in order, each with the one that it follows."""

VIEWS = """\
MATCH (:User {id: $user_id})-[v:VIEWED]->(d:Document)
RETURN d.id AS id, v.view_count AS view_count, v.first_viewed_at AS first_viewed_at,
    v.last_viewed_at AS last_viewed_at
ORDER BY id
"""
"""The documents that ``$user_id`` viewed, how often and when."""

CITATIONS = """\
MATCH (:Message {id: $message_id})-[r:REFERENCES]->(d:Document)
RETURN d.id AS id, r.number AS number
ORDER BY number, id
"""
"""The documents that ``$message_id`` cites, with the numbers of its citations."""


def nearest_chunks(similarity: str) -> str:
    """Return the query for the chunks nearest to ``$vector``, ``$k`` of them, with distance and similarity.

    Args:
        similarity: how a store computes the cosine of ``v.embedding`` and ``$vector``, unit vectors.
    """
    return f"""\
MATCH (v:Vector)-[:EMBEDDING_OF]->(c:DocumentChunk)
WHERE v.embedding IS NOT NULL
WITH c, {similarity} AS similarity
RETURN c.id AS id, c.content AS content, 1 - similarity AS distance, similarity
ORDER BY similarity DESC, id LIMIT $k
"""
