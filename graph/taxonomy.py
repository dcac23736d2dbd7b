"""The rules that type a statement, and what relation types a question asks for.

Cue words are English; a statement in another language gets the canonical names, the date rules, and otherwise the
default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from graph.cues import (
    ATTRIBUTION_EXCEPTIONS,
    CUES,
    PLACE_PREPOSITIONS,
    QUESTION_CUES,
    WEAK_PLACE_PREPOSITIONS,
    any_of,
    on_word_boundaries,
)
from graph.dates import is_date
from graph.own_types import NO_TYPES, OwnTypes
from graph.relations import ENTITY_RELATIONS, RelationType

_CUE = on_word_boundaries(
    "|".join(
        [f"(?P<EXCEPTION>{ATTRIBUTION_EXCEPTIONS})"]
        + [f"(?P<{relation.value}>{any_of(CUES[relation])})" for relation in CUES]
        + [f"(?P<PLACE>{PLACE_PREPOSITIONS})", f"(?P<WEAK_PLACE>{WEAK_PLACE_PREPOSITIONS})"]
    )
)
_QUESTION_CUES = {
    relation: [(on_word_boundaries(fragment), weight) for fragment, weight in cues]
    for relation, cues in QUESTION_CUES.items()
}
_CUE_TYPES: dict[str | None, RelationType] = {"EXCEPTION": RelationType.ATTRIBUTION}
_CUE_TYPES.update((relation.value, relation) for relation in CUES)
_TO_BE = "is|was|are|were|became|becomes|remains|remained"
_COPULA = re.compile(rf"(?:.* )?(?:{_TO_BE})(?: also| now| currently)?")
_DEFINES = re.compile(rf"(?:{_TO_BE})(?: also| now| currently)?(?: an?| the| one of)?")
_ENDS_IN_PREPOSITION = re.compile(r"\b(?:in|on|at|by|to|from|since|until|till|during|before|after|between|around)$")
_TAKES_NUMBER_OR_WORK = on_word_boundaries(
    r"has|have|had|number|population|amount|length|height|area|size|cost|price|salary|average|total|capacity"
    r"|rank(?:ed)?|scored|wr(?:ote|ites)|writ(?:ten|er)|author(?:ed)?|direct(?:s|ed|or)|compos(?:es|ed|er)|recorded"
    r"|star(?:s|red|ring)|titled|named|called|known as|capital|member"
)
_QUANTITY = re.compile(r"\W*(?:\d+[.,]\d|(?![12]\d{3}\b)\d)")
_PROPERTY_WORD = re.compile(r"\w+(?:ful|ous|ive|able|ible|less|ed|ish|ent|ant|ic)")
_ARTICLE = re.compile(r"(?:an?|the|one of) ")
_GOVERNING_WORDS = (" of", " to", " by", " in", " at")
_SEPARATORS = str.maketrans("_-", "  ")


def relation_type_of(name: str, own: OwnTypes = NO_TYPES) -> RelationType | None:
    """Return the relation type of a canonical name, case-insensitively, or None; ``CAUSAL`` is CAUSALITY."""
    canonical = name.strip().upper()
    if canonical == "CAUSAL":
        return RelationType.CAUSALITY
    return RelationType.__members__.get(canonical) or own.relation_named(name)


def fact_type_of(name: str, own: OwnTypes = NO_TYPES) -> RelationType | None:
    """Return the relation type of a canonical name where a fact can carry it, or None."""
    relation = relation_type_of(name, own)
    return relation if relation in ENTITY_RELATIONS or relation in own.relation_types else None


def type_triple(subject: str, predicate: str, object: str, own: OwnTypes = NO_TYPES) -> tuple[RelationType, bool]:
    """Return the type of a statement, and whether any cue told it; without a cue it is ATTRIBUTION.

    In order: a canonical type name as predicate; a date as object; the predicate's last cue of a user's own type; its
    last cue of a built-in one, which stands next to the object and governs it ("is a film directed by" is ATTRIBUTION,
    "is a city in" SPATIAL); after a bare "is", the object; a date as subject.
    """
    named = fact_type_of(predicate, own)
    if named is not None:
        return named, True
    plain = " ".join(predicate.translate(_SEPARATORS).casefold().split())
    if is_date(object) and (not object.strip().isdecimal() or _takes_date(plain)):
        return RelationType.TEMPORAL, True
    told = own.relation_of(predicate)
    if told is not None:
        return told, True
    cue = _last_cue(plain)
    if cue == "PLACE":
        cue = RelationType.SPATIAL if _looks_like_name(object) else None
    relation = _CUE_TYPES.get(cue)
    if relation is None and object.strip() and _COPULA.fullmatch(plain):
        relation = _complement_type(object)
    if relation is None and is_date(subject):
        relation = RelationType.TEMPORAL
    return (relation, True) if relation is not None else (RelationType.ATTRIBUTION, False)


def tells_kind(predicate: str) -> bool:
    """Tell whether a predicate says what its subject is: "is", "was a", "is also the"."""
    return _DEFINES.fullmatch(" ".join(predicate.translate(_SEPARATORS).casefold().split())) is not None


def question_cues(question: str) -> Mapping[RelationType, float]:
    """Return how strongly the words of a question ask for each entity relation type: 0 (not at all) or more.

    A cue that asks outright ("when ...") adds 1, one that merely occurs 0.5 or less; a fragment counts once.
    """
    plain = " ".join(question.translate(_SEPARATORS).casefold().split())
    return {
        relation: sum((weight for pattern, weight in _QUESTION_CUES[relation] if pattern.search(plain)), 0.0)
        for relation in ENTITY_RELATIONS
    }


@lru_cache(maxsize=10_000)
def _takes_date(predicate: str) -> bool:
    """Whether a year after this predicate is a date, rather than a number ("has 1900") or a work ("wrote 1984")."""
    return _ENDS_IN_PREPOSITION.search(predicate) is not None or _TAKES_NUMBER_OR_WORK.search(predicate) is None


@lru_cache(maxsize=10_000)
def _last_cue(predicate: str) -> str | None:
    last = None
    for match in _CUE.finditer(predicate):
        if match.lastgroup != "WEAK_PLACE":
            last = match.lastgroup
        elif last is None:
            last = "PLACE"
    return last


def _looks_like_name(text: str) -> bool:
    """Whether a text starts with a capital, or is written in a script that has none."""
    first = _ARTICLE.sub("", text.strip(), count=1)[:1]
    return first.isalpha() and not first.islower()


def _complement_type(complement: str) -> RelationType:
    """The type of "X is <complement>": the cue that heads the complement ("capital of"), else a class or a property."""
    folded = complement.strip().casefold()
    head = _CUE.search(_ARTICLE.sub("", folded, count=1))
    if head is not None and head.lastgroup in _CUE_TYPES and head[0].endswith(_GOVERNING_WORDS):
        return _CUE_TYPES[head.lastgroup]
    if _ARTICLE.match(folded):
        return RelationType.HIERARCHICAL
    words = complement.split()
    is_property = len(words) == 1 and _PROPERTY_WORD.fullmatch(folded)
    if is_property or _QUANTITY.match(folded):
        return RelationType.ATTRIBUTION
    return RelationType.HIERARCHICAL if words[-1][0].islower() else RelationType.ATTRIBUTION
