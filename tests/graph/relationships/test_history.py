"""The history: turns in order, views without a lost one, and what was written twice is there once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.errors import MissingEndpoint, NoAccess, NotInSchema
from graph.relationships import conversations as past
from graph.relationships.conversations import ASSISTANT, TITLE_LENGTH, USER, Cited
from graph.relationships.history import (
    NewTurn,
    add_message_with_references,
    create_or_get_concept,
    record_turn,
    record_view,
    track_user_viewed_document,
)
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EVERY_PART, Edge, EdgeType, HistoryPart, Node, NodeType, PropertyValue, time_text
from graph.schema import entity_id

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
    """Put the documents, a passage of each, and the concepts."""
    about: dict[str, PropertyValue] = {
        "path": "p",
        "title": "t",
        "created_at": at(0),
        "updated_at": at(0),
        "version": 1,
    }
    passage: dict[str, PropertyValue] = {"chunk_index": 0, "path": "p", "fingerprint": "f", "created_at": at(0)}
    record.put_nodes(Node(NodeType.DOCUMENT, key, about) for key in DOCUMENTS)
    chunks = {f"{key}-{n}": key for key in DOCUMENTS for n in (1, 2)}
    record.put_nodes(Node(NodeType.CHUNK, chunk, passage) for chunk in chunks)
    record.link_all(
        Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, chunk), (NodeType.DOCUMENT, key)) for chunk, key in chunks.items()
    )
    record.put_nodes(Node(NodeType.CONCEPT, entity_id(name), {"name": name}) for name in CONCEPTS)


def cites(number: int, document: str, passage: int = 1) -> Cited:
    return Cited(number, f"{document}-{passage}")


def turn(key: str = "run-1", **changes: object) -> NewTurn:
    """Return a turn of Ada's about Nissan, with some changes."""
    asked = NewTurn(
        key=key,
        question="When was Nissan founded?",
        answer="Yoshisuke Aikawa founded Nissan in 1933 [1] [2].",
        asked_at=at(0),
        answered_at=at(1),
        conversation="cars",
        user="ada",
        kind="answer",
        cited=(cites(1, "nissan"), cites(2, "aikawa")),
    )
    return replace(asked, **changes)  # type: ignore[arg-type]


def linked(record: RelationshipRecord, of: EdgeType, source: NodeType, target: NodeType) -> dict[tuple[str, str], dict]:  # type: ignore[type-arg]
    return {(edge.source[1], edge.target[1]): dict(edge.properties) for edge in record.edges(of, source, target)}


def followed(record: RelationshipRecord, conversation: str) -> list[str]:
    """Return the ids of a conversation's messages from first to last, as FOLLOWS leads from the last one back."""
    follows = dict(linked(record, EdgeType.FOLLOWS, NodeType.MESSAGE, NodeType.MESSAGE))
    last = past.last_message(record, conversation)
    assert last
    chain = [last[0]]
    while before := [target for source, target in follows if source == chain[-1]]:
        assert len(before) == 1, "a message follows one other"
        chain += before
    return chain[::-1]


