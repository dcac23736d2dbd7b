"""Documents are added where the operator allows it: safe names, known kinds, nothing overwritten unasked or removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.workflows.serving.page.site import Visitor, events_in, site_of, visitor
from tests.workflows.workspaces import Indexer, texts_in
from workflows.serving.page import documents
from workflows.serving.page.documents import check_name

RIVER = "The Velm is a river in Ostra. It flows into Lake Sund."
TOWN = "Karv is a harbour town in Belavia."


@pytest.fixture
def index_rows(index: Indexer) -> Indexer:
    return index


@pytest.fixture
def uploads(tmp_path: Path) -> Path:
    return tmp_path / "uploads"


@pytest.fixture
def me(hashing: None, root: Path, uploads: Path, tmp_path: Path) -> Visitor:
    """A visitor of a page whose workspace is not there yet, and who may add documents."""
    return visitor(site_of(root, tmp_path, uploads=uploads))


def put(me: Visitor, name: str, content: bytes | str, *, replace: bool = False) -> tuple[int, str]:
    """Send a file; return the status and what was wrong."""
    given = content.encode() if isinstance(content, str) else content
    reply = me.client.put(f"/page/api/documents/{name}{'?replace=yes' if replace else ''}", content=given)
    return reply.status_code, reply.json().get("error", {}).get("message", "")


def index(me: Visitor, *names: str, replaced: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    reply = me.client.post("/page/api/documents", json={"names": list(names), "replaced": list(replaced)})
    assert reply.status_code == 200, reply.text
    return events_in(reply.text)


def test_a_document_is_kept_indexed_and_asked(me: Visitor, uploads: Path, root: Path) -> None:
    assert put(me, "velm.md", f"# Velm\n\n{RIVER}") == (200, "")
    assert (uploads / "workspace" / "velm.md").read_text(encoding="utf-8").endswith(RIVER)
    events = index(me, "velm.md")
    stages = [event["stage"] for event in events if event["kind"] == "progress"]
    assert {"embed", "commit", "graph"} <= set(stages)
    assert events[-1]["report"]["added"] == 1
    assert events[-1]["report"]["refused"] == []
    turn = me.answer("Where does the Velm flow?")
    assert [source["source"] for source in turn["sources"]] == ["velm.md"]


def test_a_known_name_is_refused_unless_it_is_replaced(me: Visitor, root: Path) -> None:
    put(me, "velm.txt", RIVER)
    index(me, "velm.txt")
    status, message = put(me, "velm.txt", TOWN)
    assert (status, "There is a document velm.txt" in message) == (409, True)
    assert list(texts_in(root).values()) == [RIVER]
    assert put(me, "velm.txt", TOWN, replace=True) == (200, "")
    index(me, "velm.txt", replaced=("velm.txt",))
    assert list(texts_in(root).values()) == [TOWN]


def test_a_file_that_cannot_be_read_is_refused_with_the_reason_and_not_kept(me: Visitor, uploads: Path) -> None:
    put(me, "velm.txt", RIVER)
    put(me, "broken.pdf", b"no pdf at all")
    put(me, "blank.md", "  ")
    report = index(me, "velm.txt", "broken.pdf", "blank.md")[-1]["report"]
    assert [each["name"] for each in report["refused"]] == ["broken.pdf", "blank.md"]
    assert all(each["reason"] for each in report["refused"])
    assert report["added"] == 1
    assert sorted(path.name for path in (uploads / "workspace").iterdir()) == ["velm.txt"]


@pytest.mark.parametrize("given", ["names", "replaced"])
def test_files_that_nobody_sent_are_refused_and_nothing_is_removed(
    me: Visitor, index_rows: Indexer, root: Path, given: str
) -> None:
    index_rows([{"id": "karv", "title": "Karv", "text": TOWN}], root)
    put(me, "velm.txt", RIVER)
    body = {"names": ["velm.txt"], "replaced": []} | {given: ["velm.txt", "../../etc/passwd", "corpus.jsonl"]}
    reply = me.client.post("/page/api/documents", json=body)
    assert reply.status_code == 400
    assert "no file '../../etc/passwd', 'corpus.jsonl' to index" in reply.json()["error"]["message"]
    assert list(texts_in(root).values()) == [TOWN]


def test_where_nothing_can_be_read_the_reason_is_told(me: Visitor) -> None:
    put(me, "broken.pdf", b"no pdf at all")
    last = index(me, "broken.pdf")[-1]
    assert last["kind"] == "failed"
    assert last["message"]


def test_names_that_no_file_should_have_are_refused(me: Visitor, uploads: Path) -> None:
    for name, reason in [
        ("notes.exe", "of a kind that is not read"),
        (".hidden.md", "without a leading point"),
        ("%2e%2e%5csecret.md", "cannot be the name"),
        ("a%E2%80%AEb.md", "cannot be the name"),
        ("..%2f..%2fx.md", "cannot be the name"),
        ("a" * 300 + ".md", "shorter name"),
    ]:
        status, message = put(me, name, RIVER)
        assert status == 400, name
        assert reason in message
        assert not uploads.exists(), name


def test_a_name_leads_nowhere_else_and_ordinary_ones_are_fine(me: Visitor, tmp_path: Path) -> None:
    for name in ("..%2F..%2Fescaped.md", "%2Ftmp%2Fescaped.md", "..", "a/b.md"):
        reply = me.client.put(f"/page/api/documents/{name}", content=b"x")
        assert reply.status_code in (400, 404, 405), name
        assert not list(tmp_path.rglob("escaped.md"))
    for name in ("Übersicht 2024 (neu).pdf", "年報.docx", "a-b_c.d.md", "Contract.md"):
        check_name(name)


def test_large_and_empty_files_leave_nothing_behind(
    me: Visitor, uploads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "FILE_BYTES", 1000)
    assert "larger than" in put(me, "large.txt", "x" * 1001)[1]
    assert "is empty" in put(me, "empty.txt", "")[1]
    assert list((uploads / "workspace").iterdir()) == []


def test_where_the_operator_names_no_folder_nothing_is_added(hashing: None, root: Path, tmp_path: Path) -> None:
    me = visitor(site_of(root, tmp_path))
    assert me.get("setup")["uploads"] is None
    status, message = put(me, "velm.txt", RIVER)
    assert (status, "mara serve --uploads FOLDER" in message) == (400, True)
