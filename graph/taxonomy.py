"""The rules that type a statement, and what relation types a question asks for, with the words that tell them.

Cue words are English; a statement in another language gets the canonical names, the date rules, and otherwise the
default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType

from graph.own_types import NO_TYPES, OwnTypes
from graph.relations import ENTITY_RELATIONS, RelationType
from graph.text import is_date

_KINSHIP = (
    r"(?:half |step |grand|great ){0,4}(?:sons?|daughters?|fathers?|mothers?|parents?|child|children|brothers?|sisters?"
    r"|siblings?|wi(?:fe|ves)|husbands?|spouses?|uncles?|aunts?|nephews?|nieces?|cousins?|heirs?|descend(?:ants?|ed)"
    r"|ancestors?|married|widows?)"
)
_PARTS = (
    r"(?:parts?|members?|types?|kinds?|forms?|species|genus|sub(?:class|set|type|genre)|subsidiary|subsidiaries"
    r"|divisions?|branch|branches|departments?|examples?|instances?|category|class|breed|units?|components?|provinces?"
    r"|districts?|boroughs?|suburbs?|neighbou?rhoods?|capital|county seat|administrative cent(?:re|er)|seat)"
)
_ROLES = (
    r"(?:author|writer|director|producer|composer|creator|founder|owner|designer|architect|inventor|publisher|developer"
    r"|performer|singer|editor|president|chairman|chief|ceo|leader|king|queen|ruler|governor|mayor|minister|coach"
    r"|manager|captain|head|professor|student|actor|actress|player|star|host|winner|champion|commander|secretary"
    r"|sponsor|operator|employer|contributor)s?"
)
_CREATES = (
    r"(?:wr(?:ote|ites|itten)|direct(?:s|ed)|compos(?:es|ed)|creat(?:es|ed)|found(?:s|ed)|produc(?:es|ed)"
    r"|publish(?:es|ed)|design(?:s|ed)|develop(?:s|ed)|invent(?:s|ed)|discover(?:s|ed)|perform(?:s|ed)|record(?:s|ed)"
    r"|own(?:s|ed)|built|established|operat(?:es|ed)|edited|painted|hosts|hosted|presented|coined|introduced)"
)
_PROPERTIES = (
    r"(?:population|number|amount|length|height|width|area|size|cost|price|salary|age|average|total|capacity|rate"
    r"|currency|language|religion|genre|nationality|occupation|profession|colou?r|title|team|climate|rank)s?"
)

CUES: Mapping[RelationType, tuple[str, ...]] = MappingProxyType(
    {
        RelationType.CAUSALITY: (
            r"caus(?:e|es|ed|ing)(?: by| of)?",
            r"(?:lead|leads|led|leading) (?:directly )?to",
            r"result(?:s|ed|ing)? (?:in|from|of)",
            r"due to|because(?: of)?|thanks to|in response to|consequence of|effects? (?:of|on)|reasons? for",
            r"trigger(?:s|ed|ing)?(?: by)?|sparked(?: by)?|provok(?:es|ed)(?: by)?|prompted(?: by)?",
            r"enabl(?:e|es|ed|ing)(?: by)?|allow(?:s|ed|ing)?(?: for)?|ma(?:de|kes) possible|facilitat(?:es|ed)",
            r"prevent(?:s|ed|ing)?|reduc(?:e|es|ed|ing)|increas(?:e|es|ed|ing)|stimulat(?:es|ed)|inhibit(?:s|ed)?",
            r"contribut(?:e|es|ed|ing) to|g(?:a|i)ves? rise to|br(?:ings|ought) about|stem(?:s|med) from|arises? from",
            r"affect(?:s|ed|ing)?(?: by)?|influenc(?:e|es|ed|ing)(?: by)?|forced",
            r"(?:died|dies|suffered|suffers) (?:of|from)|(?:killed|destroyed|damaged|devastated) by",
        ),
        RelationType.TEMPORAL: (
            r"(?:born|died|released|opened|founded|established|signed|occurred|held|premiered) on",
            r"since|until|till|before|prior to|during|throughout|as of|simultaneous(?:ly)?(?: with)?",
            r"(?:shortly |soon )?after",
            r"preced(?:es|ed|ing)(?: by)?|succeed(?:s|ed|ing)?(?: by)?|follow(?:s|ed|ing)?(?: by)?",
            r"predecessor|successor|replaced(?: by)?|replaces",
            r"(?:date|year|month|day|century|decade|era|time)s?(?: of)?|dat(?:es|ed|ing)(?: (?:back )?to| from)?",
            r"(?:beg(?:an|ins?|un)|start(?:s|ed)?|end(?:s|ed)?|ceased|expire[sd]|last(?:s|ed))"
            r"(?! (?:by|with))(?: (?:on|in|at|for|from))?",
        ),
        RelationType.SPATIAL: (
            r"(?:located|situated|headquartered|stationed|positioned|buried|housed)"
            r"(?: (?:in|at|on|near|along|within|between|by))?",
            r"based (?:in|at|near)",
            r"(?:live[sd]?|living|reside[sd]?|residing|settled|dwells?|raised|grew up|stands|stood) (?:in|at|on|near)",
            r"(?:location|place|headquarters|birthplace|region|address|residence|site|venue|hometown|position)s?"
            r"(?: of| in)?",
            r"lies(?: \w+)?|border(?:s|ed|ing)?(?: (?:by|on|with|to|between))?|shares? (?:a )?border(?: with)?",
            r"near|next to|adjacent to|close to|opposite|along|within|inside|beneath|overlook(?:s|ing)",
            r"(?:to the )?(?:north|south|east|west) ?(?:east|west)?(?:ern)? (?:part )?of",
            r"(?:miles|km|kilomet(?:re|er)s) from",
            r"surround(?:s|ed|ing)(?: by)?|contain(?:s|ed|ing)?|home (?:to|of)|found in|native to|set in",
            r"flow(?:s|ed|ing)?(?: (?:into|through|to|from|in))?|tributary of|drains into",
            r"runs (?:through|along|from|between|to)|passes through|extends?(?: (?:to|from|into))?|area of",
            r"cross(?:es|ed)|connect(?:s|ed|ing)(?: (?:to|with))?|separat(?:es|ed)(?: (?:by|from))?",
            r"(?:moved|moves|emigrated|fled|travell?ed|relocated|returned) (?:to|from)",
            r"t(?:ook|akes?) place (?:in|at|on)",
        ),
        RelationType.HIERARCHICAL: (
            r"(?:is|was|are|were|be|been|as) (?:an?|the|one of(?: the)?)",
            rf"(?:an? |the |founding ){{0,4}}{_PARTS}(?: states?)?(?: (?:of|in|from|includes?|including))?",
            r"belong(?:s|ed|ing)? to|consist(?:s|ed|ing)? of|compris(?:e|es|ed|ing)(?: of)?",
            r"(?:composed|made|made up) of",
            r"includ(?:e|es|ed|ing)|encompass(?:es|ed|ing)?|(?:divided|split|subdivided|organi[sz]ed) into|such as",
            r"classified as|categori[sz]ed as|grouped (?:with|under)|affiliat(?:ed (?:with|to)|ion)"
            r"|merged (?:with|into)|joined",
            rf"{_KINSHIP}(?: (?:of|to|with|by|from))?",
        ),
        RelationType.ATTRIBUTION: (
            rf"{_ROLES}(?: (?:of|in|for|at|to|on))?",
            rf"{_CREATES}(?! (?:in|at|on|near|from|to))(?: (?:by|for|as))?",
            r"star(?:s|red|ring)(?: (?:in|as|by))?|featur(?:es|ed|ing)(?: (?:in|on|as))?|portray(?:s|ed|ing)?(?: by)?",
            r"(?:acted|acts|appeared|appears|played|plays|sang|voiced) (?:in|on|for|as|at|by|with)",
            r"(?:served|serves|worked|works|employed|elected|appointed|known|regarded|considered|used)"
            r" (?:as|in|at|for|by|with|on|to)",
            r"(?:studied|educated|graduated|taught|teaches|trained|enrolled|attended)(?: (?:in|at|from|by|with))?",
            r"(?:participated|compete[sd]|speciali[sz]e[sd]|interested|involved|engaged|invested"
            r"|ranked|active|nominated|awarded|fluent|written|translated|won|victory) (?:in|on|at|for)",
            r"derived from|based (?:up)?on|adapted from|inspired(?: by)?|scored(?: (?:for|in|by))?|responsible for",
            r"(?:called|titled|nicknamed|renamed|named|means|name)(?: (?:of|to))?|refers? to",
            r"has|have|had|having|possess(?:es|ed)?|holds|won|received|awarded|achieved|earned",
            rf"{_PROPERTIES}(?: of)?",
            r"\w+ by|by",
        ),
    }
)
"""Regular-expression fragments of lower-case predicates (hyphens and underscores read as spaces) that tell a type."""

ATTRIBUTION_EXCEPTIONS = r"(?:named|modell?ed|patterned) after|(?:started|begun|ended) (?:by|with)"
"""Predicates that begin like a cue of another type and tell an attribution."""

PLACE_PREPOSITIONS = r"(?:in|at)$"
"""Prepositions at a predicate's end: a place follows, when the object looks like a name and is no date."""

