"""The report of a run: ``report.md`` and its plots."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph.storage.workspace import write_atomically
from graph.text import counted
from workflows.evaluation import DEPTHS, plots, tables
from workflows.evaluation.compare import METRICS, Difference, grouped_differences, pair_rows, paired_differences
from workflows.evaluation.comparison_page import group_table, verdict
from workflows.evaluation.statistics import DRAWS
from workflows.evaluation.systems import Control, is_control
from workflows.output.markdown import NOTHING, code, figure, interval, plain, signed, table
from workflows.output.plotting import can_plot
from workflows.runs.evaluation_files import PLOTS, REPORT, Run
from workflows.runtime.resources import OFFLINE

_OF_RETRIEVAL = ("recall@2", "recall@5", "recall@10", "all-gold@5", "mrr")
_BESIDE = {"recall@5": "R@5", "all-gold@5": "all@5"}
_OF_ANSWERS = ("em", "f1")
_RECALL_PLOT, _DIFFERENCES_PLOT, _LATENCY_PLOT = PLOTS


@dataclass(frozen=True)
class _Findings:
    """A run, and what is computed of it once.

    Attributes:
        controls: systems in which something stands in for an agent.
        reference: the baseline that the others are compared with.
        differences: system -> its differences to the reference, which is left out.
    """

    run: Run
    controls: tuple[str, ...]
    reference: str
    differences: Mapping[str, Sequence[Difference]]

    @property
    def results(self) -> list[str]:
        """The systems that are no controls."""
        return [system for system in self.run.results if system not in self.controls]

    @property
    def answered(self) -> bool:
        return not self.run.settings["retrieval_only"]

    def figures(self, systems: Sequence[str] | None = None) -> dict[str, Any]:
        chosen = self.run.results if systems is None else systems
        return {system: self.run.metrics["systems"][system] for system in chosen}


def write_report(run: Run) -> Path:
    """Write ``report.md`` into a run's folder, with plots where matplotlib is installed; return its path."""
    findings = _findings(run)
    drawn = _draw(findings)
    path = run.folder / REPORT
    write_atomically(path, "\n\n".join(_blocks(findings, drawn)) + "\n")
    return path


def _findings(run: Run) -> _Findings:
    controls = tuple(system for system in run.results if is_control(run.settings["systems"][system]))
    reference = run.metrics["baseline"]
    differences = {
        system: paired_differences(pair_rows(run.results[reference], rows).both, list(METRICS))
        for system, rows in run.results.items()
        if system != reference
    }
    return _Findings(run, controls, reference, differences)


def _draw(findings: _Findings) -> tuple[str, ...]:
    """Draw what there is to draw, and take away plots of an earlier report; return the names of the files."""
    folder, figures = findings.run.folder, findings.figures()
    for name in PLOTS:
        (folder / name).unlink(missing_ok=True)
    if not can_plot():
        return ()
    drawn = []
    first_results = [*findings.results, *findings.controls]
    recall = {system: _curve(figures[system]) for system in first_results if _curve(figures[system])}
    if recall:
        plots.draw_recall(folder / _RECALL_PLOT, recall, findings.controls)
        drawn.append(_RECALL_PLOT)
        if findings.differences:
            shown = (*_OF_RETRIEVAL, *(("f1",) if _has(findings, "f1") else ()))
            chosen = {system: _chosen(found, shown) for system, found in findings.differences.items()}
            plots.draw_differences(folder / _DIFFERENCES_PLOT, chosen, findings.reference, findings.controls)
            drawn.append(_DIFFERENCES_PLOT)
    latency = {system: found["latency_ms"] for system, found in figures.items() if found["latency_ms"]["total"]}
    if latency:
        plots.draw_latency(folder / _LATENCY_PLOT, latency)
        drawn.append(_LATENCY_PLOT)
    return tuple(drawn)


