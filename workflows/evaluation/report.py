"""A run and a comparison as Markdown, and all tables that show their figures."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, TypeVar

from agents.chat.local_model import LOCAL, local_name
from graph.storage.workspace import write_atomically
from graph.text import counted
from workflows.evaluation import ALL_GOLD_DEPTHS, DEPTHS, mean
from workflows.evaluation.compare import (
    DRAWS,
    LEVEL,
    METRICS,
    SIGNIFICANT,
    Comparison,
    Decided,
    Difference,
    Ranking,
    Row,
    question_hops,
    question_type,
)
from workflows.evaluation.systems import NEED_A_MODEL, Given, answer_systems, is_control
from workflows.output.markdown import NOTHING, code, figure, interval, p_value, plain, signed, table
from workflows.runs.run_folder import REPORT, Run
from workflows.runtime.resources import OFFLINE

Figures = Mapping[str, Any]
"""The figures of one system in ``metrics.json``."""

Cell = Callable[[Figures], str]

T = TypeVar("T")

SHOWN_QUESTIONS = 10
"""Questions won, and questions lost, that a comparison shows in full."""

_MOST_GROUPS = 8
_SHOWN_RANKS = 5
_SHOWN_SETTINGS = 30
_LEAST_FOR_INTERVAL = 10
_IN_GROUPS = ("recall@5", "all-gold@5", "mrr", "em", "f1")
_GROUPING_WORDS = {"type": "question type", "hops": "hops", "relation": "dominant relation"}


def number(place: str, decimals: int = 3) -> Cell:
    """Return a cell of the figure at a dotted place; nothing where none was measured."""
    return lambda own: figure(_at(own, place), decimals)


def _at(own: Figures, place: str) -> Any:
    return reduce(lambda value, key: None if value is None else value[key], place.split("."), own)


def _count(place: str) -> Cell:
    return lambda own: f"{_at(own, place):,}"


def _kinds(key: str) -> Cell:
    """Return a cell of how often each kind occurs."""
    return lambda own: ", ".join(f"{plain(name)} {count}" for name, count in own.get(key, {}).items()) or "none"


def _numbers(places: Mapping[str, str]) -> dict[str, Cell]:
    return {heading: number(place) for heading, place in places.items()}


RETRIEVAL = {
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
_ANSWERS = _numbers(
    {
        "EM": "em",
        "F1": "f1.mean",
        "F1 median": "f1.median",
        "F1 std": "f1.std",
        "refused": "refusal_rate",
        "citations supported": "citation_support_rate",
        "citations of gold": "citation_gold_rate",
    }
)
_CITATIONS = _numbers(
    {
        "citation recall": "citation_recall",
        "citation precision": "citation_precision",
        "gold cited": "gold_citation_recall",
        "cited are gold": "gold_citation_precision",
        "passages written from": "written_from.passages",
        "their recall": "written_from.recall",
        "their precision": "written_from.precision",
    }
)
_CHECKING: Mapping[str, Cell] = {
    "claims": _count("claims.claims"),
    "supported": number("claim_support_rate"),
    "coverage": _kinds("coverage"),
    "judge": _kinds("judge_outcomes"),
    "follow-ups": _kinds("follow_ups"),
}
_LATENCY = {"p50": number("latency_ms.total.p50", 1), "p95": number("latency_ms.total.p95", 1)}
_TROUBLE: Mapping[str, Cell] = {
    "failed": _count("failed"),
    "failures by kind": _kinds("failures"),
    "fallbacks by node": _kinds("fallbacks"),
    "errors by kind": _kinds("errors"),
    "fact filter": _kinds("fact_outcomes"),
    "ranked by": _kinds("ranked_by"),
}
_SPENT = {"calls": "calls", "tokens in": "prompt_tokens", "tokens out": "completion_tokens"}
_TOKENS: Mapping[str, Cell] = {
    **{heading: _count(f"usage.{key}") for heading, key in _SPENT.items()},
    "calls without a count": _count("usage.unknown"),
    "cost": number("cost", 4),
    **{f"{heading} a question": number(f"usage_per_question.{key}", 1) for heading, key in _SPENT.items()},
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
    "gold in answer": number("gold_in_answer"),
    "refused": number("refusal_rate"),
    "claim support": _claim_support,
    "calls": number("usage_per_question.calls", 1),
    "tokens in": number("usage_per_question.prompt_tokens", 0),
    "tokens out": number("usage_per_question.completion_tokens", 0),
    "seconds": _seconds,
    "lost": lambda own: str(own["failed"]),
}
"""The table of ``--answers``."""


def cells_of(systems: Mapping[str, T], columns: Mapping[str, Callable[[T], str]]) -> list[list[str]]:
    """Return a row of text for each system: its name, then a cell for each heading."""
    return [[system, *(cell(own) for cell in columns.values())] for system, own in systems.items()]


def side_by_side(systems: Mapping[str, Figures]) -> list[list[str]]:
    """Return the cells of `SIDE_BY_SIDE` for each system; a closed book has nothing that could support a claim."""
    place = 1 + list(SIDE_BY_SIDE).index("claim support")
    rows = cells_of(systems, SIDE_BY_SIDE)
    closed = Given.CLOSED_BOOK.value
    return [[*row[:place], NOTHING, *row[place + 1 :]] if row[0].split("+")[0] == closed else row for row in rows]


def remarks(chat_model: str) -> list[str]:
    """Return what a reader has to know of the figures of answers, beside the legend."""
    if chat_model == OFFLINE:
        left_out = [f"`{name}` is left out: it {why}." for name, why in NEED_A_MODEL.items()]
        return [text("evidence"), *left_out]
    return [text("packaged")] if chat_model == local_name(LOCAL) else []


@cache
def _texts() -> Mapping[str, Template]:
    whole = resources.files("workflows.evaluation").joinpath("report_texts.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^<!-- (\w+) -->$", whole, flags=re.MULTILINE)
    return {name: Template(part.strip()) for name, part in zip(parts[::2], parts[1::2], strict=True)}


def text(name: str, **values: object) -> str:
    """Return a part of ``report_texts.md`` with its placeholders replaced; values are Markdown already."""
    return _texts()[name].substitute(values)


def _systems_table(systems: Mapping[str, T], columns: Mapping[str, Callable[[T], str]]) -> str:
    return table(["system", *columns], ([code(name), *cells] for name, *cells in cells_of(systems, columns)))


def write_report(run: Run) -> Path:
    """Write ``report.md`` into a run's folder, and return its path."""
    path = run.folder / REPORT
    write_atomically(path, "\n\n".join(_blocks(run)) + "\n")
    return path


