"""Evidence: the excerpts of passages that bear on a question, or the reason why there are none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from agents.offline.language.entities import scan_entities
from agents.offline.reading.alignment import HELD, MOST_EMBEDDED, Alignment, Embed
from agents.offline.reading.comparison import Side, compare
from agents.offline.reading.dates import Day, days_in
from agents.offline.reading.excerpts import Excerpt, Sentence, excerpt_around, passage_sentences
from agents.offline.reading.kinds import holds_kind
from agents.offline.reading.questions import parse_question
from agents.offline.reading.words import word_spans
from agents.roles import NumberedPassage
from graph.sentences import key_values
from graph.text import title_name, tokens

MOST_EXCERPTS, MOST_LISTED = 3, 5
"""Excerpts that evidence has at most, and where a list is asked for; one more for a question of `LONG` terms."""

LONG = 8

LEAST_COVERAGE = 0.45
"""The least share of a question that evidence holds."""

_LINE = 80
_CLAUSE_END = re.compile(r"[,;)\n]")

LIKE = 0.5
"""How far a word is held, from here on, where a passage is looked at alone."""

_ASKS_LIST = re.compile(
    r"^\W*(?:please )?(?:list|enumerate|name (?:all|every|the \w+s))\b|\bwho are\b|\bwhich (?:other )?\w+s\b"
    r"|\b(?:all|everybody|everyone)\b",
    re.IGNORECASE,
)


_DATED = re.compile(
    r"\b(?:date|dated|sent|status|state|version|valid|effective|released|updated|revised|approved|as of|stand|from"
    r"|vom|du)\b(?:[^.;\n]|\.(?=\d|\s\w+ \d)){1,40}(?=[.\n]|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What passages hold on one part of a question.

    Attributes:
        question: the part, as a question of its own.
        excerpts: the best first, newer ones before those that they supersede; empty where nothing bears on it.
        refusal: why there are none; empty where there are.
        misspelt: names of the question that were read as others, and as which.
        short: an answer in a word or two where it could be computed; else empty.
        compared: the excerpts that it was computed from, the first ones.
    """

    question: str
    excerpts: tuple[Excerpt, ...] = ()
    refusal: str = ""
    misspelt: tuple[tuple[str, str], ...] = ()
    short: str = ""
    compared: tuple[Excerpt, ...] = ()


