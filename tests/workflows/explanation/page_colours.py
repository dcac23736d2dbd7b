"""The colours that a written page ends up with, read as a browser reads its style: what comes later wins."""

from __future__ import annotations

import re

from tests.workflows.explanation.made_up import explanation
from workflows.explanation.page import render_page

_ROOT = re.compile(r":root[^{]*\{([^}]*)\}")
_DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root:not\(\.printing\) \{[^}]*\}\s*\}")
_COLOUR = re.compile(r"--([\w-]+): (#[0-9a-f]{6})")


def page_colours() -> dict[str, dict[str, str]]:
    """Return the colours of the light and of the dark page by name."""
    (style,) = re.findall(r"<style>(.*?)</style>", render_page(explanation()), re.DOTALL)
    light = dict(_COLOUR.findall(" ".join(_ROOT.findall(_DARK.sub("", style)))))
    return {"light": light, "dark": {**light, **dict(_COLOUR.findall(" ".join(_DARK.findall(style))))}}
