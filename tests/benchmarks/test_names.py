from __future__ import annotations

from agents.offline.extractor import OfflineExtractor
from benchmarks.names import DRAWN, KINDS, MARKS, draw, found_names, is_quantity, measure, read_marks
from graph.schema import Passage
from graph.text import normalise_name


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


def test_quantities_are_told_from_names() -> None:
    for name, expected in [("30 km", True), ("1,200", True), ("Oslo", False), ("VX-200", False)]:
        assert is_quantity(name) is expected, name


def test_each_kind_has_200_marks_of_normal_names() -> None:
    marks = read_marks(MARKS)
    assert marks.keys() == set(KINDS)
    for names in marks.values():
        assert len(names) >= DRAWN
        assert all(name == normalise_name(name) for name in names)