def _curve(figures: Mapping[str, Any]) -> dict[int, float]:
    return {depth: figures["recall"][str(depth)] for depth in DEPTHS if figures["recall"][str(depth)] is not None}


def _chosen(found: Sequence[Difference], metrics: Sequence[str]) -> list[Difference]:
    return [each for each in found if each.metric in metrics]


def _has(findings: _Findings, metric: str) -> bool:
    """Tell whether any question has a value of a metric."""
    return any(METRICS[metric].of(row) is not None for rows in findings.run.results.values() for row in rows)


def _blocks(findings: _Findings, drawn: Sequence[str]) -> Iterator[str]:
    yield from _opening(findings)
    yield from _side_by_side(findings)
    yield from _retrieval(findings, drawn)
    yield from _differences(findings, drawn)
    yield from _beta(findings)
    if findings.answered:
        yield from _answers(findings)
    yield from _latency(findings, drawn)
    yield "## Fallbacks and failures"
    yield tables.systems_table(findings.figures(), tables.TROUBLE)
    yield (
        "A question that failed counts as nothing found and nothing answered; a fallback stands in where an agent's"
        " reply could not be used."
    )
    yield "## Tokens and cost"
    yield from _tokens(findings)
    yield "## How to reproduce"
    yield _command(findings)
    yield "## What these figures do not say"
    yield "\n".join(f"- {line}" for line in _caveats(findings))
    if not can_plot():
        yield (
            "The plots are left out, since matplotlib is not installed: `pip install 'mara-rag[plots]'`, then run the"
            " same command again: nothing is asked twice."
        )


def _opening(findings: _Findings) -> Iterator[str]:
    run, about = findings.run, findings.run.settings["questions"]
    systems = len(run.results)
    yield f"# Evaluation on {plain(about['file'])}: {about['asked']:,} questions, {counted(systems, 'system')}"
    best = _best(findings)
    if best:
        yield best
    yield "## What was run"
    drawn = f", drawn by seed {about['seed']}" if about["limit"] is not None else f"; seed {about['seed']}"
    models, versions = run.settings["models"], run.settings["versions"]
    workflow = "retrieval alone" if run.settings["retrieval_only"] else "retrieval and answers"
    lines = [
        f"Questions: {code(about['file'])}, {about['asked']:,} of {about['count']:,}{drawn};"
        f" SHA-256 {code(about['sha256'])}",
        f"Workspace: {code(run.settings['workspace_id'])}, generation {run.settings['generation']}",
        f"What was asked: {workflow}, {run.settings['top_k']} passages a question",
        f"Models: {_pairs(models)}",
        f"Versions: {_pairs(versions)}",
        f"Systems: {', '.join(code(system) for system in run.results)}; their settings in full are in `run.json`",
    ]
    yield "\n".join(f"- {line}" for line in lines)


def _best(findings: _Findings) -> str:
    """Return which systems have the highest recall@5, controls aside."""
    recall = {system: found["recall"]["5"] for system, found in findings.figures(findings.results).items()}
    known = {system: value for system, value in recall.items() if value is not None}
    if not known:
        return ""
    highest = max(known.values())
    names = " and ".join(code(system) for system, value in known.items() if value == highest)
    aside = "Controls aside, the" if findings.controls else "The"
    return f"{aside} highest recall@5 is **{figure(highest)}**, of {names}."


def _side_by_side(findings: _Findings) -> Iterator[str]:
    """Yield the table of answers, where the run holds all systems that ``--answers`` asks."""
    model = findings.run.settings["models"]["chat"]
    if not findings.answered or not tables.is_answer_run(findings.run.results, model):
        return
    yield "## Evidence, side by side" if model == OFFLINE else f"## Answers of {code(model)}, side by side"
    rows = [[code(name), *cells] for name, *cells in tables.answer_rows(findings.figures())]
    missing = [[code(name), "left out", *[NOTHING] * (len(tables.COLUMNS) - 2)] for name in tables.left_out(model)]
    yield table(list(tables.COLUMNS), [*rows, *missing])
    yield tables.LEGEND
    if tables.remarks(model):
        yield "\n".join(f"- {remark}" for remark in tables.remarks(model))


