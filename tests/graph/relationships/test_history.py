"""The history: turns in order, views without a lost one, and what was written twice is there once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from graph.errors import MissingEndpoint, NoAccess, NotInSchema
from graph.relationships import conversations as past
from graph.relationships.conversations import ASSISTANT, USER, Cited
from graph.relationships.history import (
    NewTurn,
    add_message_with_references,
    keep_search,
    rate_views,
    record_turn,
    track_user_viewed_document,
)
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EVERY_PART, Edge, EdgeType, HistoryPart, Node, NodeType, PropertyValue, time_text
from graph.schema import entity_id
from graph.storage.marks import Mark, MarkKind

pytestmark = pytest.mark.usefixtures("database")

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
DOCUMENTS = ("nissan", "aikawa", "renault")
CONCEPTS = ("Nissan", "Yoshisuke Aikawa")


class SpelledNames:
    """Finds `CONCEPTS`, and one that no document holds."""

    def concepts_in(self, text: str) -> Mapping[str, float]:
        names = [name for name in (*CONCEPTS, "Datsun") if name in text]
        return {entity_id(name): 1 / place for place, name in enumerate(names, start=1)}


def at(minutes: float) -> str:
    return time_text(NOON + timedelta(minutes=minutes))


@pytest.fixture
def record(tmp_path: Path) -> Iterator[RelationshipRecord]:
    with RelationshipRecord.of(tmp_path, create=True) as opened:
        put_documents(opened)
        yield opened


def put_documents(record: RelationshipRecord) -> None:
    """Put the documents, two passages of each, and the concepts."""
    times: dict[str, PropertyValue] = {"created_at": at(0), "updated_at": at(0)}
    passage: dict[str, PropertyValue] = {"chunk_index": 0, "path": "p", "fingerprint": "f", "created_at": at(0)}
    for key in DOCUMENTS:
        record.put_node(Node(NodeType.DOCUMENT, key, {**times, "path": "p", "title": "t", "version": 1}))
        for chunk in (f"{key}-1", f"{key}-2"):
            record.put_node(Node(NodeType.CHUNK, chunk, passage))
            record.link(Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, chunk), (NodeType.DOCUMENT, key)))
    record.put_nodes(Node(NodeType.CONCEPT, entity_id(name), {"name": name}) for name in CONCEPTS)


def cites(number: int, document: str, passage: int = 1) -> Cited:
    return Cited(number, f"{document}-{passage}")


def turn(key: str = "run-1", **changes: object) -> NewTurn:
    """Return a turn of Ada's about Nissan, with some changes."""
    asked = NewTurn(
        key,
        "When was Nissan founded?",
        "Yoshisuke Aikawa founded Nissan in 1933 [1] [2].",
        at(0),
        at(1),
        "cars",
        "ada",
        kind="answer",
        cited=(cites(1, "nissan"), cites(2, "aikawa")),
    )
    return replace(asked, **changes)  # type: ignore[arg-type]


def linked(record: RelationshipRecord, of: EdgeType, source: NodeType, target: NodeType) -> dict[tuple[str, str], dict]:  # type: ignore[type-arg]
    return {(edge.source[1], edge.target[1]): dict(edge.properties) for edge in record.edges(of, source, target)}


def assert_followed(record: RelationshipRecord, messages: Sequence[str]) -> None:
    """Each message follows the one before it, and no other."""
    follows = linked(record, EdgeType.FOLLOWS, NodeType.MESSAGE, NodeType.MESSAGE)
    assert follows.keys() == {(after, before) for before, after in pairwise(messages)}


