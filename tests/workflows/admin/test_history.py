"""All that is kept of a user is shown, exported, and erased to the last byte."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, WorkspaceLocked, WorkspaceMissing
from graph.relationships.cypher.bolt import BoltServer, ServerSettings
from graph.relationships.cypher.copies import COPIES, open_copy
from graph.relationships.cypher.mirror import mirror
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from graph.relationships.schema import EdgeType, Node, NodeType
from graph.storage import database
from graph.storage.marks import Mark, MarkKind, add_marks, read_marks
from tests.bolt_server import MISSING, PASSWORD, USER, BoltEndpoint, is_installed
from tests.builders import HashEmbedder
from tests.relationship_graphs import NOON
from tests.workflows.conversing import FOUNDER, FOUNDER_OF_MARN, scripted_rewriter
from tests.workflows.remembering import copy_of, counts, messages, related_world, views
from workflows.admin.history import (
    ERASED_ON_SERVER,
    NO_SERVER,
    SERVER_NOT_NAMED,
    export_history,
    forget_user,
    list_history,
    read_conversation,
)
from workflows.answering import ask
from workflows.context import make_context
from workflows.conversation.kept import ANSWERED, Conversations, Report
from workflows.runs.run_folder import write_output
from workflows.runtime.resources import close_indexes

ZOE, BEN = "zoe-81f3", "ben-27ac"
ASKED = "When was Marn founded?"
BESIDE = "Who built the Tarn Dam?"
ON_THE_PAGE = "Where does the Velm flow?"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return related_world(tmp_path_factory.mktemp("forgetting"))


@pytest.fixture
def root(world: Path, tmp_path: Path, embedder: HashEmbedder) -> Iterator[Path]:
    yield copy_of(world, tmp_path)
    close_indexes()


def asked(root: Path, question: str, user: str = ZOE, conversation: str = "marn") -> dict[str, Any]:
    context = make_context(workspace=str(root), user_id=user, conversation_id=conversation)
    return dict(ask(question, context.with_agents(rewriter=scripted_rewriter())))


def remembered(root: Path) -> list[dict[str, Any]]:
    """Let Zoe leave traces wherever a workspace keeps any; return what she was answered."""
    results = [asked(root, ASKED), asked(root, FOUNDER), asked(root, BESIDE, conversation="")]
    page = Conversations(root)
    for number in range(3):
        page.begin(f"{ZOE}:{number:016x}", f"talk-{number}", f"turn-{number}", ON_THE_PAGE, {"mode": "mara"})
        result = {**results[0], "question": ON_THE_PAGE}
        page.tell(Report(f"turn-{number}", state=ANSWERED, result=result))
    add_marks(
        root, [Mark(question, "marn", MarkKind.PERSON) for question in (ASKED, BESIDE, ON_THE_PAGE, FOUNDER_OF_MARN)]
    )
    with RelationshipRecord.of(root) as record:
        record.put_node(Node(NodeType.QUERY, "q1", {"text": ASKED, "created_at": NOON}))
    return results


def bytes_of(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def found_in(root: Path, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return every place in a workspace that holds one of the texts, as UTF-8 or as JSON spells it, with the text."""
    spelled = {text: {text.encode(), json.dumps(text)[1:-1].encode()} for text in texts}
    return [
        (str(path.relative_to(root)), text)
        for path, content in bytes_of(root).items()
        for text, forms in spelled.items()
        if any(form in content for form in forms)
    ]


def secrets_of(results: Iterable[dict[str, Any]]) -> list[str]:
    """Return what nobody may find afterwards: answers are told from documents by their citations."""
    answers = [result["answer"] for result in results]
    assert any("[1]" in answer for answer in answers)
    return [ZOE, ASKED, BESIDE, ON_THE_PAGE, FOUNDER, FOUNDER_OF_MARN, *answers]