WEAK_PLACE_PREPOSITIONS = (
    r"(?:on|through|across|between)$|^(?:(?:is|was|are|were|comes?|came|hails?|hailed|originat(?:es|ed)) )?from$"
)
"""The same, but only where the predicate holds no other cue: "known for her work on" is no place."""

QUESTION_CUES: Mapping[RelationType, tuple[tuple[str, float], ...]] = MappingProxyType(
    {
        RelationType.TEMPORAL: (
            (r"^when|(?:what|which) (?:year|date|month|day|century|decade|era|time)|how (?:long|old|recently)", 1.0),
            (r"when|years?|dates?|century|decade|era|born|died|founded|established|beg[ai]n|started|ended", 0.5),
            (r"first|last|earlier|later|older|younger|before|after|during|since|until|oldest|youngest|latest", 0.5),
            (r"[12]\d\d\ds?|january|february|april|june|july|august|september|october|november|december", 0.5),
        ),
        RelationType.SPATIAL: (
            (r"^where|(?:what|which) (?:city|country|state|county|town|region|province|continent|place|location)", 1.0),
            (r"where|city|country|county|town|village|continent|place|location|locale|headquarters|birthplace", 0.5),
            (
                r"located|situated|based in|headquartered|borders?|bordering|near|flows?|north|south|east|west|nearest",
                0.5,
            ),
            (r"state|province|live[sd]?|river|island|mountain|airport|stadium|venue|nationality|area", 0.25),
        ),
        RelationType.CAUSALITY: (
            (r"why|what (?:cause[sd]?|led|leads|triggered|prompted)|how come|for what reason", 1.0),
            (r"cause[sd]?|causing|led to|leads? to|results? (?:in|of|from)|resulted|reasons?|because|due to", 0.75),
            (
                r"consequences?|effects?|impacts?|affect(?:s|ed)?|influence[sd]?|triggered|enable[sd]?|prevent(?:s|ed)?",
                0.5,
            ),
        ),
        RelationType.HIERARCHICAL: (
            (r"(?:part|members?|subsidiary|division|branch|capital) of|(?:kind|type|sort|species|class|genus) of", 1.0),
            (r"capital|county seat|parent|belongs? to|belonged|consists? of|includes?|included|division|member", 0.5),
            (r"families|family|spouse|wife|husband|son|daughter|father|mother|brother|sister|siblings?|married", 0.75),
            (r"uncle|aunt|nephew|niece|cousin|grand(?:father|mother|son|daughter)|child|children|descendants?", 0.75),
        ),
        RelationType.ATTRIBUTION: (
            (r"^who|whose|whom|how (?:many|much|tall|high|large|big|deep|far)", 1.0),
            (r"who|what (?:is|was|are|were) the (?:\w+ )?\w+ of|(?:what|which) (?:actor|actress|author|person)", 0.5),
            (
                r"directors?|directed|authors?|wrote|written|owner|owns?|owned|founders?|founded by|creators?|created",
                0.5,
            ),
            (r"composer|composed|producer|produced|performers?|performed|singer|sang|starred|stars?|played|plays", 0.5),
            (r"president|chairman|king|queen|leader|occupation|profession|name|named|language|population|number", 0.5),
        ),
    }
)
"""Fragments of lower-case questions with their weight, in (0, 1]: 1 asks for that kind of relation outright."""