class TestATurn:
    def test_it_is_a_question_and_its_answer_in_their_conversation(self, record: RelationshipRecord) -> None:
        cited = (cites(1, "nissan"), cites(3, "nissan", 2), cites(2, "aikawa"))
        done = record_turn(record, turn(understood="When was Nissan founded in Japan?", cited=cited))
        question, answer = past.messages(record, "cars")
        assert (question.id, answer.id) == (done.question, done.answer)
        assert (question.role, question.content, question.user) == (USER, "When was Nissan founded?", "ada")
        assert (answer.role, answer.kind, answer.user) == (ASSISTANT, "answer", "")
        assert question.understood == "When was Nissan founded in Japan?"
        assert (question.created_at, answer.created_at) == (at(0), at(1))
        assert list(linked(record, EdgeType.CREATED, NodeType.USER, NodeType.MESSAGE)) == [("ada", done.question)]
        assert [(view.document, view.view_count) for view in past.views(record, "ada")] == [
            ("aikawa", 1),
            ("nissan", 1),
        ]
        documents = linked(record, EdgeType.REFERENCES, NodeType.MESSAGE, NodeType.DOCUMENT)
        assert documents == {(done.answer, "nissan"): {"number": 1}, (done.answer, "aikawa"): {"number": 2}}
        numbers = {1: "nissan-1", 2: "aikawa-1", 3: "nissan-2"}
        passages = linked(record, EdgeType.REFERENCES, NodeType.MESSAGE, NodeType.CHUNK)
        assert {each["number"]: key for (_, key), each in passages.items()} == numbers
        assert [(each.number, each.passage) for each in answer.cited] == list(numbers.items())
        record_turn(record, turn("run-2", question="And?", asked_at=at(5), answered_at=at(6)))
        (cars,) = past.conversations(record)
        assert (cars.title, cars.owner, cars.messages) == ("When was Nissan founded?", "ada", 4)
        assert (cars.created_at, cars.updated_at) == (at(0), at(6))

    def test_it_mentions_the_concepts_that_the_graph_holds(self, record: RelationshipRecord) -> None:
        done = record_turn(record, turn(question="And it?", understood="And Nissan?"), SpelledNames())
        assert linked(record, EdgeType.MENTIONS, NodeType.MESSAGE, NodeType.CONCEPT) == {
            (done.question, entity_id("Nissan")): {"confidence": 1.0},
            (done.answer, entity_id("Nissan")): {"confidence": 1.0},
            (done.answer, entity_id("Yoshisuke Aikawa")): {"confidence": 0.5},
        }

    def test_written_again_it_changes_nothing_but_of_another_run(self, record: RelationshipRecord) -> None:
        first = record_turn(record, turn(), SpelledNames())
        before = record.counts(), past.views(record, "ada")
        again = record_turn(record, turn(answer="Another wording", answered_at=at(9)), SpelledNames())
        assert again == first
        assert (record.counts(), past.views(record, "ada")) == before
        record_turn(record, turn("run-2"))
        assert len(past.messages(record, "cars")) == 4
        for key in ("run-3", "run-3"):
            record_turn(record, turn(key), parts=[HistoryPart.VIEWS])
        assert {view.view_count for view in past.views(record, "ada")} == {3}

    def test_what_it_cites_is_known_also_where_the_graph_lacks_it(self, record: RelationshipRecord) -> None:
        done = record_turn(record, turn(cited=(cites(1, "nissan"), cites(2, "gone"))))
        assert (done.unlinked, done.viewed) == (("gone-1",), ("nissan",))
        assert past.messages(record, "cars")[1].cited == (cites(1, "nissan"), cites(2, "gone"))
        record_turn(record, turn("run-2", conversation="more"), parts=[HistoryPart.MESSAGES])
        record.remove_nodes(NodeType.CHUNK, ["aikawa-1"])
        assert past.messages(record, "more")[1].cited == (cites(1, "nissan"), cites(2, "aikawa"))

    def test_each_part_can_be_left_out(self, record: RelationshipRecord) -> None:
        for part, of in (
            (HistoryPart.MESSAGES, "Message"),
            (HistoryPart.REFERENCES, "REFERENCES"),
            (HistoryPart.CONCEPTS, "MENTIONS"),
        ):
            before = record.counts()[of]
            parts = [each for each in EVERY_PART if each is not part]
            record_turn(record, turn(part, conversation=part), SpelledNames(), parts)
            assert record.counts()[of] == before, part
        viewed = record.counts()["VIEWED"]
        record_turn(record, turn("x", conversation="x", user="ben"), parts=[HistoryPart.MESSAGES])
        assert record.counts()["VIEWED"] == viewed

    def test_of_one_that_is_refused_nothing_is_written(self, record: RelationshipRecord) -> None:
        before = record.counts()
        for refused in (turn(user="a\x00b"), turn(conversation=2_000 * "c"), turn(answered_at="yesterday")):
            with pytest.raises(NotInSchema):
                record_turn(record, refused)
        assert record.counts() == before


