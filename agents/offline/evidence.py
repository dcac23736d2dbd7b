"""Evidence: the excerpts of passages that bear on a question, or the reason why there are none; and it as an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import numpy as np

from agents.offline.alignment import (
    HELD,
    LIKENESS,
    MOST_EMBEDDED,
    OF_KIND,
    OWN,
    RANK,
    Alignment,
    Embed,
    Excerpt,
    Sentence,
    excerpt_around,
    passage_sentences,
)
from agents.offline.comparison import Side, compare
from agents.offline.entities import scan_entities
from agents.offline.questions import AnswerKind, holds_kind, parse_question, split_question
from agents.offline.words import Day, days_in, word_spans
from agents.roles import Answer, Citation, NumberedPassage, refusal
from graph.sentences import key_values
from graph.text import title_name, tokens

MOST_EXCERPTS, MOST_LISTED = 3, 5
"""Excerpts that evidence has at most, and where a list is asked for; one more for a question of `LONG` terms."""

LONG = 8

LEAST_ABOUT = 0.75
"""The share of a side's terms that a sentence holds which tells of it."""

LEAST_ADDED, HOP, FARTHER = 0.06, -0.12, -0.02
"""The share that each sentence of a hop adds to the other at least; the worth of a hop beside that of its sentences,
and of each name that stands nearer to the question's words than the one that leads on."""

LEAST_FOLLOWING, LEAST_GAIN, NEAR_BEST = 0.55, 0.05, 0.9
"""The least worth of a further sentence, and the terms that it adds at least, unless it is named, newer, or of so large
a share of the best one's worth."""

BRIDGED, FARTHER_BRIDGE, NEWER, SAME_PASSAGE, SHARE_OF_WORTH = 0.3, 0.04, 0.3, 0.1, 0.5
"""Additions to the worth of a further sentence, or (a farther name, the same passage) deductions, beside half of its
own worth and the terms that it adds."""

ALIKE, STILL_WORTH = 0.8, 0.75
"""The share of terms, and of worth, from which one sentence says the like of another."""

_LINE = 80
_CLAUSE_END = re.compile(r"[,;)\n]")
_DATED = re.compile(
    r"\b(?:date|dated|sent|status|state|version|valid|effective|released|updated|revised|approved|as of|stand|from"
    r"|vom|du)\b(?:[^.;\n]|\.(?=\d|\s\w+ \d)){1,40}(?=[.\n]|$)",
    re.IGNORECASE,
)


