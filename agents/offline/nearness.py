"""How near the words of sentences come to the words of a question: the same stem, a synonym, or a like meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.offline.asked import Word
from agents.offline.entity_spans import SpanKind, scan_entities
from agents.offline.phrases import plain_verbs
from agents.offline.quotes import Embed, Sentence
from agents.offline.synonyms import is_synonym
from agents.offline.words import FUNCTION_WORDS, stem
from graph.text import tokens

_NAME_KINDS = (SpanKind.NAME, SpanKind.QUOTED, SpanKind.FOREIGN)
_YEARS_OF_LIFE = re.compile(r"\([^()\d]*\d{3,4}[^()\d]{0,3}[-–][^()\d]*\d{3,4}[^()\d]*\)")
_LIVED = frozenset({"born", "died"})

UNLIKE, ALIKE = 0.6, 0.8
"""Two words with a cosine at the first or below mean different things, at the second or above the same."""


def sentence_words(sentence: Sentence) -> frozenset[str]:
    """Return the content words of a sentence and its title; years of life, as in "(1824-1897)", say born and died."""
    text = plain_verbs(f"{sentence.passage.title} {sentence.text}")
    words = {token for token in tokens(text) if token not in FUNCTION_WORDS and token.isalpha()}
    return frozenset(words | _LIVED if _YEARS_OF_LIFE.search(sentence.text) else words)


def without_names(text: str) -> str:
    """Return a text with "it" in the place of each name: its meaning then is what it says of whomever."""
    for span in reversed(scan_entities(text).spans):
        if span.kind in _NAME_KINDS and not FUNCTION_WORDS.issuperset(tokens(span.text)):
            text = f"{text[: span.start]}it{text[span.end :]}"
    return text


def word_nearness(
    wanted: Sequence[Word], texts: Sequence[frozenset[str]], embed: Embed | None
) -> list[tuple[float, ...]]:
    """Return, for each text, how near its nearest word comes to each wanted word, from 0 to 1.

    A text's word that says what describes the thing asked about does not say what is asked about it as well.
    """
    vocabulary = sorted(frozenset[str]().union(*texts))
    table = _table([word.text for word in wanted], vocabulary, embed)
    inner = np.array([word.is_inner for word in wanted], dtype=bool)
    if inner.any():
        table[np.ix_(~inner, (table[inner] == 1.0).any(axis=0))] = 0.0
    places = {word: place for place, word in enumerate(vocabulary)}
    rows = []
    for held in texts:
        columns = [places[word] for word in held]
        row = table[:, columns].max(axis=1) if columns else np.zeros(len(wanted))
        rows.append(tuple(map(float, row)))
    return rows


def _table(wanted: Sequence[str], vocabulary: Sequence[str], embed: Embed | None) -> NDArray[np.float64]:
    """How near each wanted word is to each word: 1 for one stem or group of synonyms, else by cosine."""
    table = np.zeros((len(wanted), len(vocabulary)))
    if embed is not None and wanted and vocabulary:
        vectors = embed([*wanted, *vocabulary])
        cosines = vectors[: len(wanted)] @ vectors[len(wanted) :].T
        table = np.clip((cosines.astype(np.float64) - UNLIKE) / (ALIKE - UNLIKE), 0.0, 1.0)
    stems = list(map(stem, vocabulary))
    for row, asked in enumerate(map(stem, wanted)):
        for column, told in enumerate(stems):
            if is_synonym(asked, told):
                table[row, column] = 1.0
    return table
