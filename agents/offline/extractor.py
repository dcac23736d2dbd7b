"""The extractor without a model: names, dates and quantities, and what English sentences say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from agents.offline.language.clauses import joined_places, sentence_items
from agents.offline.language.definitions import acronyms, definitions
from agents.offline.language.entities import SpanKind, governed_name, scan_entities, title_names
from agents.offline.language.own_statements import cue_statements, entity_types_of
from agents.offline.language.sentence_reader import SentenceReader
from agents.offline.language.statements import EXPLICIT, LIKELY, Statement, Topic, pair_statements
from agents.offline.language.words import PRONOUNS
from agents.roles import Feedback
from graph.own_types import NO_TYPES, OwnTypes
from graph.schema import Extraction, Passage, RelationType, Triple
from graph.sentences import key_values
from graph.taxonomy import type_triple
from graph.text import normalise_name, year_in

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
        """Who extracts, with a hash of the rules of own types; stored with each passage."""
        return f"{OFFLINE_EXTRACTOR}+{self._own.rules}" if self._own.rules else OFFLINE_EXTRACTOR

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        """Return the entities and triples of a passage; the name in its title is always an entity.

        ``notes`` counts ``untyped`` triples (no cue told their type), ``self_reference`` (subject and object were one
        name, dropped), ``pronoun`` (one of them was a pronoun that stands for nobody known, dropped), ``repeated``
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
        nobody = {name for each in statements for name in (each.subject, each.object) if _is_pronoun(name)}
        nobody -= {topic.name}
        about = [each for each in statements if not {each.subject, each.object} & nobody]
        notes["pronoun"] = len(statements) - len(about)
        triples = _typed(about, notes, self._own)
        told = _distinct(name for name in names if name == topic.name or not _is_pronoun(name))
        types = entity_types_of(told, passage.text, scan.spans, about, self._own)
        return Extraction(told, triples, self.name, {reason: n for reason, n in notes.items() if n}, types=types)


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
    found: dict[tuple[str, str, str, RelationType], Triple] = {}
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
        known = found.get(key)
        notes["repeated"] += known is not None
        if known is None or known.confidence < triple.confidence:
            found[key] = triple
    return tuple(found.values())
