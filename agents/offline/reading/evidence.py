"""Evidence: the excerpts of passages that bear on a question, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agents.offline.reading.alignment import HELD, Alignment, Embed
from agents.offline.reading.comparison import Side, compare
from agents.offline.reading.excerpts import Excerpt, Sentence, passage_sentences
from agents.offline.reading.kinds import AnswerKind, holds_kind
from agents.offline.reading.parts import split_question
from agents.offline.reading.questions import parse_question
from agents.offline.reading.sentence_choice import SentenceChoice
from agents.roles import NumberedPassage

LEAST_COVERAGE = 0.45
"""The least share of a question that evidence holds."""

LIKE = 0.5
"""How far a word is held, from here on, where a passage is looked at alone."""


TOO_LITTLE = "the passages found hold too little of the question"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What passages hold on one part of a question.

    Attributes:
        question: the part, as a question of its own.
        excerpts: the best first, newer ones before those that they supersede; empty where nothing bears on it.
        refusal: why there are none; empty where there are.
        nearest: where there are none, the sentence that holds each word of the part, or one of the like meaning.
        misspelt: names of the question that were read as others, and as which.
        short: an answer in a word or two where it could be computed; else empty.
        compared: the excerpts that it was computed from, the first ones.
    """

    question: str
    excerpts: tuple[Excerpt, ...] = ()
    refusal: str = ""
    nearest: Sentence | None = None
    misspelt: tuple[tuple[str, str], ...] = ()
    short: str = ""
    compared: tuple[Excerpt, ...] = ()


def find_each_evidence(
    question: str, passages: Sequence[NumberedPassage], embed: Embed | None, least_likeness: float = 0.0
) -> list[Evidence]:
    """Return the evidence for each part of a question.

    A sentence that is evidence for one part is so for another one, each word of which it holds: "and what is excepted?"
    is too little to find it by.
    """
    found = [find_evidence(part, passages, embed, least_likeness) for part in split_question(question)]
    places = {_place(sentence) for each in found for excerpt in each.excerpts for sentence in excerpt.sentences}
    return [
        Evidence(each.question, (Excerpt((each.nearest,)),), misspelt=each.misspelt)
        if each.nearest and _place(each.nearest) in places
        else each
        for each in found
    ]


def _place(sentence: Sentence) -> tuple[str, int]:
    return sentence.passage.id, sentence.start


def find_evidence(
    question: str, passages: Sequence[NumberedPassage], embed: Embed | None, least_likeness: float = 0.0
) -> Evidence:
    """Return the evidence that passages hold for a question.

    There is none where a name of the question stands in no passage that would be cited, where what would be cited
    holds nothing of the kind that is asked for, where it says of one of two compared things alone, or where it bears
    on the question too little (`LEAST_COVERAGE`, ``least_likeness``; a row that holds all of it need not be like it,
    and neither need what a comparison is computed from).

    Args:
        question: it asks one thing; see `split_question`.
        passages: the best first; each is read whole.
        embed: gives unit vectors of texts; None compares words alone.
        least_likeness: the least cosine of the likest sentence, on the scale of that embedding; 0 for none.
    """
    sentences = passage_sentences(passages)
    asked = parse_question(question)
    if not asked.terms or not sentences:
        return Evidence(question, refusal="nothing is asked" if sentences else "no passage was found")
    read = Alignment(asked, sentences, embed)
    choice = SentenceChoice(read)
    misspelt = tuple(read.misspelt.items())
    refusal = _refusal(read, choice, least_likeness)
    winner, short = _compared(read, choice.sides) or (0, "")
    if refusal and not (short and refusal == TOO_LITTLE):
        first = choice.places[0]
        nearest = sentences[first] if refusal == TOO_LITTLE and read.own[first].min() >= HELD else None
        return Evidence(question, refusal=refusal, nearest=nearest, misspelt=misspelt)
    if not short:
        return Evidence(question, tuple(choice.excerpts), misspelt=misspelt)
    told = [read.sentences[place] for place in (choice.sides[::-1] if winner else choice.sides)]
    compared = dict.fromkeys(excerpt for one in told for excerpt in choice.excerpts if one in excerpt.sentences)
    ordered = tuple(dict.fromkeys([*compared, *choice.excerpts]))
    return Evidence(question, ordered, misspelt=misspelt, short=short, compared=tuple(compared))


def holds_anything(question: str, passage: NumberedPassage) -> bool:
    """Tell whether a passage holds a word, name or date of a question, or a word of the like meaning."""
    sentences = passage_sentences([passage])
    read = Alignment(parse_question(question), sentences, None)
    return bool(sentences) and bool((read.anywhere >= LIKE).any())


def best_sentence(question: str, passage: NumberedPassage) -> Sentence | None:
    """Return the sentence of a passage that holds most of a question, compared by words; None where none holds any."""
    sentences = passage_sentences([passage])
    read = Alignment(parse_question(question), sentences, None)
    if not sentences or not (read.near >= LIKE).any():
        return None
    return sentences[int(np.argmax(read.worth))]


def _refusal(read: Alignment, choice: SentenceChoice, least_likeness: float) -> str:
    """Why what was chosen is no evidence; empty where it is."""
    asked, places = read.question, choice.places
    held = read.anywhere[places].max(axis=0)
    missing = [term.text for term, share in zip(asked.terms, held, strict=True) if term.is_name and share < HELD]
    if missing:
        return f"the passages found do not hold {', '.join(missing)}"
    if not any(holds_kind(excerpt.read, asked.kind, asked.words) for excerpt in choice.excerpts):
        return f"the passages found hold no {asked.kind.value} that would answer it"
    if asked.choices and not choice.sides:
        return "the passages found do not hold both of the things compared"
    likeness = read.cosines[places].max()
    is_unlike = bool(least_likeness and read.cosines.any()) and likeness < least_likeness
    if (is_unlike and not _has_rows(read, choice)) or read.coverage(places) @ read.weights < LEAST_COVERAGE:
        return TOO_LITTLE
    return ""


def _has_rows(read: Alignment, choice: SentenceChoice) -> bool:
    """Tell whether a row, or those of both sides, hold all of a question: their other cells make them unlike it.

    Other words may say it, but for one. A single word, which each row of a table may hold, is no whole question unless
    it asks for a list or a kind of answer.
    """
    asked = read.question
    is_whole = len(asked.terms) > 1 or asked.asks_list or asked.kind is not AnswerKind.ANY
    groups = [[place] for place in choice.places] + ([choice.sides] if choice.sides else [])
    return is_whole and any(
        all(read.sentences[place].is_row for place in group)
        and read.own[group].max(axis=0).min() >= HELD
        and read.spelt[group].max() >= HELD
        for group in groups
    )


def _compared(read: Alignment, sides: Sequence[int]) -> tuple[int, str] | None:
    """Which of two compared things it is, where that can be computed."""
    if not sides:
        return None
    places = sides if len(sides) == 2 else [sides[0], sides[0]]
    rows = [sentence.text for sentence in read.sentences if sentence.is_row]
    named = [
        Side(choice.name, read.sentences[place].text, read.sentences[place].context, rows)
        for choice, place in zip(read.question.choices, places, strict=True)
    ]
    return compare(read.question.text, named)
