"""The changes that a run has to make: the wanted passages, compared with those that the record holds.

Passages whose source could not be read this time stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graph.schema import Passage
from graph.sources.documents import LINK_TO_NOTHING, Documents
from graph.sources.loaders.files import readable_path
from graph.sources.triples import ImportedTriples
from graph.storage.entry import content_hash, fingerprint
from graph.storage.record import Record
from graph.storage.writer import clean_extraction

_COMPARED = 5_000
"""Passages whose states are in memory at once."""

_SHOWN_FILES = 5
_ENTRY = re.compile(r", (?:line|row|item) [0-9]+\Z")


@dataclass(frozen=True, slots=True)
class Changes:
    """Ids of passages, each in one of these.

    Attributes:
        added: wanted ones that the record does not hold.
        changed: ones that it holds with another content, from another extractor, or without an extraction.
        removed: unwanted ones that it holds; none unless the others are to go.
        unchanged: ones that it holds just so.
        spared: unwanted ones whose source could not be read this time.
        reread: those of ``changed`` that it holds with the same content, from another extractor.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    spared: tuple[str, ...] = ()
    reread: tuple[str, ...] = ()

    @property
    def to_write(self) -> tuple[str, ...]:
        """The passages that are to be extracted, embedded and committed."""
        return self.added + self.changed

    def __bool__(self) -> bool:
        """Whether there is anything to write or to remove."""
        return bool(self.added or self.changed or self.removed)


def plan_changes(
    record: Record,
    passages: Mapping[str, Passage],
    extractor: str,
    imported: ImportedTriples | None,
    *,
    remove_others: bool,
    keep_sources: Collection[str] = (),
) -> Changes:
    """Compare wanted passages with the record; nothing is extracted for it.

    A passage is unchanged when the record holds its content with an extraction of the same extractor that did not
    fail; where triples are imported for it, when it holds its content with these. So a failed one is tried again.

    Args:
        record: what there is.
        passages: what is wanted, by id.
        extractor: the name of who extracts where no triples are imported.
        imported: precomputed triples.
        remove_others: whether passages that are not wanted are to go.
        keep_sources: sources that could not be read this time, files or folders: their passages stay.
    """
    added, changed, unchanged, reread = list[str](), list[str](), list[str](), list[str]()
    wanted = [*passages]
    for start in range(0, len(wanted), _COMPARED):
        page = wanted[start : start + _COMPARED]
        known = record.states(page)
        for key in page:
            if key not in known:
                added.append(key)
                continue
            passage, state = passages[key], known[key]
            extraction = imported.of(passage) if imported else None
            if extraction is not None:
                is_same = state.fingerprint == fingerprint(passage, clean_extraction(extraction))
                (unchanged if is_same else changed).append(key)
                continue
            is_same = state.content_hash == content_hash(passage) and not state.failure
            (unchanged if is_same and state.extractor == extractor else changed).append(key)
            if is_same and state.extractor != extractor:
                reread.append(key)
    sources = record.sources() if remove_others else {}
    others = sorted(key for key in sources if key not in passages)
    spared = dict.fromkeys(key for key in others if _lies_in(sources[key], keep_sources))
    return Changes(
        added=tuple(added),
        changed=tuple(changed),
        removed=tuple(key for key in others if key not in spared),
        unchanged=tuple(unchanged),
        spared=tuple(spared),
        reread=tuple(reread),
    )


def _lies_in(source: str, places: Collection[str]) -> bool:
    """Tell whether a source is one of these files, or lies in one of these folders."""
    if source in places or "." in places:
        return True
    parents = source.split("/")[:-1]
    return any("/".join(parents[:depth]) in places for depth in range(1, len(parents) + 1))


def refused_sources(documents: Documents, sources: Sequence[Path]) -> set[str]:
    """Return the sources that could not be read, as their passages name them: relative to the folder given."""
    refused = [one for one in documents.refused if not one.reason.endswith(LINK_TO_NOTHING)]
    names = {_ENTRY.sub("", one.source) for one in refused}
    for folder in map(readable_path, sources):
        prefix = f"{folder.rstrip('/')}/"
        names |= {name.removeprefix(prefix) if name != folder else "." for name in tuple(names)}
    return names


def nothing_found(sources: Sequence[Path], documents: Documents) -> str:
    """Return what is told where no passage was found."""
    places = ", ".join(map(str, sources))
    unread = [*documents.refused, *documents.skipped]
    if not unread:
        return f"There is no text at {places}"
    reasons = "; ".join(each.reason.rstrip(".") for each in unread[:_SHOWN_FILES])
    more = len(documents.refused) + len(documents.skipped) - _SHOWN_FILES
    return f"Nothing at {places} could be read: {reasons}{f'; and {more:,} more files' if more > 0 else ''}"
