"""The gate of a conversation: which questions stand alone, which lean on earlier turns, and how to ask back.

It reads words alone, so that it is the same with every model and on every collection. Words are English, German,
French and Spanish; a question in another language leans only where it is a fragment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from agents.offline.words import (
    FUNCTION_WORDS,
    PREPOSITIONS,
    function_words,
    language_of,
    word_set,
    word_spans,
    words_of,
)
from graph.text import tokens

HE = word_set("he him his himself er ihn ihm seine seinen seinem seiner seines il lui él")
SHE = word_set("she her hers herself elle ella")
PLACE = word_set("there dort allí")
DEMONSTRATIVES = word_set("this that these those")
ANYTHING = word_set("sie ihr ihre ihren ihrem ihrer ihres son sa ses su sus suyo suya")
"""Pronouns of somebody or of something."""

OWNERS = word_set("his its their")
THING = DEMONSTRATIVES | word_set(
    "it its itself they them their theirs both es davon dazu damit darin deren dessen ihr ihre ihren ihrem ihrer sie "
    "eso esto su sus suyo son sa ses leur leurs celui celle ils elles ellos ellas"
)
PRONOUNS = {
    "english": word_set("it its itself he him his himself she her hers herself they them their theirs themselves both"),
    "german": word_set(
        "er ihn ihm seine seinen seinem seiner seines sie ihr ihre ihren ihrem ihrer ihres es dort davon dazu damit "
        "daran darin danach deren dessen beide beiden"
    ),
    "french": word_set("il elle ils elles lui leur leurs son sa ses celui celle ceux celles"),
    "spanish": word_set("él ella ellos ellas su sus suyo suya allí eso esto"),
}
"""The pronouns that lean on what was said before, by language."""

POLITE = word_set("sie ihr ihre ihren ihrem ihrer")
"""German pronouns that mean the one who is spoken to where they have a capital within a sentence."""

ASKING = word_set(
    "is are was were do does did has have had can could will would who whom whose what which when where why how "
    "wer wen wem was welche welcher welches wann wo wie warum ist sind war hat haben wird wurde kann "
    "qui que quel quelle quand où pourquoi comment est sont était a ont "
    "quién qué cuál cuándo dónde cómo cuánto es son fue era tiene"
)
"""Words that make a question of a phrase."""


def any_of(words: str) -> str:
    """Return a pattern of several phrases, which are separated by commas."""
    return "(?:" + "|".join(re.escape(phrase.strip()).replace(r"\ ", r"\s+") for phrase in words.split(",")) + ")"


OPENERS = (
    "and, but, so, or, then, what about, how about, what if, why not, even, also, no, nope, yes, yeah, ok, okay, "
    "right, really, sorry, oops, hm, hmm, well, thanks, thank you, i see, got it, are you sure, are you certain, i "
    "don't believe, i mean, i meant, i thought, you said, you say, you mention, you mentioned, that is, that's, you "
    "mean, do you mean, did you mean, tell me more, go on, instead, same",
    "und, aber, also, dann, oder, was ist mit, wie ist es mit, nein, doch, ja, ich meine, ich meinte, bist du sicher, "
    "wirklich",
    "et, mais, ou, alors, donc, non, oui, je voulais dire, vraiment, tu es sûr",
    "y, e, pero, o, entonces, sí, quiero decir, quería decir, de verdad",
)
"""The words that begin a question which goes on from the last one, a text a language."""

JOINING = (
    "never mind, and then, and, but, so, or, then, also, well, no, nope, yes, ok, okay, sorry, oops, hm, hmm, thanks, "
    "i see, actually, rather, und, aber, et, mais, y, pero, nein, non"
)
"""Openings before the question proper that say nothing of it."""

TURNING = (
    "what about, how about, i meant to ask, i mean, i meant, i thought, was ist mit, ich meinte, et pour, "
    "je voulais dire, qué hay de, quería decir"
)
"""Words that turn the last question to something else."""

QUESTION_WORDS = (
    "since when, until when, by whom, what for, how so, how come, how much, how many, why, when, where, how, who, "
    "whom, which, warum, wieso, weshalb, wann, wo, wer, seit wann, pourquoi, depuis quand, quand, où, qui, por qué, "
    "desde cuándo, cuándo, dónde, quién"
)
"""Words that, alone, may ask the last question anew."""

DOUBTS = (
    "are you sure, are you certain, really, i thought, i don't believe, i doubt, that's wrong, that is wrong, not "
    "true, bist du sicher, vraiment"
)
"""Words that disagree with the last answer."""


ENOUGH_WORDS = 8
"""Words beside function words with which a question names what it is about, whatever else it refers to."""

FEW_WORDS = 1
"""Words beside function words up to which a noun with "the" leans, spoken of before or not ("who was the founder?")."""

LONGEST_FRAGMENT = 5
"""Words of a name, or of a phrase, that is no question of its own."""

_FEWEST_WORDS = 3
_LONGEST_CONDITION = 6
_OPENER = re.compile(rf"[\W_]*({any_of(', '.join(OPENERS))})\b", re.IGNORECASE)
_QUESTION_WORD = re.compile(
    rf"\W*(?:(?:but|and|und|et|y)\s+)?{any_of(QUESTION_WORDS)}(?:\s+(?:not|so|exactly|then|nicht|genau|pas|no))?\W*"
    r"|\W*(?:and |but )?(?:in|at|on|by|from|to|for|since|until|with|of) (?:what|which) \w+\W*",
    re.IGNORECASE,
)
_WHAT_ABOUT = re.compile(r"(?:what|how) about", re.IGNORECASE)
_CONDITION = re.compile(r"\W*(?:if|unless|because|in case)\b[^,]*", re.IGNORECASE)
_REFERENCES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:this|these|those)\b"
        r"(?!\s+(?:year|month|week|day|morning|evening|century|is a|who|which|that))",
        r"^\W*that\b(?!\s+\w+\s+(?:is|are|was|were)\b)",
        r"\b(?:is|was|does|did|do|of|about|like|from|with|by|for|to|in|on|after|before|at|than)\s+that\b"
        r"(?=\s*(?:[?.!,]|$)|\s+(?:one|still|also|mean|work|happen|possible|true|right|really))",
        r"\b(?:in|at|of|during|after|before|from|by|to|for|about) that "
        r"(?!(?:he|she|it|they|we|i|you|is|the|a)\b)[a-z]+\b",
        r"\b(?:this|that|these|those)\W*$",
        r"\bthe\s+(?:first|second|third|fourth|last|other|latter|former|next|previous|same|two|three)\b"
        r"(?=\W*$|\s+(?:one|ones|two|of them|of these|of those)\b|\s+(?:is|are|was|were|do|does|did|has|have)\b)",
        r"\b(?:which|the|that|this|each|every|another|other|first|second|third|last|next|old|new|the \w+)\s+ones?\b"
        r"(?!\s+of\b)",
        r"\bones?\W*$",
        r"\b(?:any|some|an|another|more|other|further)\s+(?:other\s+)?"
        r"(?:examples?|details?|information|explanations?)\W*$",
        r"\b(?:else|elsewhere|as well|too|instead|there|then|so|again|afterwards|before that)\W*$",
        r"\b(?:what|which|any|who)\s+(?:else|other)\b(?!.*\b(?:than|besides|except)\b)",
    )
)
_COMPARATIVES = (
    "more, less, better, worse, older, younger, newer, bigger, larger, smaller, longer, shorter, taller, higher, "
    "lower, deeper, cheaper, faster, slower, earlier, later, safer, stronger, heavier, closer, nearer, farther"
)
_COMPARED = re.compile(rf"(?<!\bone )\b{any_of(_COMPARATIVES)}\b", re.IGNORECASE)
_SIDES = re.compile(r"\b(?:than|or|between|of|and)\b", re.IGNORECASE)
_JUDGED = (
    "possible, impossible, safe, necessary, better, best, worth, wise, true, ok, okay, allowed, legal, required, easy, "
    "easier, hard, difficult, important, common, usual, normal, time, too late, enough, known, said"
)
_EXPLETIVE = re.compile(
    r"(?:\b(?:is|was|be|wasn't|isn't)\s+it|\bit(?:'s|\s+(?:is|was|would be|will be|isn't|wasn't)))"
    rf"(?:\s+(?:not|also|still))*\s+{any_of(_JUDGED)}\b"
    r"|\bit\s+(?:make|makes|made)\s+(?:any\s+)?sense\b|\bit\s+(?:take|takes|took|cost|costs)\b(?=.*\bto\b)"
    r"|\b(?:is|was) it (?:like|that|who|which|\w+ (?:that|who))\b|\bit\s+(?:rain|snow)\w*"
    r"|\bil y a\b|\by a-t-il\b|\bs'il\b|\bgibt es\b|\bist es\b|\bes gibt\b",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"\W*(?:who|how many \w+|(?:which|what) \w+)\s+"
    r"(?!(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would|should)\b)\w+\b[^,;:.?!]*\b(?:his|her|its|their)$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:.?!]|\b(?:and|but|or|if|when|while|because|since|after|before|und|wenn|et|si|y)\b", re.I)
_GREETING = re.compile(r"great|thanks?|good|nice|fine|ok|okay|cool|super|danke|merci|gracias")
_DEFINITE = re.compile(r"\bthe\s+([a-z][\w-]*)(?:\s+([a-z][\w-]*))?")
_NARROWED = re.compile(r"\s+(?:of|between|in|on|for|from|to|at|by|with|that|who|which|where|whose)\b")
_ASKED_BACK = "Which do you mean: "
ASK_SOMETHING = "Ask a question about the documents."
"""The answer to what asks nothing."""

_COURTESIES = word_set(
    "hello hi hey thanks thank you thx ok okay great cool good nice fine perfect super bye goodbye cheers please very "
    "much so morning evening hallo danke schön bitte gut tschüss bonjour salut merci beaucoup bien hola gracias muchas"
)
_QUOTED = re.compile(r"“(.+?)”")
_NUMBER = re.compile(r"\W*(?:no\.?|number|the)?\s*(\d+|first|second|third|fourth|former|latter)(?:\s+one)?\W*", re.I)
_PLACES = {"first": 1, "former": 1, "second": 2, "latter": 2, "third": 3, "fourth": 4}


def leaning_of(question: str, earlier: str = "") -> str:
    """Return why a question leans on earlier turns, in words; empty where it stands alone.

    Args:
        question: as it was typed.
        earlier: the text of the earlier turns: a definite noun ("the migration") leans where they speak of it.
    """
    plain = " ".join(question.split())
    words = word_spans(plain)
    language = language_of(plain)
    if _QUESTION_WORD.fullmatch(plain):
        return "it asks on"
    if sum(word not in function_words(language) for word, _, _ in words) >= ENOUGH_WORDS:
        return ""
    opener = _OPENER.match(plain)
    if opener and not _is_whole(opener.group(1), plain[opener.end() :], language):
        return f"it begins with “{opener.group(1)}”"
    is_condition = len(words) <= _LONGEST_CONDITION and _CONDITION.fullmatch(plain)
    if len(words) < _FEWEST_WORDS or is_condition or _is_phrase(plain, words):
        return "it is a fragment"
    if pronoun := _pronoun(plain, language):
        return f"“{pronoun}” names something said before"
    return _english_leaning(plain, earlier) if language == "english" else ""


def asks(text: str) -> bool:
    """Tell whether a text has a word that makes a question of a phrase, and that is no part of a name: "World War"."""
    return any(word in ASKING and not (start and text[start].isupper()) for word, start, _ in word_spans(text))


def open_comparison(text: str) -> str:
    """Return the word by which an English question compares what it does not name; empty where it does not."""
    compared = _COMPARED.search(text)
    return compared.group() if compared and not _SIDES.search(text) else ""


def _is_phrase(text: str, words: Sequence[tuple[str, int, int]]) -> bool:
    """Tell whether a text is words behind a preposition, or a name with a question mark: without, it is a topic."""
    if len(words) > LONGEST_FRAGMENT or asks(text) or not set(text).isdisjoint(",;:"):
        return False
    initials = [text[start] for word, start, _ in words if word not in FUNCTION_WORDS]
    is_name = bool(initials) and text.endswith("?") and all(map(str.isupper, initials))
    return is_name or words[0][0] in PREPOSITIONS


def _english_leaning(text: str, earlier: str) -> str:
    """Return why an English question without an open pronoun leans; empty where it does not."""
    for pattern in _REFERENCES:
        if reference := pattern.search(text):
            return f"“{reference.group().strip(' ?.!')}” names something said before"
    if compared := open_comparison(text):
        return f"“{compared}” compares with something said before"
    content = [word for word, _, _ in word_spans(text) if word not in FUNCTION_WORDS]
    has_name = any(word[:1].isupper() for word in text.split()[1:])
    if has_name:
        return ""
    if definite := _definite_noun(text, words_of(earlier)):
        return f"“{definite}” was spoken of before"
    definite = _definite_noun(text, content) if len(content) <= FEW_WORDS else ""
    return f"“{definite}” names something said before" if definite else ""


def _definite_noun(text: str, spoken: Collection[str]) -> str:
    """Return the first noun with "the" that was spoken of, and that nothing behind it narrows; else nothing."""
    for match in _DEFINITE.finditer(text):
        for group in (2, 1):
            noun, end = match.group(group), match.end(group)
            if noun and noun in spoken and noun not in FUNCTION_WORDS and not _NARROWED.match(text[end:]):
                return text[match.start() : end]
    return ""


def _is_whole(opener: str, rest: str, language: str) -> bool:
    """Tell whether what follows an opener names all that it is about: "So, who was Ida Brandt?"."""
    words = [word.strip(" ,.!?-") for word in rest.split()]
    words = [word for word in words if word]
    content = [word for word in words if word.casefold() not in FUNCTION_WORDS]
    begins_anew = not _WHAT_ABOUT.fullmatch(opener)
    names = [word for word in words[begins_anew:] if word[:1].isupper() and word in content]
    if not begins_anew:
        return len(content) - len(names) > 1 or (len(content) > len(names) > 0)
    asks_anew = asks(rest.lstrip(" ,.!?-"))
    return bool(names and asks_anew and len(words) >= _FEWEST_WORDS and not _pronoun(rest, language))


def _pronoun(text: str, language: str) -> str:
    """Return the first pronoun that nothing before it in the text can mean; empty without one."""
    known = PRONOUNS.get(language, PRONOUNS["english"])
    expletives = [match.span() for match in _EXPLETIVE.finditer(text)]
    for word, start, end in word_spans(text):
        is_polite = language == "german" and word in POLITE and text[start].isupper() and start
        is_expletive = any(first <= start < last for first, last in expletives)
        if word in known and not (is_polite or is_expletive or _is_bound(text, start, end, language)):
            return text[start:end]
    return ""


def _is_bound(text: str, start: int, end: int, language: str) -> bool:
    """Tell whether the question itself says what a pronoun means: before it, as a subject that it repeats or owns."""
    before = text[:start]
    is_repeated = before.endswith("-") and any(
        word not in function_words(language) for word, _, _ in word_spans(before)
    )
    return is_repeated or bool(_OWNED.match(text[:end])) or _has_antecedent(before, language)


def _has_antecedent(before: str, language: str) -> bool:
    """Tell whether an earlier clause names something: a name, or two words that say anything."""
    cuts = [match.end() for match in _CLAUSE.finditer(before)]
    clause = before[: cuts[-1]] if cuts else ""
    content = [
        (clause[start:end], start)
        for word, start, end in word_spans(clause)
        if word not in function_words(language) and not _GREETING.fullmatch(word)
    ]
    return len(content) > 1 or any(word[:1].isupper() and start for word, start in content)


def asks_nothing(text: str) -> bool:
    """Tell whether a text is a greeting, thanks or signs alone: nothing to search for."""
    return _COURTESIES.issuperset(tokens(text))


def question_back(choices: Sequence[str]) -> str:
    """Return the question that asks which reading is meant."""
    return _ASKED_BACK + " or ".join(f"“{choice}”" for choice in choices)


def readings_in(answer: str) -> tuple[str, ...]:
    """Return the readings that an answer asks to choose from; none where it asks nothing back."""
    return tuple(_QUOTED.findall(answer)) if answer.startswith(_ASKED_BACK) else ()


def chosen_reading(reply: str, choices: Sequence[str]) -> str | None:
    """Return the reading that a reply chooses, by number, by place, or by words that one reading alone has."""
    if numbered := _NUMBER.fullmatch(reply):
        word = numbered.group(1).lower()
        number = _PLACES[word] if word in _PLACES else int(word)
        return choices[number - 1] if 0 < number <= len(choices) else None
    said = set(tokens(reply))
    fitting = [choice for choice in choices if said and said <= set(tokens(choice))]
    return fitting[0] if len(fitting) == 1 else None
