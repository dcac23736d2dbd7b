"""From the figures of several sizes to exponents, Markdown tables, and what a larger size comes to on paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PAPER_PASSAGES = 10_000_000
_FITTED_FROM = 3
"""Sizes, the largest ones, that an exponent is fitted on: below, what is constant outweighs what grows."""

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
    Quantity("the process's own memory", "GiB", lambda f: f["ask"]["memory_again_gib"]["anonymous"]),
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
    groups = {
        "What there is": SIZES,
        "Building": (*BUILDING, *map(_stage, stages)),
        "Asking": ASKING,
        "Adding": ADDING,
    }
    return "\n\n".join(f"### {title}\n\n{table(sizes, quantities)}" for title, quantities in groups.items())


def read_sizes(folder: Path) -> list[Figures]:
    """Return the figures of each size, the smallest first."""
    found = [json.loads(path.read_text()) for path in folder.glob("*/figures.json")]
    return sorted((figures for figures in found if "publish" in figures), key=lambda figures: int(figures["size"]))


def table(sizes: Sequence[Figures], quantities: Sequence[Quantity]) -> str:
    """Return a Markdown table: of each quantity its values, its exponent, and what the largest size comes to."""
    heads = ["", "unit", *(f"{figures['size']:,}" for figures in sizes), "exponent", f"{PAPER_PASSAGES:,} (computed)"]
    lines = [f"| {' | '.join(heads)} |", f"|---|---|{'--:|' * (len(sizes) + 2)}"]
    for quantity in quantities:
        values = quantity.values(sizes)
        measured = [(f["size"], v) for f, v in zip(sizes, values, strict=True) if v is not None]
        fitted = fit(*zip(*measured[-_FITTED_FROM:], strict=True)) if len(measured) >= _FITTED_FROM else None
        cells = [number(value) for value in values]
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
