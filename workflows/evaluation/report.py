"""A run as Markdown, and the tables that show figures and comparisons there and on the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial, reduce
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from agents.chat.local_model import LOCAL, local_name
from graph.storage.workspace import write_atomically
from workflows.evaluation import ALL_GOLD_DEPTHS, DEPTHS
from workflows.evaluation.compare import DRAWS, Difference
from workflows.evaluation.systems import NEED_A_MODEL, answer_systems, is_control
from workflows.output.markdown import NOTHING, code, figure, interval, p_value, plain, signed, table
from workflows.runs.run_folder import REPORT, Run
from workflows.runtime.resources import OFFLINE

Figures = Mapping[str, Any]
"""The figures of one system in ``metrics.json``."""

Cell = Callable[[Figures], str]

T = TypeVar("T")


def number(place: str, decimals: int = 3) -> Cell:
    """Return a cell of the figure at a dotted place; nothing where none was measured."""
    return lambda own: figure(_at(own, place), decimals)


def _at(own: Figures, place: str) -> Any:
    return reduce(lambda value, key: None if value is None else value[key], place.split("."), own)


def _kinds(key: str) -> Cell:
    """Return a cell of how often each kind occurs."""
    return lambda own: ", ".join(f"{plain(name)} {count}" for name, count in own.get(key, {}).items()) or "none"


RETRIEVAL: Mapping[str, Cell] = {
    **{f"R@{depth}": number(f"recall.{depth}") for depth in DEPTHS},
    **{f"all@{depth}": number(f"all_gold.{depth}") for depth in ALL_GOLD_DEPTHS},
    "MRR": number("mrr"),
    "MRR@5": number("mrr_at_5"),
}
"""Recall and all gold by depth, and reciprocal ranks: heading -> cell of a system."""

_PRECISION = {
    **{f"P@{depth}": number(f"precision.{depth}") for depth in DEPTHS},
    **{f"F1@{depth}": number(f"retrieval_f1.{depth}") for depth in DEPTHS},
}
_ANSWERS = {
    "EM": number("em"),
    "F1": number("f1.mean"),
    "F1 median": number("f1.median"),
    "F1 std": number("f1.std"),
    "refused": number("refusal_rate"),
    "citations supported": number("citation_support_rate"),
    "citations of gold": number("citation_gold_rate"),
}
_CITATIONS = {
    "citation recall": number("citation_recall"),
    "citation precision": number("citation_precision"),
    "gold cited": number("gold_citation_recall"),
    "cited are gold": number("gold_citation_precision"),
    "passages written from": number("written_from.passages"),
    "their recall": number("written_from.recall"),
    "their precision": number("written_from.precision"),
    "claims": number("claims.claims", 0),
    "claims supported": number("claim_support_rate"),
    "coverage": _kinds("coverage"),
    "judge": _kinds("judge_outcomes"),
    "follow-ups": _kinds("follow_ups"),
}
_TROUBLE = {
    "failed": number("failed", 0),
    "failures by kind": _kinds("failures"),
    "fallbacks by node": _kinds("fallbacks"),
    "errors by kind": _kinds("errors"),
    "fact filter": _kinds("fact_outcomes"),
    "ranked by": _kinds("ranked_by"),
}
_TOKENS = {
    "calls": number("usage.calls", 0),
    "tokens in": number("usage.prompt_tokens", 0),
    "tokens out": number("usage.completion_tokens", 0),
    "calls without a count": number("usage.unknown", 0),
    "cost": number("cost", 4),
}


def _claim_support(own: Figures) -> str:
    """Return the share of claims that the system's own check supports (c), else that of sentences by words (w)."""
    if own["claim_support_rate"] is not None:
        return f"{figure(own['claim_support_rate'])} c"
    return NOTHING if own["citation_recall"] is None else f"{figure(own['citation_recall'])} w"


def _seconds(own: Figures) -> str:
    total = own["latency_ms"]["total"]
    return figure(total["p50"] / 1000 if total else None, 2)


SIDE_BY_SIDE: Mapping[str, Cell] = {
    "EM": number("em"),
    "F1": number("f1.mean"),
    "gold": number("gold_in_answer"),
    "ref.": number("refusal_rate"),
    "support": _claim_support,
    "calls": number("usage_per_question.calls", 1),
    "in": number("usage_per_question.prompt_tokens", 0),
    "out": number("usage_per_question.completion_tokens", 0),
    "s": _seconds,
    "lost": number("failed", 0),
}
"""The table of ``--answers``."""

COMPARED: Mapping[str, Callable[[Difference], str]] = {
    "questions": lambda each: str(each.n),
    "A": lambda each: figure(each.a),
    "B": lambda each: figure(each.b),
    "B − A": lambda each: signed(each.difference),
    "95 % interval": lambda each: interval(each.low, each.high),
    "p (Holm)": lambda each: p_value(each.p_holm),
}
"""The table of a comparison: heading -> cell of a metric."""

LESS_BASELINE = {"recall@5": "R@5", "all-gold@5": "all@5"}
"""The differences to the baseline that stand in tables: metric -> heading."""


def difference_cell(less: Figures) -> str:
    """Return a difference of ``metrics.json`` with its interval."""
    return f"{signed(less['difference'])} {interval(less['low'], less['high'])}"


