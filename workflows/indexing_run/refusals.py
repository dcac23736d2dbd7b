"""Sources of a run that could not be read: whose passages stay, and what is told where nothing could be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from graph.sources.documents import LINK_TO_NOTHING, Documents
from graph.sources.loaders.files import readable_path
from graph.sources.loaders.links import is_link_list
from graph.sources.skipped import first_of_each_reason

_SHOWN_FILES = 5
_ENTRY = re.compile(r", (?:line|row|item) [0-9]+\Z")


def refused_sources(documents: Documents, sources: Sequence[Path]) -> set[str]:
    """Return the sources that could not be read, as their passages name them: relative to the folder given.

    The passages of a list of web pages name the pages: where one could not be read whole, none of them goes.
    """
    refused = [one for one in documents.refused if not one.reason.endswith(LINK_TO_NOTHING)]
    names = {_ENTRY.sub("", one.source) for one in refused}
    for folder in map(readable_path, sources):
        prefix = f"{folder.rstrip('/')}/"
        names |= {name.removeprefix(prefix) if name != folder else "." for name in tuple(names)}
    return names | {"http:", "https:"} if any(is_link_list(Path(name)) for name in names) else names


def nothing_found(sources: Sequence[Path], documents: Documents) -> str:
    """Return what is told where no passage was found."""
    places = ", ".join(map(str, sources))
    unread = [*documents.refused, *first_of_each_reason(documents.skipped)]
    if not unread:
        return f"There is no text at {places}"
    reasons = "; ".join(each.reason.rstrip(".") for each in unread[:_SHOWN_FILES])
    more = len(documents.refused) + len(documents.skipped) - _SHOWN_FILES
    return f"Nothing at {places} could be read: {reasons}{f'; and {more:,} more files' if more > 0 else ''}"