def _retrieval(findings: _Findings, drawn: Sequence[str]) -> Iterator[str]:
    yield "## Retrieval"
    about = findings.run.settings["questions"]
    with_gold = about["asked"] - about["without_gold"]
    yield (
        f"Means over the {with_gold:,} questions that have gold passages; the best of each column is bold. *R@k*: the"
        " share of a question's gold passages among the first k; *all@k*: the share of questions whose gold passages"
        " are all among them."
    )
    beside = _beside(findings)
    if beside:
        yield (
            f"The last columns are differences to {code(findings.reference)}, question by question, with their 95 %"
            " bootstrap intervals."
        )
    if findings.results:
        yield tables.figures_table(findings.figures(findings.results), tables.RETRIEVAL, bold=True, beside=beside)
    if findings.controls:
        yield "### Controls"
        yield (
            "These are not results. They say how much there is to win: oracles know the gold passages, uniform and"
            " random β know nothing of the question; `gold-passages` and `closed-book` retrieve nothing."
        )
        yield tables.figures_table(findings.figures(findings.controls), tables.RETRIEVAL, beside=beside)
    if _RECALL_PLOT in drawn:
        yield f"![Recall by number of passages]({_RECALL_PLOT})"
        left_out = len(findings.run.results) - plots.MOST_CURVES
        if left_out > 0:
            yield f"The plot shows the first {plots.MOST_CURVES} systems; {left_out} more are in the table."
    if findings.results:
        yield "### Precision and F1"
        yield (
            "At each number of passages: the share of them that is gold, and each question's F1 of that and recall."
            " Where a question has few gold passages, neither can be high at great depth."
        )
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


def _corrected_over(findings: _Findings) -> int:
    """Return how many metrics of a system have a p: those that p is corrected over."""
    return max(sum(each.p is not None for each in found) for found in findings.differences.values())


def _differences(findings: _Findings, drawn: Sequence[str]) -> Iterator[str]:
    yield f"## Differences to {code(findings.reference)}"
    if not findings.differences:
        yield "There is one system alone: nothing to compare with."
        return
    yield (
        f"Each system minus {code(findings.reference)}, question by question: the mean, its 95 % bootstrap interval"
        f" ({DRAWS:,} resamples), and p by random exchange of the two systems (McNemar's exact test for EM and for all"
        f" gold), after Holm's correction over the {_corrected_over(findings)} metrics of `mara compare` that have one."
        " Bold: p at most 0.05."
    )
    metrics = (*_OF_RETRIEVAL, *(_OF_ANSWERS if _has(findings, "f1") else ()))
    results = {system: found for system, found in findings.differences.items() if system in findings.results}
    controls = {system: found for system, found in findings.differences.items() if system in findings.controls}
    if results:
        yield tables.difference_table(results, metrics)
    if controls:
        yield "Controls, which are not results:"
        yield tables.difference_table(controls, metrics)
    if _DIFFERENCES_PLOT in drawn:
        yield f"![Differences with intervals]({_DIFFERENCES_PLOT})"
    folder = shlex.quote(str(findings.run.folder))
    other = shlex.quote(next(iter(findings.differences)))
    yield (
        "The questions won and lost, and the differences by type, hops and dominant relation:\n\n"
        f"```\nmara compare {folder}:{shlex.quote(findings.reference)} {folder}:{other} --out comparison.md\n```"
    )