class TestAConversation:
    def test_it_stays_in_order_with_several_writers(self, tmp_path: Path) -> None:
        with RelationshipRecord.of(tmp_path, create=True) as record:
            put_documents(record)

        def write(writer: int) -> None:
            with RelationshipRecord.of(tmp_path) as own:
                for number in range(10):
                    record_turn(own, turn(f"{writer}-{number}"))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(8)))
        with RelationshipRecord.of(tmp_path) as record:
            messages = past.messages(record, "cars")
            assert_followed(record, [message.id for message in messages])
            assert [message.role for message in messages] == 80 * [USER, ASSISTANT]
            assert [message.position for message in messages] == list(range(160))

    def test_it_belongs_to_who_began_it_and_its_last_turns_are_read_in_order(self, record: RelationshipRecord) -> None:
        for number in range(5):
            record_turn(record, turn(f"run-{number}", question=f"Question {number}?"))
        last = past.last_turns(record, "cars", 3)
        assert [each.question.content for each in last] == ["Question 2?", "Question 3?", "Question 4?"]
        assert all(each.answer and each.answer.content.startswith("Yoshisuke") for each in last)
        for user in ("bob", ""):
            with pytest.raises(NoAccess) as refused:
                record_turn(record, turn("another", user=user))
            assert "ada" not in str(refused.value)
        assert len(past.messages(record, "cars")) == 10

    def test_one_without_an_owner_is_open_unless_a_server_says_otherwise(self, record: RelationshipRecord) -> None:
        record_turn(record, turn(user=""))
        record_turn(record, turn("run-2", user="bob"))
        with pytest.raises(NoAccess):
            record_turn(record, turn("run-3", user="bob"), own_only=True)
        record_turn(record, turn("run-4", user=""), own_only=True)
        (shared,) = past.conversations(record, "bob")
        assert (shared.owner, shared.messages) == ("", 6)
        assert past.conversations(record, "ada") == []


class TestPublishedFunctions:
    def test_track_user_viewed_document(self, record: RelationshipRecord) -> None:
        record.put_node(Node(NodeType.USER, "ada", {"created_at": at(0)}))
        track_user_viewed_document(record, "ada", "nissan", at(5), duration=30)
        track_user_viewed_document(record, "ada", "nissan", at(9))
        track_user_viewed_document(record, "ada", "nissan", at(1), duration=12)
        view = past.view_of(record, "ada", "nissan")
        assert view
        assert past.view_of(record, "ada", "renault") is past.view_of(record, "ben", "nissan") is None
        assert (view.view_count, view.first_viewed_at, view.last_viewed_at) == (3, at(1), at(9))
        assert (view.duration, view.relevance_score) == (42, None)


def test_views_are_counted_by_threads_without_a_lost_one(tmp_path: Path) -> None:
    def view_often(_: int) -> None:
        with RelationshipRecord.of(tmp_path) as own:
            for number in range(20):
                track_user_viewed_document(own, "ada", "nissan", at(number), duration=1)

    with RelationshipRecord.of(tmp_path, create=True) as record:
        put_documents(record)
        record.put_node(Node(NodeType.USER, "ada", {"created_at": at(0)}))
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(view_often, range(6)))
    with RelationshipRecord.of(tmp_path) as record:
        (view,) = past.views(record, "ada")
    assert view.view_count == view.duration == 120
    assert (view.first_viewed_at, view.last_viewed_at) == (at(0), at(19))


