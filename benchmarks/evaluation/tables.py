"""The tables of measured figures that the documentation shows, from the figures that the command wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.evaluation.sets import QUESTION_SETS, rows_of
from graph.retrieve.modes import Mode
from workflows.output.markdown import code, figure, interval, signed, table

FIGURES = Path(__file__).with_name("figures.jsonl")
"""The figures that ``python -m benchmarks.evaluation`` measured, a question set a line."""

Measured = Mapping[str, Any]
"""The figures of one question set."""

Figures = Sequence[Measured]
"""All question sets, in the order of the tables."""

MAIN = tuple(each.name for each in QUESTION_SETS if each.ablated)
"""The question sets of the README and of the ablations."""

_MODES = tuple(mode.value for mode in Mode)


def read_figures() -> Figures:
    """Return the figures that the documentation shows."""
    return list(rows_of(FIGURES))


def sets_table(figures: Figures) -> str:
    """Return what each question set asks, and of which passages."""
    rows = ([each["heading"], each["facts"], f"{each['passages']:,}", str(each["questions"])] for each in figures)
    return table(["questions", "facts", "passages", "asked"], rows, left=2)


def modes_table(figures: Figures) -> str:
    """Return a row for each question set and mode, with the paired differences to hybrid."""
    header = ["questions", "system", "R@2 / 5 / 10", "all@2 / 5 / 10", "MRR", "R@5 − `hybrid`", "all@5 − `hybrid`"]
    return table(header, (row for each in figures for row in _rows_of_modes(each)), left=2)


def _rows_of_modes(measured: Measured) -> Iterator[list[str]]:
    for system in _MODES:
        found = measured["systems"][system]
        yield [
            measured["heading"],
            code(system),
            _recall(found, measured),
            _by_depth(found["all_gold"]),
            figure(found["mrr"]),
            *(_difference(found, "hybrid", metric) for metric in ("recall@5", "all-gold@5")),
        ]


def ablations_table(figures: Figures) -> str:
    """Return a row for each ablation, with the paired differences to mode mara."""
    return _beside_mara(figures, lambda name, found: name not in _MODES and not found["control"])


def controls_table(figures: Figures) -> str:
    """Return the same for each control."""
    return _beside_mara(figures, lambda name, found: found["control"])


def _beside_mara(figures: Figures, shown: Callable[[str, Measured], bool]) -> str:
    sets = _main_sets(figures)
    names = [name for name, found in sets[0]["systems"].items() if shown(name, found)]
    header = [f"{each['heading']}: {part}" for each in sets for part in ("R@2 / 5 / 10", "all@5", "R@5 − `mara`")]
    rows = (
        [code(name), *(cell for each in sets for cell in _cells_beside_mara(each["systems"][name]))] for name in names
    )
    return table(["system", *header], rows)


def _cells_beside_mara(found: Measured) -> tuple[str, str, str]:
    return _by_depth(found["recall"]), figure(found["all_gold"]["5"]), _difference(found, "mara", "recall@5")


def readme_table(figures: Figures) -> str:
    """Return a row for each mode, with recall and all gold of the main question sets."""
    sets = _main_sets(figures)
    header = [part for each in sets for part in (f"{each['heading']}: R@2 / 5 / 10", "all@5")]
    rows = (
        [code(system), *(cell for each in sets for cell in _cells_of_readme(each["systems"][system], each))]
        for system in _MODES
    )
    return table(["mode", *header], rows)


def _cells_of_readme(found: Measured, measured: Measured) -> tuple[str, str]:
    return _recall(found, measured), figure(found["all_gold"]["5"])


SECTIONS: Mapping[str, Callable[[Figures], str]] = {
    "sets": sets_table,
    "modes": modes_table,
    "ablations": ablations_table,
    "controls": controls_table,
    "modes in short": readme_table,
}
"""The parts of the figures that pages show, by name."""


def shown(name: str) -> str:
    """Return one of `SECTIONS`, of the figures that were measured last."""
    return SECTIONS[name](read_figures()) + "\n"


def _main_sets(figures: Figures) -> list[Measured]:
    return [each for each in figures if each["name"] in MAIN]


def _recall(found: Measured, measured: Measured) -> str:
    """Return recall at the three depths; the best recall@5 of the modes is bold."""
    best = max(measured["systems"][system]["recall"]["5"] for system in _MODES)
    at_2, at_5, at_10 = (figure(found["recall"][depth]) for depth in ("2", "5", "10"))
    return f"{at_2} / {f'**{at_5}**' if found['recall']['5'] == best else at_5} / {at_10}"


def _by_depth(found: Mapping[str, float]) -> str:
    return " / ".join(map(figure, found.values()))


def _difference(found: Measured, baseline: str, metric: str) -> str:
    if baseline not in found["less"]:
        return ""
    difference, low, high = found["less"][baseline][metric]
    return f"{signed(difference)} {interval(low, high)}"