class SentenceChoice:
    """Chooses among the sentences beside a question, by their places.

    Attributes:
        sides: of a question that asks which of two, the best sentence for each, or the one row that has both; empty
            where that is not asked, or one of them not found.
        places: of the sentences that are quoted, the best first, but newer before older ones that say the like.
        excerpts: what is quoted around them.
    """

    def __init__(self, read: Alignment) -> None:
        self._read = read
        self._order: list[int] = np.argsort(-read.worth, kind="stable").tolist()
        self._dates = _document_dates(read.passages.values())
        self._bridged = cache(self._find_bridged)
        self._around = cache(partial(excerpt_around, sentences=read.sentences, worth=read.worth))
        self.sides = self._find_sides() if read.question.choices else []
        self.places = self._newest_first(self._filled(self.sides or self._hop()))
        self.excerpts = self._quoted()

    def _find_sides(self) -> list[int]:
        read, choices = self._read, self._read.question.choices
        both = [place for place in self._order if read.sentences[place].is_row and self._has_columns(place)]
        if both:
            return both[:1]
        found: list[int] = []
        for mine, other in zip(choices, reversed(choices), strict=True):
            weights = read.weights.copy()
            weights[list(other.terms)] = 0.0
            about = [place for place in self._order if read.own[place, list(mine.terms)].mean() >= LEAST_ABOUT]
            if about:
                bearing = read.bearing(weights)
                found.append(max(about, key=lambda place: float(bearing[place])))
        return list(dict.fromkeys(found)) if len(found) == len(choices) else []

    def _has_columns(self, place: int) -> bool:
        """Tell whether a row has a cell for each of the two things compared."""
        text = self._read.sentences[place].text
        keys = {pair.key.casefold() for pair in key_values(text, 0, len(text))}
        return keys.issuperset(choice.name.casefold() for choice in self._read.question.choices)

    def _hop(self) -> list[int]:
        """The best sentence, or two that are better together: the first names what the second is about."""
        read, order = self._read, self._order
        best, worth = [order[0]], float(read.worth[order[0]])
        likely = np.flatnonzero(read.cosines) if read.cosines.any() else np.array(order[:MOST_EMBEDDED])
        for first in map(int, likely):
            bridged = self._bridged(first)
            seconds = np.fromiter(bridged, dtype=np.intp)
            distances = np.fromiter(bridged.values(), dtype=np.float64)
            gained = np.maximum(read.own[seconds] - read.own[first], 0.0) @ read.weights
            kept = np.maximum(read.near[first] - read.near[seconds], 0.0) @ read.weights
            cosines = np.sort(np.stack([np.full(len(seconds), read.cosines[first]), read.cosines[seconds]]), axis=0)
            both = (
                np.maximum(read.near[seconds], read.near[first]) @ read.weights
                + OWN * (np.maximum(read.own[seconds], read.own[first]) @ read.weights)
                + LIKENESS * (0.4 * cosines[0] + 0.6 * cosines[1])
                + OF_KIND * read.of_kind[seconds]
                + RANK * (read.ranks[first] + read.ranks[seconds]) / 2
                + HOP
                + FARTHER * distances
            )
            both[np.minimum(gained, kept) < LEAST_ADDED] = -np.inf
            if len(both) and both.max() > worth:
                best, worth = [first, int(seconds[both.argmax()])], float(both.max())
        return best

    def _filled(self, chosen: list[int]) -> list[int]:
        """The chosen sentences, and those that go best with them; a name that none of them cites takes the last."""
        read = self._read
        most = MOST_LISTED if read.question.asks_list else MOST_EXCERPTS
        most += len(read.question.terms) >= LONG
        while len(chosen) < most and (following := self._following(chosen)) is not None:
            chosen = [*chosen, following]
        held = read.anywhere[chosen].max(axis=0)
        for column, term in enumerate(read.question.terms):
            naming = [place for place in self._order if read.anywhere[place, column] >= HELD]
            if term.is_name and held[column] < HELD and naming:
                chosen = [*chosen[: most - 1], naming[0]]
        return chosen

    def _following(self, chosen: Sequence[int]) -> int | None:
        """The sentence that goes best with those chosen: it adds terms, is named by one, or is as good as any."""
        read = self._read
        held = read.own[list(chosen)].max(axis=0)
        quoted = {read.sentences[place].text for place in chosen if read.sentences[place].is_row}
        newer = self._newer(chosen[0])
        passages = {read.sentences[place].passage.id for place in chosen}
        beside = {sentence for place in chosen for sentence in self._around(place).sentences}
        bridged: dict[int, int] = {}
        for first in (place for place, sentence in enumerate(read.sentences) if sentence in beside):
            for second, distance in self._bridged(first).items():
                bridged[second] = min(bridged.get(second, distance), distance)
        gains = np.maximum(read.own - held, 0.0) @ read.weights
        best, most = None, LEAST_FOLLOWING
        for place in self._order:
            sentence, gain = read.sentences[place], float(gains[place])
            if place in chosen or sentence.text in quoted:
                continue
            is_elsewhere = sentence.passage.id not in passages
            is_bridged = place in bridged and is_elsewhere
            is_near_best = read.worth[place] >= NEAR_BEST * read.worth[self._order[0]]
            if gain < LEAST_GAIN and not (is_bridged or place in newer or is_near_best):
                continue
            bridge = max(0.0, BRIDGED - FARTHER_BRIDGE * bridged[place]) if is_bridged else 0.0
            worth = SHARE_OF_WORTH * float(read.worth[place]) + gain + bridge + NEWER * (place in newer)
            worth -= SAME_PASSAGE * (not is_elsewhere)
            if worth > most:
                best, most = place, worth
        return best

    def _find_bridged(self, first: int) -> dict[int, int]:
        """The sentences that hold a name, or the title, of another one that the question does not hold.

        A column of a row is no name: all rows of its table hold it.

        Returns:
            Their places, each with how many other new names stand nearer to the question's words.
        """
        sentence = self._read.sentences[first]
        held = [(start, end) for word, start, end in word_spans(sentence.text) if word in self._read.holding]
        columns = [(pair.start, pair.end) for pair in key_values(sentence.text, 0, len(sentence.text))]
        names = [
            (min((_gap(sentence.text, span, other) for other in held), default=0), name)
            for name, span in _names(sentence.text)
            if not any(start <= span[0] and span[1] <= end for start, end in columns)
        ]
        names += [(0, name) for name, _ in _names(f"{title_name(sentence.passage.title)}.")]
        new = [name for _, name in sorted(names) if not self._read.question.words.issuperset(name.split())]
        found: dict[int, int] = {}
        for distance, name in enumerate(dict.fromkeys(new)):
            for place, other in enumerate(self._read.sentences):
                if place != first and f" {name} " in other.words:
                    found.setdefault(place, distance)
        return found

    def _newest_first(self, chosen: Sequence[int]) -> list[int]:
        order = list(chosen)
        for earlier in range(len(order)):
            for later in range(earlier + 1, len(order)):
                if order[later] in self._newer(order[earlier]):
                    order[earlier], order[later] = order[later], order[earlier]
        return order

    def _newer(self, place: int) -> frozenset[int]:
        """The sentences of newer documents that say the like of one."""
        read, dates = self._read, self._dates
        own = dates.get(_document(read.sentences[place]))
        if own is None:
            return frozenset()
        later = [other for other, each in enumerate(read.sentences) if dates.get(_document(each), own) > own]
        return frozenset(other for other in later if self._says_the_like(place, other))

    def _says_the_like(self, one: int, other: int) -> bool:
        read = self._read
        shared = np.minimum(read.own[one], read.own[other]) @ read.weights
        most = max(read.own[one] @ read.weights, read.own[other] @ read.weights)
        return bool(shared >= ALIKE * most and read.worth[other] >= STILL_WORTH * read.worth[one])

    def _quoted(self) -> list[Excerpt]:
        found: list[Excerpt] = []
        quotes: set[str] = set()
        quoted: set[Sentence] = set()
        for place in self.places:
            fresh = Excerpt(tuple([each for each in self._around(place).sentences if each not in quoted]))
            if fresh.sentences and (quote := fresh.quote()) not in quotes:
                found.append(fresh)
                quotes.add(quote)
            quoted.update(fresh.sentences)
        return found


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[tuple[str, tuple[int, int]], ...]:
    """The names of a text, each with where it stands."""
    return tuple(
        [
            (name, (span.start, span.end))
            for span in scan_entities(text).spans
            if span.is_name and len(name := " ".join(tokens(span.text))) > 2
        ]
    )


