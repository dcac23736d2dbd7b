"""Words of questions and passages in a dozen languages: their function words, stems, and codes kept whole."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import regex

from agents.offline.language.words import word_set
from graph.text import token_spans

_ASKING = word_set(
    "who whom whose what which when where why how many much did does do tell me us please give name list show find "
    "out get got can could will would shall may might must should we our us you your my i it its they them their he "
    "she his her him there here any all each every also know need want someone somebody person people colleague "
    "whoever thing come mr mrs ms dr one ones wer wen wem was wann wo warum wieso wie viel viele welche welcher "
    "welches welchem welchen kann können müssen wir uns unser bitte nenne herr frau qui que quoi quel quelle quels "
    "quelles combien comment pourquoi où quand faut"
)
_CODE = regex.compile(r"\b\p{L}{1,6}[-‑]?\d(?:[\w.-]*\w)?|\b\d+(?:[.,:/'’]\d+)+|\b\d+\p{L}?\b")
_HYPHEN = str.maketrans("‑", "-")


def word_spans(text: str) -> list[tuple[str, int, int]]:
    """Return (word, start, end) of each word, as `token_spans` does, but with codes and numbers whole: "vx-210"."""
    codes = [(match[0].casefold().translate(_HYPHEN), *match.span()) for match in _CODE.finditer(text)]
    if not codes:
        return token_spans(text)
    found = []
    place = 0
    for token, start, end in token_spans(text):
        while place < len(codes) and codes[place][2] <= start:
            found.append(codes[place])
            place += 1
        if place == len(codes) or start < codes[place][1]:
            found.append((token, start, end))
    return [*found, *codes[place:]]


def language_of(text: str) -> str:
    """Return the language whose function words a text holds most of; English where none does."""
    words = [token for token, _, _ in token_spans(text)]
    return max(_function_words(), key=lambda name: sum(word in _function_words()[name] for word in words))


def is_function_word(word: str, language: str) -> bool:
    """Tell whether a word says nothing of what is asked: an article, a pronoun, a question word, ..."""
    return word in _ASKING or word in _function_words()[language]


@lru_cache(maxsize=50_000)
def stem(word: str, language: str) -> str:
    """Return a word without its endings (Snowball)."""
    stemmed: str = _stemmer(language).stemWord(word)
    return stemmed


@lru_cache(maxsize=16)
def _stemmer(language: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(language)


@lru_cache(maxsize=1)
def _function_words() -> dict[str, frozenset[str]]:
    """The function words of each language, English first."""
    from bm25s import stopwords

    return {
        "english": frozenset(stopwords.STOPWORDS_EN_PLUS),
        "german": frozenset(stopwords.STOPWORDS_GERMAN),
        "french": frozenset(stopwords.STOPWORDS_FRENCH),
        "spanish": frozenset(stopwords.STOPWORDS_SPANISH),
        "italian": frozenset(stopwords.STOPWORDS_ITALIAN),
        "portuguese": frozenset(stopwords.STOPWORDS_PORTUGUESE),
        "dutch": frozenset(stopwords.STOPWORDS_DUTCH),
        "swedish": frozenset(stopwords.STOPWORDS_SWEDISH),
        "norwegian": frozenset(stopwords.STOPWORDS_NORWEGIAN),
        "danish": frozenset(stopwords.STOPWORDS_DANISH),
        "russian": frozenset(stopwords.STOPWORDS_RUSSIAN),
    }