class TestATurn:
    def test_it_is_a_question_and_its_answer_in_their_conversation(self, record: RelationshipRecord) -> None:
        done = record_turn(record, turn(understood="When was Nissan founded in Japan?"))
        question, answer = past.messages(record, "cars")
        assert (question.id, answer.id) == (done.question, done.answer)
        assert (question.role, question.content, question.user) == (USER, "When was Nissan founded?", "ada")
        assert (answer.role, answer.kind, answer.user) == (ASSISTANT, "answer", "")
        assert question.understood == "When was Nissan founded in Japan?"
        assert (question.created_at, answer.created_at) == (at(0), at(1))
        assert (question.position, answer.position) == (0, 1)

    def test_a_conversation_is_called_by_its_first_question(self, record: RelationshipRecord) -> None:
        record_turn(record, turn(question="When\nwas " + 200 * "x"))
        record_turn(record, turn("run-2", question="And who founded it?", asked_at=at(5), answered_at=at(6)))
        (found,) = past.conversations(record)
        assert found.title == ("When was " + 200 * "x")[:TITLE_LENGTH]
        assert (found.created_at, found.updated_at, found.owner, found.messages) == (at(0), at(6), "ada", 4)

    def test_it_references_what_it_cites_with_the_numbers(self, record: RelationshipRecord) -> None:
        cited = (cites(1, "nissan"), cites(3, "nissan", 2), cites(2, "aikawa"))
        done = record_turn(record, turn(cited=cited))
        documents = linked(record, EdgeType.REFERENCES, NodeType.MESSAGE, NodeType.DOCUMENT)
        assert documents == {(done.answer, "nissan"): {"number": 1}, (done.answer, "aikawa"): {"number": 2}}
        passages = linked(record, EdgeType.REFERENCES, NodeType.MESSAGE, NodeType.CHUNK)
        assert {key: each["number"] for (_, key), each in passages.items()} == {
            "nissan-1": 1,
            "aikawa-1": 2,
            "nissan-2": 3,
        }
        _, answer = past.messages(record, "cars")
        assert [(cited.number, cited.passage) for cited in answer.cited] == [
            (1, "nissan-1"),
            (2, "aikawa-1"),
            (3, "nissan-2"),
        ]

    def test_it_mentions_the_concepts_that_the_graph_holds(self, record: RelationshipRecord) -> None:
        done = record_turn(record, turn(question="And it?", understood="And Nissan, and Datsun?"), SpelledNames())
        assert linked(record, EdgeType.MENTIONS, NodeType.MESSAGE, NodeType.CONCEPT) == {
            (done.question, entity_id("Nissan")): {"confidence": 1.0},
            (done.answer, entity_id("Nissan")): {"confidence": 1.0},
            (done.answer, entity_id("Yoshisuke Aikawa")): {"confidence": 0.5},
        }

    def test_its_asker_created_the_question_and_viewed_what_it_cites(self, record: RelationshipRecord) -> None:
        done = record_turn(record, turn())
        assert list(linked(record, EdgeType.CREATED, NodeType.USER, NodeType.MESSAGE)) == [("ada", done.question)]
        assert done.viewed == ("nissan", "aikawa")
        assert [(view.document, view.view_count) for view in past.views(record, "ada")] == [
            ("aikawa", 1),
            ("nissan", 1),
        ]

    def test_written_again_it_changes_nothing(self, record: RelationshipRecord) -> None:
        first = record_turn(record, turn(), SpelledNames())
        before = record.counts(), past.views(record, "ada")
        again = record_turn(record, turn(answer="Another wording", answered_at=at(9)), SpelledNames())
        assert again == first
        assert (record.counts(), past.views(record, "ada")) == before

    def test_the_same_question_of_another_run_is_another_turn(self, record: RelationshipRecord) -> None:
        record_turn(record, turn("run-1"))
        record_turn(record, turn("run-2"))
        assert len(past.messages(record, "cars")) == 4
        assert {view.view_count for view in past.views(record, "ada")} == {2}

    def test_what_it_cites_and_the_graph_lacks_is_told_and_not_taken_for_all(self, record: RelationshipRecord) -> None:
        done = record_turn(record, turn(cited=(cites(1, "nissan"), cites(2, "gone"))))
        assert (done.unlinked, done.viewed) == (("gone-1",), ("nissan",))
        assert past.messages(record, "cars")[1].cited == (cites(1, "nissan"), cites(2, "gone"))

    def test_what_it_cites_is_known_also_where_a_passage_is_removed_or_no_reference_written(
        self, record: RelationshipRecord
    ) -> None:
        record_turn(record, turn(), parts=[HistoryPart.MESSAGES])
        record.remove_nodes(NodeType.CHUNK, ["aikawa-1"])
        assert past.messages(record, "cars")[1].cited == (cites(1, "nissan"), cites(2, "aikawa"))

    def test_nobody_need_be_known_and_no_conversation_either(self, record: RelationshipRecord) -> None:
        record_turn(record, turn(user=""))
        assert record.counts()["User"] == record.counts()["CREATED"] == record.counts()["VIEWED"] == 0
        record_turn(record, turn("run-2", conversation=""))
        question, answer = past.messages_beside(record, "ada")
        assert (question.role, answer.role, question.position, question.conversation) == (USER, ASSISTANT, -1, "")
        assert record.counts()["PART_OF"] == 2

    @pytest.mark.parametrize("part", HistoryPart)
    def test_each_part_can_be_left_out(self, record: RelationshipRecord, part: HistoryPart) -> None:
        parts = [each for each in EVERY_PART if each is not part]
        record_turn(record, turn(), SpelledNames(), parts)
        written = {of for of, count in record.counts().items() if count} - {
            "Document",
            "DocumentChunk",
            "CHUNK_OF",
            "Vector",
            "EMBEDDING_OF",
            "Concept",
        }
        of_messages = {"Message", "Conversation", "PART_OF", "FOLLOWS", "CREATED", "REFERENCES", "MENTIONS"}
        left_out = {
            HistoryPart.MESSAGES: of_messages,
            HistoryPart.REFERENCES: {"REFERENCES"},
            HistoryPart.CONCEPTS: {"MENTIONS"},
            HistoryPart.VIEWS: {"VIEWED"},
        }
        assert written == {*of_messages, "User", "VIEWED"} - left_out[part]

    def test_views_alone_of_the_same_run_count_once(self, record: RelationshipRecord) -> None:
        for key in ("run-1", "run-1", "run-2"):
            record_turn(record, turn(key), parts=[HistoryPart.VIEWS])
        assert {view.view_count for view in past.views(record, "ada")} == {2}

    def test_of_one_that_is_refused_nothing_is_written(self, record: RelationshipRecord) -> None:
        before = record.counts()
        with pytest.raises(NotInSchema):
            record_turn(record, turn(user="a\x00b"))
        with pytest.raises(NotInSchema):
            record_turn(record, turn(conversation=2_000 * "c"))
        with pytest.raises(NotInSchema):
            record_turn(record, turn(answered_at="yesterday"))
        assert record.counts() == before


