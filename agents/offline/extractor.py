"""The extractor without a model: names, dates and quantities, and what English sentences say of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import regex

from agents.offline.clauses import PAST, Item, joined_places, sentence_items
from agents.offline.entities import EntitySpan, SpanKind, governed_name, scan_entities, title_names
from agents.offline.sentence_reader import SentenceReader
from agents.offline.statements import EXPLICIT, LIKELY, UNCERTAIN, Statement, Topic, pair_statements
from agents.offline.words import ADVERBS, FUNCTION_WORDS, PREPOSITIONS, PRONOUNS, RELATIVES
from agents.roles import Feedback
from graph.own_types import LONGEST_CUE, NO_TYPES, OwnTypes
from graph.schema import Extraction, Passage, RelationType, Triple
from graph.sentences import key_values
from graph.taxonomy import type_triple
from graph.text import normalise_name, year_in

_WORD = r"\p{L}[\p{L}\p{N}’'\-/]*+"
_TERM = rf"(?P<term>{_WORD}(?: {_WORD}){{0,3}}?)(?: \([\p{{Lu}}\p{{N}}]\p{{L}}{{1,9}}\))?"
_DEFINITION = regex.compile(
    rf"(?:An?|The term) {_TERM},? (?:(?P<verb>is) (?:an?|the) |(?P<verb>means|refers to) (?:(?:an?|the) )?)"
    rf"|{_TERM} (?P<verb>are|means?|refers? to) (?:(?:an?|the|any) )?"
)
_CLASS = regex.compile(rf"{_WORD}(?: {_WORD}){{0,7}}+")
_ACRONYM = regex.compile(r"(?<=\p{Ll}) ?\((?P<short>\p{Lu}{2,6}+)(?P<plural>s?)\)")
_LAST_WORDS = regex.compile(rf"(?:{_WORD} ){{0,8}}{_WORD}\Z")
_LONGEST_FORM = 80
_NO_CLASS = ADVERBS | PAST | FUNCTION_WORDS
_NO_PLURAL = ("ss", "us", "is", "os", "as")
_ENDS = (PREPOSITIONS - {"of"}) | RELATIVES | PAST | {"and", "or", "but", "when", "you", "because", "so"}


def definitions(text: str, sentences: Iterable[tuple[int, int]]) -> list[Statement]:
    """Return what sentences say that define a term in general: "A jumbo frame is a frame with ..." is one of them.

    Plurals need a plural behind "are": "Bonds are loans", not "Bonds are safe". A statement of "the" one thing at
    hand defines nothing.
    """
    statements = []
    for start, end in sentences:
        match = _DEFINITION.match(text, start, end)
        if match is None or not (FUNCTION_WORDS | ADVERBS).isdisjoint(match["term"].lower().split()):
            continue
        said = _class(text[match.end() : end])
        if said and (match["verb"] != "are" or any(map(_is_plural, said.split()))):
            statements.append(Statement(match["term"], match["verb"], said, LIKELY))
    return statements


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(_NO_PLURAL)


def _class(rest: str) -> str:
    """The words of a noun phrase, up to what only describes it."""
    match = _CLASS.match(rest)
    words = match[0].split() if match else []
    end = next((place for place, word in enumerate(words) if place and _describes(word)), len(words))
    phrase = words[:end]
    if not phrase or phrase[0].lower() in _NO_CLASS or phrase[0].endswith(("ed", "ing", "ly")):
        return ""
    while phrase and phrase[-1].lower() in FUNCTION_WORDS | ADVERBS:
        phrase.pop()
    return " ".join(phrase)


def _describes(word: str) -> bool:
    """Whether a word behind a noun phrase begins what describes it: "a frame used by", "a frame with"."""
    return word.lower() in _ENDS or word.endswith(("ed", "ing"))


def acronyms(text: str) -> Iterator[Statement]:
    """Yield (long form, "also known as", acronym) where the words before an acronym begin with its letters."""
    for match in _ACRONYM.finditer(text):
        before = _LAST_WORDS.search(text[max(0, match.start() - _LONGEST_FORM) : match.start()])
        words = before[0].split(" ") if before else []
        for first in range(len(words) - 1, -1, -1):
            initials = "".join(part[0] for word in words[first:] for part in word.split("-") if part)
            if initials.upper() == match["short"]:
                form = " ".join(words[first:])
                yield Statement(form.removesuffix(match["plural"]), "also known as", match["short"], EXPLICIT)
                break


_LOOKED_BACK = 2 * LONGEST_CUE


def cue_statements(
    text: str, items: Sequence[Item], topic: str, read: Iterable[Statement], own: OwnTypes
) -> Iterator[Statement]:
    """Yield what each cue of a sentence says of the nearest names on its two sides, in any language.

    Before a cue without a name stands the topic. A type that the sentence's own statements have already is left alone,
    since they know more of its structure; but a name right before a cue is its subject in any case.

    Args:
        text: the passage, into which the items' offsets point.
        items: of the sentence.
        topic: what the passage is about; may be empty.
        read: the statements that the sentence was read to make.
        own: the user's own types.
    """
    names = [item for item in items if item.is_name]
    if not own.relations or not names:
        return
    starts, ends = [item.start for item in names], [item.end for item in names]
    typed = {(type_triple(one.subject, one.predicate, one.object, own)[0], one.subject, one.object) for one in read}
    known = {relation for relation, _, _ in typed}
    for start, end in own.cues_in(text, items[0].start, items[-1].end):
        before, after = bisect_right(ends, start), bisect_left(starts, end)
        if after == len(names):
            continue
        subject = text[starts[before - 1] : ends[before - 1]] if before else topic
        object_, relation = text[starts[after] : ends[after]], own.relation_of(text[start:end])
        is_subject = before > 0 and text[ends[before - 1] : start].isspace()
        is_new = (relation, subject, object_) not in typed if is_subject else relation not in known
        if subject and is_new:
            certainty = LIKELY if before else UNCERTAIN
            yield Statement(subject, " ".join(text[start:end].split()), object_, certainty)


def entity_types_of(
    names: Iterable[str], text: str, spans: Sequence[EntitySpan], statements: Iterable[Statement], own: OwnTypes
) -> dict[str, str]:
    """Return the own entity type of each name that the rules tell one for.

    Args:
        names: the passage's.
        text: the passage's.
        spans: where names stand in it.
        statements: what it says; "X is a ..." may tell the type of X.
        own: the user's own types.
    """
    if not own.entities:
        return {}
    before: dict[str, list[str]] = defaultdict(list)
    for span in spans:
        before[span.text].append(text[max(0, span.start - _LOOKED_BACK) : span.start])
    said: dict[str, list[str]] = defaultdict(list)
    for statement in statements:
        if statement.predicate == "is":
            said[statement.subject].append(statement.object)
    types = {name: own.entity_type_of(name, before[name], said[name]) for name in names}
    return {name: entity_type for name, entity_type in types.items() if entity_type is not None}


OFFLINE_EXTRACTOR = "offline-5"
"""The rules' name and version: passages that other rules were applied to are extracted again."""


