"""A user's own types in a text: statements that cues make beside those of the sentence's reading; types of names."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from agents.offline.language.clauses import Item
from agents.offline.language.entities import EntitySpan
from agents.offline.language.statements import LIKELY, UNCERTAIN, Statement
from graph.own_types import LONGEST_CUE, OwnTypes
from graph.taxonomy import type_triple

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
    found = {name: own.entity_type_of(name, before[name], said[name]) for name in names}
    return {name: entity_type for name, entity_type in found.items() if entity_type is not None}
