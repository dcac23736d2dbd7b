"""Evidence: the excerpts of passages that bear on a question, or the reason why there are none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
from agents.offline.questions import holds_kind, parse_question
from agents.offline.tables import OtherRows, list_rows
from agents.offline.words import FUNCTION_WORDS, Day, days_in, stem, word_spans, words_of
from agents.roles import NumberedPassage
from graph.sentences import KeyValue, key_values
from graph.text import title_name, tokens

MOST_EXCERPTS = 3
"""Excerpts that evidence has at most; one more for a question of `LONG` terms."""

LONG = 8

LEAST_ABOUT = 0.75
"""The share of a side's terms that a sentence holds which tells of it."""

LEAST_ADDED, HOP, FARTHER = 0.06, -0.12, -0.02
"""The share that each sentence of a hop adds to the other at least; the worth of a hop beside that of its sentences,
and of each name that stands nearer to the question's words than the one that leads on."""

LEAST_FOLLOWING, LEAST_GAIN, LEAST_LED, NEAR_BEST = 0.55, 0.05, 0.15, 0.9
"""The least worth of a further sentence; the terms that it adds at least, unless it is named, newer, or of so large a
share of the best one's worth; and those that it adds where it is a part of the answer, since that names it."""

BRIDGED, FARTHER_BRIDGE, SAME_PASSAGE, SHARE_OF_WORTH = 0.3, 0.04, 0.1, 0.5
"""Additions to the worth of a further sentence, or (a farther name, the same passage) deductions, beside half of its
own worth and the terms that it adds."""

ALIKE, STILL_WORTH = 0.8, 0.75
"""The share of terms, and of worth, from which one sentence says the like of another."""

