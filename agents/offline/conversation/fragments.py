"""Questions that leave out most of what they ask: "and in 1952?", "what about the Thames?", "why?"."""

from __future__ import annotations

import re

import regex

from agents.offline.language.entities import scan_entities
from agents.offline.language.words import FUNCTION_WORDS, word_set
from graph.retrieve.known_names import KnownNames

LONGEST_TOPIC = 15
"""Words of an earlier question that a question takes on."""

_PREPOSITION = r"\b((?i:in|on|at|from|to|by|for|with|during|since|until|before|after|of))\s+(?:(?i:the)\s+)?"
_PHRASE = regex.compile(rf"{_PREPOSITION}[^\s,?.!]+(?:(?<=\s\p{{Lu}}\S*)\s\p{{Lu}}[^\s,?.!]*)*")
_OF = re.compile(r"of\s+", re.IGNORECASE)
_NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*\b")
_ARTICLE = re.compile(r"(?:the|a|an)\s", re.IGNORECASE)
_ARTICLE_BEFORE = re.compile(r"\b(?:the|a|an)\s+$", re.IGNORECASE)
_ASKS_WITH = re.compile(
    r"\W*(?:and |but |so )?"
    r"(?:when|where|why|how(?: \w+)?|what|in (?:which|what) \w+|wann|wo|warum|wie|quand|où|pourquoi)\s+"
    r"(?=(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|wurde|ist|war|hat|est|a)\b)",
    re.IGNORECASE,
)
_ASKED_ON = re.compile(r"\w+(?: \w+)?\? (?=\w)")
_IN_BRACKETS = re.compile(r"\(([^()]+)\)\W*$")
_NO_MARKS = str.maketrans(dict.fromkeys("()?!¿¡", " "))
_ONLY_ASKS = FUNCTION_WORDS | word_set("what which who whom whose when where why how can could")


def filled_in(fragment: str, asked: str, names: KnownNames) -> str | None:
    """Return the last question with a fragment in the place of what is like it: a phrase, a number or a name.

    None where the question has nothing like it.
    """
    if topic := _IN_BRACKETS.search(asked):
        without = filled_in(fragment, asked[: topic.start()].rstrip(), names)
        return f"{without} ({topic.group(1)})" if without else None
    ends = "?" if asked.rstrip().endswith("?") else ""
    whole = asked.strip().rstrip("?")
    slot = _slot(fragment, whole, names)
    if slot is None and (of := _OF.match(fragment)):
        return filled_in(fragment[of.end() :], asked, names)
    if slot is None:
        return f"{whole} {fragment}{ends}" if _PHRASE.match(fragment) else None
    before = whole[: slot[0]]
    if _ARTICLE.match(fragment):
        before = _ARTICLE_BEFORE.sub("", before)
    return f"{before}{fragment}{whole[slot[1] :]}{ends}"


def asked_with(how: str, asked: str) -> str:
    """Return the last question with another question word: "When was it built?" and "why?" is "Why was it built?"."""
    how = how[:1].upper() + how[1:].casefold()
    changed = _ASKS_WITH.sub(f"{how} ", asked, count=1)
    return changed if changed != asked else f"{how}? {_ASKED_ON.sub('', asked)}"


def topic_of(question: str) -> str:
    """Return what a question is about: what stands in brackets behind it, or its words without those that only ask."""
    if in_brackets := _IN_BRACKETS.search(question):
        return in_brackets.group(1)
    words = _ASKS_WITH.sub("", question, count=1).translate(_NO_MARKS).strip(" .").split()
    while words and words[0].casefold().strip(",") in _ONLY_ASKS:
        words.pop(0)
    words = list({word.casefold(): word for word in reversed(words)}.values())[::-1][:LONGEST_TOPIC]
    while words and words[-1].casefold() in FUNCTION_WORDS:
        words.pop()
    return " ".join(words)


def _slot(fragment: str, asked: str, names: KnownNames) -> tuple[int, int] | None:
    """Where in a question a fragment goes."""
    if phrase := _PHRASE.match(fragment):
        like = [found for found in _PHRASE.finditer(asked) if found.group(1).lower() == phrase.group(1).lower()]
        return like[-1].span() if like else None
    if _NUMBER.fullmatch(fragment) and (numbers := list(_NUMBER.finditer(asked))):
        return numbers[-1].span()
    if said := _said_before(fragment, asked):
        return said
    present = [span.text for span in scan_entities(asked).spans if span.is_name] or names.spelled(asked)
    if not present or not (names.knows(fragment) or _is_written_as_a_name(fragment)):
        return None
    like_it = [name for name in present if names.pronoun_of(name) is names.pronoun_of(fragment)]
    found = re.search(re.escape((like_it or present)[0]), asked, re.IGNORECASE)
    return found.span() if found else None


def _said_before(fragment: str, asked: str) -> tuple[int, int] | None:
    """Where a question has the noun that a phrase narrows otherwise: with the phrase that narrows it there."""
    narrowing = list(_PHRASE.finditer(fragment))
    noun = fragment[: narrowing[0].start()].split() if narrowing else []
    while noun and noun[0].casefold() in FUNCTION_WORDS:
        noun.pop(0)
    found = re.search(rf"\b{re.escape(' '.join(noun))}\b", asked, re.IGNORECASE) if noun else None
    if not found:
        return None
    like = _PHRASE.match(asked, found.end() + 1)
    is_like = like and like.group(1).casefold() in {phrase.group(1).casefold() for phrase in narrowing}
    return found.start(), like.end() if like and is_like else found.end()


def _is_written_as_a_name(fragment: str) -> bool:
    """Tell whether each word of a fragment that says anything has a capital."""
    words = [word for word in fragment.split() if word.casefold() not in FUNCTION_WORDS]
    return bool(words) and all(word[:1].isupper() for word in words)
