"""Statements that the cues of a user's own relation types make, where the reading of a sentence does not make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agents.offline.language.clauses import Item
from agents.offline.language.statements import LIKELY, UNCERTAIN, Statement
from graph.own_types import OwnTypes
from graph.taxonomy import type_triple


def cue_statements(
    text: str, items: Sequence[Item], topic: str, read: Iterable[Statement], own: OwnTypes
) -> Iterator[Statement]:
    """Yield what each cue of a sentence says of the nearest names on its two sides, in any language.

    Before a cue without a name stands the topic. A type that the sentence's own statements have already is left alone:
    they know more of its structure.

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
    known = {type_triple(one.subject, one.predicate, one.object, own)[0] for one in read}
    for start, end in own.cues_in(text, items[0].start, items[-1].end):
        before = next((item for item in reversed(names) if item.end <= start), None)
        after = next((item for item in names if item.start >= end), None)
        if after is None or own.relation_of(text[start:end]) in known:
            continue
        subject = text[before.start : before.end] if before is not None else topic
        if subject:
            certainty = LIKELY if before is not None else UNCERTAIN
            yield Statement(subject, " ".join(text[start:end].split()), text[after.start : after.end], certainty)
