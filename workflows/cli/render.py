"""Results as text for a terminal."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape as escape  # texts of users, documents and models, printed literally
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agents.answers.citations import parse_citations
from graph.errors import MaraError
from graph.text import counted
from workflows.output.printable import shortened
from workflows.output.quoted import excerpt_of, moved, place_of
from workflows.results import labelled, parts_of, understood_as, words_of
from workflows.settings.enums import ResultKind
from workflows.wording import TOLD_OF_REFUSALS

if TYPE_CHECKING:
    from workflows.indexing_run.report import IndexReport

_SHOWN_PASSAGES, _SHOWN_OF_A_PLACE = 5, 3
_SHOWN_FILES = 10
_ALL, _ALL_OF_DRY_RUN = "`mara show --skipped` names them", "the same with --json names them"
_PASSAGE = re.compile(r"passage \[[0-9]+\]")


def warn(console: Console, text: str) -> None:
    """Print something that may have to be acted upon."""
    console.print(text, style="yellow", markup=False)


def aside(console: Console, text: str) -> None:
    """Print something beside the result."""
    console.print(text, style="dim", markup=False)


def fields(console: Console, values: Mapping[str, Any]) -> None:
    """Print a line for each value that there is, with its name in front."""
    table = Table(show_header=False, box=None)
    for name, value in values.items():
        if value not in ("", None, [], {}):
            table.add_row(name.replace("_", " "), escape(_on_a_line(value)))
    console.print(table)


def _on_a_line(value: object) -> str:
    if isinstance(value, Mapping):
        return pairs(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def error(fault: MaraError) -> str:
    """Return an error as one message with what to do."""
    hint = f"\n[dim]{escape(fault.hint)}.[/]" if fault.hint else ""
    return f"[red]Error[/]: {escape(fault.message)}.{hint}"


def index_report(console: Console, report: IndexReport, triples: Path | None = None) -> None:
    """Print what an indexing run did; ``triples`` is the file of triples that it was given."""
    console.print(_changes(report))
    console.print(f"{report.entities} entities, {report.facts} facts, {report.edges} edges")
    aside(console, f"{pairs(report.models)}; {report.imported} passages with imported triples")
    if triples and not report.imported:
        warn(console, f"no triples imported from {triples}: none of its rows has triples of a passage here")
    if report.requests or report.cached:
        cost = "" if report.cost is None else f", cost {report.cost:.4g}"
        asked = f"{report.requests} requests, {report.cached} passages from kept replies"
        aside(console, f"{asked}, {report.tokens_in} tokens in, {report.tokens_out} out{cost}")
    if report.notes:
        aside(console, f"dropped or defaulted: {pairs(report.notes)}")
    _untypable(console, report.unfound_types)
    _unread(console, "skipped", [each.reason for each in report.skipped], sum(report.skipped_counts.values()), _ALL)
    if report.failed_count:
        count = report.failed_count
        warn(console, f"nothing could be extracted from {count} passages; run the command again to retry")
        key, reason = next(iter(report.failed.items()))
        warn(console, f"  {key}: {reason}")
    if not report.facts:
        warn(console, "no facts: the walk can use only names and passages")
    relationships_problem(console, report.relationships)
    reasons = [each.reason for each in report.refused]
    _unread(console, "refused", reasons, report.refused_count, _ALL, "; everything else is done")


def synced(console: Console, report: IndexReport) -> None:
    """Print what a sync did on one line, and behind it the first file that was refused."""
    console.print(_changes(report))
    if report.refused:
        warn(console, f"refused: {report.refused[0].reason}; {_ALL}")


def _changes(report: IndexReport) -> str:
    removed = f" {report.removed} removed," if report.removed else ""
    return (
        f"[bold]{report.passages}[/] passage{'' if report.passages == 1 else 's'} in {escape(report.workspace)}:"
        f" {report.added} added, {report.replaced} replaced,{removed} {report.unchanged} unchanged,"
        f" in {report.seconds:.1f} s"
    )


def relationships_problem(console: Console, relationships: Mapping[str, Any]) -> None:
    """Print why the relationship graph could not be brought in step; nothing where it could."""
    if "problem" in relationships:
        warn(console, f"the relationship graph is not in step: {relationships['problem']}")


def _untypable(console: Console, types: Sequence[str]) -> None:
    """Print the user's own types that nothing finds."""
    if types:
        warn(console, f"own types that no rule finds: {', '.join(types)}; give them cues, or extract with a model")