def any_of(fragments: tuple[str, ...]) -> str:
    """Return one fragment that matches any of the given ones."""
    return "(?:" + "|".join(fragments) + ")"


def on_word_boundaries(fragment: str) -> re.Pattern[str]:
    """Compile a fragment so that it matches whole words alone: "is a" is not in "disaster"."""
    return re.compile(rf"(?<!\w)(?:{fragment})(?!\w)")


@cache
def _cue() -> re.Pattern[str]:
    """Return the pattern of all cues, compiled when a statement is typed first: a question needs it not."""
    return on_word_boundaries(
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
    own_type = own.relation_of(predicate)
    if own_type is not None:
        return own_type, True
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
    for match in _cue().finditer(predicate):
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
    head = _cue().search(_ARTICLE.sub("", folded, count=1))
    if head is not None and head.lastgroup in _CUE_TYPES and head[0].endswith(_GOVERNING_WORDS):
        return _CUE_TYPES[head.lastgroup]
    if _ARTICLE.match(folded):
        return RelationType.HIERARCHICAL
    words = complement.split()
    is_property = len(words) == 1 and _PROPERTY_WORD.fullmatch(folded)
    if is_property or _QUANTITY.match(folded):
        return RelationType.ATTRIBUTION
    return RelationType.HIERARCHICAL if words[-1][0].islower() else RelationType.ATTRIBUTION
