"""The relationship graph as files: lines of JSON, a script in Cypher, GraphML."""
