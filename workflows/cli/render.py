"""Results as text for a terminal."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
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
from workflows.output.quoted import excerpt_of, moved, place_of
from workflows.results import labelled, parts_of, understood_as, words_of
from workflows.settings.enums import ResultKind
from workflows.wording import TOLD_OF_REFUSALS

if TYPE_CHECKING:
    from workflows.indexing_run.report import IndexReport

_NAME = "mara"
_SHOWN_PASSAGES, _NAMED_PASSAGES, _SHOWN_OF_A_PLACE = 5, 3, 3
_SHOWN_SOURCES = 10
_SHOWN_FAILURES = 5
_SHOWN_FILES = 10
_ALL, _ALL_OF_DRY_RUN = "`mara show --skipped` names them", "the same with --json names them"
_PASSAGE = re.compile(r"passage \[[0-9]+\]")


def error(fault: MaraError) -> str:
    """Return an error as one message with what to do."""
    hint = f"\n[dim]{escape(fault.hint)}.[/]" if fault.hint else ""
    return f"[red]Error[/]: {escape(fault.message)}.{hint}"


def own_command() -> str:
    """Return how this shell starts the command line: by its name, or by the path where that is not found."""
    called, executable = Path(sys.argv[0]), shutil.which(_NAME)
    is_installed = called.stem == _NAME and called.exists()
    is_found = executable is not None and is_installed and os.path.samefile(executable, called)
    return shlex.quote(str(called)) if is_installed and not is_found else _NAME


def index_report(console: Console, report: IndexReport, triples: Path | None = None) -> None:
    """Print what an indexing run did; ``triples`` is the file of triples that it was given."""
    from workflows.indexing_run.report import UNTYPED

    console.print(_changes(report))
    console.print(f"{report.entities} entities, {report.facts} facts, {report.edges} edges")
    console.print(f"[dim]{escape(pairs(report.models))}; {report.imported} passages with imported triples[/]")
    _own_types(console, report.own_types, report.unfound_types)
    if triples and not report.imported:
        reason = "its ids and texts match no passage" if report.unmatched_triples else "it is empty"
        console.print(f"[yellow]no triples imported from {escape(str(triples))}: {reason}[/]")
    _spending(console, report)
    for name in ("long_passages", "identical", "unmatched_triples", "kept_of_refused"):
        if getattr(report, name):
            console.print(f"[yellow]{name.replace('_', ' ')}: {getattr(report, name)}[/]")
    if untyped := sum(report.notes.get(name, 0) for name in UNTYPED):
        console.print(f"[dim]{untyped} triples without a cue for their relation type count as ATTRIBUTION[/]")
    if left := {reason: count for reason, count in report.notes.items() if reason not in UNTYPED}:
        console.print(f"[dim]dropped or defaulted: {escape(pairs(left))}[/]")
    _unread(console, "skipped", [each.reason for each in report.skipped], sum(report.skipped_counts.values()), _ALL)
    if report.failed_count:
        console.print(
            f"[yellow]nothing could be extracted from {report.failed_count} passages; run the command again to retry[/]"
        )
        for key, reason in list(report.failed.items())[:_SHOWN_FAILURES]:
            console.print(f"[yellow]  {escape(key)}: {escape(_shorten(reason))}[/]")
    if not report.facts:
        console.print("[yellow]no facts: the walk can use only names and passages[/]")
    relationships_problem(console, report.relationships)
    reasons = [each.reason for each in report.refused]
    _unread(console, "refused", reasons, report.refused_count, _ALL, "; everything else is done")


def synced(report: IndexReport) -> str:
    """Return what a sync did on one line."""
    line = _changes(report)
    if report.refused_count:
        more = f"; and {report.refused_count - 1:,} more: {_ALL}" if report.refused_count > 1 else ""
        line += f"[yellow]; refused: {escape(report.refused[0].reason)}{more}[/]"
    if report.failed_count:
        line += f"[yellow]; nothing could be extracted from {report.failed_count} passages[/]"
    return line


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
        console.print(f"[yellow]the relationship graph is not in step: {escape(str(relationships['problem']))}[/]")


def _own_types(console: Console, names: Sequence[str], unfound: Sequence[str]) -> None:
    """Print the user's own types, and those that nothing finds."""
    if names:
        console.print(f"[dim]own types: {escape(', '.join(names))}[/]")
    if unfound:
        hint = "give them cues, or extract with a model"
        console.print(f"[yellow]own types that no rule finds: {escape(', '.join(unfound))}; {hint}[/]")


