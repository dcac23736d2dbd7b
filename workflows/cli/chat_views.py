"""What a conversation shows on a terminal: answers, their sources, and why they came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from graph.text import counted
from workflows.cli import render
from workflows.cli.live_answer import spent
from workflows.cli.render import escape
from workflows.conversation.session import asks_back
from workflows.results import Result, understood_as

if TYPE_CHECKING:
    from workflows.explanation.model import Explanation

_SHOWN_SEEDS = 6


def answer(console: Console, result: Result) -> None:
    """Print an answer over the list of the passages that it cites, or the choices where it asks back."""
    render.understood(console, result)
    if asks_back(result):
        _choices(console, result)
        return
    console.print(escape(render.headed(result)), style="bold")
    cited = _cited(result)
    for passage in result["passages"]:
        if passage["number"] in cited:
            console.print(f"  {render.heading(passage, result['citations'])}")
    render.checked(console, result)
    for note in render.notes(result["errors"]):
        console.print(f"[yellow]{escape(note)}[/]")
    console.print(f"[dim]{escape(spent(result))}[/]")


def _choices(console: Console, result: Result) -> None:
    console.print("What do you mean? Type its number, or ask something else.", style="bold")
    understood = result["understood"]
    for number, choice in enumerate(understood["choices"] if understood else (), start=1):
        console.print(f"  [bold]{number}[/] {escape(choice)}")


def sources(console: Console, result: Result, *, all_of_them: bool) -> None:
    """Print the passages that an answer cites, or all that were found."""
    cited = _cited(result)
    shown = [hit for hit in result["passages"] if all_of_them or hit["number"] in cited]
    if not shown:
        console.print("The answer cites nothing" if result["passages"] else "No passage was found")
    render.passages(console, shown, result["citations"])
    if left := len(result["passages"]) - len(shown):
        console.print(f"[dim]{counted(left, 'passage')} found beside: /sources all shows them[/]")


def passage(console: Console, result: Result, hit: Mapping[str, Any]) -> None:
    """Print a passage whole, the words that the answer cites marked: in reverse, or with ** where that is no option."""
    before, after, style = ("", "", "reverse") if console.is_terminal else ("**", "**", "")
    text, told = Text(), 0
    for start, end in _cited_words(result, hit):
        text.append(hit["text"][told:start]).append(f"{before}{hit['text'][start:end]}{after}", style)
        told = end
    console.print(render.heading(hit, result["citations"], verbose=True))
    console.print(text.append(hit["text"][told:]))


def _cited_words(result: Mapping[str, Any], hit: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the parts of a passage's text that the answer, or a claim of it, cites: in order, neighbours as one."""
    marks = [*result["citations"], *(span for claim in result.get("claims") or () for span in claim["spans"])]
    found = [mark for mark in marks if mark["number"] == hit["number"] and mark["start"] is not None]
    parts: list[tuple[int, int]] = []
    for start, end in sorted((mark["start"], mark["end"]) for mark in found):
        if parts and not hit["text"][parts[-1][1] : start].strip():
            start, end = parts[-1][0], max(parts.pop()[1], end)
        parts.append((start, end))
    return parts


def understanding(console: Console, result: Result) -> None:
    """Print what a question that leans on earlier turns was understood as, and why that was needed."""
    if understood := result["understood"]:
        words = f"Understood as: {understood_as(result)}" if understood_as(result) else "It could mean several things"
        console.print(escape(words))
        console.print(f"  [dim]because {escape(understood['because'])} ({escape(understood['by'])})[/]")


def why(console: Console, result: Result, explanation: Explanation) -> None:
    """Print what the walk started from, what steered it, and how it came to the cited passages."""
    understanding(console, result)
    similarity = f"similarity ({result['ranked_by']})" if result["ranked_by"] else "nothing"
    ranked_by = f"a walk over the graph ({explanation.walk.engine})" if explanation.walk else similarity
    console.print(f"Ranked by {escape(ranked_by)}, mode {escape(result['mode'])}")
    _start(console, result)
    if explanation.beta:
        shares = sorted(explanation.beta.entity_entity.items(), key=lambda item: -item[1])
        console.print(f"Relation weights (β): {', '.join(f'{name} {share:.2f}' for name, share in shares)}")
    _ways(console, explanation)
    if not explanation.walk:
        for hit in result["passages"]:
            if hit["number"] in _cited(result):
                console.print(f"{render.heading(hit, result['citations'])}: score {hit['score']:.3g}")
    render.judged(console, result)


def _start(console: Console, result: Mapping[str, Any]) -> None:
    """Print the seeds of the walk, heaviest first, and the facts that gave them."""
    seeds = result.get("seeds") or {"entities": [], "passages": []}
    titles = {hit["id"]: hit["title"] or hit["id"] for hit in result["passages"]}
    named = {
        "entities": [(seed["text"], seed["weight"]) for seed in seeds["entities"]],
        "passages": [(titles.get(seed["id"], seed["id"]), seed["weight"]) for seed in seeds["passages"]],
    }
    for kind, weighed in named.items():
        if weighed:
            first = ", ".join(f"{name} {weight:.2g}" for name, weight in weighed[:_SHOWN_SEEDS])
            more = f" and {len(weighed) - _SHOWN_SEEDS} more" if len(weighed) > _SHOWN_SEEDS else ""
            console.print(f"Seeds, {kind}: {escape(first)}{more}")
    kept = [
        f"{fact['subject']} {fact['predicate']} {fact['object']}" for fact in result.get("facts") or () if fact["kept"]
    ]
    if kept:
        console.print(f"Facts kept: {escape('; '.join(kept))}")


def _ways(console: Console, explanation: Explanation) -> None:
    """Print the best paths of the walk to the cited passages, or to the best one where nothing is cited."""
    nodes = {node.id: node for node in explanation.nodes}
    for key in dict.fromkeys(path.passage for path in explanation.paths):
        node = nodes[key]
        number = f"[{node.number}] " if node.number else ""
        rank = f"rank {node.rank[-1]}, " if node.rank else ""
        console.print(f"[bold]{escape(number + node.label)}[/]: {rank}{node.mass[-1]:.1%} of the walk's mass")
        for path in explanation.paths:
            if path.passage == key:
                console.print(f"  {path.mass:.1%} {escape(path.words)}")


def _cited(result: Mapping[str, Any]) -> set[int]:
    return {mark["number"] for mark in result["citations"]}
