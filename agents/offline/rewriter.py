"""The rewriter without a model: what a question leans on is put into it, as far as the words tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from agents.leaning import leaning_of
from agents.offline.language.entities import scan_entities
from agents.offline.language.words import FUNCTION_WORDS, PREPOSITIONS, word_set
from agents.offline.reading.kinds import AnswerKind, answer_kind
from agents.offline.reading.words import is_function_word, language_of, stem, word_spans
from agents.roles import Feedback, Rewriting, Turn
from graph.retrieve.known_names import KnownNames, Pronoun

CARRIED_NAMES = 6
"""Names of earlier turns that a walk starts from, at most."""

_HE = word_set("he him his himself er ihn ihm seine seinen seinem seiner seines il lui él")
_SHE = word_set("she her hers herself elle ella")
_OWN = word_set("his her hers its their theirs")
_THING = word_set(
    "it its itself they them their theirs both this that these those es davon dazu damit darin deren dessen ihr ihre "
    "ihren ihrem ihrer sie eso esto su sus suyo son sa ses leur leurs celui celle ils elles ellos ellas"
)
_PLACE = word_set("there dort allí")
_OPENING = re.compile(
    r"^\W*(?:(?:and|but|so|or|then|also|well|no|nope|yes|ok|okay|sorry|oops|hm+|thanks|i see|and then|actually|rather|und"
    r"|aber|also|et|mais|y|pero|nein|non)\b[\s,.!:-]*)*"
    r"(?:(?:what about|how about|i mean|i meant|i thought|was ist mit|und was ist mit|ich meinte|et pour|je voulais dire"
    r"|y qué hay de|quería decir)\b[\s,.:-]*)?",
    re.IGNORECASE,
)
_REDONE = re.compile(
    r"^\W*(?:and |but |und |et |y )?(why|when|where|how|who|whom|by whom|since when|until when|warum|wieso|wann|wo|seit wann"
    r"|pourquoi|quand|où|por qué|cuándo|dónde)(?:\s+(?:not|so|come|exactly|then))?\W*$",
    re.IGNORECASE,
)
_ASKS_WITH = re.compile(
    r"^\W*(?:and |but |so )?(?:when|where|why|how(?: \w+)?|what|in (?:which|what) \w+|wann|wo|warum|wie|quand|où|pourquoi)\s+"
    r"(?=(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|wurde|ist|war|hat|est|a)\b)",
    re.IGNORECASE,
)
_DOUBTS = re.compile(
    r"\b(?:are you sure|really|i thought|that's wrong|that is wrong|not true|bist du sicher|vraiment)\b", re.I
)
_PLACING = PREPOSITIONS - {"by", "with", "against", "between"}
_PAIR = re.compile(
    r"\b(?:of them|of these|of those|of the two|them both|both of them|the two of them|both)\b", re.IGNORECASE
)
_ORDINAL = re.compile(r"\bthe\s+(first|second|third|fourth|last|former|latter)\b(?:\s+one)?", re.IGNORECASE)
_ASKING = word_set(
    "is are was were do does did has have had can could will would who whom whose what which when where why how "
    "wer wen wem was welche welcher welches wann wo wie warum ist sind war hat haben wird wurde kann "
    "qui que quel quelle quand où pourquoi comment est sont était a ont "
    "quién qué cuál cuándo dónde cómo cuánto es son fue era tiene"
)
_PLACES = {"first": 0, "former": 0, "second": 1, "latter": 1, "third": 2, "fourth": 3, "last": -1}
_ASKS_THING = re.compile(
    r"\bwhat (?:is|was|are|were) the (?:name|title|capital|first|last|\w+est)\b"
    r"|\b(?:which|what|welche[rsnm]?|quel(?:le)?s?|qué|cuál)\s+(?!(?:is|was|are|were|year|date|month|day|time)\b)\w+",
    re.I,
)
_PHRASE = re.compile(r"\b(in|on|at|from|to|by|for|with|during|since|until|before|after)\s+(?:the\s+)?[^\s,?.!]+", re.I)
_ARTICLE = re.compile(r"(?:the|a|an)\s", re.IGNORECASE)
_ARTICLE_BEFORE = re.compile(r"\b(?:the|a|an)\s+$", re.IGNORECASE)
_NAMED_PERSON = re.compile(r"\W*(?:and |so )?who (?:is|was|are|were) (?:the )?[A-Z]\w*(?: \w+){0,3}\W*$")
_LONGEST_TITLE = 10
_CITATION = re.compile(r"\s*\[\d+\]")
_TOPIC_ENDS = word_set("what which who whom whose when where why how is are was were do does did can could a an the")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A name that a reference may mean.

    Attributes:
        text: as it is written.
        pronoun: what the collection calls it by.
        is_placed: whether it stands after "in", "of" and the like, or a comma, where people seldom stand.
    """

    text: str
    pronoun: Pronoun
    is_placed: bool


