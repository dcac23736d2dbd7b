"""The gate of a conversation: which questions stand alone, and which lean on earlier turns.

It reads words alone, so that it is the same with every model and on every collection. Words are English, German,
French and Spanish; a question in another language leans only where it is a fragment.
"""

from __future__ import annotations

import re

from agents.offline.language.words import FUNCTION_WORDS, word_set
from agents.offline.reading.words import is_function_word, language_of, word_spans

_PRONOUNS = {
    "english": word_set("it its itself he him his himself she her hers herself they them their theirs themselves both"),
    "german": word_set(
        "er ihn ihm seine seinen seinem seiner seines sie ihr ihre ihren ihrem ihrer ihres es dort davon dazu damit "
        "daran darin danach deren dessen beide beiden"
    ),
    "french": word_set("il elle ils elles lui leur leurs son sa ses celui celle ceux celles"),
    "spanish": word_set("él ella ellos ellas su sus suyo suya allí eso esto"),
}
_OPENERS = {
    "english": re.compile(
        r"(?:and|but|so|or|then|what about|how about|what if|why not|even|also|no|nope|yes|yeah|ok|okay|right|really|sorry"
        r"|oops|hm+|well|thanks|thank you|i see|got it|are you sure|i mean|i meant|i thought|you said|you say|you mention"
        r"|you mentioned|that is|that's|you mean|do you mean|did you mean|tell me more|go on|instead|same)\b",
        re.IGNORECASE,
    ),
    "german": re.compile(
        r"(?:und|aber|also|dann|oder|was ist mit|wie ist es mit|nein|doch|ja|ich meine|ich meinte|bist du sicher|wirklich"
        r"|und was)\b",
        re.IGNORECASE,
    ),
    "french": re.compile(r"(?:et|mais|ou|alors|donc|non|oui|je voulais dire|vraiment|tu es sûr)\b", re.IGNORECASE),
    "spanish": re.compile(
        r"(?:¿\s*)?(?:y|e|pero|o|entonces|no|sí|quiero decir|quería decir|de verdad)\b", re.IGNORECASE
    ),
}
_DEMONSTRATIVE = re.compile(
    r"\b(?:this|these|those)\b(?!\s+(?:year|month|week|day|morning|evening|century|is a|who|which|that))"
    r"|^\W*that\b(?!\s+\w+\s+(?:is|are|was|were)\b)"
    r"|\b(?:is|was|does|did|do|of|about|like|from|with|by|for|to|in|on|after|before|at|than)\s+that\b(?=\s*(?:[?.!,]|$)"
    r"|\s+(?:one|still|also|mean|work|happen|possible|true|right|really))"
    r"|\b(?:this|that|these|those)\W*$",
    re.IGNORECASE,
)
_ONE = re.compile(
    r"\b(?:which|the|that|this|each|every|another|other|first|second|third|last|next|old|new)\s+ones?\b(?!\s+of\b)"
    r"|\b(?:ones|one)\W*$",
    re.IGNORECASE,
)
_ORDINAL = re.compile(
    r"\bthe\s+(?:first|second|third|fourth|last|other|latter|former|next|previous|same|two|three)\b"
    r"(?=\W*$|\s+(?:one|ones|two|of them|of these|of those)\b|\s+(?:is|are|was|were|do|does|did|has|have)\b)",
    re.IGNORECASE,
)
_MORE = re.compile(
    r"\b(?:any|some|an|another|more|other|further)\s+(?:other\s+)?(?:examples?|details?|information|explanations?|ones?)\W*$"
    r"|\b(?:else|elsewhere|as well|too|instead|there|then|so|again|afterwards|before that)\W*$"
    r"|\b(?:what|which|any|who)\s+(?:else|other)\b(?!.*\b(?:than|besides|except)\b)",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"(?<!\bone )\b(?:more|less|better|worse|older|younger|newer|bigger|larger|smaller|longer|shorter|taller|higher|lower"
    r"|deeper|cheaper|faster|slower|earlier|later|safer|stronger|heavier|closer|nearer|farther)\b",
    re.IGNORECASE,
)
_SIDES = re.compile(r"\b(?:than|or|between|of|and)\b", re.IGNORECASE)
_WHY = re.compile(
    r"\W*(?:but |and |und |et |y )?(?:why|how so|how come|since when|until when|what for|by whom|where|when|who|how"
    r"|how much|how many|which|warum|wieso|weshalb|wann|wo|wer|seit wann|pourquoi|quand|où|qui|depuis quand|por qué"
    r"|cuándo|dónde|quién|desde cuándo)(?:\s+(?:not|so|exactly|then|nicht|genau|pas|no))?\W*",
    re.IGNORECASE,
)
_EXPLETIVE = re.compile(
    r"(?:\b(?:is|was|be|wasn't|isn't)\s+it|\bit(?:'s|\s+(?:is|was|would be|will be|isn't|wasn't)))(?:\s+(?:not|also|still))*"
    r"\s+(?:possible|impossible|safe|necessary|better|best|worth|wise|true|ok|okay|allowed|legal|required|easy|easier|hard"
    r"|difficult|important|common|usual|normal|time|too late|enough|known|said)\b"
    r"|\bit\s+(?:make|makes|made)\s+(?:any\s+)?sense\b|\bit\s+(?:take|takes|took|cost|costs)\b(?=.*\bto\b)"
    r"|\bit\s+(?:rain|snow)\w*|\bil y a\b|\by a-t-il\b|\bgibt es\b|\bist es\b|\bes gibt\b|\bs'il\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:.?!]|\b(?:and|but|or|if|when|while|because|since|after|before|und|wenn|et|si|y)\b", re.I)