LIKE = 0.5
"""How far a word is held, from here on, where a passage is looked at alone, or stands beside an answer."""

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
        sides: of a question that asks which of two, the best sentence for each; empty where that is not asked, or one
            of them not found.
        places: of the sentences that are evidence, the best first, but newer before older ones that say the like.
        excerpts: what is quoted as the answer.
        related: what else bears on the question.
        looked_at: all that was looked at, what is only near included.
    """

    def __init__(self, read: Alignment) -> None:
        self._read = read
        self._order: list[int] = np.argsort(-read.worth, kind="stable").tolist()
        self._dates = _document_dates(read.passages.values())
        self._bridged = cache(self._find_bridged)
        self._around = cache(partial(excerpt_around, sentences=read.sentences, worth=read.worth))
        self.sides = self._find_sides() if read.question.choices else []
        best = self.sides or self._hop()
        self._led: list[int] = []
        self.places = self._newest_first(self._filled(best))
        answering = self._answering(self.places[: len(best)])
        quoted: set[Sentence] = set()
        self.excerpts = self._quoted(answering, quoted)
        self.related = self._quoted([place for place in self.places if self._bears(place, answering)], quoted)
        self.looked_at = [self._around(place) for place in self.places]

    def _find_sides(self) -> list[int]:
        read, choices = self._read, self._read.question.choices
        sides: list[int] = []
        for mine, other in zip(choices, reversed(choices), strict=True):
            weights = read.weights.copy()
            weights[list(other.terms)] = 0.0
            about = [place for place in self._order if read.own[place, list(mine.terms)].mean() >= LEAST_ABOUT]
            if about:
                bearing = read.bearing(weights)
                sides.append(max(about, key=lambda place: float(bearing[place])))
        return list(dict.fromkeys(sides)) if len(sides) == len(choices) else []

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
            left = np.maximum(read.near[first] - read.near[seconds], 0.0) @ read.weights
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
            both[np.minimum(gained, left) < LEAST_ADDED] = -np.inf
            if len(both) and both.max() > worth:
                best, worth = [first, int(seconds[both.argmax()])], float(both.max())
        return best

    def _filled(self, chosen: list[int]) -> list[int]:
        """The chosen sentences, and those that go best with them; a name that none of them cites takes the last."""
        read = self._read
        most = MOST_EXCERPTS + (len(read.question.terms) >= LONG)
        while len(chosen) < most and (following := self._following(chosen)) is not None:
            if self._leads(chosen, following):
                self._led.append(following)
            chosen = [*chosen, following]
        covered = read.anywhere[chosen].max(axis=0)
        for column, term in enumerate(read.question.terms):
            naming = [place for place in self._order if read.anywhere[place, column] >= HELD]
            if term.is_name and covered[column] < HELD and naming:
                chosen = [*chosen[: most - 1], naming[0]]
        return chosen

    def _following(self, chosen: Sequence[int]) -> int | None:
        """The sentence that goes best with those chosen: it adds terms, is named by one, or is as good as any."""
        read = self._read
        covered = read.own[list(chosen)].max(axis=0)
        newer = self._newer(chosen[0])
        passages = {read.sentences[place].passage.id for place in chosen}
        bridged = self._bridged_by(chosen)
        gains = np.maximum(read.own - covered, 0.0) @ read.weights
        best, most = None, LEAST_FOLLOWING
        for place in self._order:
            gain = float(gains[place])
            is_elsewhere = read.sentences[place].passage.id not in passages
            is_bridged = place in bridged and is_elsewhere
            is_near_best = read.worth[place] >= NEAR_BEST * read.worth[self._order[0]]
            if place in chosen or (gain < LEAST_GAIN and not (is_bridged or place in newer or is_near_best)):
                continue
            bridge = max(0.0, BRIDGED - FARTHER_BRIDGE * bridged[place]) if is_bridged else 0.0
            worth = SHARE_OF_WORTH * float(read.worth[place]) + gain + bridge - SAME_PASSAGE * (not is_elsewhere)
            if worth > most:
                best, most = place, worth
        return best

    def _bridged_by(self, chosen: Sequence[int]) -> dict[int, int]:
        """The result of `_find_bridged`, for all that is quoted with some sentences."""
        beside = {sentence for place in chosen for sentence in self._around(place).sentences}
        distances: dict[int, int] = {}
        for first in (place for place, sentence in enumerate(self._read.sentences) if sentence in beside):
            for second, distance in self._bridged(first).items():
                distances[second] = min(distances.get(second, distance), distance)
        return distances

    def _leads(self, chosen: Sequence[int], place: int) -> bool:
        """Tell whether what is quoted names what a sentence elsewhere is about, which tells more of the question."""
        read = self._read
        gain = np.maximum(read.own[place] - read.own[list(chosen)].max(axis=0), 0.0) @ read.weights
        is_elsewhere = read.sentences[place].passage.id not in {read.sentences[each].passage.id for each in chosen}
        return bool(gain >= LEAST_LED) and is_elsewhere and place in self._bridged_by(chosen)

    def _find_bridged(self, first: int) -> dict[int, int]:
        """The sentences that hold a name, or the title, of another one that the question does not hold.

        Returns:
            Their places, each with how many other new names stand nearer to the question's words.
        """
        sentence = self._read.sentences[first]
        spans = [(start, end) for word, start, end in word_spans(sentence.text) if word in self._read.holding]
        names = [
            (min((_gap(sentence.text, span, other) for other in spans), default=0), name)
            for name, span in _names(sentence.text)
        ]
        names += [(0, name) for name, _ in _names(f"{title_name(sentence.passage.title)}.")]
        new = [name for _, name in sorted(names) if not self._read.question.words.issuperset(name.split())]
        distances: dict[int, int] = {}
        for distance, name in enumerate(dict.fromkeys(new)):
            for place, other in enumerate(self._read.sentences):
                if place != first and f" {name} " in other.words:
                    distances.setdefault(place, distance)
        return distances

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

    def _answering(self, best: Sequence[int]) -> list[int]:
        """The sentences that are the answer: of two that are better together, the one that is led to comes first.

        With them stand rows that are as good, and what alone holds a name that is asked about, or the kind of answer.
        """
        read = self._read
        chain = best if self.sides else best[::-1]
        chosen = list(dict.fromkeys([*chain, *self._led]))
        others = [place for place in self.places if place not in chosen]
        if len(best) == 1 and read.sentences[best[0]].is_row:
            chosen += [place for place in others if self._is_as_good(place, best[0])]
        for column, term in enumerate(read.question.terms):
            if term.is_name and read.anywhere[chosen, column].max() < HELD:
                chosen += [place for place in others if read.anywhere[place, column] >= HELD][:1]
        if not read.of_kind[chosen].any():
            chosen = [*[place for place in others if read.of_kind[place]][:1], *chosen]
        return list(dict.fromkeys(chosen))

    def _is_as_good(self, place: int, best: int) -> bool:
        """Tell whether a sentence is about as good as a row, and holds all that it holds."""
        read = self._read
        is_held = bool((read.own[place] >= read.own[best].clip(max=HELD)).all())
        return is_held and bool(read.worth[place] >= NEAR_BEST * read.worth[best])

    def _bears(self, place: int, answering: Sequence[int]) -> bool:
        """Tell whether a sentence that is not the answer bears on the question, rather than on something near.

        It tells more of the question than the answer does, or may where the answer lacks a term and names what it is
        about; or it says the like of the answer.
        """
        read, best = self._read, answering[0]
        if place in answering:
            return False
        covered = read.own[list(answering)].max(axis=0)
        gain = np.maximum(read.own[place] - covered, 0.0) @ read.weights
        may_add = covered.min() < HELD and place in self._bridged_by(answering)
        return bool(gain >= LEAST_GAIN) or bool(may_add) or self._says_the_like(best, place)

    def _quoted(self, places: Sequence[int], quoted: set[Sentence]) -> list[Excerpt]:
        """The excerpts around sentences, without those that are quoted already; these are taken note of."""
        excerpts: list[Excerpt] = []
        quotes: set[str] = set()
        for place in places:
            fresh = tuple([each for each in self._around(place).sentences if each not in quoted])
            key = self._read.sentences[place]
            excerpt = Excerpt(fresh, key if key in fresh else None, self._asked_column(key))
            if fresh and (quote := excerpt.quote()) not in quotes:
                excerpts.append(excerpt)
                quotes.add(quote)
            quoted.update(fresh)
        return excerpts

    def _asked_column(self, row: Sentence) -> str:
        """The column of a row whose name holds most of the question, and whose cell tells what the question does not.

        Empty for a sentence, and where no column or several do.
        """
        asked = self._read.question
        cells = key_values(row.text, 0, len(row.text)) if row.is_row else []
        telling = [cell for cell in cells if not words_of(cell.value) <= asked.words]
        worth = {cell.key: self._held_by(cell.key) for cell in telling}
        best = [key for key, weight in worth.items() if weight and weight == max(worth.values())]
        return best[0] if len(best) == 1 else ""

    def _held_by(self, name: str) -> float:
        """The weight of the terms that a column's name holds."""
        asked = self._read.question
        stems = {stem(word, asked.language) for word in words_of(name)}
        return float(sum(self._read.weights[place] for place, term in enumerate(asked.terms) if term.stem in stems))


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
    dates: dict[str, Day] = {}
    for passage in passages:
        head = "".join([match[0] for match in _DATED.finditer(passage.text[:400])])
        texts = (passage.source.replace("_", "-"), passage.title, head)
        days = next((days for text in texts if (days := days_in(text))), [])
        key = passage.source or passage.id
        if days:
            dates[key] = max([*days, *([dates[key]] if key in dates else [])])
    return dates


