"""A source that is open on the page: what its visitor read, what is related, and that opening it counts as a view."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builders import HashEmbedder
from tests.workflows.reading_world import reading_world
from tests.workflows.remembering import copy_of, views
from tests.workflows.serving.page import site
from tests.workflows.serving.page.site import Visitor, new_id
from tests.workflows.tenants import MARKERS
from workflows.access.identity import Identity
from workflows.runtime.resources import close_indexes
from workflows.serving.page.endpoints import LONGEST_VIEW_S

QUESTION = "Who surveyed Lake Sund?"
OF_A = {"tenant": "a"}


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reading_world(tmp_path_factory.mktemp("page-reading"))


@pytest.fixture
def root(reading: Path, tmp_path: Path, embedder: HashEmbedder) -> Iterator[Path]:
    yield copy_of(reading, tmp_path)
    close_indexes()


def visitors(root: Path, tmp_path: Path, *, keeps_history: bool = True) -> dict[str, Visitor]:
    """Return visitors with a key each of one page: Ada and Ben see everything, Olga what is of tenant a."""
    known = {"ada": Identity("ada"), "ben": Identity("ben"), "olga": Identity("olga", where=OF_A)}
    return site.visitors(root, tmp_path, {"keeps_history": lambda: keeps_history}, **known)


def asked(visitor: Visitor, **settings: Any) -> str:
    """Ask, and return the turn's id. Its first passage is found and not cited, so no view of it is written yet."""
    turn: str = visitor.answer(QUESTION, settings=settings)["id"]
    return turn


def send(visitor: Visitor, turn: str, number: int | str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Say that a source was open; return status and reply."""
    reply = visitor.client.post(f"/page/api/turns/{turn}/sources/{number}/views", json=body, headers=visitor.headers)
    return reply.status_code, reply.json()


def durations(root: Path, user: str) -> dict[str, tuple[int, int | None]]:
    return {view.document: (view.view_count, view.duration) for view in views(root, user)}


class TestViews:
    def test_a_source_that_was_open_counts_with_its_seconds(self, root: Path, tmp_path: Path) -> None:
        ada = visitors(root, tmp_path)["ada"]
        turn = asked(ada)
        before = durations(root, "ada")
        for seconds in (-1, 1.5, True, "9", None):
            assert send(ada, turn, 1, {"seconds": seconds})[0] == 400, seconds
        assert durations(root, "ada") == before
        for seconds in (12, 30):
            assert send(ada, turn, 1, {"seconds": seconds}) == (200, {"counted": True})
        assert durations(root, "ada") == {**before, "of-b-one": (2, 42)}
        told = ada.get(f"turns/{turn}/sources/1")["views"]
        assert (told["count"], told["seconds"]) == (2, 42)
        assert told["first"] <= told["last"]
        send(ada, turn, 1, {"seconds": 10**12})
        assert ada.get(f"turns/{turn}/sources/1")["views"]["seconds"] == 42 + LONGEST_VIEW_S, "a night is an hour"

    def test_a_view_counts_for_who_opened_the_source_and_nobody_else(self, root: Path, tmp_path: Path) -> None:
        known = visitors(root, tmp_path)
        turn = asked(known["ada"])
        before = durations(root, "ada")
        assert send(known["ben"], turn, 1, {"seconds": 9})[0] == 404
        assert send(known["ada"], turn, 1, {"seconds": 9, "user_id": "ben"})[0] == 200
        assert durations(root, "ben") == {}
        assert durations(root, "ada") != before
        own = asked(known["ben"])
        assert known["ben"].get(f"turns/{own}/sources/1")["views"] is None

    def test_neither_another_site_nor_a_source_that_the_turn_does_not_have_counts(
        self, root: Path, tmp_path: Path
    ) -> None:
        ada = visitors(root, tmp_path)["ada"]
        turn = asked(ada)
        for number in ("99", "9" * 5_000, "one"):
            assert send(ada, turn, number, {"seconds": 9})[0] == 404
        assert send(ada, new_id(), 1, {"seconds": 9})[0] == 404
        elsewhere = Visitor(ada.client, {**ada.headers, "Origin": "https://elsewhere.example"})
        assert send(elsewhere, turn, 1, {"seconds": 9})[0] == 403

    def test_without_a_history_nothing_is_told_or_counted(self, root: Path, tmp_path: Path) -> None:
        ada = visitors(root, tmp_path, keeps_history=False)["ada"]
        turn = asked(ada)
        assert ada.get("setup")["history"] is False
        status, told = send(ada, turn, 1, {"seconds": 9})
        assert (status, "keeps no history" in told["error"]["message"]) == (400, True)
        path = f"/page/api/turns/{turn}/sources/1"
        assert ada.client.get(path, headers=ada.headers).status_code == 400
        assert durations(root, "ada") == {}


class TestRelated:
    @pytest.mark.parametrize("who", ["olga", "ada"])
    def test_nothing_outside_the_filter_in_force_is_named(self, root: Path, tmp_path: Path, who: str) -> None:
        visitor = visitors(root, tmp_path)[who]
        turn = asked(visitor, **({} if who == "olga" else {"where": OF_A}))
        told = [visitor.get(f"turns/{turn}/sources/{number}") for number in (1, 2)]
        assert any(each["related"] for each in told)
        assert not [marker for marker in MARKERS["b"] if marker in json.dumps(told)]


class TestPersonalRanking:
    def test_a_passage_that_moved_tells_why(self, root: Path, tmp_path: Path) -> None:
        ada = visitors(root, tmp_path)["ada"]
        plain = asked(ada)
        assert {each["moved"] for each in ada.get(f"turns/{plain}")["passages"]} == {""}
        ada.answer("Who founded the Amstel Office?")
        turn = asked(ada, personalise=True)
        moved = {each["title"]: each["moved"] for each in ada.get(f"turns/{turn}")["passages"]}
        assert re.fullmatch(r"moved up from [34]: you asked about Amstel Office", moved["Olaf Amstel"])