class OfflineExtractor:
    """Finds entities and typed triples by rules; deterministic and linear in the passage's length.

    Confidence is 0.9 where a sentence names subject, verb and object, 0.7 where the subject is the passage's title
    behind a pronoun or the verb stands at a distance, 0.5 where entities merely occur together, or where it is not
    clear whose verb it is. A cue of a user's own type tells a statement with 0.7 at least.

    Statements with verbs are found in English alone; elsewhere, what stands between two names that occur together.
    Names in running text are found in every script with capitals (Latin, Cyrillic, Greek, Armenian ...), and in Chinese
    and Japanese as runs of Han characters or Katakana, common nouns among them. In scripts without capitals (Arabic,
    Hebrew, Devanagari, Thai, Korean ...) they are not: there only the passage's title, quoted names, dates and numbers
    are entities, and what stands in another script; the graph still links the titles that other passages mention.

    Args:
        own: the user's own types, which are found by their cues.
    """

    def __init__(self, own: OwnTypes = NO_TYPES) -> None:
        self._own = own

    @property
    def name(self) -> str:
        """The extractor's name, with a hash of the rules of own types; stored with each passage."""
        return f"{OFFLINE_EXTRACTOR}+{self._own.rules}" if self._own.rules else OFFLINE_EXTRACTOR

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        """Return the entities and triples of a passage; the name in its title is always an entity.

        ``notes`` counts ``untyped`` triples (no cue told their type), ``self_reference`` (subject and object were one
        name, dropped), ``pronoun`` (one of them was a pronoun that stands for no known name, dropped), ``repeated``
        (said twice, kept once) and ``overlong_name`` (capitalised runs dropped).
        """
        topic = Topic(passage.title, passage.text)
        scan = scan_entities(passage.text, topic.name, self._own.shapes)
        statements: list[Statement] = []
        names = [topic.name, *(span.text for span in scan.spans), *title_names(topic.name)]
        names.extend(filter(None, map(governed_name, names)))
        names.extend(filter(None, (year_in(span.text) for span in scan.spans if span.kind is SpanKind.DATE)))
        pairs = {span: key_values(passage.text, *span) for span in scan.sentences}
        statements.extend(pair_statements(filter(None, pairs.values()), topic.name, passage.text, scan.spans))
        prose = replace(scan, sentences=tuple(span for span in scan.sentences if not pairs[span]))
        for items in sentence_items(prose, passage.text):
            joined, places = joined_places(items, passage.text)
            names.extend(place for place, _ in places)
            read = SentenceReader(passage.text, joined, topic).read()
            statements.extend(read)
            statements.extend(cue_statements(passage.text, joined, topic.name, read, self._own))
            statements.extend(Statement(place, "located in", region, LIKELY) for place, region in places)
        defined = [*definitions(passage.text, prose.sentences), *acronyms(passage.text)]
        names.extend(statement.subject for statement in defined)
        statements.extend(defined)
        statements.extend(Statement(topic.name, "also known as", alias, EXPLICIT) for alias in topic.aliases)
        notes = Counter({"overlong_name": scan.overlong_names})
        unknown = {name for each in statements for name in (each.subject, each.object) if _is_pronoun(name)}
        unknown -= {topic.name}
        about = [each for each in statements if not {each.subject, each.object} & unknown]
        notes["pronoun"] = len(statements) - len(about)
        triples = _typed(about, notes, self._own)
        entities = _distinct(name for name in names if name == topic.name or not _is_pronoun(name))
        types = entity_types_of(entities, passage.text, scan.spans, about, self._own)
        return Extraction(entities, triples, self.name, {reason: n for reason, n in notes.items() if n}, types=types)


