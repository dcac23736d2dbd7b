"""Conditions on provenance in a loaded history: they go by its dates, and as of a date by what stood then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.moments import first_moment, shown
from tests.workflows.command_line import Mara
from tests.workflows.velmora_shop import load_history
from workflows.answering import ask
from workflows.context import make_context
from workflows.discovery import passage_provenance
from workflows.runtime.history import HISTORY_UNWRITTEN
from workflows.runtime.resources import close_indexes


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The workspace of the shop, with its three states."""
    folder = tmp_path_factory.mktemp("shop")
    load_history(folder / "papers", folder / "workspace")
    yield folder / "workspace"
    close_indexes()


def found(root: Path, as_of: str = "", who: str = "", **provenance: Any) -> set[str]:
    """Return the texts of the passages that a search finds under conditions."""
    context = make_context(workspace=str(root), as_of=as_of, user_id=who, provenance=provenance, top_k=50)
    return {hit["text"] for hit in ask("What does it cost?", context)["passages"]}


LAMP, SHELF, STOOL = (
    "The Torvik lamp costs 52 euros.",
    "The Mora shelf costs 80 euros.",
    "The Karv stool costs 35 euros.",
)


def test_newer_goes_by_the_dates_of_the_versions(shop: Path) -> None:
    assert {LAMP, SHELF} <= found(shop, newer_than="2023")
    newer = found(shop, newer_than="2024")
    assert LAMP in newer
    assert SHELF not in newer
    assert found(shop, newer_than="2025") == set()


def test_provenance_tells_the_date_of_the_version(shop: Path) -> None:
    context = make_context(workspace=str(shop))
    hits = ask("What does the Torvik lamp cost?", context)["passages"]
    told = passage_provenance(context, next(hit["id"] for hit in hits if hit["text"] == LAMP))
    assert shown(first_moment(told["document"]["updated_at"])) == told["versions"][-1]["since"] == "2025-03-01"


def test_as_of_a_date_newer_goes_by_what_stood_then(shop: Path) -> None:
    newer = found(shop, "2024-06-01", newer_than="2023")
    assert {"The Torvik lamp costs 45 euros.", SHELF} <= newer
    assert not {"The Sandby desk costs 210 euros.", LAMP, STOOL} & newer
    assert found(shop, "2024-06-01", newer_than="2024-02-01") == set()
    assert "The Sandby desk costs 210 euros." in found(shop, "2024-06-01", newer_than="2022")


def test_as_of_a_date_a_source_is_what_it_was_then(shop: Path) -> None:
    assert STOOL in found(shop, "2023-06-01", source="prices.csv")
    assert found(shop, "2023-06-01", source="stool") == {STOOL}
    assert found(shop, source="stool") == set()
    assert found(shop, "2023-06-01", source="shelf") == set()


def test_all_conditions_hold_as_of_a_date(shop: Path) -> None:
    both = found(shop, "2024-06-01", source="prices.csv", newer_than="2023")
    assert both == {"The Torvik lamp costs 45 euros.", SHELF}
    assert found(shop, "2024-06-01", cited_before=True, source="prices.csv", who="mia") == set()


def test_of_a_passage_of_the_past_it_is_told_where_it_came_from_and_when_it_stood(shop: Path) -> None:
    told = passage_provenance(make_context(workspace=str(shop)), "stool")
    assert told["versions"] == [{"since": "2023-01-01", "until": "2024-02-01"}]
    assert [source["name"] for source in told["sources"]] == ["prices.csv"]
    assert told["document"]["updated_at"] == "2024-02-01"
    hidden = make_context(workspace=str(shop), where={"source": "another.csv"})
    with pytest.raises(BadInput, match="no passage of that id"):
        passage_provenance(hidden, "stool")


def test_the_command_shows_a_passage_of_the_past(mara: Mara, shop: Path) -> None:
    shown_lines = mara("show", "passage", "stool", "-w", shop).out.splitlines()
    assert any(line.startswith("stood") and line.endswith("2023-01-01 to 2024-02-01") for line in shown_lines)


def test_a_turn_that_cites_the_past_is_not_told_to_index_again(shop: Path) -> None:
    context = make_context(
        workspace=str(shop), as_of="2023-06-01", conversation_id="past", user_id="ada", model="offline"
    )
    result = ask("What does the Karv stool cost?", context)
    told = [each["message"] for each in result["errors"] if each["kind"] == HISTORY_UNWRITTEN]
    assert len(told) == 1
    assert "stood in the past only" in told[0]
    assert result["recorded"] is not None