def _unread(
    console: Console, what: str, reasons: Sequence[str], count: int, how_to_see_all: str, outcome: str = ""
) -> None:
    """Print how many files were not read, and why the first ones."""
    if count:
        warn(console, f"{what}: {counted(count, 'file')}{outcome}")
    for reason in reasons[:_SHOWN_FILES]:
        warn(console, f"  {reason}")
    if count > _SHOWN_FILES:
        warn(console, f"  and {count - _SHOWN_FILES:,} more: {how_to_see_all}")


def skipped(console: Console, listing: Mapping[str, Any]) -> None:
    """Print the files that indexing did not read, by source."""
    if not listing["sources"]:
        console.print("No run has noted yet which files it did not read: index or sync again")
    for source in listing["sources"]:
        count = counted(source["count"], "file")
        console.print(f"[bold]{escape(source['source'])}[/], {source['at']}: {count} not read")
        for each in source["files"]:
            console.print(f"  {escape(each['reason'])}")
        if more := source["count"] - len(source["files"]):
            warn(console, f"  and {more:,} more; of all: {pairs(source['reasons'])}")


def preview(console: Console, plan: Mapping[str, Any]) -> None:
    """Print what a run would do."""
    console.print(
        f"[bold]{plan['passages']}[/] passages for {escape(plan['workspace'])}: {len(plan['added'])} would be added,"
        f" {len(plan['changed'])} replaced, {len(plan['removed'])} removed, {plan['unchanged']} are unchanged"
    )
    for change, sources in plan["sources"].items():
        more = f" and {len(sources) - _SHOWN_FILES} more" if len(sources) > _SHOWN_FILES else ""
        if sources:
            console.print(f"{change}: {escape(', '.join(sources[:_SHOWN_FILES]))}{more}")
    if plan["reread"]:
        warn(console, f"{plan['reread']} of those replaced are read again by another model, prompt or set of types")
    _untypable(console, plan["unfound_types"])
    took = plan["extraction"]
    if took["to_ask"] or took["kept"]:
        needs = ("requests", "prompt_tokens", "completion_tokens", "seconds", "cost")
        estimate = pairs({name: round(took[name], 4) for name in needs if took[name] is not None}).replace("_", " ")
        asked = f"{took['to_ask']} to ask, {took['kept']} kept; about {estimate}"
        console.print(f"extraction by {escape(plan['extractor'])}: {asked}")
    left_out = [each["reason"] for each in plan["skipped"]]
    _unread(console, "skipped", left_out, sum(plan["skipped_counts"].values()), _ALL_OF_DRY_RUN)
    asked_model = took["sample"]["usage"]["requests"]
    aside(console, f"Nothing was written{' but the replies to the sample' if asked_model else ''}")
    reasons = [refused["reason"] for refused in plan["refused"]]
    _unread(console, "refused", reasons, len(reasons), _ALL_OF_DRY_RUN, "; everything else can be indexed")


def removal(console: Console, done: Mapping[str, Any]) -> None:
    """Print what was removed."""
    past = f" and {counted(done['versions'], 'past version')}" if done["versions"] else ""
    removed = f"{counted(len(done['removed']), 'passage')}{past} removed"
    console.print(f"{removed}; {done['passages']} left in {escape(done['workspace'])}")
    relationships_problem(console, done["relationships"])


def _place(passage: Mapping[str, Any], citations: Sequence[Mapping[str, Any]], *, verbose: bool) -> str:
    """Return a passage's source, section and page; also its id, with ``verbose`` or where it has nothing else."""
    key = passage["id"] if verbose or not (passage["title"] or passage["source"]) else ""
    return " · ".join(filter(None, (key, place_of(passage, citations))))


