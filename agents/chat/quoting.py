"""Untrusted text in prompts: one line of JSON that nothing within it can end."""

from __future__ import annotations

import json
import re

QUOTED_MATERIAL = "Quoted material"
"""The beginning of the label."""

# What could end the quoted line, or read as markup of a chat template: written as JSON escapes.
_UNQUOTABLE = re.compile("[<\x7f-\x9f\u2028\u2029\ud800-\udfff]|```")


def quoted(label: str, value: object) -> str:
    """Return untrusted material as one line of JSON inside a labelled fence.

    ``value`` is anything JSON can hold. See `quoted_line`.
    """
    return f"{QUOTED_MATERIAL} ({label}):\n```json\n{quoted_line(value)}\n```"


def quoted_line(value: object) -> str:
    """Return a value as one line of JSON.

    Line ends, quotes, fences and the ``<`` of chat-template markup are written as JSON escapes, so no text within
    the value can end the line, the string or the fence that hold it.
    """
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNQUOTABLE.sub(lambda match: "".join(f"\\u{ord(character):04x}" for character in match[0]), line)