def _blocks(run: Run) -> Iterator[str]:
    figures: Mapping[str, Figures] = run.metrics["systems"]
    is_result = {system: not is_control(run.settings["systems"][system]) for system in figures}
    results = {system: own for system, own in figures.items() if is_result[system]}
    controls = {system: own for system, own in figures.items() if not is_result[system]}
    yield from _opening(run, results, aside=bool(controls))
    if not run.settings["retrieval_only"]:
        yield from _answers_side_by_side(run)
    yield from _retrieval(run, results, controls)
    if not run.settings["retrieval_only"]:
        yield from _answers(figures)
    nodes = dict.fromkeys(node for own in figures.values() for node in own["latency_ms"]["nodes"])
    yield text("latency")
    yield _systems_table(figures, _LATENCY)
    yield text("nodes")
    yield _systems_table(figures, {plain(node.replace("_", " ")): partial(_times, node) for node in nodes})
    yield text("trouble")
    yield _systems_table(figures, _TROUBLE)
    yield "## Tokens and cost"
    if any(own["usage"]["calls"] for own in figures.values()):
        yield _systems_table(figures, _TOKENS)
        if all(own["cost"] is None for own in figures.values()):
            yield text("no_cost")
    else:
        yield text("no_tokens")
    yield f"## How to reproduce\n\n{_command(run)}"
    yield "## What these figures do not say"
    yield "\n".join(_caveats(run))


def _opening(run: Run, results: Mapping[str, Figures], *, aside: bool) -> Iterator[str]:
    settings, about = run.settings, run.settings["questions"]
    asked, systems = f"{about['asked']:,}", run.metrics["systems"]
    yield text("opening", file=plain(about["file"]), asked=asked, systems=counted(len(systems), "system"))
    recall = {system: own["recall"]["5"] for system, own in results.items() if own["recall"]["5"] is not None}
    if recall:
        names = " and ".join(code(system) for system, value in recall.items() if value == max(recall.values()))
        first = "Controls aside, the" if aside else "The"
        yield text("best", aside=first, recall=figure(max(recall.values())), names=names)
    yield text(
        "run",
        file=code(about["file"]),
        asked=asked,
        count=f"{about['count']:,}",
        drawn=f", drawn by seed {about['seed']}" if about["limit"] is not None else f"; seed {about['seed']}",
        sha256=code(about["sha256"]),
        workspace=code(settings["workspace_id"]),
        generation=settings["generation"],
        workflow="retrieval alone" if settings["retrieval_only"] else "retrieval and answers",
        top_k=settings["top_k"],
        models=_pairs(settings["models"]),
        versions=_pairs(settings["versions"]),
        systems=", ".join(map(code, systems)),
    )