class OfflineRewriter:
    """Completes a question from the last turns by its words alone; deterministic.

    Pronouns, "there" and "the second one" become the name that they most likely mean: of the last question, or of the
    sentence that answered it. "What about X?" asks the last question of X, "why?" asks it with another question word.
    What cannot be put into words is named in brackets behind the question.
    """

    def __init__(self, names: KnownNames) -> None:
        self._names = names

    def rewrite(self, question: str, turns: Sequence[Turn], feedback: Feedback | None = None) -> Rewriting:
        """Return the whole question; asks back where a pronoun may mean two people alike."""
        whole = self._whole(turns)
        readings = self._readings(" ".join(question.split()), whole) if whole else [question]
        return Rewriting(readings[0], self._carried(readings[0], whole), tuple(readings) if len(readings) > 1 else ())

    def _whole(self, turns: Sequence[Turn]) -> list[Turn]:
        """The turns with each question completed from those before it; one that was understood already stands alone."""
        whole: list[Turn] = []
        for turn in turns:
            spoken = " ".join(text for earlier in whole[-2:] for text in (earlier.question, earlier.answer))
            if whole and leaning_of(turn.question, spoken):
                turn = replace(turn, question=self._readings(" ".join(turn.question.split()), whole)[0])
            whole.append(turn)
        return whole

    def _readings(self, question: str, turns: Sequence[Turn]) -> list[str]:
        """The whole questions that this one may mean; several where nothing decides."""
        last = turns[-1]
        if _DOUBTS.search(question):
            return [last.question]
        if redone := _REDONE.match(question):
            return [_asked_with(redone.group(1), last.question)]
        said = _OPENING.sub("", question, count=1).strip()
        body = said.strip(" ?.!")
        if body and self._is_fragment(body):
            return [self._filled_in(body, last.question)]
        return self._referred(said or question, turns)

    def _is_fragment(self, body: str) -> bool:
        """Whether words are no question of their own: no verb of asking, at most five words."""
        words = [word for word, _, _ in word_spans(body)]
        return len(words) <= 5 and not any(word in _ASKING for word in words) and not _refers(body)

    def _filled_in(self, body: str, asked: str) -> str:
        """The last question with a fragment in the place of what is like it: a name, a number, "in 1952"."""
        ends = "?" if asked.rstrip().endswith("?") else ""
        whole = asked.strip().rstrip("?")
        if slot := _slot(body, whole, self._names):
            before = whole[: slot[0]]
            if _ARTICLE.match(slot[2]) and _ARTICLE_BEFORE.search(before):
                before = _ARTICLE_BEFORE.sub("", before)
            return f"{before}{slot[2]}{whole[slot[1] :]}{ends}"
        return f"{whole} {body}{ends}" if _PHRASE.match(body) else _with_topic(body, self._topic(asked))

    def _referred(self, question: str, turns: Sequence[Turn]) -> list[str]:
        """The question with its references replaced by the names that they may mean."""
        last = turns[-1]
        if ordinal := _ORDINAL.search(question):
            listed = self._listed(last)
            place = _PLACES[ordinal.group(1).lower()]
            if -1 <= place < len(listed) and len(listed) > 1:
                return [f"{question[: ordinal.start()]}{listed[place].text}{question[ordinal.end() :]}"]
        reference = next(_references(question), None)
        if reference is None:
            return [_with_topic(question, self._topic(last.question))]
        word, start, end = reference
        if _PAIR.search(question) and (pair := self._pair(turns)):
            return [_with_topic(question, pair)]
        looked_at = turns[-2:] if word in _HE or word in _SHE else turns[-1:]
        found = next((names for turn in reversed(looked_at) if (names := self._meant(word, turn))), [])
        if not found:
            return [_with_topic(question, self._topic(last.question))]
        return [_replaced(question, word, start, end, candidate.text) for candidate in found]

    def _topic(self, question: str) -> str:
        """What a question is about: its names, or else its words without those that only ask."""
        return ", ".join(name.text for name in self._candidates(question)) or _words_of_topic(question)

    def _pair(self, turns: Sequence[Turn]) -> str:
        """The two that were spoken of last: of the last question, or of the last two."""
        last = self._candidates(turns[-1].question)
        if len(last) < 2 and len(turns) > 1:
            last = [*self._candidates(turns[-2].question)[:1], *last[:1]]
        return " and ".join(dict.fromkeys(name.text for name in last[:2])) if len(last) > 1 else ""

    def _meant(self, word: str, turn: Turn) -> list[_Candidate]:
        """The names of a turn that a reference may mean, all alike; the most likely alone where one is."""
        asked, answers = self._candidates(turn.question), self._in_answer(turn)
        if word in _HE or word in _SHE:
            wanted = Pronoun.HE if word in _HE else Pronoun.SHE
            several = len(_people(asked, wanted)) > 1
            order = (*answers, asked) if _asks_who(turn.question) and not several else (asked, *answers)
            return next((people for names in order if (people := _people(names, wanted))), [])
        things = [name for name in asked if name.pronoun not in (Pronoun.HE, Pronoun.SHE)]
        told = [name for name in chain(*answers[:1]) if name.pronoun not in (Pronoun.HE, Pronoun.SHE)]
        is_answer = _ASKS_THING.search(turn.question) or (word in _PLACE and answer_asks_place(turn.question))
        return (told or things)[:1] if is_answer else things[:1]

    def _in_answer(self, turn: Turn) -> list[list[_Candidate]]:
        """The names of each sentence of an answer, those of the question left out; the likeliest answer first."""
        asked = {word for word, _, _ in word_spans(turn.question)}
        found = []
        for sentence in _sentences_by_likeness(turn):
            names = self._candidates(sentence)
            found.append([name for name in names if not {word for word, _, _ in word_spans(name.text)} <= asked])
        return [names for names in found if names]

    def _listed(self, turn: Turn) -> list[_Candidate]:
        """What "the second one" counts: the names of the question where it has several, else of the answer."""
        asked = self._candidates(turn.question)
        return asked if len(asked) > 1 else list(chain(*self._in_answer(turn)[:1]))

    def _candidates(self, text: str) -> list[_Candidate]:
        """The names in a text, each once, in order."""
        spans = [span.text for span in scan_entities(text).spans if span.is_name and self._names.knows(span.text)]
        names = dict.fromkeys(spans or self._names.spelled(text))
        return [_Candidate(name, self._names.pronoun_of(name), _is_placed(name, text)) for name in names]

    def _carried(self, question: str, turns: Sequence[Turn]) -> tuple[str, ...]:
        """The names of earlier turns that the question does not hold, the last turn's first."""
        held = {word for word, _, _ in word_spans(question)}
        found = (
            name.text
            for turn in reversed(turns)
            for name in (*self._candidates(turn.question), *chain(*self._in_answer(turn)[:1]))
        )
        fresh = (name for name in found if not {word for word, _, _ in word_spans(name)} <= held)
        return tuple(dict.fromkeys(fresh))[:CARRIED_NAMES]


