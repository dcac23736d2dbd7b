"""The parts of a question that asks several things, each a question of its own."""

from __future__ import annotations

import re

from agents.offline.conversation.words import HE, OWNERS, PRONOUNS, SHE
from agents.offline.language.words import AUXILIARIES
from agents.offline.reading.questions import Role, parse_question
from agents.offline.reading.words import language_of, word_spans

_PREPOSITION = r"(?:in|on|at|by|to|for|from|of|with|since|seit|für|mit|von|depuis|pour|de|à)"
_NEXT = re.compile(
    r"\?\s+(?:and\s+)?|(?:[,;]|(?<!\s))\s+(?:and|und|et)\s+(?:also\s+)?"
    rf"(?=(?:{_PREPOSITION}\s+)?"
    r"(?:who|whom|whose|what|which|when|where|why|how|wer|wen|wem|was|wann|wo|warum|wie|welche[mnrs]?"
    r"|qui|quand|où|pourquoi|combien|comment|quel(?:le)?s?)\b)",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    rf"(?:{_PREPOSITION}\s+)?(?:whose|what|which|when|where|why|how(?:\s+(?:many|much))?|wann|wo|warum|wie(?:\s+viele?)?"
    r"|welche[mnrs]?|quand|où|pourquoi|combien(?:\s+de)?|comment|quel(?:le)?s?)"
    rf"(?:\s+(?!(?:{'|'.join(sorted(AUXILIARIES))})\b)[\w-]+(?<!ed)){{0,2}}",
    re.IGNORECASE,
)
_ASKS_THING = re.compile(rf"\W*(?:which|whose|what)\s+(?!(?:{'|'.join(sorted(AUXILIARIES))})\b)", re.IGNORECASE)
_ASKS_PERSON = re.compile(
    r"\W*(?:who|whom)\b(?!\s+(?:is|are|was|were)\s+(?!(?:the|a|an|in|on|at|his|her)\b))", re.IGNORECASE
)
_ARTICLE = re.compile(r"\bthe\s+$", re.IGNORECASE)
_WITHIN_NAME = re.compile(r"\s+|-|\s+&\s+")


def split_question(question: str) -> list[str]:
    """Return the parts of a question that asks several things ("Who founded X, and when did it close?"), or itself.

    A later part that names nothing is asked of what the first part names: in the place of its pronoun, else in brackets
    behind it. A question stays whole where a part would be a phrase ("and in which city?"), or would have a pronoun
    that means no name of the first part.
    """
    pieces = [piece.strip(" ?,;.\n\t") for piece in _NEXT.split(question)]
    pieces = [piece for piece in pieces if piece and parse_question(piece).terms]
    if len(pieces) < 2 or any(_PHRASE.fullmatch(piece) for piece in pieces[1:]):
        return [question]
    parts = [f"{pieces[0]}?", *(_asked_of(pieces[0], piece) for piece in pieces[1:])]
    return [f"{part[:1].upper()}{part[1:]}" for part in parts] if all(parts) else [question]


def _asked_of(first: str, piece: str) -> str:
    """A later part as a question of its own; empty where it cannot be one."""
    if any(term.is_name for term in parse_question(piece).terms):
        return f"{piece}?"
    names, language = _names(first), language_of(piece)
    known = PRONOUNS.get(language, PRONOUNS["english"])
    pronoun = next((span for span in word_spans(piece) if span[0] in known), None)
    if pronoun is None:
        return f"{piece}? ({', '.join(names)})" if names else f"{piece}?"
    word, start, end = pronoun
    means_answer = (_ASKS_PERSON if word in HE | SHE else _ASKS_THING).match(first)
    if len(names) != 1 or means_answer:
        return ""
    if language != "english":
        return f"{piece}? ({names[0]})"
    is_owner = word in OWNERS or (word == "her" and piece[end:].lstrip()[:1].islower())
    return f"{piece[:start]}{names[0]}{chr(39) + 's' if is_owner else ''}{piece[end:]}?"


def _names(piece: str) -> list[str]:
    """The names in a part of a question, each with all of its words and numbers, and the article before it."""
    roles = {term.text: term for term in parse_question(piece).terms}
    names = {text for text, term in roles.items() if term.is_name}
    numbers = {text for text, term in roles.items() if term.role is Role.NUMBER}
    spans: list[tuple[int, int]] = []
    for word, start, end in word_spans(piece):
        if word in names | numbers and spans and _WITHIN_NAME.fullmatch(piece[spans[-1][1] : start]):
            spans[-1] = (spans[-1][0], end)
        elif word in names:
            article = _ARTICLE.search(piece[:start])
            spans.append((article.start() if article else start, end))
    return list(dict.fromkeys(piece[start:end] for start, end in spans))