def _answers_side_by_side(run: Run) -> Iterator[str]:
    """Yield the table of answers, where the run holds all systems that ``--answers`` asks."""
    model = run.settings["models"]["chat"]
    if not run.results.keys() >= set(answer_systems(model)):
        return
    yield "## Evidence, side by side" if model == OFFLINE else f"## Answers of {code(model)}, side by side"
    rows = [[code(name), *cells] for name, *cells in side_by_side(run.metrics["systems"])]
    missing = NEED_A_MODEL if model == OFFLINE else {}
    left_out = [[code(name), "left out", *[NOTHING] * (len(SIDE_BY_SIDE) - 1)] for name in missing]
    yield table(["system", *SIDE_BY_SIDE], [*rows, *left_out])
    yield text("answers_legend")
    if notes := remarks(model):
        yield "\n".join(f"- {note}" for note in notes)


def _retrieval(run: Run, results: Mapping[str, Figures], controls: Mapping[str, Figures]) -> Iterator[str]:
    about, baseline = run.settings["questions"], run.metrics["baseline"]
    yield text("retrieval", with_gold=f"{about['asked'] - about['without_gold']:,}")
    columns = dict(RETRIEVAL)
    if run.metrics["differences"]:
        others = {system: {"less": own} for system, own in run.metrics["differences"].items()}
        results, controls = (
            {system: {**own, **others.get(system, {"less": {}})} for system, own in each.items()}
            for each in (results, controls)
        )
        columns |= {f"{heading} − {code(baseline)}": partial(_less, key) for key, heading in LESS_BASELINE.items()}
        yield text("beside", reference=code(baseline), draws=f"{DRAWS:,}")
    if results:
        yield _systems_table(results, columns)
    if controls:
        yield text("controls")
        yield _systems_table(controls, columns)
    if run.metrics["differences"]:
        names = (str(run.folder), baseline, next(iter(run.metrics["differences"])))
        folder, reference, other = map(shlex.quote, names)
        yield text("compare", folder=folder, reference=reference, other=other)
    if results:
        yield text("precision")
        yield _systems_table(results, _PRECISION)
    if kinds := _kinds_of_questions(run.results):
        yield "### Recall@5 by kind of question"
        yield _systems_table(run.results, kinds)


LESS_BASELINE = {"recall@5": "R@5", "all-gold@5": "all@5"}
"""The differences to the baseline that stand in tables: metric -> heading."""


def _less(metric: str, own: Figures) -> str:
    less = own["less"].get(metric)
    return difference_cell(less) if less and less["difference"] is not None else NOTHING


def difference_cell(less: Mapping[str, Any]) -> str:
    """Return a difference of ``metrics.json`` with its interval."""
    return f"{signed(less['difference'])} {interval(less['low'], less['high'])}"


def _kinds_of_questions(results: Mapping[str, Sequence[Row]]) -> dict[str, Callable[[Sequence[Row]], str]]:
    """Return columns of mean recall@5 by question type and by hops; none where all questions are of one kind."""
    columns: dict[str, Callable[[Sequence[Row]], str]] = {}
    rows = [row for row in next(iter(results.values())) if row["gold_ids"]]
    for words, kind_of in (("", question_type), ("hops ", question_hops)):
        counts = Counter(map(kind_of, rows))
        for kind, count in counts.most_common(_MOST_GROUPS if len(counts) > 1 else 0):
            columns[f"{words}{plain(kind)} ({count})"] = partial(_mean_recall, kind_of=kind_of, kind=kind)
    return columns


def _mean_recall(rows: Sequence[Row], kind_of: Callable[[Row], str], kind: str) -> str:
    own = (METRICS["recall@5"](row) for row in rows if kind_of(row) == kind)
    return figure(mean(value for value in own if value is not None))


def _answers(figures: Mapping[str, Figures]) -> Iterator[str]:
    yield "## Answers"
    yield _systems_table(figures, _ANSWERS)
    yield text("answers")
    yield _systems_table(figures, _CITATIONS)
    yield text("citations")
    checked = {system: own for system, own in figures.items() if own["judge_outcomes"] or own["coverage"]}
    if checked:
        yield "### Judged passages and checked claims"
        yield _systems_table(checked, _CHECKING)
        yield text("checking")


