"""Evidence as an answer: the excerpts, each sentence with its citation, and what a reader should know of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agents.offline.reading.alignment import Excerpt
from agents.offline.reading.evidence import Evidence
from agents.roles import Answer, Citation, refusal


def quote_evidence(found: Sequence[Evidence]) -> Answer:
    """Return the answer that quotes the evidence for the parts of a question, each excerpt a paragraph; or a refusal.

    The best excerpt of a passage is what its citation spans; those of one passage stand in the order of its text.
    A computed answer stands before its evidence. Notes tell which names were read as others, and of which part there
    is no evidence, and why.
    """
    notes = tuple(dict.fromkeys(note for each in found for note in _notes(each)))
    excerpts = [excerpt for each in found for excerpt in each.excerpts]
    if not excerpts:
        nothing = refusal()
        return Answer(nothing.text, nothing.plain_text, (), refused=True, notes=notes)
    shown = [(each.short, _cited(each.short, each.compared)) for each in found if each.short]
    for excerpt in _as_they_stand(_each_once(excerpts)):
        shown.append((excerpt.quote(), excerpt.quote(f" [{excerpt.passage.number}]")))
    citations: dict[int, Citation] = {}
    for excerpt in excerpts:
        passage = excerpt.passage
        citations.setdefault(passage.number, Citation(passage.number, passage.id, excerpt.start, excerpt.end))
    plain, cited = ("\n\n".join(texts) for texts in zip(*shown, strict=True))
    return Answer(cited, plain, tuple(citations.values()), is_evidence=True, notes=notes)


def _each_once(excerpts: Iterable[Excerpt]) -> list[Excerpt]:
    """Return excerpts with each sentence once: those that share one, as of two parts of a question, become one."""
    joined: list[Excerpt] = []
    for excerpt in excerpts:
        sharing = [place for place, other in enumerate(joined) if _share(excerpt, other)]
        at = sharing[0] if sharing else len(joined)
        sentences = {
            each.start: each for one in (excerpt, *(joined[place] for place in sharing)) for each in one.sentences
        }
        joined = [other for place, other in enumerate(joined) if place not in sharing]
        joined.insert(at, Excerpt(tuple(sentences[start] for start in sorted(sentences))))
    return joined


def _share(one: Excerpt, other: Excerpt) -> bool:
    return one.passage.number == other.passage.number and one.start < other.end and other.start < one.end


def _as_they_stand(excerpts: Sequence[Excerpt]) -> Iterator[Excerpt]:
    """Yield the excerpts, those of one passage in the order of its text."""
    placed: dict[int, list[Excerpt]] = {}
    for excerpt in sorted(excerpts, key=lambda each: each.start):
        placed.setdefault(excerpt.passage.number, []).append(excerpt)
    for excerpt in excerpts:
        yield placed[excerpt.passage.number].pop(0)


def _notes(found: Evidence) -> list[str]:
    notes = [f"{asked!r} stands in no passage found: it is read as {read!r}" for asked, read in found.misspelt]
    return [*notes, f"No evidence for {found.question!r}: {found.refusal}"] if found.refusal else notes


def _cited(text: str, excerpts: Sequence[Excerpt]) -> str:
    numbers = dict.fromkeys(excerpt.passage.number for excerpt in excerpts)
    return f"{text} {''.join(f'[{number}]' for number in numbers)}"
