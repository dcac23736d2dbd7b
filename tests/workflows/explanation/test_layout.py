from __future__ import annotations

from typing import Any

import pytest

from tests.workflows.explanation.made_up import explanation
from workflows.explanation.page import positions


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return explanation(entities=40, passages=20, seeds=4)


def test_seeds_stand_at_the_left_and_the_best_passages_at_the_right_of_all_between(data: dict[str, Any]) -> None:
    placed = positions(data)
    seeds = {f"e{i}" for i in range(4)}
    best = {node["id"] for node in data["nodes"] if node["number"] or (node["rank"] and node["rank"][-1] <= 5)}
    assert len({placed[node][0] for node in seeds}) == 1
    assert len({placed[node][0] for node in best}) == 1
    assert placed["p0"][0] - placed["e0"][0] > 500


def test_parts_of_the_graph_that_nothing_joins_stay_in_the_picture(data: dict[str, Any]) -> None:
    loose = {**data, "edges": data["edges"][:20]}
    placed = positions(loose)
    assert all(0 <= x <= 1200 and 0 <= y <= 840 for x, y in placed.values())
    assert len(set(placed.values())) == len(placed)