def _unread(
    console: Console, what: str, reasons: Sequence[str], count: int, how_to_see_all: str, outcome: str = ""
) -> None:
    """Print how many files were not read, and why the first ones."""
    if count:
        console.print(f"[yellow]{what}: {counted(count, 'file')}{outcome}[/]")
    for reason in reasons[:_SHOWN_FILES]:
        console.print(f"[yellow]  {escape(reason)}[/]")
    if count > _SHOWN_FILES:
        console.print(f"[yellow]  and {count - _SHOWN_FILES:,} more: {how_to_see_all}[/]")


def skipped(console: Console, listing: Mapping[str, Any]) -> None:
    """Print the files that indexing did not read, by source."""
    if not listing["sources"]:
        console.print("No run has noted yet which files it did not read: index or sync again")
    for source in listing["sources"]:
        named, count = source["files"], source["count"]
        console.print(f"[bold]{escape(source['source'])}[/], {source['at']}: {counted(count, 'file')} not read")
        if count > len(named):
            console.print(f"[yellow]{len(named):,} of them are named; all, by reason:[/]")
            console.print(f"[yellow]{escape(pairs(source['reasons']))}[/]")
        for each in named:
            console.print(f"  {escape(each['reason'])}")


def _spending(console: Console, report: IndexReport) -> None:
    if report.requests or report.cached:
        cost = "" if report.cost is None else f", cost {report.cost:.4g}"
        unknown = f" ({report.tokens_unknown} replies without a count)" if report.tokens_unknown else ""
        console.print(
            f"[dim]{report.requests} requests, {report.cached} passages from kept replies,"
            f" {report.tokens_in} tokens in, {report.tokens_out} out{unknown}{cost}[/]"
        )
    if report.retries:
        console.print(f"[yellow]asked again: {escape(pairs(report.retries))}[/]")


def preview(console: Console, plan: Mapping[str, Any]) -> None:
    """Print what a run would do."""
    console.print(
        f"[bold]{plan['passages']}[/] passages for {escape(plan['workspace'])}: {len(plan['added'])} would be added,"
        f" {len(plan['changed'])} replaced, {len(plan['removed'])} removed, {plan['unchanged']} are unchanged"
    )
    for change, sources in plan["sources"].items():
        more = f" and {len(sources) - _SHOWN_SOURCES} more" if len(sources) > _SHOWN_SOURCES else ""
        if sources:
            console.print(f"{change}: {escape(', '.join(sources[:_SHOWN_SOURCES]))}{more}")
    if plan["reread"]:
        console.print(
            f"[yellow]{plan['reread']} of those replaced have not changed: they were extracted by another model, with"
            " another prompt or with other types[/]"
        )
    _own_types(console, plan["own_types"], plan["unfound_types"])
    took = plan["extraction"]
    needs = {"requests": took["requests"], "tokens in": took["prompt_tokens"], "tokens out": took["completion_tokens"]}
    if took["to_ask"] or took["kept"]:
        estimate = pairs({name: "unknown" if value is None else value for name, value in needs.items()})
        console.print(
            f"extraction by {escape(plan['extractor'])}: {took['to_ask']} to ask, {took['kept']} kept; {estimate}"
        )
    if took["seconds"] is not None:
        console.print(f"extraction would take about {took['seconds']:.0f} s, without embedding")
    if took["cost"] is not None:
        console.print(f"cost: about {took['cost']:.4g}")
    if plan["kept_of_refused"]:
        console.print(f"[yellow]kept, since their source cannot be read: {plan['kept_of_refused']}[/]")
    left_out = [each["reason"] for each in plan["skipped"]]
    _unread(console, "skipped", left_out, sum(plan["skipped_counts"].values()), _ALL_OF_DRY_RUN)
    asked = took["sample"]["usage"]["requests"]
    console.print(f"[dim]Nothing was written{' but the replies to the sample' if asked else ''}[/]")
    reasons = [refused["reason"] for refused in plan["refused"]]
    _unread(console, "refused", reasons, len(reasons), _ALL_OF_DRY_RUN, "; everything else can be indexed")


