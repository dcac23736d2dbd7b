"""Why an answer is what it is, in three sentences: where its search began, the path from there, and who wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from agents.answers.citations import quotable
from agents.claim_judge import Verdict
from graph.text import counted, normalise_name
from workflows.explanation.model import Explanation, Node, Path, Piece, Sentence, Step
from workflows.output.printable import shortened
from workflows.results import cited_passages
from workflows.settings.enums import ResultKind
from workflows.states.records import CitationMark, PassageHit
from workflows.wording import WORDS, reasons_of

_NAMED = 3
"""Names, or passages, that are told of each kind."""

_LONGEST_NAME, _LONGEST_QUOTE = 80, 140

_LIKENESS = {"dense": "their meaning", "sparse": "their words", "hybrid": "their words and their meaning"}


def spoken(sentence: Sentence) -> str:
    """Return a sentence as one text, in which quotation marks tell what is of the documents."""
    return "".join(f"“{piece.text}”" if piece.kind else piece.text for piece in sentence)


def why(result: Mapping[str, Any], explanation: Explanation | None = None) -> tuple[Sentence, ...]:
    """Return why an answer is what it is.

    Args:
        result: what asking gave.
        explanation: of the result; None where there is none any more: then the path is not told.
    """
    path = _way(result, explanation) if explanation else ()
    return tuple(sentence for sentence in (_start(result), path, _writer(result)) if sentence)


def _start(result: Mapping[str, Any]) -> Sentence:
    """Return where the search began."""
    if result["ranked_by"] != "walk":
        likeness = _LIKENESS.get(result["ranked_by"])
        return (Piece(f"The passages were found by the likeness of {likeness} to the question."),) if likeness else ()
    seeds = sorted((result.get("seeds") or {}).get("entities", []), key=lambda seed: -seed["weight"])
    named = [seed["text"] for seed in seeds if _names(result["question"], seed["text"])][:_NAMED]
    others = [seed["text"] for seed in seeds if seed["text"] not in named][: _NAMED - len(named)]
    if not seeds:
        return (Piece("The search began at the passages that are closest to the question."),)
    parts: list[Sentence] = []
    if named:
        parts.append((*_listed(named), Piece(", which the question names")))
    if others:
        parts.append(
            (*_listed(others), Piece(", of facts close to it") if named else Piece(", of facts close to the question"))
        )
    fact = next((fact for fact in result.get("facts") or [] if fact["kept"]), None)
    triple = " — ".join(fact[key] for key in ("subject", "predicate", "object")) if fact else ""
    closest = (Piece("; the closest fact is "), _name(triple)) if triple else ()
    return (Piece("The search began at "), *_joined(parts, ", at ", ", and at "), *closest, Piece("."))


def _way(result: Mapping[str, Any], explanation: Explanation) -> Sentence:
    """Return the path that tells most of those to the cited passages; to the best passage where none is cited."""
    titles = {hit["id"]: hit["title"] or hit["id"] for hit in result["passages"]}
    cited = list(dict.fromkeys(hit["id"] for _, hit in _cited(result)))
    if not explanation.paths:
        return (Piece("It cites "), *_listed([titles[key] for key in cited[:_NAMED]]), Piece(".")) if cited else ()
    nodes = {node.id: node for node in explanation.nodes}
    path = max(explanation.paths, key=lambda path: _tells(path, nodes[path.seed], result["question"]))
    passage = nodes[path.passage]
    quote = _quote(result, passage)
    also = [titles[key] for key in cited if key != passage.ref][:_NAMED]
    more = [Piece("; it also cites "), *_listed(also)] if also else []
    if not path.steps:
        start = Piece("The words of the question led straight to the passage ")
        says = [Piece(", which says "), quote] if quote else []
        return (start, _name(passage.label), *says, *more, Piece("."))
    says = [Piece(" and says "), quote] if quote else []
    links = {edge.id: edge.link for edge in explanation.edges}
    clauses = [_clause(step, nodes, links) for step in path.steps]
    return (Piece("From there the path leads on: "), *_joined(clauses, "; ", "; "), *says, *more, Piece("."))


def _tells(path: Path, seed: Node, question: str) -> int:
    """Return how much a path tells: over a fact, and then from a name of the question, it tells most."""
    over_fact = any(step.predicate for step in path.steps)
    return over_fact + (over_fact and _names(question, seed.label))


def _names(question: str, name: str) -> bool:
    """Tell whether a question holds a name."""
    return f" {normalise_name(name)} " in f" {normalise_name(question)} "


def _cited(result: Mapping[str, Any]) -> list[tuple[CitationMark, PassageHit]]:
    return cited_passages(result) if result.get("citations") else []


def _clause(step: Step, nodes: Mapping[str, Node], links: Mapping[str, str | None]) -> Sentence:
    """Return a step of a path as a statement, whichever way the path takes it."""
    ends = [nodes[step.from_node], nodes[step.to]]
    if step.predicate:
        subject, object_ = reversed(ends) if step.reversed else ends
        return (
            _name(subject.label),
            Piece(f" — {shortened(step.predicate, _LONGEST_NAME)} — "),
            _name(object_.label),
        )
    passage = next((node for node in ends if node.kind == "passage"), None)
    if passage is None:
        return (_name(ends[0].label), Piece(" is also called "), _name(ends[1].label))
    (name,) = [node for node in ends if node is not passage]
    verb = " is about " if links.get(step.edge) == "own title" else " mentions "
    return (Piece("the passage "), _name(passage.label), Piece(verb), _name(name.label))


def _quote(result: Mapping[str, Any], passage: Node) -> Piece | None:
    """Return the words that an answer cites of a passage; None where they are not known."""
    for mark, hit in _cited(result):
        if hit["id"] == passage.ref and mark["start"] is not None:
            words = " ".join(quotable(hit["text"][mark["start"] : mark["end"]]).split()).rstrip(".")
            return Piece(shortened(words, _LONGEST_QUOTE), "quote")
    return None


def _writer(result: Mapping[str, Any]) -> Sentence:
    """Return who wrote the answer, and who checked it."""
    kind, calls, model = result.get("answer_kind"), result["usage"]["calls"], result["models"]["chat"]
    if kind == ResultKind.REFUSAL:
        reasons = [reason.rstrip(".") for reason in reasons_of(result, WORDS["en"])[:1]]
        return (Piece(f"Nothing was answered{': ' if reasons else ''}"), *map(Piece, reasons), Piece("."))
    if kind == ResultKind.EVIDENCE:
        by = "the model that was asked gave none that could be used" if calls else "no model wrote or checked it"
        return (Piece(f"The answer quotes its passages word for word; {by}."),)
    if kind != ResultKind.ANSWER:
        return ()
    judged = [each for each in result.get("judgements") or [] if each["question"] == result["question"]]
    kept = f", of {counted(len(judged), 'passage')} that were judged," if judged else ""
    n_cited = len({mark["number"] for mark in result["citations"]})
    written = f"The model {model} wrote the answer{kept} and cites {counted(n_cited, 'passage')}"
    return (Piece(f"{written}; {_checked(result)}."),)


def _checked(result: Mapping[str, Any]) -> str:
    claims = result.get("claims") or []
    if not claims:
        return "its sentences were not checked one by one"
    supported = sum(claim["verdict"] in (Verdict.SUPPORTED, Verdict.QUOTED) for claim in claims)
    removed = sum(not claim["kept"] for claim in claims)
    by = "by the model" if result["claims_checked_by"] == "model" else "by their words"
    left = f", and {removed} left out" if removed else ""
    return f"of its {counted(len(claims), 'claim')}, checked {by}, {supported} are supported{left}"


def _name(text: str) -> Piece:
    return Piece(shortened(text, _LONGEST_NAME), "name")


def _listed(names: Sequence[str]) -> Sentence:
    return _joined([[_name(name)] for name in names], ", ", " and ")


def _joined(parts: Sequence[Iterable[Piece]], between: str, last: str) -> Sentence:
    """Return parts with words between them, others before the last one."""
    words = [*[between] * (len(parts) - 2), *([last] if len(parts) > 1 else []), ""]
    pieces = ([*part, *([Piece(word)] if word else [])] for part, word in zip(parts, words, strict=False))
    return tuple(chain.from_iterable(pieces))