def _is_pronoun(name: str) -> bool:
    """Tell whether a name is a pronoun at the head of a sentence; in capitals alone it is a name (US, IT, WHO)."""
    return name.lower() in PRONOUNS and name != name.upper()


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """The names, each normal form once, as first spelled."""
    spelled: dict[str, str] = {}
    for name in names:
        spelled.setdefault(normalise_name(name), name)
    return tuple(name for normal, name in spelled.items() if normal)


def _typed(statements: Iterable[Statement], notes: Counter[str], own: OwnTypes) -> tuple[Triple, ...]:
    """The statements as typed triples; identical ones collapse to the highest confidence."""
    triples: dict[tuple[str, str, str, RelationType], Triple] = {}
    for statement in statements:
        parts = [normalise_name(part) for part in (statement.subject, statement.predicate, statement.object)]
        if parts[0] == parts[2]:
            notes["self_reference"] += 1
            continue
        relation, cued = type_triple(statement.subject, statement.predicate, statement.object, own)
        notes["untyped"] += not cued
        confidence = max(statement.confidence, LIKELY) if relation.is_own else statement.confidence
        triple = Triple(statement.subject, statement.predicate, statement.object, relation, confidence)
        key = (parts[0], parts[1], parts[2], relation)
        known = triples.get(key)
        notes["repeated"] += known is not None
        if known is None or known.confidence < triple.confidence:
            triples[key] = triple
    return tuple(triples.values())
