"""The report of a run: ``report.md``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graph.storage.workspace import write_atomically
from graph.text import counted
from workflows.evaluation import tables
from workflows.evaluation.compare import METRICS, Difference, grouped_differences, pair_rows, paired_differences
from workflows.evaluation.comparison_page import group_table, verdict
from workflows.evaluation.statistics import DRAWS
from workflows.evaluation.systems import Control, is_control
from workflows.output.markdown import NOTHING, code, figure, interval, plain, signed, table
from workflows.runs.evaluation_files import REPORT, Run
from workflows.runtime.resources import OFFLINE

_OF_RETRIEVAL = ("recall@2", "recall@5", "recall@10", "all-gold@5", "mrr")
_BESIDE = {"recall@5": "R@5", "all-gold@5": "all@5"}
_OF_ANSWERS = ("em", "f1")


class _Findings:
    """A run, and what is computed of it once.

    Attributes:
        controls: systems in which something stands in for an agent.
        results: the systems that are no controls.
        reference: the baseline that the others are compared with.
        differences: system -> its differences to the reference, which is left out.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.controls = [system for system in run.results if is_control(run.settings["systems"][system])]
        self.results = [system for system in run.results if system not in self.controls]
        self.reference: str = run.metrics["baseline"]
        self.differences = {
            system: paired_differences(pair_rows(run.results[self.reference], rows), list(METRICS))
            for system, rows in run.results.items()
            if system != self.reference
        }

    @property
    def answered(self) -> bool:
        return not self.run.settings["retrieval_only"]

    def figures(self, systems: Sequence[str] | None = None) -> dict[str, Any]:
        chosen = self.run.results if systems is None else systems
        return {system: self.run.metrics["systems"][system] for system in chosen}


def write_report(run: Run) -> Path:
    """Write ``report.md`` into a run's folder, and return its path."""
    findings = _Findings(run)
    path = run.folder / REPORT
    write_atomically(path, "\n\n".join(_blocks(findings)) + "\n")
    return path


def _chosen(found: Sequence[Difference], metrics: Sequence[str]) -> list[Difference]:
    return [each for each in found if each.metric in metrics]


def _has(findings: _Findings, metric: str) -> bool:
    """Tell whether any question has a value of a metric."""
    return any(METRICS[metric](row) is not None for rows in findings.run.results.values() for row in rows)


def _blocks(findings: _Findings) -> Iterator[str]:
    yield from _opening(findings)
    yield from _side_by_side(findings)
    yield from _retrieval(findings)
    yield from _differences(findings)
    yield from _beta(findings)
    if findings.answered:
        yield from _answers(findings)
    yield tables.text("latency")
    yield tables.systems_table(findings.figures(), tables.LATENCY)
    yield tables.text("nodes")
    yield tables.node_table(findings.figures())
    yield "## Fallbacks and failures"
    yield tables.systems_table(findings.figures(), tables.TROUBLE)
    yield tables.text("trouble")
    yield from _tokens(findings)
    yield "## How to reproduce"
    yield _command(findings)
    yield "## What these figures do not say"
    yield "\n".join(_caveats(findings))


def _opening(findings: _Findings) -> Iterator[str]:
    run, settings, about = findings.run, findings.run.settings, findings.run.settings["questions"]
    asked = f"{about['asked']:,}"
    yield tables.text("opening", file=plain(about["file"]), asked=asked, systems=counted(len(run.results), "system"))
    yield from _best(findings)
    yield tables.text(
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
        systems=", ".join(map(code, run.results)),
    )


def _best(findings: _Findings) -> Iterator[str]:
    """Yield which systems have the highest recall@5, controls aside."""
    recall = {system: found["recall"]["5"] for system, found in findings.figures(findings.results).items()}
    known = {system: value for system, value in recall.items() if value is not None}
    if known:
        highest = max(known.values())
        names = " and ".join(code(system) for system, value in known.items() if value == highest)
        aside = "Controls aside, the" if findings.controls else "The"
        yield tables.text("best", aside=aside, recall=figure(highest), names=names)


def _side_by_side(findings: _Findings) -> Iterator[str]:
    """Yield the table of answers, where the run holds all systems that ``--answers`` asks."""
    model = findings.run.settings["models"]["chat"]
    if not findings.answered or not tables.is_answer_run(findings.run.results, model):
        return
    yield "## Evidence, side by side" if model == OFFLINE else f"## Answers of {code(model)}, side by side"
    rows = [[code(name), *cells] for name, *cells in tables.answer_rows(findings.figures())]
    missing = [[code(name), "left out", *[NOTHING] * (len(tables.COLUMNS) - 2)] for name in tables.left_out(model)]
    yield table(list(tables.COLUMNS), [*rows, *missing])
    yield tables.text("answers_legend")
    if tables.remarks(model):
        yield "\n".join(f"- {remark}" for remark in tables.remarks(model))


def _retrieval(findings: _Findings) -> Iterator[str]:
    about, beside = findings.run.settings["questions"], _beside(findings)
    yield tables.text("retrieval", with_gold=f"{about['asked'] - about['without_gold']:,}")
    if beside:
        yield tables.text("beside", reference=code(findings.reference))
    if findings.results:
        yield tables.figures_table(findings.figures(findings.results), tables.RETRIEVAL, bold=True, beside=beside)
    if findings.controls:
        yield tables.text("controls")
        yield tables.figures_table(findings.figures(findings.controls), tables.RETRIEVAL, beside=beside)
    if findings.results:
        yield tables.text("precision")
        yield tables.figures_table(findings.figures(findings.results), tables.PRECISION, bold=True)
    kinds = tables.kinds_table(findings.run.results)
    if kinds:
        yield "### Recall@5 by kind of question"
        yield kinds