def _references(question: str) -> Iterator[tuple[str, int, int]]:
    """Yield the pronouns of a question, in lower case, with their places."""
    for word, start, end in word_spans(question):
        if word in _HE or word in _SHE or word in _THING or word in _PLACE:
            if word in _PLACE and re.search(r"\b(?:is|are|was|were)\s*$", question[:start], re.IGNORECASE):
                continue
            if word in ("this", "that", "these", "those") and re.match(r"\s+[a-z]+\s+\w", question[end:]):
                noun = re.match(r"\s+([a-z]+)", question[end:])
                if noun and noun.group(1) not in FUNCTION_WORDS:
                    yield word, start, end + noun.end()
                    continue
            yield word, start, end


def _refers(text: str) -> bool:
    return next(_references(text), None) is not None


def _replaced(question: str, word: str, start: int, end: int, name: str) -> str:
    """The question with a name in the place of a reference, in English; in brackets behind it elsewhere."""
    if language_of(question) != "english":
        return _with_topic(question, name)
    is_owner = word in ("his", "its", "their") or (word == "her" and re.match(r"\s+[a-z]", question[end:]))
    in_its_place = f"{name}'s" if is_owner else name
    if word in _PLACE and not re.search(r"\b(?:in|from|to|at|near|of)\s*$", question[:start], re.IGNORECASE):
        in_its_place = f"in {name}"
    return f"{question[:start]}{in_its_place}{question[end:]}"


def _with_topic(question: str, topic: str) -> str:
    """The question with what it is about in brackets behind it."""
    return f"{question} ({topic})" if topic else question


def _words_of_topic(question: str) -> str:
    """What a question is about: its words, without those it begins and ends with that only ask."""
    words = re.sub(r"[()?!]", " ", question).strip(" .").split()
    while words and words[0].casefold().strip(",") in FUNCTION_WORDS | _TOPIC_ENDS:
        words.pop(0)
    while words and words[-1].casefold() in FUNCTION_WORDS:
        words.pop()
    return " ".join(words)


