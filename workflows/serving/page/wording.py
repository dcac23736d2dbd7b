"""Words for visitors, who have no shell at the server."""

from __future__ import annotations

import re

_COMMAND = re.compile(r"(?:^|[.:;,]) ?[^.:;]*`mara [^`]*`[^.:;]*")


def without_commands(text: str) -> str:
    """Return a text without the clauses that name a command of `mara`."""
    return _COMMAND.sub("", text)
