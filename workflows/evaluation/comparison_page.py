"""A comparison of two systems as a page to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from workflows.evaluation.compare import Comparison, Decided, Difference, Ranking
from workflows.evaluation.statistics import DRAWS, LEVEL, SIGNIFICANT
from workflows.evaluation.tables import text
from workflows.output.markdown import NOTHING, code, figure, interval, p_value, plain, signed, table

SHOWN_QUESTIONS = 10
"""Questions won, and questions lost, that a page shows in full."""

_SHOWN_RANKS = 5
_SHOWN_SETTINGS = 30
_LEAST_FOR_INTERVAL = 10
_IN_GROUPS = ("recall@5", "all-gold@5", "mrr", "em", "f1")
_GROUPING_WORDS = {"type": "question type", "hops": "hops", "relation": "dominant relation"}


def comparison_page(comparisons: Sequence[Comparison], shown: int = SHOWN_QUESTIONS) -> str:
    """Return comparisons as Markdown.

    Args:
        comparisons: one or more, each a chapter.
        shown: how many questions won, and how many lost, are shown in full; the rest is counted.
    """
    return "\n\n".join(block for each in comparisons for block in _chapter(each, shown)) + "\n"


def main_metric(found: Comparison) -> Difference:
    """Return recall@5 where it was asked for, else the first metric."""
    return next((each for each in found.metrics if each.metric == "recall@5"), found.metrics[0])


def verdict(found: Difference) -> str:
    """Return in one sentence what a difference says, and what it leaves open."""
    span = f"{signed(found.difference)}, 95 % interval {interval(found.low, found.high)}"
    if found.p_holm is None or found.low is None or found.high is None:
        return f"{found.n} questions are too few to tell anything about {found.metric}."
    tested = f"p {p_value(found.p_holm)} after correction"
    if found.p_holm <= SIGNIFICANT and found.low > 0:
        return f"B is better on {found.metric}: {span}, {tested}."
    if found.p_holm <= SIGNIFICANT and found.high < 0:
        return f"B is worse on {found.metric}: {span}, {tested}."
    if found.low <= 0 <= found.high:
        return f"{found.n} questions cannot tell A and B apart on {found.metric}: {span}, {tested}."
    return f"{found.n} questions hint at a difference on {found.metric} that does not stand: {span}, {tested}."


def _chapter(found: Comparison, shown: int) -> Iterator[str]:
    yield f"# {code(found.b)} against {code(found.a)}"
    yield f"A is {code(found.a)}, B is {code(found.b)}; differences are B − A, so a positive one is for B."
    yield "\n".join(f"- {line}" for line in _questions(found))
    yield f"**{verdict(main_metric(found))}**"
    yield "## Metrics"
    yield table([*_COLUMNS], ([cell(each) for cell in _COLUMNS.values()] for each in found.metrics))
    tested = sum(each.p is not None for each in found.metrics)
    yield text("intervals", level=f"{LEVEL:.0%}", draws=f"{DRAWS:,}", metrics=tested)
    yield text("groups", least=_LEAST_FOR_INTERVAL)
    for grouping, groups in found.groups.items():
        yield from _grouped(_GROUPING_WORDS[grouping], groups)
    if found.settings:
        yield "## What was set otherwise"
        yield _settings_table(found.settings)
    for title, questions in (("won", found.won), ("lost", found.lost)):
        yield f"## Questions {title} by B: {len(questions)}"
        for each in questions[:shown]:
            yield from _decided(each)
        if len(questions) > shown:
            yield f"And {len(questions) - shown} more; `mara compare --json` lists them all."


def _questions(found: Comparison) -> Iterator[str]:
    """Yield what was compared, and what had to be left out."""
    yield f"{found.paired} questions of both; B wins {len(found.won)}, loses {len(found.lost)}, {found.equal} are equal"
    for ids, side in ((found.only_a, "A"), (found.only_b, "B")):
        if ids:
            yield f"left out, since {side} alone was asked: {len(ids)}"
    if found.other_gold:
        yield f"gold passages differ in {found.other_gold} questions: each system is judged by its own run's"
    for failed, side in ((found.failed_a, "A"), (found.failed_b, "B")):
        if failed:
            yield f"{side} failed on {failed} questions, which count as nothing found"


_COLUMNS: Mapping[str, Callable[[Difference], str]] = {
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


def _grouped(words: str, groups: Mapping[str, Sequence[Difference]]) -> Iterator[str]:
    if len(groups) < 2:
        yield f"By {words}: all questions are {code(next(iter(groups), 'none'))}."
        return
    yield f"### By {words}"
    yield group_table(words, groups, _IN_GROUPS)


def group_table(words: str, groups: Mapping[str, Sequence[Difference]], metrics: Sequence[str]) -> str:
    """Return both systems' means and their difference, a row a group; metrics that no question has are left out.

    Args:
        words: what the groups are told apart by.
        groups: group -> differences.
        metrics: those to show.
    """
    metrics = [name for name in metrics if any(_of(group, name) for group in groups.values())]
    rows = []
    for group, differences in groups.items():
        found = [_of(differences, name) for name in metrics]
        questions = max((each.n for each in found if each), default=0)
        rows.append([plain(group), str(questions), *map(_cell, found)])
    return table([words, "questions", *(f"{name}: A, B, B − A" for name in metrics)], rows)


def _of(differences: Sequence[Difference], metric: str) -> Difference | None:
    """Return the difference of a metric, where any question has one."""
    return next((each for each in differences if each.metric == metric and each.n), None)


def _cell(found: Difference | None) -> str:
    if found is None:
        return NOTHING
    means = f"{figure(found.a)}, {figure(found.b)}, {signed(found.difference)}"
    return means if found.n < _LEAST_FOR_INTERVAL else f"{means} {interval(found.low, found.high)}"


def _settings_table(settings: Sequence[tuple[str, object, object]]) -> str:
    rows = [[code(name), code(a), code(b)] for name, a, b in settings[:_SHOWN_SETTINGS]]
    rest = len(settings) - len(rows)
    return table(["setting", "A", "B"], rows, left=3) + (f"\n\nAnd {rest} more." if rest else "")


def _decided(each: Decided) -> Iterator[str]:
    yield f"### {code(each.id)}: {plain(each.question)}"
    yield (
        f"Type {plain(each.type)}, hops {plain(each.hops)}, dominant relation {plain(each.relation)}."
        f" Recall@5 {figure(each.a.recall_at_5, 2)} → {figure(each.b.recall_at_5, 2)},"
        f" reciprocal rank {figure(each.a.reciprocal_rank, 2)} → {figure(each.b.reciprocal_rank, 2)}."
    )
    ranks = range(min(_SHOWN_RANKS, max(len(each.a.passages), len(each.b.passages))))
    if ranks:
        yield table(
            ["rank", "A", "B"],
            ([str(rank + 1), _rank_cell(each.a, rank), _rank_cell(each.b, rank)] for rank in ranks),
            left=3,
        )
    yield "\n".join(f"- {side} {_gold_ranks(ranking)}" for side, ranking in (("A", each.a), ("B", each.b)))


def _rank_cell(ranking: Ranking, place: int) -> str:
    """Return the passage of a rank, with a star where it is gold."""
    if place >= len(ranking.passages):
        return NOTHING
    return code(ranking.passages[place]) + (r" \*" if ranking.gold[place] else "")


def _gold_ranks(ranking: Ranking) -> str:
    """Return where the gold passages stand, and which were not found."""
    if ranking.failed:
        return "failed"
    ranks = [str(rank) for rank, gold in enumerate(ranking.gold, start=1) if gold]
    found = f"has gold at {', '.join(ranks)}" if ranks else "has no gold"
    missed = f"; not among its {len(ranking.passages)}: {', '.join(map(code, ranking.missed))}"
    return found + (missed if ranking.missed else "")
