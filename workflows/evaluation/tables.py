"""The tables of a run's report and of ``mara eval --answers``: a row a system."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial, reduce
from importlib import resources
from string import Template
from typing import Any, TypeVar

from agents.chat.local_model import LOCAL, local_name
from workflows.evaluation import ALL_GOLD_DEPTHS, DEPTHS, mean
from workflows.evaluation.compare import METRICS, Difference, Row, question_hops, question_type
from workflows.evaluation.statistics import SIGNIFICANT
from workflows.evaluation.systems import NEED_A_MODEL, Given, answer_systems
from workflows.output.markdown import NOTHING, code, figure, interval, p_value, plain, signed, table
from workflows.runtime.resources import OFFLINE

Figures = Mapping[str, Any]
"""What ``metrics.json`` holds of one system."""

Cell = Callable[[Figures], str]

T = TypeVar("T")

_MOST_GROUPS = 8


def _at(found: Figures, place: str) -> Any:
    """Return the figure at a dotted place; None where nothing was measured."""
    return reduce(lambda value, key: None if value is None else value[key], place.split("."), found)


def _number(place: str, decimals: int = 3) -> Cell:
    return lambda found: figure(_at(found, place), decimals)


def _count(place: str) -> Cell:
    return lambda found: f"{_at(found, place):,}"


def _kinds(key: str) -> Cell:
    """Return a cell of how often each kind occurs."""
    return lambda found: ", ".join(f"{plain(name)} {count}" for name, count in found.get(key, {}).items()) or "none"


RETRIEVAL = {
    **{f"R@{depth}": f"recall.{depth}" for depth in DEPTHS},
    **{f"all@{depth}": f"all_gold.{depth}" for depth in ALL_GOLD_DEPTHS},
    "MRR": "mrr",
    "MRR@5": "mrr_at_5",
}
"""Recall and all gold by depth, and reciprocal ranks: heading -> where ``metrics.json`` has a system's figure."""

PRECISION = {
    **{f"P@{depth}": f"precision.{depth}" for depth in DEPTHS},
    **{f"F1@{depth}": f"retrieval_f1.{depth}" for depth in DEPTHS},
}
"""Precision by depth, and its F1 with recall."""

ANSWERS = {
    "EM": "em",
    "F1": "f1.mean",
    "F1 median": "f1.median",
    "F1 std": "f1.std",
    "refused": "refusal_rate",
    "citations supported": "citation_support_rate",
    "citations of gold": "citation_gold_rate",
}
"""Exact match, F1, refusals and what the citations are worth."""

CITATIONS = {
    "citation recall": "citation_recall",
    "citation precision": "citation_precision",
    "gold cited": "gold_citation_recall",
    "cited are gold": "gold_citation_precision",
    "passages written from": "written_from.passages",
    "their recall": "written_from.recall",
    "their precision": "written_from.precision",
}
"""The columns on citations: the sentences they carry, the gold they cite, and the passages written from."""

CHECKING: Mapping[str, Cell] = {
    "claims": _count("claims.claims"),
    "supported": _number("claim_support_rate"),
    "coverage": _kinds("coverage"),
    "judge": _kinds("judge_outcomes"),
    "follow-ups": _kinds("follow_ups"),
}
"""The work of the judge and of the claim check."""

LATENCY: Mapping[str, Cell] = {f"p{q}": _number(f"latency_ms.total.p{q}", 1) for q in (50, 95)}
"""The median and the 95th percentile of the whole question."""

TROUBLE: Mapping[str, Cell] = {
    "failed": lambda found: str(found["failed"]),
    "failures by kind": _kinds("failures"),
    "fallbacks by node": _kinds("fallbacks"),
    "errors by kind": _kinds("errors"),
    "fact filter": _kinds("fact_outcomes"),
    "ranked by": _kinds("ranked_by"),
}
"""Failures, fallbacks, errors that were dealt with, and outcomes of the fact filter."""

_SPENT = {"calls": "calls", "tokens in": "prompt_tokens", "tokens out": "completion_tokens"}

TOKENS: Mapping[str, Cell] = {
    **{heading: _count(f"usage.{key}") for heading, key in _SPENT.items()},
    "calls without a count": _count("usage.unknown"),
    "cost": _number("cost", 4),
    **{f"{heading} a question": _number(f"usage_per_question.{key}", 1) for heading, key in _SPENT.items()},
}
"""Calls of chat models, tokens and cost, and the share of a question in them."""

COLUMNS: Mapping[str, str] = {
    "system": "system",
    "EM": "EM",
    "F1": "F1",
    "gold in answer": "gold",
    "refused": "ref.",
    "claim support": "support",
    "calls": "calls",
    "tokens in": "in",
    "tokens out": "out",
    "seconds": "s",
    "lost": "lost",
}
"""The headings of a report, and those of a terminal."""

SHORT_LEGEND = (
    "gold: a gold answer stands in the answer; ref.: refused; support: of claims, c as the system checks them, w by"
    " words; in, out: tokens; s: median seconds; lost: no result"
)

PACKAGED = "The packaged model proves that the machinery works. It is no measure of quality."

EVIDENCE = "No chat model is configured: EM, F1 and gold in answer are those of quoted evidence, not of answers."


@cache
def _texts() -> Mapping[str, Template]:
    text = resources.files("workflows.evaluation").joinpath("report_texts.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^<!-- (\w+) -->$", text, flags=re.MULTILINE)
    return {name: Template(part.strip()) for name, part in zip(parts[::2], parts[1::2], strict=True)}


