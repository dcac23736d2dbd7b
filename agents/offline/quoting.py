"""Evidence as an answer: what answers best is quoted first, what is also related is cited alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.answers.quotes import RELATED
from agents.offline.alignment import Excerpt
from agents.offline.evidence import Evidence
from agents.roles import Answer, Citation, NumberedPassage, refusal

MOST_RELATED = 3
"""Excerpts that are related at most."""


def quote_evidence(evidence: Sequence[Evidence]) -> Answer:
    """Return the answer that quotes the evidence for the parts of a question; or a refusal where there is none.

    Each excerpt is a paragraph: the best first, behind what was computed. Related excerpts follow as a list. A
    citation spans the first excerpt of its passage. Notes tell which names were read as others, and of which part there
    is no evidence, and why.
    """
    notes = tuple(dict.fromkeys(note for each in evidence for note in _notes(each)))
    answering = _each_once([excerpt for each in evidence for excerpt in each.excerpts])
    if not answering:
        return replace(refusal(), notes=notes)
    beside = _each_once([excerpt for each in evidence for excerpt in each.related])
    related = [each for each in beside if not any(_share(each, other) for other in answering)][:MOST_RELATED]
    shown = [_listed(each) for each in evidence if each.is_list]
    shown += [(each.short, _cited(each.short, each.compared)) for each in evidence if each.short and not each.is_list]
    listed = {excerpt for each in evidence if each.is_list for excerpt in each.excerpts}
    shown += [_quoted(each) for each in answering if each not in listed]
    if related:
        bare, cited = zip(*map(_quoted, related), strict=True)
        shown.append(("\n".join(RELATED + words for words in bare), "\n".join(RELATED + words for words in cited)))
    plain, text = ("\n\n".join(form) for form in zip(*shown, strict=True))
    citations: dict[int, Citation] = {}
    for each in (*answering, *related):
        citation = Citation(each.passage.number, each.passage.id, each.start, each.end)
        citations.setdefault(citation.number, citation)
    return Answer(text, plain, tuple(citations.values()), is_evidence=True, notes=notes)


def _listed(evidence: Evidence) -> tuple[str, str]:
    """Rows under what is told of them, numbered: without their citations, and with them."""
    forms = zip(*map(_quoted, evidence.excerpts), strict=True)
    plain, cited = ("\n".join([f"{n}. {row}" for n, row in enumerate(rows, start=1)]) for rows in forms)
    return f"{evidence.short}:\n{plain}", f"{evidence.short}:\n{cited}"


def _quoted(excerpt: Excerpt) -> tuple[str, str]:
    """An excerpt without its citations, and with them, what it is quoted for in bold."""
    return excerpt.quote(), excerpt.quote(f" [{excerpt.passage.number}]", marked=True)


def number_on(evidence: Sequence[Evidence], last: int) -> tuple[list[Evidence], tuple[NumberedPassage, ...]]:
    """Return evidence whose rows without a number are numbered behind the last one, and the passages of those."""
    beyond: dict[str, NumberedPassage] = {}

    def numbered(excerpt: Excerpt) -> Excerpt:
        row, passage = excerpt.sentences[0], excerpt.passage
        if passage.number:
            return excerpt
        beyond.setdefault(passage.id, replace(passage, number=last + len(beyond) + 1))
        row = replace(row, passage=beyond[passage.id])
        return Excerpt((row,), row, excerpt.column)

    renumbered = [
        replace(each, excerpts=tuple(map(numbered, each.excerpts))) if each.is_list else each for each in evidence
    ]
    return renumbered, tuple(beyond.values())


def _each_once(excerpts: Iterable[Excerpt]) -> list[Excerpt]:
    """Return excerpts without those that share a sentence with an earlier one, as of two parts of a question."""
    distinct: list[Excerpt] = []
    for excerpt in excerpts:
        if not any(_share(excerpt, other) for other in distinct):
            distinct.append(excerpt)
    return distinct


def _share(one: Excerpt, other: Excerpt) -> bool:
    return one.passage.number == other.passage.number and one.start < other.end and other.start < one.end


def _notes(evidence: Evidence) -> list[str]:
    notes = [f"{asked!r} stands in no passage found: it is read as {read!r}" for asked, read in evidence.misspelt]
    return [*notes, f"No evidence for {evidence.question!r}: {evidence.refusal}"] if evidence.refusal else notes


def _cited(text: str, excerpts: Sequence[Excerpt]) -> str:
    numbers = dict.fromkeys(excerpt.passage.number for excerpt in excerpts)
    return f"{text} {''.join(f'[{number}]' for number in numbers)}"