LEAST_COVERAGE = 0.45
"""The least share of a question that evidence holds."""

LEAST_OF_ROW = 0.6
"""The least share that a row holds itself, where nothing but its name and a column makes it like the question."""

TOO_LITTLE = "the passages found hold too little of the question"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence that passages hold on one part of a question.

    Attributes:
        question: the part, as a question of its own.
        excerpts: what is quoted as the answer, the best first; empty where nothing bears on it.
        related: what else bears on the question.
        refusal: why there are none; empty where there are.
        misspelt: names of the question that were read as others, and as which.
        short: an answer in a word or two where it could be computed; else empty.
        compared: the excerpts that it was computed from, the first ones.
        is_list: whether the excerpts are all rows that were asked for.
    """

    question: str
    excerpts: tuple[Excerpt, ...] = ()
    related: tuple[Excerpt, ...] = ()
    refusal: str = ""
    misspelt: tuple[tuple[str, str], ...] = ()
    short: str = ""
    compared: tuple[Excerpt, ...] = ()
    is_list: bool = False


def find_evidence(
    question: str,
    passages: Sequence[NumberedPassage],
    embed: Embed | None,
    least_likeness: float = 0.0,
    other_rows: OtherRows | None = None,
) -> Evidence:
    """Return the evidence that passages hold for a question.

    There is none where a name of the question stands in no passage that would be cited, where what would be cited
    holds nothing of the kind that is asked for, where it says of one of two compared things alone, or where it bears
    on the question too little (`LEAST_COVERAGE`, ``least_likeness``; a row that holds all of it, or is named and asked
    for, need not be like it, and neither need what a comparison is computed from).

    Args:
        question: it asks one thing; see `split_question`.
        passages: the best first; each is read whole.
        embed: gives unit vectors of texts; None compares words alone.
        least_likeness: the least cosine of the likest sentence, on the scale of that embedding; 0 for none.
        other_rows: reads the tables that rows of the passages are of; None lists and counts nothing.
    """
    sentences = passage_sentences(passages)
    asked = parse_question(question)
    if not asked.terms or not sentences:
        return Evidence(question, refusal="nothing is asked" if sentences else "no passage was found")
    if other_rows is not None and (listing := list_rows(asked, sentences, other_rows)) is not None:
        return Evidence(question, listing.excerpts, short=listing.count, is_list=True)
    read = Alignment(asked, sentences, embed)
    choice = SentenceChoice(read)
    misspelt = tuple(read.misspelt.items())
    refusal = _refusal(read, choice, least_likeness)
    winner, short = _compared(read, choice) or (0, "")
    if refusal and not (short and refusal == TOO_LITTLE):
        return Evidence(question, refusal=refusal, misspelt=misspelt)
    if not short:
        return Evidence(question, tuple(choice.excerpts), tuple(choice.related), misspelt=misspelt)
    compared_sentences = [read.sentences[place] for place in (choice.sides[::-1] if winner else choice.sides)]
    compared = dict.fromkeys(
        excerpt for one in compared_sentences for excerpt in choice.excerpts if one in excerpt.sentences
    )
    ordered = tuple(dict.fromkeys([*compared, *choice.excerpts]))
    return Evidence(question, ordered, tuple(choice.related), misspelt=misspelt, short=short, compared=tuple(compared))


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
    covered = read.anywhere[places].max(axis=0)
    missing = [term.text for term, share in zip(asked.terms, covered, strict=True) if term.is_name and share < HELD]
    if missing:
        return f"the passages found do not hold {', '.join(missing)}"
    if not any(holds_kind(excerpt.read, asked.kind, asked.words) for excerpt in choice.looked_at):
        return f"the passages found hold no {asked.kind.value} that would answer it"
    wanted = [column for column, term in enumerate(asked.terms) if term.is_asked]
    is_row = all(read.sentences[place].is_row for place in choice.places)
    if is_row and wanted and read.own[places][:, wanted].max() < HELD:
        return f"the rows found do not tell {', '.join(asked.terms[column].text for column in wanted)}"
    if asked.choices and not choice.sides:
        return "the passages found do not hold both of the things compared"
    likeness = read.cosines[places].max()
    is_unlike = bool(least_likeness and read.cosines.any()) and likeness < least_likeness
    has_row = any(read.sentences[place].is_row and read.own[place].min() >= HELD for place in places)
    coverage = read.near[places].max(axis=0) @ read.weights
    if coverage < LEAST_COVERAGE or (is_unlike and not (has_row or _has_cell(read, choice))):
        return TOO_LITTLE
    return ""


def _has_cell(read: Alignment, choice: SentenceChoice) -> bool:
    """Tell whether what is quoted is a row that has each name of a question, and a column of what is asked.

    Of other words, it may lack a noun, which says what it is that is named; German ones are told by their capital.
    """
    asked, place = read.question, choice.places[0]
    names = [column for column, term in enumerate(asked.terms) if term.is_name]
    is_named = bool(names) and bool((read.own[place, names] >= HELD).all())
    lacking = [term.text for term, share in zip(asked.terms, read.own[place], strict=True) if share < LIKE]
    are_nouns = asked.language == "german" and all(word.capitalize() in asked.text for word in lacking)
    is_held = bool(read.own[place] @ read.weights >= LEAST_OF_ROW)
    return bool(choice.excerpts[0].column) and is_named and is_held and (are_nouns or not lacking)


def _compared(read: Alignment, choice: SentenceChoice) -> tuple[int, str] | None:
    """Which of two compared things it is, where that can be computed."""
    sides = choice.sides
    if not sides:
        return None
    chosen = [read.sentences[place] for place in (sides if len(sides) == 2 else [sides[0], sides[0]])]
    names = [each.name for each in read.question.choices]
    rows = [sentence.text for sentence in read.sentences if sentence.is_row]
    named = [
        Side(mine, sentence.text, sentence.context, rows, _lines_of(sentence, mine, other, choice.excerpts))
        for sentence, mine, other in zip(chosen, names, reversed(names), strict=True)
    ]
    return compare(read.question.text, named)


def _lines_of(sentence: Sentence, mine: str, other: str, excerpts: Iterable[Excerpt]) -> list[KeyValue]:
    """The key-value lines that are quoted with a sentence, where all of its passage is of one side, as a data sheet."""
    words = words_of(f"{sentence.passage.title} {sentence.passage.text}")
    if not words_of(mine) - FUNCTION_WORDS <= words or words_of(other) - FUNCTION_WORDS <= words:
        return []
    quoted = [each for excerpt in excerpts if sentence in excerpt.sentences for each in excerpt.sentences]
    return [pair for each in quoted if not each.is_row for pair in key_values(each.text, 0, len(each.text))]