class TestForgetting:
    def test_no_byte_is_left_of_a_user(self, root: Path) -> None:
        secrets = secrets_of(remembered(root))
        with open_copy(root) as copy:
            assert copy.query("MATCH (u:User) RETURN u.id").rows == ((ZOE,),)
        before = found_in(root, secrets)
        assert {ZOE, ASKED, ON_THE_PAGE} <= {text for _, text in before}
        assert {RELATIONSHIPS_FILE, "feedback.sqlite"} <= {place.removesuffix("-wal") for place, _ in before}
        assert any(place.startswith(COPIES) for place, _ in before)
        done = forget_user(root, ZOE)
        assert found_in(root, secrets) == []
        figures = {name: done[name] for name in ("conversations", "messages", "page_conversations", "marks")}
        assert figures == {"conversations": 1, "messages": 6, "page_conversations": 3, "marks": 4}
        assert done["views"] > 0
        assert done["graph_server"] == NO_SERVER

    def test_a_folder_of_conversations_alone_is_looked_into_as_a_workspace_is(self, tmp_path: Path) -> None:
        Conversations(tmp_path).begin(f"{ZOE}:{0:016x}", "talk", "turn", ON_THE_PAGE, {})
        assert [each["id"] for each in list_history(tmp_path, ZOE)["conversations"]] == ["talk"]
        assert forget_user(tmp_path, ZOE)["page_conversations"] == 1
        assert found_in(tmp_path, [ZOE, ON_THE_PAGE]) == []

    def test_what_others_keep_stays(self, root: Path) -> None:
        remembered(root)
        theirs = asked(root, ASKED, BEN, "of ben")
        Conversations(root).begin(f"{BEN}:{0:016x}", "theirs", "their-turn", "Who?", {})
        before = messages(root, "of ben"), views(root, BEN)
        forget_user(root, ZOE)
        assert (messages(root, "of ben"), views(root, BEN)) == before
        assert messages(root, "of ben")[1].content == theirs["answer"]
        assert [each.id for each in Conversations(root).of(f"{BEN}:{0:016x}")] == ["theirs"]
        assert {mark.question for mark in read_marks(root)} == {ASKED}, "Ben asked it, too"
        assert counts(root)["User"] == 1

    def test_of_a_shared_conversation_only_their_turns_go(self, root: Path) -> None:
        asked(root, "Who was Duke Orlo?", user="", conversation="shared")
        asked(root, ASKED, ZOE, "shared")
        asked(root, BESIDE, BEN, "shared")
        forget_user(root, ZOE)
        remaining = messages(root, "shared")
        assert [message.user for message in remaining] == ["", "", BEN, ""]
        with RelationshipRecord.of(root) as record:
            edges = list(record.edges(EdgeType.FOLLOWS, NodeType.MESSAGE, NodeType.MESSAGE))
            follows = {edge.source[1]: edge.target[1] for edge in edges}
        assert follows == {after.id: before.id for before, after in pairwise(remaining)}
        assert found_in(root, [ZOE, ASKED]) == []

    def test_it_is_finished_by_the_next_call_where_somebody_keeps_reading(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        secrets = secrets_of(remembered(root))
        monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
        with closing(sqlite3.connect(root / RELATIONSHIPS_FILE, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM message").fetchone()
            with pytest.raises(WorkspaceLocked):
                forget_user(root, ZOE)
        assert forget_user(root, ZOE)["messages"] == 0
        assert found_in(root, secrets) == []

    def test_the_name_of_another_or_of_none_costs_nothing(self, root: Path) -> None:
        remembered(root)
        before = counts(root), len(read_marks(root))
        for name in ("nobody", "%", "_______", "zoe", "' OR '1'='1", "*"):
            done = forget_user(root, name)
            assert (done["messages"], done["marks"], done["page_conversations"]) == (0, 0, 0), name
            assert (counts(root), len(read_marks(root))) == before, name


class TestExport:
    def test_it_holds_all_that_is_kept_of_a_user_and_nothing_of_others(self, root: Path, tmp_path: Path) -> None:
        results = remembered(root)
        asked(root, "Who was Duke Orlo?", BEN, "of ben")
        path = tmp_path / "zoe.json"
        write_output(path, json.dumps(export_history(root, ZOE)))
        exported = json.loads(path.read_text(encoding="utf-8"))
        conversation, *on_the_page = sorted(exported["conversations"], key=lambda each: str(each["id"]))
        assert [each["messages"][0]["content"] for each in on_the_page] == 3 * [ON_THE_PAGE]
        assert [message["content"] for message in conversation["messages"]][::2] == [ASKED, FOUNDER]
        assert conversation["messages"][1]["content"] == results[0]["answer"]
        assert [message["content"] for message in exported["questions"]] == [BESIDE, results[2]["answer"]]
        assert [turn["question"] for each in exported["page"] for turn in each["turns"]] == 3 * [ON_THE_PAGE]
        assert {mark["question"] for mark in exported["marks"]} == {ASKED, BESIDE, ON_THE_PAGE, FOUNDER_OF_MARN}
        assert {view["document"] for view in exported["views"]} == {view.document for view in views(root, ZOE)}
        assert BEN not in path.read_text(encoding="utf-8")

    def test_a_conversation_is_shown_with_its_sources_one_of_the_page_too(self, root: Path) -> None:
        result = remembered(root)[0]
        cited = {mark["passage_id"] for mark in result["citations"]}
        titles = {hit["id"]: hit["title"] for hit in result["passages"]}
        for key in ("marn", "talk-1"):
            shown = read_conversation(root, key)
            assert (shown["owner"], shown["messages"][1]["content"]) == (ZOE, result["answer"])
            assert [message["role"] for message in shown["messages"][:2]] == ["user", "assistant"]
            assert {each["passage"] for each in shown["messages"][1]["cited"]} == cited
            assert all(each["title"] == titles[each["passage"]] for each in shown["messages"][1]["cited"])
        with pytest.raises(BadInput, match="no such conversation"):
            read_conversation(root, "other")

    def test_a_folder_without_a_workspace_is_refused(self, tmp_path: Path) -> None:
        for call in (list_history, export_history):
            with pytest.raises(WorkspaceMissing):
                call(tmp_path)
        with pytest.raises(WorkspaceMissing):
            forget_user(tmp_path, ZOE)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
class TestAGraphServer:
    @pytest.fixture(scope="class")
    def endpoint(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoltEndpoint]:
        if not is_installed():
            pytest.skip(MISSING)
        with BoltEndpoint(tmp_path_factory.mktemp("bolt")) as running:
            yield running

    def test_its_copy_is_erased_too(self, root: Path, endpoint: BoltEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        remembered(root)
        asked(root, ASKED, BEN, "of ben")
        settings = ServerSettings(ServerSettings.of(endpoint.address).url, USER, PASSWORD, endpoint.new_database())
        with BoltServer(settings) as server:
            mirror(root, server)
            assert sorted(server.rows("MATCH (u:User) RETURN u.id")) == [(BEN,), (ZOE,)]
            assert forget_user(root, "nobody")["graph_server"] == SERVER_NOT_NAMED
            place = endpoint.address.removeprefix("bolt://")
            monkeypatch.setenv("MARA_GRAPH_URL", f"bolt://{USER}:{PASSWORD}@{place}/{settings.database}")
            assert forget_user(root, ZOE)["graph_server"] == ERASED_ON_SERVER
            assert server.rows("MATCH (u:User) RETURN u.id") == [(BEN,)]
            contents = {content for (content,) in server.rows("MATCH (m:Message) RETURN m.content")}
            assert contents == {message.content for message in messages(root, "of ben")}
            assert server.rows("MATCH (:User)-[v:VIEWED]->(:Document) RETURN count(v)") == [(len(views(root, BEN)),)]