class TestAConversation:
    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.sampled_from(["cars", "rivers", "bridges"]), min_size=1, max_size=12))
    def test_each_message_follows_the_one_before_it(self, tmp_path: Path, asked_in: Sequence[str]) -> None:
        (tmp_path / "relationships.sqlite").unlink(missing_ok=True)
        with RelationshipRecord.of(tmp_path, create=True) as record:
            for number, name in enumerate(asked_in):
                record_turn(record, turn(f"run-{number}", conversation=name))
            for name in set(asked_in):
                found = past.messages(record, name)
                assert [message.id for message in found] == followed(record, name)
                assert [message.position for message in found] == list(range(len(found)))

    def test_it_stays_in_order_with_several_writers(self, tmp_path: Path) -> None:
        with RelationshipRecord.of(tmp_path, create=True) as record:
            put_documents(record)

        def write(writer: int) -> None:
            with RelationshipRecord.of(tmp_path) as own:
                for number in range(10):
                    record_turn(own, turn(f"{writer}-{number}"))

        in_threads(8, write)
        with RelationshipRecord.of(tmp_path) as record:
            found = past.messages(record, "cars")
            assert [message.id for message in found] == followed(record, "cars")
            assert [message.role for message in found] == 80 * [USER, ASSISTANT]
            assert all(found[n + 1].id == question_s_answer(record, found[n].id) for n in range(0, 160, 2))

    def test_its_last_turns_are_read_in_order(self, record: RelationshipRecord) -> None:
        for number in range(5):
            record_turn(record, turn(f"run-{number}", question=f"Question {number}?"))
        found = past.last_turns(record, "cars", 3)
        assert [each.question.content for each in found] == ["Question 2?", "Question 3?", "Question 4?"]
        assert all(each.answer and each.answer.content.startswith("Yoshisuke") for each in found)

    def test_it_belongs_to_who_began_it(self, record: RelationshipRecord) -> None:
        record_turn(record, turn(user="ada"))
        for user in ("bob", ""):
            with pytest.raises(NoAccess) as refused:
                record_turn(record, turn("run-2", user=user))
            assert "ada" not in str(refused.value)
        assert len(past.messages(record, "cars")) == 2

    def test_one_that_nobody_owns_is_open_unless_a_server_says_otherwise(self, record: RelationshipRecord) -> None:
        record_turn(record, turn(user=""))
        record_turn(record, turn("run-2", user="bob"))
        with pytest.raises(NoAccess):
            record_turn(record, turn("run-3", user="bob"), own_only=True)
        record_turn(record, turn("run-4", user=""), own_only=True)
        (found,) = past.conversations(record, "bob")
        assert (found.owner, found.messages) == ("", 6)
        assert past.conversations(record, "ada") == []