def _asked_with(how: str, asked: str) -> str:
    """The last question with another question word: "When was it built?" and "why?" is "Why was it built?"."""
    how = how[:1].upper() + how[1:].casefold()
    changed = _ASKS_WITH.sub(f"{how} ", asked, count=1)
    return changed if changed != asked else f"{how}? {asked}"


def _slot(body: str, asked: str, names: KnownNames) -> tuple[int, int, str] | None:
    """Where a fragment goes in a question, and how: in the place of a phrase, a year or a name like it."""
    if phrase := _PHRASE.match(body):
        like = [found for found in _PHRASE.finditer(asked) if found.group(1).lower() == phrase.group(1).lower()]
        return (*like[-1].span(), body) if like else None
    number = re.compile(r"\b\d+(?:[.,]\d+)*\b")
    if number.fullmatch(body) and (years := list(number.finditer(asked))):
        return (*years[-1].span(), body)
    present = [span.text for span in scan_entities(asked).spans if span.is_name] or names.spelled(asked)
    if not present or not (names.knows(body) or _is_written_as_a_name(body)):
        return None
    like_it = [name for name in present if names.pronoun_of(name) is names.pronoun_of(body)]
    found_at = re.search(re.escape((like_it or present)[0]), asked, re.IGNORECASE)
    return (*found_at.span(), body) if found_at else None


def _is_written_as_a_name(body: str) -> bool:
    """Tell whether each word of a fragment that says anything has a capital."""
    words = [word for word in body.split() if word.casefold() not in FUNCTION_WORDS]
    return bool(words) and all(word[:1].isupper() for word in words)


def _people(names: Sequence[_Candidate], wanted: Pronoun) -> list[_Candidate]:
    """The people among names that a pronoun may mean: two where nothing decides between them."""
    sure = [name for name in names if name.pronoun is wanted]
    likely = [name for name in names if name.pronoun is Pronoun.UNKNOWN and _is_like_a_person(name)]
    return (sure or likely)[:2]


def _is_placed(name: str, text: str) -> bool:
    before = text[: max(0, text.find(name))].rstrip()
    return before.endswith(",") or before.rpartition(" ")[2].casefold() in _PLACING


def _asks_who(question: str) -> bool:
    """Whether somebody is asked for who is not in the question: not "who was Nero?"."""
    return answer_kind(question) is AnswerKind.PERSON and not _NAMED_PERSON.match(question)


def _sentences_by_likeness(turn: Turn) -> list[str]:
    """The sentences of an answer after the title of the passage that they quote, the likeliest to answer first."""
    language = language_of(turn.question)
    named = {
        word for span in scan_entities(turn.question).spans if span.is_name for word, _, _ in word_spans(span.text)
    }
    asked = {word for word, _, _ in word_spans(turn.question)}
    wanted = {stem(word, language) for word in asked - named if not is_function_word(word, language)}
    scored = []
    for sentence in _titled_sentences(turn.answer):
        held = {word for word, _, _ in word_spans(sentence)}
        told = len(wanted & {stem(word, language) for word in held})
        own = {word for word, _, _ in word_spans(sentence.partition(": ")[2] or sentence)}
        scored.append((told + 0.5 * bool(named & own) + 0.25 * bool(named & held), sentence))
    return [sentence for _, sentence in sorted(scored, key=lambda each: -each[0])]


def _titled_sentences(answer: str) -> Iterator[str]:
    """Yield each sentence of an answer without its citation; after "Title: " where the answer names it so."""
    for line in answer.splitlines():
        title = ""
        for sentence in re.split(r"(?<=[.!?。])\s*(?:\[\d+\]\s*)+|(?<=[.!?。])\s+", line):
            plain = _CITATION.sub("", sentence).strip()
            head, colon, _ = plain.partition(": ")
            is_title = bool(colon) and len(head.split()) <= _LONGEST_TITLE
            title = head if is_title else title
            if plain:
                yield f"{title}: {plain}" if title and not is_title else plain


def answer_asks_place(question: str) -> bool:
    """Tell whether a question asks for a place."""
    return bool(
        re.search(r"\b(?:where|which (?:city|town|country|village|place|river)|wo|où|dónde)\b", question, re.IGNORECASE)
    )


def _is_like_a_person(name: _Candidate) -> bool:
    """Tell whether a name is written as people's are, two to four words with capitals, and stands where they do."""
    words = name.text.split()
    return not name.is_placed and 2 <= len(words) <= 4 and all(word[:1].isupper() and word.isalpha() for word in words)