def _times(node: str, own: Figures) -> str:
    ms = own["latency_ms"]["nodes"].get(node)
    return f"{figure(ms['p50'], 1)} / {figure(ms['p95'], 1)}" if ms else NOTHING


def _command(run: Run) -> str:
    """Return the command that makes the run again."""
    settings, about = run.settings, run.settings["questions"]
    words = ["mara eval", shlex.quote(about["file"]), "--workspace WORKSPACE", f"--seed {about['seed']}"]
    if about["limit"] is not None:
        words.append(f"--limit {about['limit']}")
    if settings["retrieval_only"]:
        words.append("--retrieval-only")
    words.append(f"--model {shlex.quote(settings['models']['chat'])}")
    words.append(f"--out {shlex.quote(run.folder.name or '.')}")
    modes = [f"--mode {shlex.quote(system)}" for system in run.results]
    return "```\n" + " \\\n  ".join([" ".join(words), *modes]) + "\n```"


def _caveats(run: Run) -> Iterator[str]:
    settings, about = run.settings, run.settings["questions"]
    differences = [own["recall@5"] for own in run.metrics["differences"].values()]
    widths = [(each["high"] - each["low"]) / 2 for each in differences if each["low"] is not None]
    if widths:
        yield text("caveat_width", asked=f"{about['asked']:,}", width=f"{max(widths):.3f}")
    if len(differences) > 1:
        yield text("caveat_systems", systems=len(differences))
    yield text("caveat_chosen")
    if about["unresolved_gold"] or about["without_gold"]:
        lacking = {"unresolved": f"{about['unresolved_gold']:,}", "without_gold": f"{about['without_gold']:,}"}
        yield text("caveat_gold", **lacking)
    if settings["models"]["chat"] == OFFLINE:
        yield text("caveat_offline")
    yield text("caveat_times")


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{plain(name)} {code(value)}" for name, value in values.items()) or NOTHING


def comparison_page(comparisons: Sequence[Comparison], shown: int = SHOWN_QUESTIONS) -> str:
    """Return comparisons as Markdown.

    Args:
        comparisons: one or more, each a chapter.
        shown: how many questions won, and how many lost, are shown in full; the rest is counted.
    """
    return "\n\n".join(block for each in comparisons for block in _chapter(each, shown)) + "\n"


def verdict(compared: Comparison) -> str:
    """Return in one sentence what recall@5 (the first metric where it is not compared) says, and leaves open."""
    recall = next((each for each in compared.metrics if each.metric == "recall@5"), compared.metrics[0])
    if recall.p_holm is None or recall.low is None or recall.high is None:
        return f"{recall.n} questions are too few to tell anything about {recall.metric}."
    words = f"{signed(recall.difference)}, 95 % interval {interval(recall.low, recall.high)}"
    words = f"{recall.metric}{{}}: {words}, p {p_value(recall.p_holm)} after correction."
    if recall.p_holm <= SIGNIFICANT and (recall.low > 0 or recall.high < 0):
        return f"B is {'better' if recall.low > 0 else 'worse'} on {words.format('')}"
    if recall.low <= 0 <= recall.high:
        return f"{recall.n} questions cannot tell A and B apart on {words.format('')}"
    return f"{recall.n} questions hint at a difference on {words.format(' that does not stand')}"


COMPARED: Mapping[str, Callable[[Difference], str]] = {
    "metric": lambda each: each.metric,
    "questions": lambda each: str(each.n),
    "A": lambda each: figure(each.a),
    "B": lambda each: figure(each.b),
    "B − A": lambda each: signed(each.difference),
    "95 % interval": lambda each: interval(each.low, each.high),
    "better / worse": lambda each: f"{each.better} / {each.worse}",
    "test": lambda each: each.test or "none",
    "p": lambda each: p_value(each.p),
    "p (Holm)": lambda each: p_value(each.p_holm),
}
"""The table of a comparison: heading -> cell of a metric."""