def question_s_answer(record: RelationshipRecord, question: str) -> str:
    """Return the id of the message that follows a question."""
    follows = linked(record, EdgeType.FOLLOWS, NodeType.MESSAGE, NodeType.MESSAGE)
    (answer,) = [source for source, target in follows if target == question]
    return answer


class TestAsIn003:
    def test_add_message_with_references(self, record: RelationshipRecord) -> None:
        asked = add_message_with_references(record, "cars", "Who founded Nissan?", "user", extractor=SpelledNames())
        told = add_message_with_references(record, "cars", "Yoshisuke Aikawa", "assistant", ["aikawa", "nissan"])
        assert [message.id for message in past.messages(record, "cars")] == [asked, told] == followed(record, "cars")
        references = linked(record, EdgeType.REFERENCES, NodeType.MESSAGE, NodeType.DOCUMENT)
        assert references == {(told, "aikawa"): {"number": 1}, (told, "nissan"): {"number": 2}}
        assert list(linked(record, EdgeType.MENTIONS, NodeType.MESSAGE, NodeType.CONCEPT)) == [
            (asked, entity_id("Nissan"))
        ]

    def test_a_message_with_a_reference_to_nothing_is_not_added(self, record: RelationshipRecord) -> None:
        with pytest.raises(MissingEndpoint):
            add_message_with_references(record, "cars", "Who?", "assistant", ["nissan", "gone"])
        assert record.counts()["Message"] == record.counts()["Conversation"] == 0

    def test_a_message_of_a_known_id_is_added_once(self, record: RelationshipRecord) -> None:
        for content in ("Who?", "Who else?"):
            assert add_message_with_references(record, "cars", content, "user", message_id="m1") == "m1"
        assert [message.content for message in past.messages(record, "cars")] == ["Who?"]

    def test_create_or_get_concept(self, record: RelationshipRecord) -> None:
        before = record.node(NodeType.CONCEPT, entity_id("Nissan"))
        assert create_or_get_concept(record, "NISSAN") == entity_id("Nissan")
        assert record.node(NodeType.CONCEPT, entity_id("Nissan")) == before
        made = create_or_get_concept(record, "Datsun", "A brand")
        node = record.node(NodeType.CONCEPT, made)
        assert node is not None
        assert (node.properties["name"], node.properties["description"]) == ("Datsun", "A brand")
        with pytest.raises(NotInSchema):
            create_or_get_concept(record, "  ")

    def test_track_user_viewed_document(self, record: RelationshipRecord) -> None:
        record.put_node(Node(NodeType.USER, "ada", {"created_at": at(0)}))
        track_user_viewed_document(record, "ada", "nissan", at(5), duration=30)
        track_user_viewed_document(record, "ada", "nissan", at(9))
        track_user_viewed_document(record, "ada", "nissan", at(1), duration=12)
        (view,) = past.views(record, "ada")
        assert (view.view_count, view.first_viewed_at, view.last_viewed_at) == (3, at(1), at(9))
        assert (view.duration, view.relevance_score) == (42, None)

    def test_a_view_that_ended_creates_its_user_and_is_found_by_its_document(self, record: RelationshipRecord) -> None:
        for duration in (30, 12):
            record_view(record, "ada", "nissan", duration)
        view = past.view_of(record, "ada", "nissan")
        assert view
        assert (view.view_count, view.duration) == (2, 42)
        assert past.view_of(record, "ada", "renault") is past.view_of(record, "ben", "nissan") is None

    def test_a_view_of_no_document_creates_no_user(self, record: RelationshipRecord) -> None:
        with pytest.raises(MissingEndpoint):
            record_view(record, "ada", "gone", 1)
        assert record.node(NodeType.USER, "ada") is None

    @pytest.mark.parametrize(("user", "document"), [("nobody", "nissan"), ("ada", "gone")])
    def test_a_view_needs_its_user_and_its_document(self, record: RelationshipRecord, user: str, document: str) -> None:
        record.put_node(Node(NodeType.USER, "ada", {"created_at": at(0)}))
        with pytest.raises(MissingEndpoint):
            track_user_viewed_document(record, user, document)