def _beside(findings: _Findings) -> dict[str, dict[str, str]]:
    """Return the columns of differences to the baseline; none where there is one system alone."""
    return {
        f"{heading} − {code(findings.reference)}": {
            system: f"{signed(each.difference)} {interval(each.low, each.high)}"
            for system, found in findings.differences.items()
            for each in _chosen(found, [metric])
            if each.difference is not None
        }
        for metric, heading in _BESIDE.items()
        if findings.differences
    }


def _differences(findings: _Findings) -> Iterator[str]:
    yield f"## Differences to {code(findings.reference)}"
    if not findings.differences:
        yield "There is one system alone: nothing to compare with."
        return
    tested = max(sum(each.p is not None for each in found) for found in findings.differences.values())
    yield tables.text("differences", reference=code(findings.reference), draws=f"{DRAWS:,}", metrics=tested)
    metrics = (*_OF_RETRIEVAL, *(_OF_ANSWERS if _has(findings, "f1") else ()))
    results = {system: found for system, found in findings.differences.items() if system in findings.results}
    controls = {system: found for system, found in findings.differences.items() if system in findings.controls}
    if results:
        yield tables.difference_table(results, metrics)
    if controls:
        yield "Controls, which are not results:"
        yield tables.difference_table(controls, metrics)
    names = (str(findings.run.folder), findings.reference, next(iter(findings.differences)))
    folder, reference, other = map(shlex.quote, names)
    yield tables.text("compare", folder=folder, reference=reference, other=other)


def _beta(findings: _Findings) -> Iterator[str]:
    """Yield what the manager's β brings over a β that prefers nothing, and on which questions."""
    results = findings.run.results
    for system in results:
        uniform = f"{system}+{Control.UNIFORM_BETA}"
        if uniform not in results:
            continue
        pairs = pair_rows(results[uniform], results[system])
        groups = {"all questions": paired_differences(pairs, list(METRICS))}
        groups |= grouped_differences(pairs, _OF_RETRIEVAL)["relation"]
        yield tables.text("beta", system=code(system), uniform=code(uniform))
        yield group_table("dominant relation", groups, ("recall@2", "recall@5", "mrr"))
        first = next(each for each in groups["all questions"] if each.metric == "recall@5")
        yield f"**{verdict(first)}**"


def _answers(findings: _Findings) -> Iterator[str]:
    figures = findings.figures()
    yield "## Answers"
    yield tables.figures_table(figures, tables.ANSWERS)
    yield tables.text("answers")
    yield tables.figures_table(figures, tables.CITATIONS)
    yield tables.text("citations")
    checked = {system: found for system, found in figures.items() if found["judge_outcomes"] or found["coverage"]}
    if checked:
        yield "### Judged passages and checked claims"
        yield tables.systems_table(checked, tables.CHECKING)
        yield tables.text("checking")


def _tokens(findings: _Findings) -> Iterator[str]:
    figures = findings.figures()
    if not any(found["usage"]["calls"] for found in figures.values()):
        yield tables.text("no_tokens")
        return
    yield tables.systems_table(figures, tables.TOKENS)
    if all(found["cost"] is None for found in figures.values()):
        yield tables.text("no_cost")


def _command(findings: _Findings) -> str:
    """Return the command that makes the run again."""
    settings, about = findings.run.settings, findings.run.settings["questions"]
    words = ["mara eval", shlex.quote(about["file"]), "--workspace WORKSPACE", f"--seed {about['seed']}"]
    if about["limit"] is not None:
        words.append(f"--limit {about['limit']}")
    if settings["retrieval_only"]:
        words.append("--retrieval-only")
    words.append(f"--model {shlex.quote(settings['models']['chat'])}")
    words.append(f"--out {shlex.quote(findings.run.folder.name or '.')}")
    modes = [f"--mode {shlex.quote(system)}" for system in findings.run.results]
    return "```\n" + " \\\n  ".join([" ".join(words), *modes]) + "\n```"


def _caveats(findings: _Findings) -> Iterator[str]:
    settings, about = findings.run.settings, findings.run.settings["questions"]
    widths = [
        (each.high - each.low) / 2
        for found in findings.differences.values()
        for each in _chosen(found, ["recall@5"])
        if each.low is not None and each.high is not None
    ]
    if widths:
        yield tables.text("caveat_width", asked=f"{about['asked']:,}", width=f"{max(widths):.3f}")
    if len(findings.differences) > 1:
        yield tables.text("caveat_systems", systems=len(findings.differences))
    yield tables.text("caveat_chosen")
    if about["unresolved_gold"] or about["without_gold"]:
        lacking = {"unresolved": f"{about['unresolved_gold']:,}", "without_gold": f"{about['without_gold']:,}"}
        yield tables.text("caveat_gold", **lacking)
    if settings["models"]["chat"] == OFFLINE:
        yield tables.text("caveat_offline")
    yield tables.text("caveat_times")


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{plain(name)} {code(value)}" for name, value in values.items()) or NOTHING