def _chapter(comparison: Comparison, shown: int) -> Iterator[str]:
    yield f"# {code(comparison.b)} against {code(comparison.a)}"
    yield f"A is {code(comparison.a)}, B is {code(comparison.b)}; differences are B − A, so a positive one is for B."
    yield "\n".join(f"- {line}" for line in _questions(comparison))
    yield f"**{verdict(comparison)}**"
    yield "## Metrics"
    yield table([*COMPARED], ([cell(each) for cell in COMPARED.values()] for each in comparison.metrics))
    tested = sum(each.p is not None for each in comparison.metrics)
    yield text("intervals", level=f"{LEVEL:.0%}", draws=f"{DRAWS:,}", metrics=tested)
    yield text("groups", least=_LEAST_FOR_INTERVAL)
    for grouping, groups in comparison.groups.items():
        yield from _grouped(_GROUPING_WORDS[grouping], groups)
    if comparison.settings:
        yield "## What was set otherwise"
        rows = [[code(name), code(a), code(b)] for name, a, b in comparison.settings[:_SHOWN_SETTINGS]]
        rest = len(comparison.settings) - len(rows)
        yield table(["setting", "A", "B"], rows, left=3) + (f"\n\nAnd {rest} more." if rest else "")
    for title, questions in (("won", comparison.won), ("lost", comparison.lost)):
        yield f"## Questions {title} by B: {len(questions)}"
        for each in questions[:shown]:
            yield from _decided(each)
        if len(questions) > shown:
            yield f"And {len(questions) - shown} more; `mara eval compare --json` lists them all."


def _questions(comparison: Comparison) -> Iterator[str]:
    """Yield what was compared, and what had to be left out."""
    won, lost = len(comparison.won), len(comparison.lost)
    yield f"{comparison.paired} questions of both; B wins {won}, loses {lost}, {comparison.equal} are equal"
    for ids, side in ((comparison.only_a, "A"), (comparison.only_b, "B")):
        if ids:
            yield f"left out, since {side} alone was asked: {len(ids)}"
    if comparison.other_gold:
        yield f"gold passages differ in {comparison.other_gold} questions: each system is judged by its own run's"
    for failed, side in ((comparison.failed_a, "A"), (comparison.failed_b, "B")):
        if failed:
            yield f"{side} failed on {failed} questions, which count as nothing found"


def _grouped(words: str, groups: Mapping[str, Sequence[Difference]]) -> Iterator[str]:
    """Yield both systems' means and their difference, a row a group; metrics that no question has are left out."""
    if len(groups) < 2:
        yield f"By {words}: all questions are {code(next(iter(groups), 'none'))}."
        return
    by_metric = {group: {each.metric: each for each in differences if each.n} for group, differences in groups.items()}
    metrics = [name for name in _IN_GROUPS if any(name in differences for differences in by_metric.values())]
    rows = []
    for group, differences in by_metric.items():
        questions = max((differences[name].n for name in metrics if name in differences), default=0)
        rows.append([plain(group), str(questions), *(_group_cell(differences.get(name)) for name in metrics)])
    yield f"### By {words}"
    yield table([words, "questions", *(f"{name}: A, B, B − A" for name in metrics)], rows)


def _group_cell(difference: Difference | None) -> str:
    if difference is None:
        return NOTHING
    means = f"{figure(difference.a)}, {figure(difference.b)}, {signed(difference.difference)}"
    return means if difference.n < _LEAST_FOR_INTERVAL else f"{means} {interval(difference.low, difference.high)}"


def _decided(each: Decided) -> Iterator[str]:
    yield f"### {code(each.id)}: {plain(each.question)}"
    yield (
        f"Type {plain(each.type)}, hops {plain(each.hops)}, dominant relation {plain(each.relation)}."
        f" Recall@5 {figure(each.a.recall_at_5, 2)} → {figure(each.b.recall_at_5, 2)},"
        f" reciprocal rank {figure(each.a.reciprocal_rank, 2)} → {figure(each.b.reciprocal_rank, 2)}."
    )
    ranks = range(min(_SHOWN_RANKS, max(len(each.a.passages), len(each.b.passages))))
    if ranks:
        rows = ([str(rank + 1), _rank_cell(each.a, rank), _rank_cell(each.b, rank)] for rank in ranks)
        yield table(["rank", "A", "B"], rows, left=3)
    yield "\n".join(f"- {side} {_gold_ranks(ranking)}" for side, ranking in (("A", each.a), ("B", each.b)))


def _rank_cell(ranking: Ranking, place: int) -> str:
    """Return the passage of a rank, with a star where it is gold."""
    if place >= len(ranking.passages):
        return NOTHING
    return code(ranking.passages[place]) + (r" \*" if ranking.gold[place] else "")


def _gold_ranks(ranking: Ranking) -> str:
    """Return where the gold passages stand, and which were not ranked."""
    if ranking.failed:
        return "failed"
    ranks = [str(rank) for rank, gold in enumerate(ranking.gold, start=1) if gold]
    ranked = f"has gold at {', '.join(ranks)}" if ranks else "has no gold"
    missed = f"; not among its {len(ranking.passages)}: {', '.join(map(code, ranking.missed))}"
    return ranked + (missed if ranking.missed else "")
