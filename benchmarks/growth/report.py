"""From the figures of several sizes to exponents, Markdown tables, and what a larger size comes to on paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PAPER_PASSAGES = 10_000_000
_MACHINES, _CORES, _BUSY = 4, 16, 0.7
_EMBEDDING_S = 60.8 * 2 / 1_890
"""Core seconds that a passage takes with its names and facts: measured, see `docs/indexing.md`."""
_SCRATCH_A_NAME = 384 * 4 * 2 + 2 * 16 * 4 + 100 * 8
"""Bytes: the vector, its copy by cells, the cells that it looks into, a hundred pairs."""
_FITTED_FROM = 3
"""Sizes, the largest ones, that an exponent is fitted on: below, what is constant outweighs what grows."""

_BETWEEN_STAGES = ("before", "after")

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that grows.

    Attributes:
        name: what it is.
        unit: of what `of` returns.
        of: reads it from the figures of a size.
    """

    name: str
    unit: str
    of: Callable[[Figures], float]

    def values(self, sizes: Sequence[Figures]) -> list[float | None]:
        """Return it of each size; None where it was not measured."""
        return [self._value(figures) for figures in sizes]

    def growth(self, sizes: Sequence[Figures]) -> Growth | None:
        """Return how it grows over the largest sizes; None where too few were measured."""
        values = zip(sizes, self.values(sizes), strict=True)
        measured = [(float(figures["size"]), value) for figures, value in values if value is not None][-_FITTED_FROM:]
        return fit(*zip(*measured, strict=True)) if len(measured) == _FITTED_FROM else None

    def _value(self, figures: Figures) -> float | None:
        try:
            return self.of(figures)
        except KeyError:
            return None


def _stage(name: str) -> Quantity:
    return Quantity(f"build: {name}", "s", lambda figures: figures["publish"]["stages"][name])


def _question(run: str, what: str, percentile: str) -> Callable[[Figures], float]:
    return lambda figures: float(figures["ask"][run][what][percentile])


SIZES = (
    Quantity("names", "", lambda f: f["publish"]["names"]),
    Quantity("facts", "", lambda f: f["publish"]["facts"]),
    Quantity("edges", "", lambda f: f["publish"]["edges"]),
    Quantity("edges a passage", "", lambda f: f["publish"]["edges"] / f["size"]),
    Quantity("record", "bytes a passage", lambda f: f["publish"]["bytes_of_record"] / f["size"]),
    Quantity("generation", "bytes a passage", lambda f: f["publish"]["bytes_of_generation"] / f["size"]),
    Quantity("kept for the next build", "bytes a passage", lambda f: f["publish"]["bytes_kept_for_builds"] / f["size"]),
)
BUILDING = (
    Quantity("build and publish", "s", lambda f: f["publish"]["seconds"]),
    Quantity("build and publish, processor time", "s", lambda f: f["publish"]["processor_seconds"]),
    Quantity("its own memory at most", "GiB", lambda f: f["publish"]["peak_anonymous_gib"]),
    Quantity("files mapped at most", "GiB", lambda f: f["publish"]["peak_mapped_gib"]),
)
ASKING = (
    Quantity("open", "s", lambda f: f["ask"]["open_seconds"]),
    Quantity("a question, p50", "ms", _question("again", "workflow", "p50_ms")),
    Quantity("a question, p95", "ms", _question("again", "workflow", "p95_ms")),
    Quantity("a question's nodes alone, p50", "ms", _question("again", "nodes", "p50_ms")),
    Quantity("a question's nodes alone, p95", "ms", _question("again", "nodes", "p95_ms")),
    Quantity("a question, processor time, p50", "ms", _question("again", "processor", "p50_ms")),
    Quantity("a question asked for the first time, p50", "ms", _question("first", "workflow", "p50_ms")),
    Quantity("a question asked for the first time, p95", "ms", _question("first", "workflow", "p95_ms")),
    Quantity("own memory of the process", "GiB", lambda f: f["ask"]["memory_again_gib"]["anonymous"]),
    Quantity("files mapped", "GiB", lambda f: f["ask"]["memory_again_gib"]["mapped"]),
    Quantity("both passages among the first 20", "", lambda f: _both(f["ask"]["recall"], 20)),
)
ADDING = (
    Quantity("add one document: commit", "s", lambda f: f["add"]["commit_seconds"]),
    Quantity("add one document: publish", "s", lambda f: f["add"]["publish_seconds"]),
    Quantity("add one document: open", "s", lambda f: f["add"]["open_seconds"]),
)