def _beta(findings: _Findings) -> Iterator[str]:
    """Yield what the manager's β brings over a β that prefers nothing, and on which questions."""
    results = findings.run.results
    for system in results:
        uniform = f"{system}+{Control.UNIFORM_BETA}"
        if uniform not in results:
            continue
        pairs = pair_rows(results[uniform], results[system]).both
        groups = {"all questions": paired_differences(pairs, list(METRICS))}
        groups |= grouped_differences(pairs, _OF_RETRIEVAL)["relation"]
        yield f"## What β brings to {code(system)}"
        yield (
            f"A is {code(uniform)}, the same system with a β that prefers nothing; B is {code(system)}. The groups are"
            " by the relation type that β puts first."
        )
        yield group_table("dominant relation", groups, ("recall@2", "recall@5", "mrr"))
        first = next(each for each in groups["all questions"] if each.metric == "recall@5")
        yield f"**{verdict(first)}**"


def _answers(findings: _Findings) -> Iterator[str]:
    yield "## Answers"
    yield tables.figures_table(findings.figures(), tables.ANSWERS)
    yield (
        "EM and F1 as SQuAD normalises, the best of the gold answers; a refusal counts as wrong. Whether a citation is"
        " supported is judged by words: the cited passages hold the sentence's numbers, names and most of its other"
        " words. That is a proxy, not a reading."
    )
    yield "### Citations"
    yield tables.figures_table(findings.figures(), tables.CITATIONS)
    yield (
        "Citation recall is the share of an answer's sentences that the passages they cite support together, and"
        " citation precision the share of its citations that such a sentence needs or that support it alone (ALCE),"
        " judged by words as above and averaged over the answers that are no refusal. A refusal cites no gold passage,"
        " and has no precision."
    )
    checked = {
        system: found for system, found in findings.figures().items() if found["judge_outcomes"] or found["coverage"]
    }
    if checked:
        yield "### Judged passages and checked claims"
        yield tables.systems_table(checked, tables.CHECKING)
        yield (
            "Here each system judges itself: its own judge kept the passages, and its own claim judge found the claims"
            " supported and the question answered. Between systems with the same judge the figures compare."
        )


def _latency(findings: _Findings, drawn: Sequence[str]) -> Iterator[str]:
    yield "## Latency"
    yield "Milliseconds a question, over the questions that were answered; what is loaded once was loaded before."
    yield tables.systems_table(findings.figures(), tables.LATENCY)
    yield "By node, p50 / p95. Nodes that run side by side overlap, so that their sum may exceed the whole."
    yield tables.node_table(findings.figures())
    if _LATENCY_PLOT in drawn:
        yield f"![Latency by node]({_LATENCY_PLOT})"


def _tokens(findings: _Findings) -> Iterator[str]:
    figures = findings.figures()
    if not any(found["usage"]["calls"] for found in figures.values()):
        yield "No chat model was asked: no tokens, no cost."
        return
    yield tables.systems_table(figures, tables.TOKENS)
    if all(found["cost"] is None for found in figures.values()):
        yield "The cost is not told: no prices were given, or a server told no tokens."


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
        yield (
            f"{about['asked']:,} questions tell recall@5 of two systems apart to about ±{max(widths):.3f} here; a"
            " difference whose interval holds 0 may still be there."
        )
    if len(findings.differences) > 1:
        yield (
            f"p is corrected over the metrics of one system, not over the {len(findings.differences)} systems: among so"
            " many, one that is singled out afterwards must be measured on other questions."
        )
    yield "If a setting was chosen by these questions, its figures flatter it."
    if about["unresolved_gold"] or about["without_gold"]:
        yield (
            f"{about['unresolved_gold']:,} gold passages of the file were not found in the workspace, and count as not"
            " retrieved;"
            f" {about['without_gold']:,} questions have no gold passage at all and take no part in retrieval figures."
        )
    if settings["models"]["chat"] == OFFLINE:
        yield "No language model took part: the agents are the offline ones, and a model may do better or worse."
    yield "Times are of one machine and of whatever else ran on it."


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{plain(name)} {code(value)}" for name, value in values.items()) or NOTHING
