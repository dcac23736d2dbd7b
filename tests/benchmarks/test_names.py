from __future__ import annotations

from agents.offline.extractor import OfflineExtractor
from benchmarks.names import DRAWN, draw, found_names, measure
from graph.schema import Passage


def test_a_draw_keeps_the_names_that_are_still_found() -> None:
    names = [f"name {number}" for number in range(1_000)]
    drawn = draw("manuals", names)
    assert len(set(drawn)) == DRAWN
    assert draw("manuals", reversed(names)) == drawn
    assert draw("manuals", drawn[10:])[: DRAWN - 10] == drawn[10:]
    assert draw("folders", names) != drawn


def test_precision_counts_marks_and_names_the_right_ones_that_are_lost() -> None:
    passage = Passage("p", "", "They met Anna Berg in Oslo. It cost 30 km.")
    names = found_names([passage], {"p": OfflineExtractor().extract(passage)})
    assert set(names) == {"anna berg", "oslo"}
    precision = measure(draw("folders", names), names, {"anna berg": True, "oslo": False, "berg": True, "rome": True})
    assert (precision.drawn, precision.right, precision.wrong) == (2, 1, 1)
    assert precision.lost == ("berg", "rome")
