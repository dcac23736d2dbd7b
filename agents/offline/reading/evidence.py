"""Evidence: the excerpts of passages that bear on a question, or the reason why there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from agents.offline.language.entities import scan_entities
from agents.offline.reading.alignment import HELD, Alignment, Embed
from agents.offline.reading.dates import Day, days_in
from agents.offline.reading.excerpts import Excerpt, Sentence, excerpt_around, passage_sentences
from agents.offline.reading.questions import ParsedQuestion, Role, parse_question
from agents.roles import NumberedPassage
from graph.text import title_name, tokens

MOST_EXCERPTS = 3
"""Excerpts that evidence has at most."""

LEAST_CONFIDENCE = 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What passages hold on one part of a question.

    Attributes:
        question: the part, as a question of its own.
        excerpts: the best first, newer ones before those that they supersede; empty where nothing bears on it.
        refusal: why there are none; empty where there are.
        misspelt: names of the question that were read as others, and as which.
        short: an answer in a word or two where it could be computed; else empty.
    """

    question: str
    excerpts: tuple[Excerpt, ...] = ()
    refusal: str = ""
    misspelt: tuple[tuple[str, str], ...] = ()
    short: str = ""


def find_evidence(question: str, passages: Sequence[NumberedPassage], embed: Embed | None) -> Evidence:
    """Return the evidence that passages hold for a question."""
    sentences = passage_sentences(passages)
    asked = parse_question(question)
    if not asked.terms or not sentences:
        return Evidence(question, refusal="Nothing is asked that could be looked for")
    read = Alignment(asked, sentences, embed)
    chosen = _newest_first(read, _chosen(read))
    return Evidence(question, tuple(_excerpts(read, chosen)))


def _excerpts(read: Alignment, chosen: Sequence[int]) -> Iterator[Excerpt]:
    quoted: set[Sentence] = set()
    for place in chosen:
        if read.sentences[place] not in quoted:
            excerpt = excerpt_around(place, read.sentences, list(read.worth))
            fresh = tuple(sentence for sentence in excerpt.sentences if sentence not in quoted)
            quoted.update(fresh)
            yield Excerpt(fresh)


def _chosen(read: Alignment) -> list[int]:
    """The places of the sentences that bear best on the question: a choice's two sides, a hop, or the best one."""
    order = [int(place) for place in np.argsort(-read.worth, kind="stable")]
    chosen = _sides(read, order) or _hop(read, order)
    while len(chosen) < MOST_EXCERPTS:
        following = _following(read, chosen, order)
        if following is None:
            break
        chosen.append(following)
    return chosen


def _sides(read: Alignment, order: Sequence[int]) -> list[int]:
    """Of a question that asks which of two, the best sentence for each; none where that is not asked."""
    found: list[int] = []
    choices = read.question.choices
    for mine, other in zip(choices, reversed(choices), strict=True):
        weights = read.weights.copy()
        weights[list(other)] = 0.0
        about = [place for place in order if read.own[place, list(mine)].mean() >= 0.75]
        if about:
            worth = read.near @ weights + 0.3 * (read.own @ weights) + 0.8 * read.cosines + 0.35 * read.of_kind
            found.append(max(about, key=lambda place: worth[place]))
    return list(dict.fromkeys(found))


def _hop(read: Alignment, order: Sequence[int]) -> list[int]:
    """The best sentence, or two that are better together: the first names what the second is about."""
    best, worth = [order[0]], read.worth[order[0]]
    likely = np.flatnonzero(read.cosines) if read.cosines.any() else np.array(order[:24])
    for first in map(int, likely):
        for second in _bridged(read, first):
            gain = np.maximum(read.own[second] - read.own[first], 0.0) @ read.weights
            lost = np.maximum(read.near[first] - read.near[second], 0.0) @ read.weights
            if min(gain, lost) < 0.08:
                continue
            own = np.maximum(read.own[first], read.own[second]) @ read.weights
            cosines = sorted((read.cosines[first], read.cosines[second]))
            ranks = read.sentences[first].rank + read.sentences[second].rank
            both = (
                read.coverage((first, second)) @ read.weights
                + 0.3 * own
                + 0.8 * (0.4 * cosines[0] + 0.6 * cosines[1])
                + 0.35 * read.of_kind[second]
                - 0.01 * ranks
                - 0.12
            )
            if both > worth:
                best, worth = [first, second], both
    return best


