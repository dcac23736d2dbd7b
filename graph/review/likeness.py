"""Names that are spelled alike: pairs that may mean one entity, by rules of writing that know no word."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import combinations

from graph.text import normalise_name

_MOST_ALIKE = 20
"""Names that share a key; of more, the key tells nothing."""
_SHORTEST_TYPO = 6
_SHORTEST_WORD = 5
_LEAST_ENDINGS = 3
_LONGEST_ACRONYM = 6
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_ROMAN = re.compile(r"\b[IVX]+\b")
_WORD = re.compile(r"[^\W_]+(?:[.'’&-][^\W_]+)*\.?")


class Likeness(StrEnum):
    """How two names are alike."""

    LETTERS = "same letters"
    """But for punctuation, spaces and diacritics: I.B.M. and IBM."""
    ACRONYM = "initials of a name"
    """United Nations and UN."""
    SHORTENED = "words shortened to initials"
    """J. Smith and John Smith."""
    ENDING = "an ending set off"
    """Velm and Velm Inc., or Velm, Ostra: what follows is an abbreviation or stands after a comma, and follows several
    names of the corpus that also stand without it."""
    SPELLING = "one letter differs"
    MEANING = "near embeddings"


Pair = tuple[int, int]


def alike_pairs(labels: Sequence[str]) -> Iterator[tuple[Pair, Likeness]]:
    """Yield pairs of places (the smaller first) of names that are spelled alike, and how; one may be yielded twice.

    Args:
        labels: the names as the corpus writes them, of different normal forms.
    """
    for likeness, groups, differ in (
        (Likeness.LETTERS, _by_letters(labels), _is_another_word),
        (Likeness.SPELLING, _by_deletion(labels), _is_no_mistake),
    ):
        for group in groups:
            if len(group) <= _MOST_ALIKE:
                for a, b in combinations(sorted(set(group)), 2):
                    if _numbers(labels[a]) == _numbers(labels[b]) and not differ(labels[a], labels[b]):
                        yield (a, b), likeness
    for likeness, pairs in (
        (Likeness.ACRONYM, _acronyms(labels)),
        (Likeness.SHORTENED, _shortened(labels)),
        (Likeness.ENDING, _with_ending(labels)),
    ):
        for a, b in pairs:
            if a != b:
                yield (min(a, b), max(a, b)), likeness


def letters_of(name: str) -> str:
    """Return a name's letters and digits alone, without diacritics and case."""
    decomposed = unicodedata.normalize("NFKD", normalise_name(name))
    return "".join(c for c in decomposed if c.isalnum())


def _by_letters(labels: Sequence[str]) -> Iterable[list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        if any(map(str.isalpha, key := letters_of(label))):
            groups[key].append(place)
    return groups.values()


def _by_deletion(labels: Sequence[str]) -> Iterator[list[int]]:
    """Yield groups of names of which each two differ by one letter: put in, left out or put for another.

    A group shares what is left when a letter is deleted (as in SymSpell); names that do so at one place differ there.
    """
    groups: dict[tuple[str, int], list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        letters = letters_of(label)
        if len(letters) < _SHORTEST_TYPO or not any(map(str.isalpha, letters)):
            continue
        for at, letter in enumerate(letters):
            if not letter.isdigit():
                groups[letters[:at] + letters[at + 1 :], at].append(place)
        # One that lacks a letter meets those that have one there.
        for at in range(len(letters) + 1):
            groups[letters, at].append(place)
    for group in groups.values():
        if len(group) > 1 and len({letters_of(labels[place]) for place in group}) > 1:
            yield group


def _acronyms(labels: Sequence[str]) -> Iterator[Pair]:
    """Yield (an acronym, a name whose words, all or those with a capital, begin with its letters)."""
    known: dict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        letters = label.replace(".", "")
        if 2 <= len(letters) <= _LONGEST_ACRONYM and letters.isalpha() and letters.isupper():
            known[letters.casefold()].append(place)
    for place, label in enumerate(labels):
        words = _WORD.findall(label)
        capitals = [word for word in words if word[0].isupper()]
        if len(capitals) < 2:
            continue
        for some in {tuple(words), tuple(capitals)}:
            for acronym in known.get("".join(word[0] for word in some).casefold(), ()):
                yield acronym, place


def _shortened(labels: Sequence[str]) -> Iterator[Pair]:
    """Yield (a name with initials, one that has words in their place) of names that end in the same word."""
    by_ends: dict[tuple[int, str, str], list[tuple[int, list[str]]]] = defaultdict(list)
    for place, label in enumerate(labels):
        words = [word.rstrip(".") for word in _WORD.findall(label)]
        if len(words) > 1 and len(words[-1]) > 1 and all(word[:1].isupper() for word in words):
            folded = [word.casefold() for word in words]
            by_ends[len(words), folded[-1], folded[0][0]].append((place, folded))
    for group in by_ends.values():
        for (a, one), (b, other) in combinations(group, 2):
            if one != other and all(map(_fits, one, other)):
                yield a, b


def _fits(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])


def _with_ending(labels: Sequence[str]) -> Iterator[Pair]:
    """Yield (a name, the same with an ending) for endings that are set off and follow several names."""
    place_of = {letters_of(label): place for place, label in enumerate(labels)}
    found: dict[str, list[Pair]] = defaultdict(list)
    for place, label in enumerate(labels):
        words = label.split()
        if len(words) > 1 and _is_set_off(words[-1], words[-2]):
            stem = place_of.get(letters_of(" ".join(words[:-1])))
            if stem is not None:
                found[letters_of(words[-1])].append((stem, place))
    for pairs in found.values():
        if len(pairs) >= _LEAST_ENDINGS:
            yield from pairs


def _is_set_off(word: str, before: str) -> bool:
    """Tell whether a last word stands after a comma or is an abbreviation: with a period, or ending in a capital.

    One of capitals alone is more often a noun (API) than a legal form (GmbH).
    """
    plain = word.strip(".,")
    ends_in_capital = plain[-1:].isupper() and not plain.isupper()
    return plain.isalpha() and (before.endswith(",") or word.endswith(".") or ends_in_capital)


def _is_another_word(one: str, other: str) -> bool:
    """Tell whether two short names of the same letters may be different words: I'd and ID, unlike U.K. and UK."""
    if len(letters_of(one)) >= _SHORTEST_WORD:
        return False
    plain = [label.replace(".", "").replace(" ", "") for label in (one, other)]
    return plain[0] != plain[1] or not plain[0].isalnum() or not plain[0].isupper()


def _is_no_mistake(one: str, other: str) -> bool:
    """Tell whether two names differ by a letter at the end, as forms of one word do, or in a word of capitals."""
    a, b = letters_of(one), letters_of(other)
    if a.startswith(b) or b.startswith(a) or a[:-1] == b[:-1]:
        return True
    differing = set(_WORD.findall(one)) ^ set(_WORD.findall(other))
    return any(word.isupper() for word in differing)


def numbered_alike(one: str, other: str) -> bool:
    """Tell whether two names hold the same numbers, small Roman ones among them."""
    return _numbers(one) == _numbers(other) and _ROMAN.findall(one) == _ROMAN.findall(other)


def _numbers(label: str) -> list[str]:
    return _NUMBER.findall(label)
