"""Reading on in a source: what stands before and after it, of its own document and of what its asker may see alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HashEmbedder
from tests.workflows.remembering import copy_of
from tests.workflows.serving.page.handbooks import CHAPTERS, QUESTION, SURVEYORS, handbook, handbooks, index
from tests.workflows.serving.page.site import Visitor, new_id, site_of, visitor, visitors
from workflows.access.identity import Identity
from workflows.runtime.resources import close_indexes


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handbooks(tmp_path_factory.mktemp("handbooks"))


@pytest.fixture
def root(world: Path, tmp_path: Path, embedder: HashEmbedder) -> Iterator[Path]:
    yield copy_of(world, tmp_path)
    close_indexes()


@pytest.fixture
def people(root: Path, tmp_path: Path) -> dict[str, Visitor]:
    """Visitors of one page: Ada sees what is of tenant a, Ben what is of tenant b, Olga everything."""
    tenants = {name: Identity(name, where={"tenant": tenant}) for name, tenant in (("ada", "a"), ("ben", "b"))}
    return visitors(root, tmp_path, {"keeps_history": lambda: True}, **tenants, olga=Identity("olga"))


def opened(visitor: Visitor, words: str = "chapter three", **settings: Any) -> tuple[str, dict[str, Any]]:
    """Ask; return the turn's id, and the passage found that holds some words."""
    turn = str(visitor.answer(QUESTION, settings=settings)["id"])
    return turn, next(each for each in visitor.get(f"turns/{turn}")["passages"] if words in each["html"])


def read(visitor: Visitor, turn: str, number: int, **where: str) -> Any:
    return visitor.client.get(f"/page/api/turns/{turn}/passages/{number}", params=where, headers=visitor.headers)


def read_all(visitor: Visitor, turn: str, source: dict[str, Any], way: str, **where: str) -> list[dict[str, Any]]:
    """Read on in one direction until nothing more stands there."""
    parts, last = [], source
    while last[way]:
        last = read(visitor, turn, source["number"], **{way: last["id"]}, **where).json()
        parts.append(last)
    return parts


def test_a_document_is_read_on_part_by_part_in_its_order_to_both_ends(people: dict[str, Visitor]) -> None:
    turn, source = opened(people["ada"])
    before, after = (read_all(people["ada"], turn, source, way) for way in ("before", "after"))
    parts = [*reversed(before), source, *after]
    assert len(parts) == len({part["id"] for part in parts}) >= CHAPTERS
    whole = "".join(part["html"] for part in parts).replace("<mark>", "").replace("</mark>", "")
    places = [whole.index(surveyor) for surveyor in SURVEYORS]
    assert places == sorted(places)
    assert whole.count("<strong>Amstel Office</strong>") == CHAPTERS
    assert {part["place"].partition(" · ")[0] for part in parts} == {source["source"]}


def test_what_two_parts_share_is_shown_once(tmp_path: Path, embedder: HashEmbedder) -> None:
    words = [f"word{number}" for number in range(400)]
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / "long.txt").write_text(" ".join(words), encoding="utf-8")
    index(tmp_path / "long", tmp_path / "workspace", "a")
    reader = visitor(site_of(tmp_path / "workspace", tmp_path))
    turn = str(reader.answer("Where is word200?")["id"])
    source = reader.get(f"turns/{turn}")["passages"][0]
    source["html"] = source["html"].replace("<mark>", "").replace("</mark>", "")
    before, after = (read_all(reader, turn, source, way) for way in ("before", "after"))
    text = " ".join(part["html"][3:-5] for part in [*reversed(before), source, *after])
    assert text.split() == words
    close_indexes()


@pytest.mark.parametrize(("who", "other"), [("ada", "Zember"), ("ben", "Amstel Office")])
def test_two_tenants_read_their_own_alone(people: dict[str, Visitor], who: str, other: str) -> None:
    visitor = people[who]
    turn, source = opened(visitor)
    parts = [part for way in ("before", "after") for part in read_all(visitor, turn, source, way)]
    assert len(parts) >= CHAPTERS - 1
    assert other not in json.dumps([source, *parts])


def test_nothing_is_read_but_documents_that_the_turn_found(people: dict[str, Visitor]) -> None:
    turn, source = opened(people["ada"])
    of_ben, bens = opened(people["ben"])
    after_bens = read(people["ben"], of_ben, bens["number"], after=bens["id"]).json()
    mine = people["ada"]
    assert read(mine, of_ben, bens["number"], after=bens["id"]).status_code == 404
    assert read(mine, new_id(), 1, after=source["id"]).status_code == 404
    assert read(mine, turn, 99, after=source["id"]).status_code == 404
    for where in (
        {"after": bens["id"]},
        {"before": after_bens["id"]},
        {"after": "no-such"},
        {"before": ""},
        {"related": "no-such"},
        {"related": bens["id"]},
    ):
        reply = read(mine, turn, source["number"], **where)
        assert reply.status_code == 400, where
        assert "Zember" not in reply.text


def test_a_filter_of_the_turn_holds_while_one_reads_on(people: dict[str, Visitor]) -> None:
    turn, source = opened(people["olga"], where={"section": {"$ne": "Chapter four"}})
    parts = read_all(people["olga"], turn, source, "after")
    assert "chapter five" in json.dumps(parts)
    assert "Greta Ostra" not in json.dumps(parts)
    assert any("Not all that stands between is shown." in part["notes"] for part in parts)


def test_a_related_document_opens_at_its_beginning_and_only_where_it_is_related(people: dict[str, Visitor]) -> None:
    visitor = people["ada"]
    turn, source = opened(visitor)
    told = visitor.get(f"turns/{turn}/sources/{source['number']}")["related"]
    related = next(each for each in told if each["title"] == "Amstel Office")
    first = read(visitor, turn, source["number"], related=related["document"]).json()
    assert first["title"] == "Amstel Office"
    assert "is in Marn" in first["html"]
    assert (first["before"], first["after"]) == (False, False)
    turn, source = opened(people["ben"])
    unrelated = read(people["ben"], turn, source["number"], related=related["document"])
    assert unrelated.status_code == 400


def why(visitor: Visitor, turn: str) -> Any:
    return visitor.client.get(f"/page/api/turns/{turn}/why", headers=visitor.headers)


def test_why_is_told_in_sentences_of_what_each_may_see_and_without_the_path_where_the_workspace_went_on(
    people: dict[str, Visitor], root: Path, tmp_path: Path
) -> None:
    turns = {}
    for who, other in (("ben", "Amstel Office"), ("ada", "Zember")):
        turns[who], _ = opened(people[who])
        told = why(people[who], turns[who]).json()
        assert [len(told["why"]), told["problem"]] == [3, ""]
        assert other not in json.dumps(told)
    assert why(people["ada"], turns["ben"]).status_code == 404
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "a.md").write_text(handbook("Amstel Bureau"), encoding="utf-8")
    index(tmp_path / "a", root, "a")
    close_indexes()
    told = why(people["ada"], turns["ada"]).json()
    assert len(told["why"]) == 2
    assert "Ask again" in told["problem"]