def answer(console: Console, result: Mapping[str, Any], *, verbose: bool = False, has_filter: bool = False) -> None:
    """Print an answer with its passages, its claims where they were checked, and errors on the way.

    Args:
        console: console to print on.
        result: result of a question.
        verbose: whether to print ids, facts, β, judge scores and how passages were ranked, too.
        has_filter: whether a filter was set.
    """
    understood(console, result)
    _answer_over_sources(console, result, verbose=verbose, has_filter=has_filter)
    if verbose:
        judged(console, result)
    checked(console, result)
    if verbose:
        walked(console, result)
    for message in notes(result["errors"] if verbose else untold(result), verbose=verbose):
        warn(console, message)
    if not verbose:
        aside(console, f"\n{_origin(result)}; --verbose tells how the passages were found")


def untold(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the notes of a result that its refusal, if it is one, does not tell."""
    is_refusal = result["answer_kind"] == ResultKind.REFUSAL
    return [each for each in result["errors"] if not is_refusal or each["kind"] not in TOLD_OF_REFUSALS]


def _answer_over_sources(console: Console, result: Mapping[str, Any], *, verbose: bool, has_filter: bool) -> None:
    """Print an answer over its sources; of evidence, what is also related behind those of the answer itself."""
    first, related = parts_of(result["answer"], result["answer_kind"])
    if result["answer_kind"] != ResultKind.EVIDENCE or verbose:
        console.print(marked(console, headed(result, has_filter=has_filter)))
        if result["answer_kind"] != ResultKind.REFUSAL or verbose:
            console.print()
            passages(console, _shown_passages(result, verbose=verbose), result["citations"], verbose=verbose)
        return
    for text in (headed({**result, "answer": first}), related and f"\n{words_of(result).related}:\n\n{related}"):
        if text:
            console.print(marked(console, text))
            console.print()
            cited = parse_citations(text, {each["number"] for each in result["passages"]}).numbers
            cited_sources(console, result, cited)


def cited_sources(console: Console, result: Mapping[str, Any], cited: Collection[int]) -> None:
    """Print where cited passages stand; many of one place, such as the rows of a table, on one line."""
    by_place: dict[str, list[Mapping[str, Any]]] = {}
    for passage in result["passages"]:
        if passage["number"] in cited:
            by_place.setdefault(place_of(passage, result["citations"]), []).append(passage)
    for place, here in by_place.items():
        lines = [heading(passage, result["citations"]) for passage in here]
        if len(here) > _SHOWN_OF_A_PLACE:
            numbers = " ".join(f"[{passage['number']}]" for passage in here)
            lines = [f"[bold]{escape(numbers)}[/] [dim]· {escape(place)}[/]"]
        for line in lines:
            console.print(f"[green]●[/] {line}")


def marked(console: Console, answer: str) -> Text:
    """Return an answer with what stands between two ``**`` in bold, where a terminal can show that."""
    parts = answer.split("**") if console.is_terminal and answer.count("**") % 2 == 0 else [answer]
    return Text.assemble(*((part, "bold" if place % 2 else "") for place, part in enumerate(parts)))


def understood(console: Console, result: Mapping[str, Any]) -> None:
    """Print what a question that leans on earlier turns was understood as."""
    if words := understood_as(result):
        console.print(f"[dim]Understood as: {escape(words)}[/]\n")


def passages(
    console: Console,
    shown: Sequence[Mapping[str, Any]],
    citations: Sequence[Mapping[str, Any]],
    *,
    verbose: bool = False,
) -> None:
    """Print where passages come from, and their cited words behind a mark; of one that is not cited, its beginning."""
    cited = {citation["number"] for citation in citations}
    for passage in shown:
        mark = "[green]●[/]" if passage["number"] in cited else " "
        console.print(f"{mark} {heading(passage, citations, verbose=verbose)}")
        console.print(Padding(escape(excerpt_of(passage, citations)), (0, 0, 0, 6)), soft_wrap=False)


def heading(passage: Mapping[str, Any], citations: Sequence[Mapping[str, Any]], *, verbose: bool = False) -> str:
    """Return a passage's number, title and the place of its cited words, as markup; also its id, with ``verbose``."""
    parts = [f"[bold]{escape(part)}[/]" for part in (f"[{passage['number']}]", passage["title"]) if part]
    if place := _place(passage, citations, verbose=verbose):
        parts.append(f"[dim]{escape(f'· {place}' if passage['title'] else place)}[/]")
    if ended := passage.get("superseded_at"):
        parts.append(f"[yellow]· superseded on {escape(ended)}[/]")
    if move := moved(passage):
        parts.append(f"[cyan]· {escape(move)}[/]")
    return " ".join(parts)


def headed(result: Mapping[str, Any], *, has_filter: bool = False) -> str:
    """Return an answer under its label, and under the date that it was asked as of."""
    as_of = f"As of {result['as_of']}:\n\n" if result.get("as_of") else ""
    return f"{as_of}{labelled(result, _on_one_line, has_filter=has_filter)}"


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _origin(result: Mapping[str, Any]) -> str:
    """Return the origin of an answer: the model that gave it, or that it is evidence, or none."""
    from workflows.runtime.resources import OFFLINE

    chat = result["models"]["chat"]
    if result["answer_kind"] == ResultKind.ANSWER:
        return f"answered by {chat}"
    kind = "evidence" if result["answer_kind"] == ResultKind.EVIDENCE else "no evidence"
    return f"{kind}, {'no model configured' if chat == OFFLINE else f'model {chat}'}"


def notes(errors: Sequence[Mapping[str, Any]], *, verbose: bool = False) -> list[str]:
    """Return what a result's errors say; without ``verbose`` those that differ in the passage alone once."""
    if verbose:
        return [f"{record['node']} (attempt {record['attempt']}): {record['message']}" for record in errors]
    alike = Counter(_PASSAGE.sub("a passage", record["message"]) for record in errors)
    first = {_PASSAGE.sub("a passage", record["message"]): record["message"] for record in reversed([*errors])}
    return [first[message] if count == 1 else f"{message} ({count} times)" for message, count in alike.items()]


def walked(console: Console, result: Mapping[str, Any]) -> None:
    """Print the facts, the β and the models that ranked the passages."""
    facts = [_fact(fact) for fact in result["facts"] if fact["kept"]]
    if facts:
        aside(console, f"\nfacts: {'; '.join(facts)}")
    if result["relation_factors"]:
        aside(console, f"β: {shares_of(result['relation_factors']['entity_entity'])}")
    engine = f" ({result['walk']['engine']})" if result["walk"] else ""
    aside(console, f"ranked by {result['ranked_by'] or 'nothing'}{engine}; {pairs(result['models'])}")


def shares_of(beta: Mapping[str, float]) -> str:
    """Return the relation types and their shares, the largest first."""
    return ", ".join(f"{name} {share:.2f}" for name, share in sorted(beta.items(), key=lambda item: -item[1]))


def _fact(fact: Mapping[str, Any]) -> str:
    ended = f" (superseded on {fact['superseded_at']})" if fact.get("superseded_at") else ""
    return f"{fact['subject']} {fact['predicate']} {fact['object']}{ended}"


def _shown_passages(result: Mapping[str, Any], *, verbose: bool) -> list[Mapping[str, Any]]:
    """Return the cited passages; with ``verbose``, or where none is cited, the first ones, too."""
    cited = {citation["number"] for citation in result["citations"]}
    n_first = _SHOWN_PASSAGES if verbose or not cited else 0
    return [hit for place, hit in enumerate(result["passages"]) if place < n_first or hit["number"] in cited]


def judged(console: Console, result: Mapping[str, Any]) -> None:
    """Print the judge's thresholds."""
    for bar in result.get("bars") or ():
        limits = f"τ {bar['tau']:.2f}, σ {bar['sigma']:.2f}, bar {bar['bar']:.2f}, floor {bar['floor']:g}"
        aside(console, f"judged {bar['judged']}, kept {bar['kept']}: {limits}; {shortened(bar['question'], 240)}")


def checked(console: Console, result: Mapping[str, Any]) -> None:
    """Print the verdicts on the claims, the coverage of the question, and the follow-up questions."""
    from agents.claim_judge import Verdict

    claims = result.get("claims") or ()
    for claim in claims:
        if claim["verdict"] not in (Verdict.SUPPORTED, Verdict.QUOTED):
            warn(console, f"{claim['verdict']}, {'marked' if claim['kept'] else 'removed'}: {claim['text']}")
    if claims and result["answer_kind"] == ResultKind.ANSWER:
        supported = sum(claim["verdict"] == Verdict.SUPPORTED for claim in claims)
        aside(console, f"{supported} of {len(claims)} claims supported ({result['claims_checked_by']})")
    if result.get("coverage"):
        aside(console, result["coverage"].lower())
        for component in result["components"] if len(result["components"]) > 1 else ():
            aside(console, f"  {component['coverage'].lower()}: {component['text']}")
    for each in result.get("follow_ups") or ():
        outcome = " ".join([each["outcome"], *(f"[{number}]" for number in each["passages"])])
        aside(console, f"follow-up: {each['question']} ({outcome})")


def doctor(console: Console, result: Mapping[str, Any]) -> None:
    """Print the findings on a workspace; after a repair, also the steps taken."""
    if "done" in result:
        for step in result["done"] or ["Nothing was done"]:
            console.print(f"[bold]→[/] {escape(step)}")
    for finding in result["findings"]:
        _finding(console, finding)
    _finding(console, {**result["chat_model"], "check": "chat model", "repairable": False, "examples": ()})
    problems = [finding for finding in result["findings"] if not finding["ok"]]
    if not problems:
        console.print(f"[green]{escape(result['workspace'])} is in order[/]")
        return
    mendable = sum(finding["repairable"] for finding in problems)
    hint = f"; `mara doctor --repair` puts {mendable} of them right" if mendable else ""
    console.print(f"[red]Problems: {len(problems)}[/]{hint}")


def _finding(console: Console, finding: Mapping[str, Any]) -> None:
    mark = "[yellow]•[/]" if finding["repairable"] else "[green]✓[/]"
    console.print(f"{mark if finding['ok'] else '[red]✗[/]'} {escape(finding['check'])}: {escape(finding['message'])}")
    if finding["examples"]:
        console.print(f"    [dim]{escape('; '.join(finding['examples']))}[/]")
    if finding["advice"]:
        console.print(f"    {escape(finding['advice'])}")


def demo(console: Console, result: Mapping[str, Any]) -> None:
    """Print the sample's questions and answers."""
    for each in result["results"]:
        console.print(f"[cyan]?[/] {escape(each['question'])}")
        console.print(Padding(marked(console, headed(each)), (0, 0, 0, 2)), soft_wrap=False)
        cited = {citation["number"] for citation in each["citations"]}
        for number, passage in enumerate(each["passages"], start=1):
            if number in cited:
                console.print(f"  [dim]{escape(f'[{number}]')} {escape(passage['title'])}[/]")
    n = len(result["results"])
    report = result["index"]
    console.print(
        f"\n{report['passages']} passages, {report['entities']} entities, {report['facts']} facts;"
        f" {n} questions: recall@5 {result['recall_at_5']:.2f},"
        f" {result['answers_with_gold']} results hold the gold answer"
    )
    console.print(f"[dim]{escape(pairs(result['results'][0]['models']))}[/]")
    question, workspace = shlex.quote(result["results"][0]["question"]), shlex.quote(report["workspace"])
    console.print(
        f"Ask it yourself: {escape(f'mara ask {question} --workspace {workspace}')}",
        soft_wrap=True,  # it is copied
    )


def pairs(values: Mapping[str, Any]) -> str:
    """Return names and values on one line."""
    return ", ".join(f"{name} {value}" for name, value in values.items())