_DEFINITE = re.compile(
    r"\bthe\s+((?:[\w-]+\s+)?[\w-]+)\b(?!\s+(?:of|between|in|on|for|from|to|at|by|with|that|who|which|where|whose)\b)",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3


def leaning_of(question: str, earlier: str = "") -> str:
    """Return why a question leans on earlier turns, in words; empty where it stands alone.

    Args:
        question: as it was typed.
        earlier: the text of the earlier turns: a definite noun ("the migration") leans where they speak of it.
    """
    plain = " ".join(question.split())
    words = word_spans(plain)
    language = language_of(plain)
    opener = _OPENERS.get(language, _OPENERS["english"]).match(plain.lstrip(" \"'«»„“¡¿"))
    if _WHY.fullmatch(plain):
        return "it asks on"
    if opener and not _is_whole(plain[opener.end() :], language):
        return f"it begins with “{opener.group()}”"
    if len(words) < _FEWEST_WORDS:
        return "it is a fragment"
    if found := _pronoun(plain, language):
        return f"“{found}” names something said before"
    if language != "english":
        return ""
    for pattern in (_DEMONSTRATIVE, _ORDINAL, _ONE, _MORE):
        if found_there := pattern.search(plain):
            return f"“{found_there.group().strip(' ?.!')}” names something said before"
    if (compared := _COMPARED.search(plain)) and not _SIDES.search(plain):
        return f"“{compared.group()}” compares with something said before"
    return _definite(plain, earlier)


def _is_whole(rest: str, language: str) -> bool:
    """Tell whether what follows an opener is a question that names all it is about: "So, who was Louis Renault?"."""
    inner = rest.strip(" ,.!?-")
    names = [word for word in inner.split()[1:] if word[:1].isupper() and word.casefold() not in FUNCTION_WORDS]
    verbs = re.search(
        r"\b(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|ist|war|est|es)\b", inner
    )
    return bool(names and verbs and not _pronoun(inner, language)) and len(inner.split()) > _FEWEST_WORDS


def _pronoun(text: str, language: str) -> str:
    """Return the first pronoun that nothing before it in the text can mean; empty without one."""
    known = _PRONOUNS.get(language, _PRONOUNS["english"])
    expletive = [match.span() for match in _EXPLETIVE.finditer(text)]
    for word, start, end in word_spans(text):
        if word not in known or any(first <= start < last for first, last in expletive):
            continue
        if (
            language == "german"
            and text[start].isupper()
            and start
            and word in ("sie", "ihr", "ihre", "ihren", "ihrem")
        ):
            continue
        if not _has_antecedent(text[:start], language):
            return text[start:end]
    return ""


def _has_antecedent(before: str, language: str) -> bool:
    """Tell whether an earlier clause names something: a name, or two words that say anything."""
    cuts = [match.end() for match in _CLAUSE.finditer(before)]
    clause = before[: cuts[-1]] if cuts else ""
    told = [
        text
        for word, start, end in word_spans(clause)
        if not is_function_word(word, language)
        for text in [clause[start:end]]
    ]
    return len(told) > 1 or any(text[:1].isupper() for text in told)


def _definite(text: str, earlier: str) -> str:
    """Return why a definite noun leans; empty where none does, or where it names something of its own."""
    before = {word for word, _, _ in word_spans(earlier)}
    for match in _DEFINITE.finditer(text):
        noun = match.group(1).split()
        if all(word.islower() and not is_function_word(word, "english") for word in noun[-1:]) and noun[-1] in before:
            if not any(word[:1].isupper() for word in text[1:].split()):
                return f"“the {match.group(1)}” was spoken of before"
    return ""