def report(folder: Path) -> str:
    """Return the tables of all sizes measured in a folder, with exponents and what ten million passages come to."""
    sizes = read_sizes(folder)
    stages = list(dict.fromkeys(stage for figures in sizes for stage in figures.get("publish", {}).get("stages", {})))
    stages = [stage for stage in stages if stage not in _BETWEEN_STAGES]
    groups = {
        "What there is": SIZES,
        "Building": (*BUILDING, *map(_stage, stages)),
        "Asking": ASKING,
        "Adding": ADDING,
    }
    tables = [f"### {title}\n\n{table(sizes, quantities)}" for title, quantities in groups.items()]
    return "\n\n".join([*tables, f"### On paper\n\n{on_paper(sizes)}"])


def on_paper(sizes: Sequence[Figures]) -> str:
    """Return what ten million passages come to, a Markdown row each, with what is assumed beside the exponents."""
    grown = {quantity.name: _at_paper(quantity, sizes) for quantity in (*SIZES, *BUILDING, *ASKING)}
    if None in grown.values():
        return "Too few sizes were measured."
    # Small records hold the pairs of near names, too: bytes a passage fall where these are left to the build.
    kept = [quantity for quantity in SIZES if quantity.unit == "bytes a passage"]
    bytes_a_passage = [max(grown[each.name] or 0.0, each.of(sizes[-1])) for each in kept]
    hours = (grown["build and publish, processor time"] or 0.0) / 3600
    embedding = PAPER_PASSAGES * _EMBEDDING_S / 3600
    scratch = (grown["names"] or 0.0) * _SCRATCH_A_NAME
    rows = {
        "embedding, with the model of the tables in Indexing": f"{embedding:,.0f} core hours",
        f"the same on {_MACHINES} machines of {_CORES} cores": f"{embedding / _MACHINES / _CORES:,.1f} hours",
        "building and publishing": f"{hours:,.1f} core hours",
        f"the same on one machine of {_CORES} cores that are {_BUSY:.0%} busy": f"{hours / _CORES / _BUSY:,.1f} hours",
        "record": f"{bytes_a_passage[0] * PAPER_PASSAGES / 1e9:,.0f} GB",
        "generation": f"{bytes_a_passage[1] * PAPER_PASSAGES / 1e9:,.0f} GB",
        "kept for the next build": f"{bytes_a_passage[2] * PAPER_PASSAGES / 1e9:,.0f} GB",
        "scratch of the index of near names, while it runs": f"{scratch / 1e9:,.0f} GB",
        "a building process's own memory": f"{grown['its own memory at most']:,.0f} GiB",
        "a serving process's own memory": f"{grown['own memory of the process']:,.1f} GiB",
        "a question, processor time": f"{grown['a question, processor time, p50']:,.0f} ms",
    }
    return "\n".join(["| | |", "|---|--:|", *(f"| {name} | {value} |" for name, value in rows.items())])


def _at_paper(quantity: Quantity, sizes: Sequence[Figures]) -> float | None:
    growth = quantity.growth(sizes)
    return None if growth is None else growth.at(PAPER_PASSAGES)


def read_sizes(folder: Path) -> list[Figures]:
    """Return the figures of each size, the smallest first."""
    found = [json.loads(path.read_text()) for path in folder.glob("*/figures.json")]
    return sorted((figures for figures in found if "publish" in figures), key=lambda figures: int(figures["size"]))


def table(sizes: Sequence[Figures], quantities: Sequence[Quantity]) -> str:
    """Return a Markdown table: of each quantity its values, its exponent, and what the largest size comes to."""
    heads = ["", "unit", *(f"{figures['size']:,}" for figures in sizes), "exponent", f"{PAPER_PASSAGES:,} (computed)"]
    lines = [f"| {' | '.join(heads)} |", f"|---|---|{'--:|' * (len(sizes) + 2)}"]
    for quantity in quantities:
        fitted = quantity.growth(sizes)
        cells = [number(value) for value in quantity.values(sizes)]
        cells += [f"{fitted.exponent:.2f}", number(fitted.at(PAPER_PASSAGES))] if fitted else ["", ""]
        lines.append(f"| {quantity.name} | {quantity.unit} | {' | '.join(cells)} |")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Growth:
    """A power of the size through the largest value measured.

    Attributes:
        exponent: the slope of logarithms over logarithms, by least squares.
        size, value: the largest size, and what was measured there.
    """

    exponent: float
    size: float
    value: float

    def at(self, size: float) -> float:
        """Return what another size comes to."""
        return float(self.value * (size / self.size) ** self.exponent)


def fit(sizes: Sequence[float], values: Sequence[float]) -> Growth | None:
    """Return how values grow with sizes; None where one of them has no logarithm."""
    if min(values) <= 0:
        return None
    slope = np.polyfit(np.log(sizes), np.log(values), 1)[0]
    return Growth(float(slope), sizes[-1], values[-1])


def number(value: float | None) -> str:
    """Return a number with three figures that count, as a reader of a table expects it."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}"


def _both(recall: Mapping[str, float], depth: int) -> float:
    return float(recall[f"both@{depth}"])