def _following(read: Alignment, chosen: Sequence[int], order: Sequence[int]) -> int | None:
    """The sentence that goes best with those chosen: it adds terms, is named by one of them, or is as good as any."""
    held = read.own[list(chosen)].max(axis=0)
    quoted = {read.sentences[place].text for place in chosen}
    passages = {read.sentences[place].passage.id for place in chosen}
    bridged = {second for first in chosen for second in _bridged(read, first)}
    best, most = None, 0.55
    for place in order:
        if place in chosen or read.sentences[place].text in quoted:
            continue
        gain = np.maximum(read.own[place] - held, 0.0) @ read.weights
        is_elsewhere = read.sentences[place].passage.id not in passages
        is_bridged = place in bridged and is_elsewhere
        if gain < 0.05 and not is_bridged and read.worth[place] < 0.9 * read.worth[order[0]]:
            continue
        worth = 0.5 * read.worth[place] + gain + 0.3 * is_bridged - 0.1 * (not is_elsewhere)
        if worth > most:
            best, most = place, worth
    return best


def _bridged(read: Alignment, first: int) -> list[int]:
    """The sentences that hold a name, or the title, of another one that the question does not hold."""
    sentence = read.sentences[first]
    names = [*_names(sentence.text), *_names(f"{title_name(sentence.passage.title)}.")]
    new = [name for name in dict.fromkeys(names) if not read.question.words.issuperset(name.split())]
    return [
        place
        for place, other in enumerate(read.sentences)
        if place != first and any(f" {name} " in _padded(f"{other.context} {other.text}") for name in new)
    ]


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    spans = (span for span in scan_entities(text).spans if span.is_name)
    return tuple(name for span in spans if len(name := " ".join(tokens(span.text))) > 2)


@lru_cache(maxsize=4096)
def _padded(text: str) -> str:
    return f" {' '.join(tokens(text))} "


def _newest_first(read: Alignment, chosen: list[int]) -> list[int]:
    """The chosen sentences with a newer one before an older one that says the like."""
    dates = _document_dates(read.sentences)
    order = list(chosen)
    for earlier in range(len(order)):
        for later in range(earlier + 1, len(order)):
            one, other = order[earlier], order[later]
            days = [dates.get(_document(read.sentences[place])) for place in (one, other)]
            if days[0] and days[1] and days[1] > days[0] and _says_the_like(read, one, other):
                order[earlier], order[later] = other, one
    return order


def _says_the_like(read: Alignment, one: int, other: int) -> bool:
    shared = np.minimum(read.near[one], read.near[other]) @ read.weights
    most = max(read.near[one] @ read.weights, read.near[other] @ read.weights)
    return bool(shared >= 0.8 * most and read.worth[other] >= 0.75 * read.worth[one])


def _document(sentence: Sentence) -> str:
    return sentence.passage.source or sentence.passage.id


def _document_dates(sentences: Sequence[Sentence]) -> dict[str, Day]:
    """The date of each document: in its name or title, else the latest at the head of a passage."""
    found: dict[str, Day] = {}
    for passage in {sentence.passage.id: sentence.passage for sentence in sentences}.values():
        texts = (passage.source.replace("_", "-"), passage.title, passage.text[:300])
        days = next((days for text in texts if (days := days_in(text))), [])
        key = passage.source or passage.id
        if days:
            found[key] = max([*days, *([found[key]] if key in found else [])])
    return found