def cells_of(systems: Mapping[str, T], columns: Mapping[str, Callable[[T], str]]) -> list[list[str]]:
    """Return a row of text for each system: its name, then a cell for each heading."""
    return [[system, *(cell(own) for cell in columns.values())] for system, own in systems.items()]


def remarks(chat_model: str) -> list[str]:
    """Return what a reader has to know of the figures of answers, beside the legend."""
    if chat_model == OFFLINE:
        return [text("evidence", names=", ".join(NEED_A_MODEL))]
    return [text("packaged")] if chat_model == local_name(LOCAL) else []


@cache
def _texts() -> Mapping[str, Template]:
    whole = resources.files("workflows.evaluation").joinpath("report_texts.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^<!-- (\w+) -->$", whole, flags=re.MULTILINE)
    return {name: Template(part.strip()) for name, part in zip(parts[::2], parts[1::2], strict=True)}


def text(name: str, **values: object) -> str:
    """Return a part of ``report_texts.md`` with its placeholders replaced; values are Markdown already."""
    return _texts()[name].substitute(values)


def write_report(run: Run) -> Path:
    """Write ``report.md`` into a run's folder, and return its path."""
    path = run.folder / REPORT
    write_atomically(path, "\n\n".join(_blocks(run)) + "\n")
    return path


def _blocks(run: Run) -> Iterator[str]:
    figures: Mapping[str, Figures] = run.metrics["systems"]
    answers = not run.settings["retrieval_only"]
    yield _opening(run)
    if answers:
        yield from _answers_side_by_side(run)
    yield from _retrieval(run)
    if answers:
        yield text("answers")
        yield _systems_table(figures, _ANSWERS)
        yield text("citations")
        yield _systems_table(figures, _CITATIONS)
    yield text("latency")
    nodes = dict.fromkeys(node for own in figures.values() for node in own["latency_ms"]["nodes"])
    times = {plain(node.replace("_", " ")): partial(_times, node) for node in nodes}
    yield _systems_table(figures, {"in all": lambda own: _p50_and_p95(own["latency_ms"]["total"]), **times})
    yield text("trouble")
    yield _systems_table(figures, _TROUBLE)
    if any(own["usage"]["calls"] for own in figures.values()):
        yield text("tokens")
        yield _systems_table(figures, _TOKENS)
    about = run.settings["questions"]
    yield text("caveats", unresolved=about["unresolved_gold"], without_gold=about["without_gold"])


def _systems_table(systems: Mapping[str, T], columns: Mapping[str, Callable[[T], str]]) -> str:
    return table(["system", *columns], ([code(name), *cells] for name, *cells in cells_of(systems, columns)))


def _opening(run: Run) -> str:
    settings, about = run.settings, run.settings["questions"]
    return text(
        "opening",
        file=code(about["file"]),
        asked=f"{about['asked']:,}",
        count=f"{about['count']:,}",
        seed=about["seed"],
        sha256=code(about["sha256"]),
        workspace=code(settings["workspace_id"]),
        generation=settings["generation"],
        models=_pairs(settings["models"]),
        versions=_pairs(settings["versions"]),
    )


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{plain(name)} {code(value)}" for name, value in values.items()) or NOTHING


def _answers_side_by_side(run: Run) -> Iterator[str]:
    """Yield the table of answers, where the run holds all systems that ``--answers`` asks."""
    model = run.settings["models"]["chat"]
    if not run.results.keys() >= set(answer_systems(model)):
        return
    yield "## Evidence, side by side" if model == OFFLINE else f"## Answers of {code(model)}, side by side"
    yield _systems_table(run.metrics["systems"], SIDE_BY_SIDE)
    yield "\n\n".join((text("answers_legend"), *remarks(model)))


def _retrieval(run: Run) -> Iterator[str]:
    """Yield the tables of rankings: of results, of controls, and of precision."""
    about, baseline, less = run.settings["questions"], run.metrics["baseline"], run.metrics["differences"]
    systems = {name: {**own, "less": less.get(name, {})} for name, own in run.metrics["systems"].items()}
    results = {name: own for name, own in systems.items() if not is_control(run.settings["systems"][name])}
    controls = {name: own for name, own in systems.items() if name not in results}
    columns = dict(RETRIEVAL)
    yield text("retrieval", with_gold=f"{about['asked'] - about['without_gold']:,}")
    if less:
        columns |= {
            f"{heading} − {code(baseline)}": partial(_less, metric) for metric, heading in LESS_BASELINE.items()
        }
        yield text("beside", reference=code(baseline), draws=f"{DRAWS:,}")
    yield _systems_table(results, columns)
    if controls:
        yield text("controls")
        yield _systems_table(controls, columns)
    yield text("precision")
    yield _systems_table(results, _PRECISION)


def _less(metric: str, own: Figures) -> str:
    less = own["less"].get(metric)
    return difference_cell(less) if less and less["difference"] is not None else NOTHING


def _times(node: str, own: Figures) -> str:
    return _p50_and_p95(own["latency_ms"]["nodes"].get(node))


def _p50_and_p95(ms: Mapping[str, float] | None) -> str:
    return f"{figure(ms['p50'], 1)} / {figure(ms['p95'], 1)}" if ms else NOTHING