THREADS, PROCESSES, VIEWS_EACH = 8, 3, 40


def in_threads(count: int, work: object) -> None:
    faults: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)  # type: ignore[operator]
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not faults


def view_from_threads(root: str) -> None:
    def view(thread: int) -> None:
        with RelationshipRecord.of(Path(root)) as own:
            for number in range(VIEWS_EACH):
                track_user_viewed_document(own, "ada", "nissan", at(number), duration=1)

    in_threads(THREADS, view)


def test_views_are_counted_by_threads_of_processes_without_a_lost_one(tmp_path: Path) -> None:
    with RelationshipRecord.of(tmp_path, create=True) as record:
        put_documents(record)
        record.put_node(Node(NodeType.USER, "ada", {"created_at": at(0)}))
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        list(pool.map(view_from_threads, PROCESSES * [str(tmp_path)]))
    with RelationshipRecord.of(tmp_path) as record:
        (view,) = past.views(record, "ada")
    assert view.view_count == view.duration == THREADS * PROCESSES * VIEWS_EACH
    assert (view.first_viewed_at, view.last_viewed_at) == (at(0), at(VIEWS_EACH - 1))


HOSTILE = (
    "'); DROP TABLE message; --",
    '" OR "1"="1',
    "cars' UNION SELECT content FROM message --",
    "{id: $id}) DETACH DELETE n //",
    "`]->(x) SET x.role = 'admin' //",
    "%s %(name)s ? :id $1 @p",
    "\u202ereversed",
    "${jndi:ldap://host/a}",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_ids_names_and_texts_are_values_and_nothing_else(record: RelationshipRecord, text: str) -> None:
    tables = record.counts().keys()
    record_turn(record, turn("other", conversation="other", user="bob"))
    record_turn(record, turn(text, conversation=text, user=text, question=text, answer=text, kind=text), SpelledNames())
    concept = create_or_get_concept(record, text)
    add_message_with_references(record, text + "2", text, "user", ["nissan"], message_id=text)
    assert record.counts().keys() == tables
    question, answer = past.messages(record, text)
    assert (question.content, question.user, answer.content, answer.kind) == (text, text, text, text)
    assert [each.id for each in past.conversations(record, text)] == [text]
    assert [view.document for view in past.views(record, text)] == ["aikawa", "nissan"]
    assert len(past.messages(record, "other")) == 2
    node = record.node(NodeType.CONCEPT, concept)
    assert node is not None
    assert record.edge(EdgeType.REFERENCES, (NodeType.MESSAGE, text), (NodeType.DOCUMENT, "nissan")) == Edge(
        EdgeType.REFERENCES, (NodeType.MESSAGE, text), (NodeType.DOCUMENT, "nissan"), {"number": 1}
    )