def find_evidence(
    question: str, passages: Sequence[NumberedPassage], embed: Embed | None, least_likeness: float = 0.0
) -> Evidence:
    """Return the evidence that passages hold for a question.

    There is none where a name of the question stands in no passage that would be cited, where what would be cited
    holds nothing of the kind that is asked for, where it says of one of two compared things alone, or where it bears
    on the question too little (`LEAST_COVERAGE`, ``least_likeness``).

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
    sides = _sides(read)
    chosen = _newest_first(read, _filled(read, sides or _hop(read)))
    excerpts = _excerpts(read, chosen)
    misspelt = tuple(read.misspelt.items())
    refusal = _refusal(read, chosen, excerpts, has_sides=bool(sides), least_likeness=least_likeness)
    if refusal:
        return Evidence(question, refusal=refusal, misspelt=misspelt)
    winner, short = _compared(read, sides) or (0, "")
    if not short:
        return Evidence(question, tuple(excerpts), misspelt=misspelt)
    told = [read.sentences[place] for place in (sides[::-1] if winner else sides)]
    compared = dict.fromkeys(excerpt for one in told for excerpt in excerpts if one in excerpt.sentences)
    ordered = tuple(dict.fromkeys([*compared, *excerpts]))
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


def _refusal(
    read: Alignment, chosen: Sequence[int], excerpts: Sequence[Excerpt], *, has_sides: bool, least_likeness: float
) -> str:
    """Why what was chosen is no evidence; empty where it is."""
    asked = read.question
    held = read.anywhere[list(chosen)].max(axis=0)
    missing = [term.text for term, share in zip(asked.terms, held, strict=True) if term.is_name and share < HELD]
    if missing:
        return f"the passages found do not hold {', '.join(missing)}"
    if not any(holds_kind(excerpt.read, asked.kind, asked.words) for excerpt in excerpts):
        return f"the passages found hold no {asked.kind.value} that would answer it"
    if asked.choices and not has_sides:
        return "the passages found do not hold both of the things compared"
    likeness = read.cosines[list(chosen)].max()
    is_unlike = bool(least_likeness and read.cosines.any()) and likeness < least_likeness
    if is_unlike or read.coverage(chosen) @ read.weights < LEAST_COVERAGE:
        return "the passages found hold too little of the question"
    return ""


def _compared(read: Alignment, sides: Sequence[int]) -> tuple[int, str] | None:
    """Which of two compared things it is, where that can be computed."""
    if not sides:
        return None
    places = sides if len(sides) == 2 else [sides[0], sides[0]]
    named = [
        Side(read.question.name_of(choice), read.sentences[place].text)
        for choice, place in zip(read.question.choices, places, strict=True)
    ]
    return compare(read.question.text, named)


def _excerpts(read: Alignment, chosen: Sequence[int]) -> list[Excerpt]:
    found: list[Excerpt] = []
    quoted: set[Sentence] = set()
    for place in chosen:
        excerpt = excerpt_around(place, read.sentences, read.worth)
        fresh = Excerpt(tuple(sentence for sentence in excerpt.sentences if sentence not in quoted))
        if fresh.sentences and fresh.quote not in {each.quote for each in found}:
            found.append(fresh)
        quoted.update(fresh.sentences)
    return found


def _filled(read: Alignment, chosen: list[int]) -> list[int]:
    """What was chosen, and the sentences that go best with it."""
    most = MOST_LISTED if _ASKS_LIST.search(read.question.text) else MOST_EXCERPTS
    most += len(read.question.terms) >= LONG
    order = _by_worth(read)
    while len(chosen) < most and (following := _following(read, chosen, order)) is not None:
        chosen = [*chosen, following]
    held = read.anywhere[chosen].max(axis=0)
    for column, term in enumerate(read.question.terms):
        naming = [place for place in order if read.anywhere[place, column] >= HELD]
        if term.is_name and held[column] < HELD and naming:
            chosen = [*chosen[: most - 1], naming[0]]
    return chosen


def _places(read: Alignment, excerpt: Excerpt) -> list[int]:
    return [place for place, sentence in enumerate(read.sentences) if sentence in excerpt.sentences]


def _by_worth(read: Alignment) -> list[int]:
    return [int(place) for place in np.argsort(-read.worth, kind="stable")]


def _sides(read: Alignment) -> list[int]:
    """Of a question that asks which of two, the best sentence for each; none where that is not asked, or not found."""
    found: list[int] = []
    order, choices = _by_worth(read), read.question.choices
    both = [place for place in order if read.sentences[place].is_row and _has_columns(read, place)]
    if both:
        return [max(both, key=lambda place: read.worth[place])]
    for mine, other in zip(choices, reversed(choices), strict=True):
        weights = read.weights.copy()
        weights[list(other)] = 0.0
        about = [place for place in order if read.own[place, list(mine)].mean() >= 0.75]
        if about:
            worth = read.near @ weights + 0.3 * (read.own @ weights) + 0.8 * read.cosines + 0.35 * read.of_kind
            found.append(max(about, key=lambda place: worth[place]))
    return list(dict.fromkeys(found)) if len(found) == len(choices) else []


def _has_columns(read: Alignment, place: int) -> bool:
    """Tell whether a row has a cell for each of the two things compared."""
    text = read.sentences[place].text
    keys = {pair.key.casefold() for pair in key_values(text, 0, len(text))}
    names = [read.question.name_of(choice).casefold() for choice in read.question.choices]
    return bool(names) and keys.issuperset(names)


def _hop(read: Alignment) -> list[int]:
    """The best sentence, or two that are better together: the first names what the second is about."""
    order = _by_worth(read)
    best, worth = [order[0]], float(read.worth[order[0]])
    likely = np.flatnonzero(read.cosines) if read.cosines.any() else np.array(order[:MOST_EMBEDDED])
    for first in map(int, likely):
        for second, distance in _bridged(read, first).items():
            gain = np.maximum(read.own[second] - read.own[first], 0.0) @ read.weights
            lost = np.maximum(read.near[first] - read.near[second], 0.0) @ read.weights
            if min(gain, lost) < 0.06:
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
                - 0.02 * distance
            )
            if both > worth:
                best, worth = [first, second], float(both)
    return best


def _following(read: Alignment, chosen: Sequence[int], order: Sequence[int]) -> int | None:
    """The sentence that goes best with those chosen: it adds terms, is named by one of them, or is as good as any."""
    held = read.own[list(chosen)].max(axis=0)
    quoted = {read.sentences[place].text for place in chosen if read.sentences[place].is_row}
    newer = _newer(read, chosen[0])
    passages = {read.sentences[place].passage.id for place in chosen}
    beside = {place for first in chosen for place in _places(read, excerpt_around(first, read.sentences, read.worth))}
    bridged: dict[int, int] = {}
    for first in beside:
        for second, distance in _bridged(read, first).items():
            bridged[second] = min(bridged.get(second, distance), distance)
    best, most = None, 0.55
    for place in order:
        if place in chosen or read.sentences[place].text in quoted:
            continue
        gain = np.maximum(read.own[place] - held, 0.0) @ read.weights
        is_elsewhere = read.sentences[place].passage.id not in passages
        is_bridged = place in bridged and is_elsewhere
        is_newer = place in newer
        if gain < 0.05 and not is_bridged and not is_newer and read.worth[place] < 0.9 * read.worth[order[0]]:
            continue
        bridge = max(0.0, 0.3 - 0.04 * bridged[place]) if is_bridged else 0.0
        worth = 0.5 * read.worth[place] + gain + bridge + 0.3 * is_newer - 0.1 * (not is_elsewhere)
        if worth > most:
            best, most = place, worth
    return best


def _bridged(read: Alignment, first: int) -> dict[int, int]:
    """The sentences that hold a name, or the title, of another one that the question does not hold.

    Returns:
        Their places, each with how many other new names stand nearer to the question's words.
    """
    sentence = read.sentences[first]
    held = [(start, end) for word, start, end in word_spans(sentence.text) if word in read.holding]
    names = [
        (min((_gap(sentence.text, span, other) for other in held), default=0), name)
        for name, span in _names(sentence.text)
    ]
    names += [(0, name) for name, _ in _names(f"{title_name(sentence.passage.title)}.")]
    new = [name for _, name in sorted(names) if not read.question.words.issuperset(name.split())]
    found: dict[int, int] = {}
    for distance, name in enumerate(dict.fromkeys(new)):
        for place, other in enumerate(read.sentences):
            if place != first and f" {name} " in other.words:
                found.setdefault(place, distance)
    return found


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[tuple[str, tuple[int, int]], ...]:
    """The names of a text, each with where it stands."""
    spans = (span for span in scan_entities(text).spans if span.is_name)
    return tuple((name, (span.start, span.end)) for span in spans if len(name := " ".join(tokens(span.text))) > 2)


def _gap(text: str, one: tuple[int, int], other: tuple[int, int]) -> int:
    """The characters between two spans; a mark between them that ends a clause counts as a line."""
    between = text[min(one[1], other[1]) : max(one[0], other[0])]
    return len(between) + _LINE * len(_CLAUSE_END.findall(between))


def _newest_first(read: Alignment, chosen: Sequence[int]) -> list[int]:
    """The chosen sentences with a newer one before an older one that says the like."""
    order = list(chosen)
    for earlier in range(len(order)):
        for later in range(earlier + 1, len(order)):
            if order[later] in _newer(read, order[earlier]):
                order[earlier], order[later] = order[later], order[earlier]
    return order


def _newer(read: Alignment, place: int) -> frozenset[int]:
    """The sentences of newer documents that say the like of one."""
    dates = _document_dates(read.sentences)
    own = dates.get(_document(read.sentences[place]))
    if own is None:
        return frozenset()
    later = [dates.get(_document(sentence), own) > own for sentence in read.sentences]
    return frozenset(other for other, is_later in enumerate(later) if is_later and _says_the_like(read, place, other))


def _says_the_like(read: Alignment, one: int, other: int) -> bool:
    shared = np.minimum(read.own[one], read.own[other]) @ read.weights
    most = max(read.own[one] @ read.weights, read.own[other] @ read.weights)
    return bool(shared >= 0.8 * most and read.worth[other] >= 0.75 * read.worth[one])


def _document(sentence: Sentence) -> str:
    return sentence.passage.source or sentence.passage.id


def _document_dates(sentences: Sequence[Sentence]) -> dict[str, Day]:
    """The date of each document: in its name or title, else the latest at the head of a passage."""
    found: dict[str, Day] = {}
    for passage in {sentence.passage.id: sentence.passage for sentence in sentences}.values():
        head = "".join(match[0] for match in _DATED.finditer(passage.text[:400]))
        texts = (passage.source.replace("_", "-"), passage.title, head)
        days = next((days for text in texts if (days := days_in(text))), [])
        key = passage.source or passage.id
        if days:
            found[key] = max([*days, *([found[key]] if key in found else [])])
    return found
