"""Views that many count at once: none is lost in the record, and both copies say what it says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graph.relationships.cypher import queries
from graph.relationships.cypher.bolt import BoltServer
from graph.relationships.cypher.copies import open_copy
from graph.relationships.cypher.mirror import mirror
from graph.relationships.history import track_user_viewed_document
from graph.relationships.record import RelationshipRecord
from tests.builders import Child

EACH = 10
COUNTER = """
import sys
from pathlib import Path
from graph.relationships.history import track_user_viewed_document
from graph.relationships.record import RelationshipRecord
with RelationshipRecord.of(Path(sys.argv[1])) as record:
    print("ready")
    input()
    for _ in range(int(sys.argv[2])):
        track_user_viewed_document(record, "mia", "d-port")
print("done")
input()
"""


def count_views(root: Path) -> int:
    """Let 8 threads and 3 processes count at once; return how many views these are."""

    def of_a_thread(_: int) -> None:
        with RelationshipRecord.of(root) as own:
            for _ in range(EACH):
                track_user_viewed_document(own, "mia", "d-port")

    with Child(COUNTER, root, EACH) as a, Child(COUNTER, root, EACH) as b, Child(COUNTER, root, EACH) as c:
        for child in (a, b, c):
            assert child.hear() == "ready"
        for child in (a, b, c):
            child.tell("go")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(of_a_thread, range(8)))
        assert [child.hear() for child in (a, b, c)] == ["done"] * 3
    return (8 + 3) * EACH


def test_the_embedded_copy_has_every_view(record: RelationshipRecord, tmp_path: Path) -> None:
    expected = count_views(tmp_path)
    with open_copy(tmp_path) as copy:
        found = {row[0]: row[1] for row in copy.query(queries.VIEWS, {"user_id": "mia"}).rows}
    assert found == {"d-port": expected, "d-renault": 1}


@pytest.mark.slow
def test_a_server_has_every_view_however_often_it_is_sent(
    server: BoltServer, record: RelationshipRecord, tmp_path: Path
) -> None:
    mirror(tmp_path, server)
    expected = count_views(tmp_path)
    for _ in range(3):
        mirror(tmp_path, server)
    with open_copy(tmp_path) as copy:
        assert server.query(queries.VIEWS, {"user_id": "mia"}) == copy.query(queries.VIEWS, {"user_id": "mia"})
    assert server.rows("MATCH (:User)-[v:VIEWED]->(:Document {id: 'd-port'}) RETURN v.view_count") == [(expected,)]