def test_a_search_is_kept_with_its_similarities_until_another_of_its_name_replaces_it(
    record: RelationshipRecord,
) -> None:
    keep_search(record, "cars", "Which cars?", {"nissan": 0.75, "renault": 0.5}, at(0))
    keep_search(record, "cars", "Which founders?", {"aikawa": 0.25}, at(0))
    with pytest.raises(MissingEndpoint):
        keep_search(record, "cars", "Which?", {"renault": 0.25, "nowhere": 0.5}, at(0))
    query = record.node(NodeType.QUERY, "cars")
    assert query
    assert query.properties == {"text": "Which founders?", "created_at": at(0)}
    similarities = linked(record, EdgeType.SIMILARITY, NodeType.QUERY, NodeType.DOCUMENT)
    assert similarities == {("cars", "aikawa"): {"score": 0.25}}


WHO = "Who founded Nissan?"


def scores(record: RelationshipRecord, user: str) -> dict[str, float | None]:
    return {view.document: view.relevance_score for view in past.views(record, user)}


def mark(passage: str, *, served: bool = True, question: str = WHO) -> Mark:
    return Mark(question, passage, MarkKind.PERSON, served)


def test_the_relevance_of_a_view_is_the_mean_of_its_users_marks(record: RelationshipRecord) -> None:
    record_turn(record, turn("a", question="And who?", conversation="", understood=WHO))
    record_turn(record, turn("b", question="When?", conversation="", user="ben"))
    ignored = [Mark(WHO, "nissan-1", kind) for kind in (MarkKind.GOLD, MarkKind.CITED)]
    assert rate_views(record, [*ignored, mark("gone"), mark("nissan-1", question="Never asked")]) == 0
    marks = [mark("nissan-1"), mark("nissan-2", served=False), mark("nissan-1", question="And who?")]
    marks.append(mark("aikawa-1", served=False))
    assert rate_views(record, marks) == 2
    assert scores(record, "ada") == {"nissan": pytest.approx(1 / 3), "aikawa": -1.0}
    assert scores(record, "ben") == {"nissan": None, "aikawa": None}
    before = record.revision
    assert rate_views(record, marks) == 0
    assert rate_views(record, []) == 2
    assert scores(record, "ada") == {"nissan": None, "aikawa": None}
    assert record.revision > before


def test_a_message_is_added_with_what_it_references_and_mentions(record: RelationshipRecord) -> None:
    with pytest.raises(MissingEndpoint):
        add_message_with_references(record, "cars", "Who?", "assistant", ["nissan", "gone"])
    assert record.counts()["Message"] == record.counts()["Conversation"] == 0
    asked = add_message_with_references(record, "cars", "Who founded Nissan?", "user", extractor=SpelledNames())
    answer = add_message_with_references(record, "cars", "Yoshisuke Aikawa", "assistant", ["aikawa", "nissan"])
    assert [message.id for message in past.messages(record, "cars")] == [asked, answer]
    assert_followed(record, [asked, answer])
    references = linked(record, EdgeType.REFERENCES, NodeType.MESSAGE, NodeType.DOCUMENT)
    assert references == {(answer, "aikawa"): {"number": 1}, (answer, "nissan"): {"number": 2}}
    mentions = linked(record, EdgeType.MENTIONS, NodeType.MESSAGE, NodeType.CONCEPT)
    assert list(mentions) == [(asked, entity_id("Nissan"))]
    for content in ("Who?", "Who else?"):
        assert add_message_with_references(record, "ships", content, "user", message_id="m1") == "m1"
    assert [message.content for message in past.messages(record, "ships")] == ["Who?"]