def removal(console: Console, done: Mapping[str, Any]) -> None:
    """Print what was removed."""
    past = f" and {counted(done['versions'], 'past version')}" if done["versions"] else ""
    console.print(
        f"{counted(len(done['removed']), 'passage')}{past} removed;"
        f" {done['passages']} left in {escape(done['workspace'])}"
    )
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
    _told(console, result, verbose=verbose, has_filter=has_filter)
    if verbose:
        judged(console, result)
    checked(console, result)
    if verbose:
        _walked(console, result)
    for note in notes(result["errors"] if verbose else untold(result), verbose=verbose):
        console.print(f"[yellow]{escape(note)}[/]")
    if not verbose:
        console.print(f"\n[dim]{escape(_origin(result))}; --verbose tells how the passages were found[/]")


def untold(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the notes of a result that its refusal, if it is one, does not tell."""
    is_refusal = result["answer_kind"] == ResultKind.REFUSAL
    return [each for each in result["errors"] if not is_refusal or each["kind"] not in TOLD_OF_REFUSALS]


def _told(console: Console, result: Mapping[str, Any], *, verbose: bool, has_filter: bool) -> None:
    """Print an answer over its sources; of evidence, what is also related behind those of the answer itself."""
    first, related = parts_of(result["answer"], result["answer_kind"])
    if result["answer_kind"] != ResultKind.EVIDENCE or verbose:
        console.print(marked(console, headed(result, has_filter=has_filter)))
        if result["answer_kind"] == ResultKind.REFUSAL and not verbose:
            return
        console.print()
        _sources(console, result, verbose=verbose)
        return
    for text in filter(
        None, (headed({**result, "answer": first}), related and f"\n{words_of(result).related}:\n\n{related}")
    ):
        console.print(marked(console, text))
        console.print()
        cited = parse_citations(text, {each["number"] for each in result["passages"]}).numbers
        _cited_sources(console, result, cited)


def _cited_sources(console: Console, result: Mapping[str, Any], cited: Sequence[int]) -> None:
    """Print where cited passages stand; many of one place, such as the rows of a table, on one line."""
    named = [passage for passage in result["passages"] if passage["number"] in cited]
    places = Counter(place_of(passage, result["citations"]) for passage in named)
    for place, count in places.items():
        here = [passage for passage in named if place_of(passage, result["citations"]) == place]
        if count > _SHOWN_OF_A_PLACE:
            numbers = " ".join(f"[{passage['number']}]" for passage in here)
            console.print(f"[green]●[/] [bold]{escape(numbers)}[/] [dim]· {escape(place)}[/]")
            continue
        for passage in here:
            console.print(f"[green]●[/] {heading(passage, result['citations'])}")


def marked(console: Console, answer: str) -> Text:
    """Return an answer with what stands between two ``**`` in bold, where a terminal can show that."""
    parts = answer.split("**") if console.is_terminal and answer.count("**") % 2 == 0 else [answer]
    return Text.assemble(*((part, "bold" if place % 2 else "") for place, part in enumerate(parts)))


def _sources(console: Console, result: Mapping[str, Any], *, verbose: bool) -> None:
    """Print the passages of a result: all that are shown, or those that are cited and the titles of a few others."""
    shown, cited = _shown_passages(result), {citation["number"] for citation in result["citations"]}
    if verbose or not cited:
        passages(console, shown, result["citations"], verbose=verbose)
        return
    passages(console, [each for each in shown if each["number"] in cited], result["citations"])
    others = [each for each in shown if each["number"] not in cited][:_NAMED_PASSAGES]
    if others:
        named = " · ".join(f"[{each['number']}] {each['title'] or each['source'] or each['id']}" for each in others)
        console.print(f"[dim]Also found: {escape(named)}[/]")


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
    """Return the origin of an answer: a model, none for evidence; without a model, at most an agent of the caller's."""
    from workflows.runtime.resources import OFFLINE

    chat = result["models"]["chat"]
    if chat != OFFLINE:
        is_evidence = result["answer_kind"] == ResultKind.EVIDENCE
        return f"evidence, the answer of {chat} was of no use" if is_evidence else f"answered by {chat}"
    if result["answer_kind"] == ResultKind.ANSWER:
        return "answered by an agent of the caller's"
    kind = "evidence" if result["answer_kind"] == ResultKind.EVIDENCE else "no evidence"
    return f"{kind}, no model configured"


def notes(errors: Sequence[Mapping[str, Any]], *, verbose: bool = False) -> list[str]:
    """Return what a result's errors say; without ``verbose`` those that differ in the passage alone once."""
    if verbose:
        return [f"{record['node']} (attempt {record['attempt']}): {record['message']}" for record in errors]
    alike = Counter(_PASSAGE.sub("a passage", record["message"]) for record in errors)
    first = {_PASSAGE.sub("a passage", record["message"]): record["message"] for record in reversed([*errors])}
    return [first[message] if count == 1 else f"{message} ({count} times)" for message, count in alike.items()]


def _walked(console: Console, result: Mapping[str, Any]) -> None:
    """Print the facts, the β and the models that ranked the passages."""
    kept = [fact for fact in result["facts"] if fact["kept"]]
    if kept:
        facts = "; ".join(map(_fact, kept))
        console.print(f"\n[dim]facts: {escape(facts)}[/]")
    if result["relation_factors"]:
        console.print(f"[dim]β: {shares_of(result['relation_factors']['entity_entity'])}[/]")
    ranked_by = result["ranked_by"] or "nothing"
    engine = f" ({result['walk']['engine']})" if result["walk"] else ""
    console.print(f"[dim]ranked by {escape(ranked_by)}{engine}; {escape(pairs(result['models']))}[/]")


def shares_of(beta: Mapping[str, float]) -> str:
    """Return the relation types and their shares, the largest first."""
    return ", ".join(f"{name} {share:.2f}" for name, share in sorted(beta.items(), key=lambda item: -item[1]))


def _fact(fact: Mapping[str, Any]) -> str:
    ended = f" (superseded on {fact['superseded_at']})" if fact.get("superseded_at") else ""
    return f"{fact['subject']} {fact['predicate']} {fact['object']}{ended}"


def _shown_passages(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the first passages and all that are cited; where they were judged, the cited, else the kept, if any."""
    passages, cited = result["passages"], {citation["number"] for citation in result["citations"]}
    kept = (cited or set(result["written_from"])) if "judgements" in result else ()
    if judged := [passage for passage in passages if passage["number"] in kept]:
        return judged
    return [passage for place, passage in enumerate(passages) if place < _SHOWN_PASSAGES or passage["number"] in cited]


def judged(console: Console, result: Mapping[str, Any]) -> None:
    """Print the judge's thresholds."""
    for bar in result.get("bars") or ():
        console.print(
            f"[dim]judged {bar['judged']}, kept {bar['kept']}: τ {bar['tau']:.2f}, σ {bar['sigma']:.2f},"
            f" bar {bar['bar']:.2f}, floor {bar['floor']:g}; {escape(_shorten(bar['question']))}[/]"
        )


def checked(console: Console, result: Mapping[str, Any]) -> None:
    """Print the verdicts on the claims, the coverage of the question, and the follow-up questions."""
    from agents.claim_verdicts import Verdict

    claims = result.get("claims") or ()
    for claim in claims:
        if claim["verdict"] not in (Verdict.SUPPORTED, Verdict.QUOTED):
            fate = "marked" if claim["kept"] else "removed"
            console.print(f"[yellow]{escape(claim['verdict'])}, {fate}: {escape(claim['text'])}[/]")
    if claims and result["answer_kind"] == ResultKind.ANSWER:
        supported = sum(claim["verdict"] == Verdict.SUPPORTED for claim in claims)
        console.print(f"[dim]{supported} of {len(claims)} claims supported ({escape(result['claims_checked_by'])})[/]")
    if result.get("coverage"):
        console.print(f"[dim]{escape(result['coverage'].lower())}[/]")
        if len(result["components"]) > 1:
            for component in result["components"]:
                console.print(f"[dim]  {escape(component['coverage'].lower())}: {escape(component['text'])}[/]")
    for each in result.get("follow_ups") or ():
        outcome = " ".join([each["outcome"], *(f"[{number}]" for number in each["passages"])])
        console.print(f"[dim]follow-up: {escape(each['question'])} ({escape(outcome)})[/]")


def stats(console: Console, numbers: Mapping[str, Any]) -> None:
    """Print a workspace's numbers."""
    table = Table(show_header=False, box=None)
    for name, value in {**numbers, "bytes": {part: _size(n) for part, n in numbers["bytes"].items()}}.items():
        if value != "":
            table.add_row(name.replace("_", " "), escape(_lines(value)))
    console.print(table)


def doctor(console: Console, result: Mapping[str, Any]) -> None:
    """Print the findings on a workspace; after a repair, also those before it and the steps taken."""
    if "before" in result:
        for finding in result["before"]["findings"]:
            if not finding["ok"] or finding["repairable"]:
                _finding(console, finding)
        for step in result["done"] or ("Nothing was done",):
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


def matrices(console: Console, written: Mapping[str, Any]) -> None:
    """Print what an export of relation matrices wrote."""
    edges = {name: matrix["edges"] for name, matrix in written["matrices"].items()}
    console.print(f"Edges by matrix, weighted by {written['weights']}: {pairs(edges)}")
    nodes = f"{written['n_entities']} entities, {written['n_passages']} passages"
    console.print(f"{nodes}: graph_metadata.json identifies them; all in {escape(written['folder'])}")


def reembedding(console: Console, report: Mapping[str, Any]) -> None:
    """Print what a new embedding did."""
    console.print(
        f"{report['passages']} passages of {escape(report['workspace'])} embedded again:"
        f" {escape(report['from'])} → {escape(report['to'])} ({report['dimension']} dimensions)"
    )
    relationships_problem(console, report["relationships"])


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
        f"Ask it yourself: {escape(f'{own_command()} ask {question} --workspace {workspace}')}",
        soft_wrap=True,  # it is copied
    )


def pairs(values: Mapping[str, Any]) -> str:
    """Return names and values on one line."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _lines(value: object) -> str:
    """Return a value of the statistics on one line, or on one line per group of numbers."""
    if not isinstance(value, Mapping):
        return str(value)
    if value and all(isinstance(group, Mapping) for group in value.values()):
        return "\n".join(f"{name}: {pairs(group)}" for name, group in value.items())
    return pairs(value) or "none"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.1f} kB"


def _shorten(text: str, limit: int = 240) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def record_joined(console: Console, record: Mapping[str, Any]) -> None:
    """Print which record a folder has now."""
    state = "derived" if record["derived"] else "up to date"
    console.print(f"Record [bold]{escape(record['record'])}[/]: generation {record['generation'] or 'none'}, {state}")


def record_moved(console: Console, move: Mapping[str, Any]) -> None:
    """Print where a record was moved to, and what is no longer needed."""
    left = escape(", ".join(move["set_aside"]))
    console.print(f"Moved to the record [bold]{escape(move['record'])}[/]. No longer needed: {left}")
