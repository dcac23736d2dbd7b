"""The tables of a run's report and of ``mara eval --answers``: a row a system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agents.chat.local_model import LOCAL, local_name
from workflows.evaluation import ALL_GOLD_DEPTHS, DEPTHS, mean
from workflows.evaluation.compare import METRICS, Difference, Row, question_hops, question_type
from workflows.evaluation.statistics import SIGNIFICANT
from workflows.evaluation.systems import NEED_A_MODEL, Given, answer_systems
from workflows.output.markdown import NOTHING, code, figure, interval, p_value, plain, signed, table
from workflows.runtime.resources import OFFLINE

Figures = Mapping[str, Any]
"""What ``metrics.json`` holds of one system."""

_MOST_GROUPS = 8


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

LEGEND = (
    "EM and F1 as SQuAD normalises; *gold in answer*: a gold answer's text stands somewhere in the answer. All three"
    " are shares of the questions that have gold answers, and a question that is refused or lost counts as wrong."
    " *Claim support* is the share of the claims that the system's own claim check found supported (*c*), else"
    " the share of its sentences that the cited passages hold by their words (*w*). Calls and tokens are means"
    " of a question; seconds are the median, and hold the waiting for questions asked at the same time. *Lost*:"
    " questions without a result; the next run of the same command asks again those that a model or a server failed."
)

PACKAGED = "The packaged model proves that the machinery works. It is no measure of quality."

EVIDENCE = "No chat model is configured: EM, F1 and gold in answer are those of quoted evidence, not of answers."


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


def _at(found: Figures, place: str) -> float | None:
    value: Any = found
    for key in place.split("."):
        value = value[key]
    return None if value is None else float(value)


def checking_table(systems: Mapping[str, Figures]) -> str:
    """Return what the judge and the claim check came to; empty where no system has either."""
    checked = {system: found for system, found in systems.items() if found["judge_outcomes"] or found["coverage"]}
    if not checked:
        return ""
    rows = (
        [
            *(code(system), f"{found['claims']['claims']:,}", figure(found["claim_support_rate"])),
            *(_counts(found[key]) for key in ("coverage", "judge_outcomes", "follow_ups")),
        ]
        for system, found in checked.items()
    )
    return table(["system", "claims", "supported", "coverage", "judge", "follow-ups"], rows)


def _marked(value: float | None, mark: bool) -> str:
    return f"**{figure(value)}**" if mark and value is not None else figure(value)


def kinds_table(results: Mapping[str, Sequence[Row]]) -> str:
    """Return mean recall@5 by question type and by hops; empty where all questions are of one kind.

    The largest groups are shown, with their number of questions.
    """
    groups: dict[str, tuple[Callable[[Row], str], str]] = {}
    rows = [row for row in next(iter(results.values())) if row["gold_ids"]]
    for words, kind_of in (("", question_type), ("hops ", question_hops)):
        counts = Counter(map(kind_of, rows))
        if len(counts) > 1:
            for kind, count in counts.most_common(_MOST_GROUPS):
                groups[f"{words}{plain(kind)} ({count})"] = (kind_of, kind)
    if not groups:
        return ""
    cells = [
        [code(system), *(_mean_recall(own, *group) for group in groups.values())] for system, own in results.items()
    ]
    return table(["system", *groups], cells)


def _mean_recall(rows: Sequence[Row], kind_of: Callable[[Row], str], kind: str) -> str:
    return figure(mean(_known(METRICS["recall@5"].of(row) for row in rows if kind_of(row) == kind)))


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def difference_table(systems: Mapping[str, Sequence[Difference]], metrics: Sequence[str]) -> str:
    """Return the difference of each metric with its interval and its corrected p."""
    rows = []
    for system, found in systems.items():
        by_metric = {each.metric: each for each in found}
        rows.append([code(system), *(_difference_cell(by_metric[metric]) for metric in metrics)])
    return table(["system", *metrics], rows)


def _difference_cell(found: Difference) -> str:
    if found.difference is None:
        return NOTHING
    text = f"{signed(found.difference)} {interval(found.low, found.high)} p {p_value(found.p_holm)}"
    return f"**{text}**" if found.p_holm is not None and found.p_holm <= SIGNIFICANT else text


def latency_table(systems: Mapping[str, Figures]) -> str:
    """Return the median and the 95th percentile of the whole question."""
    wholes = {system: found["latency_ms"]["total"] or {} for system, found in systems.items()}
    rows = ([code(system), figure(ms.get("p50"), 1), figure(ms.get("p95"), 1)] for system, ms in wholes.items())
    return table(["system", "p50", "p95"], rows)


def node_table(systems: Mapping[str, Figures]) -> str:
    """Return the median and the 95th percentile of each node."""
    by_system = {system: found["latency_ms"]["nodes"] for system, found in systems.items()}
    nodes = list(dict.fromkeys(node for found in by_system.values() for node in found))
    rows = ([code(system), *(_times(found.get(node)) for node in nodes)] for system, found in by_system.items())
    return table(["system", *(plain(node.replace("_", " ")) for node in nodes)], rows)


def _times(found: Mapping[str, float] | None) -> str:
    return f"{figure(found['p50'], 1)} / {figure(found['p95'], 1)}" if found else NOTHING


def trouble_table(systems: Mapping[str, Figures]) -> str:
    """Return what failed, what fell back, which errors were dealt with, and what the fact filter came to."""
    keys = ("failures", "fallbacks", "errors", "fact_outcomes", "ranked_by")
    rows = (
        [code(system), str(found["failed"]), *(_counts(found.get(key) or {}) for key in keys)]
        for system, found in systems.items()
    )
    header = ["system", "failed", "failures by kind", "fallbacks by node", "errors by kind", "fact filter", "ranked by"]
    return table(header, rows)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{plain(name)} {count}" for name, count in counts.items()) or "none"


def token_table(systems: Mapping[str, Figures]) -> str:
    """Return calls of chat models, tokens and cost, and what of them a question takes."""
    keys = ("calls", "prompt_tokens", "completion_tokens", "unknown")
    rows = (
        [
            *(code(system), *(f"{found['usage'][key]:,}" for key in keys), figure(found["cost"], 4)),
            *(figure(found["usage_per_question"][key], 1) for key in keys[:3]),
        ]
        for system, found in systems.items()
    )
    header = ["system", "calls", "tokens in", "tokens out", "calls without a count", "cost"]
    return table([*header, "calls a question", "tokens in a question", "tokens out a question"], rows)


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