def _gap(text: str, one: tuple[int, int], other: tuple[int, int]) -> int:
    """The characters between two spans; a mark between them that ends a clause counts as a line."""
    between = text[min(one[1], other[1]) : max(one[0], other[0])]
    return len(between) + _LINE * len(_CLAUSE_END.findall(between))


def _document(sentence: Sentence) -> str:
    return sentence.passage.source or sentence.passage.id


def _document_dates(passages: Iterable[NumberedPassage]) -> dict[str, Day]:
    """The date of each document: in its name or title, else the latest at the head of a passage."""
    found: dict[str, Day] = {}
    for passage in passages:
        head = "".join([match[0] for match in _DATED.finditer(passage.text[:400])])
        texts = (passage.source.replace("_", "-"), passage.title, head)
        days = next((days for text in texts if (days := days_in(text))), [])
        key = passage.source or passage.id
        if days:
            found[key] = max([*days, *([found[key]] if key in found else [])])
    return found


LEAST_COVERAGE = 0.45
"""The least share of a question that evidence holds."""

LIKE = 0.5
"""How far a word is held, from here on, where a passage is looked at alone."""


TOO_LITTLE = "the passages found hold too little of the question"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence that passages hold on one part of a question.

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
    if (is_unlike and not _has_rows(read, choice)) or read.near[places].max(axis=0) @ read.weights < LEAST_COVERAGE:
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