def text(name: str, **values: object) -> str:
    """Return a part of ``report_texts.md`` with its placeholders replaced; values are Markdown already."""
    return _texts()[name].substitute(values)


def systems_table(systems: Mapping[str, T], columns: Mapping[str, Callable[[T], str]]) -> str:
    """Return a row a system: its name, then a cell for each heading."""
    rows = ([code(system), *(cell(found) for cell in columns.values())] for system, found in systems.items())
    return table(["system", *columns], rows)


def figures_table(
    systems: Mapping[str, Figures],
    columns: Mapping[str, str],
    *,
    bold: bool = False,
    beside: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Return a row of figures a system.

    Args:
        systems: figures by name.
        columns: heading -> dotted place of the figure.
        bold: whether the best of each column is bold, where there are several systems.
        beside: further columns at the end: heading -> system -> cell; a system without one has none to show.
    """
    beside = beside or {}
    values = {system: [_at(found, place) for place in columns.values()] for system, found in systems.items()}
    best = [max(_known(column), default=None) for column in zip(*values.values(), strict=True)]
    mark = bold and len(systems) > 1
    rows = [
        [
            code(system),
            *(_marked(value, mark and value == top) for value, top in zip(row, best, strict=True)),
            *(cells.get(system, NOTHING) for cells in beside.values()),
        ]
        for system, row in values.items()
    ]
    return table(["system", *columns, *beside], rows)


def _marked(value: float | None, mark: bool) -> str:
    return f"**{figure(value)}**" if mark and value is not None else figure(value)


def kinds_table(results: Mapping[str, Sequence[Row]]) -> str:
    """Return mean recall@5 by question type and by hops; empty where all questions are of one kind.

    The largest groups are shown, with their number of questions.
    """
    columns: dict[str, Callable[[Sequence[Row]], str]] = {}
    rows = [row for row in next(iter(results.values())) if row["gold_ids"]]
    for words, kind_of in (("", question_type), ("hops ", question_hops)):
        counts = Counter(map(kind_of, rows))
        for kind, count in counts.most_common(_MOST_GROUPS if len(counts) > 1 else 0):
            columns[f"{words}{plain(kind)} ({count})"] = partial(_mean_recall, kind_of=kind_of, kind=kind)
    return systems_table(results, columns) if columns else ""


def _mean_recall(rows: Sequence[Row], kind_of: Callable[[Row], str], kind: str) -> str:
    return figure(mean(_known(METRICS["recall@5"](row) for row in rows if kind_of(row) == kind)))


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def difference_table(systems: Mapping[str, Sequence[Difference]], metrics: Sequence[str]) -> str:
    """Return the difference of each metric with its interval and its corrected p."""
    return systems_table(systems, {metric: partial(_difference_cell, metric) for metric in metrics})


def _difference_cell(metric: str, differences: Sequence[Difference]) -> str:
    found = next(each for each in differences if each.metric == metric)
    if found.difference is None:
        return NOTHING
    text = f"{signed(found.difference)} {interval(found.low, found.high)} p {p_value(found.p_holm)}"
    return f"**{text}**" if found.p_holm is not None and found.p_holm <= SIGNIFICANT else text


def node_table(systems: Mapping[str, Figures]) -> str:
    """Return the median and the 95th percentile of each node."""
    nodes = dict.fromkeys(node for found in systems.values() for node in found["latency_ms"]["nodes"])
    return systems_table(systems, {plain(node.replace("_", " ")): partial(_times, node) for node in nodes})


def _times(node: str, found: Figures) -> str:
    ms = found["latency_ms"]["nodes"].get(node)
    return f"{figure(ms['p50'], 1)} / {figure(ms['p95'], 1)}" if ms else NOTHING


def is_answer_run(systems: Mapping[str, Any], chat_model: str) -> bool:
    """Tell whether a run holds all systems that ``--answers`` asks."""
    return systems.keys() >= set(answer_systems(chat_model))


def answer_rows(systems: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    """Return the cells of `COLUMNS` for each system: its name, then figures as text.

    Args:
        systems: what ``metrics.json`` holds of each.
    """
    return [[name, *_figures(name, found)] for name, found in systems.items()]


def left_out(chat_model: str) -> Mapping[str, str]:
    """Return the systems that ``--answers`` cannot ask without a chat model, and why."""
    return NEED_A_MODEL if chat_model == OFFLINE else {}


def remarks(chat_model: str) -> Sequence[str]:
    """Return what a reader has to know of the figures, beside the legend."""
    if chat_model == OFFLINE:
        return (EVIDENCE, *(f"`{name}` is left out: it {why}." for name, why in left_out(chat_model).items()))
    return (PACKAGED,) if chat_model == local_name(LOCAL) else ()


def _figures(name: str, found: Mapping[str, Any]) -> list[str]:
    spent, total = found["usage_per_question"], found["latency_ms"]["total"]
    return [
        *map(figure, (found["em"], found["f1"]["mean"], found["gold_in_answer"], found["refusal_rate"])),
        NOTHING if name.split("+")[0] == Given.CLOSED_BOOK else _claim_support(found),
        figure(spent["calls"], 1),
        figure(spent["prompt_tokens"], 0),
        figure(spent["completion_tokens"], 0),
        figure(total["p50"] / 1000 if total else None, 2),
        str(found["failed"]),
    ]


def _claim_support(found: Mapping[str, Any]) -> str:
    if found["claim_support_rate"] is not None:
        return f"{figure(found['claim_support_rate'])} c"
    return NOTHING if found["citation_recall"] is None else f"{figure(found['citation_recall'])} w"
