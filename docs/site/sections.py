"""The sections of the pages that are read off the code, and the marks between which they stand.

``<!-- from the code: NAME -->`` up to ``<!-- end -->`` is committed, for readers of the repository: ``python -m
docs.site.sections FILE...`` writes it anew. ``<!-- on the site: NAME -->`` is filled when the site is built.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.evaluation import tables
from docs.site import references
from docs.site.drawings import WORKFLOWS, draw_workflow
from docs.site.schema_tables import edge_table, node_table
from graph.errors import BadInput

SECTIONS: Mapping[str, Callable[[], str]] = {
    **{f"drawing {name}": partial(draw_workflow, name) for name in WORKFLOWS},
    **{f"settings of {form}": partial(references.setting_tables, form) for form in references.FORMS},
    "modes": references.mode_table,
    "relations": references.relation_table,
    "nodes": node_table,
    "edges": edge_table,
    "commands": references.command_table,
    "errors": references.error_table,
    "variables": references.variable_table,
    **{f"measured {name}": partial(tables.shown, name) for name in tables.SECTIONS},
}
"""Each section by its name."""

_COMMITTED = re.compile(r"(?P<start><!-- from the code: (?P<name>[^>]+?) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
_ON_THE_SITE = re.compile(r"^<!-- on the site: (?P<name>[^>]+?) -->$", re.MULTILINE)


def section(name: str) -> str:
    """Return a section.

    Raises:
        BadInput: there is no section of that name.
    """
    if name not in SECTIONS:
        raise BadInput(f"Nothing in the code is called {name!r}", f"Name one of: {', '.join(SECTIONS)}")
    return SECTIONS[name]()


def write_committed(text: str) -> str:
    """Return a page with its committed sections as they are now."""
    return _COMMITTED.sub(lambda found: f"{found['start']}\n{section(found['name'])}\n{found['end']}", text)


def fill_for_the_site(text: str) -> str:
    """Return a page with the sections that stand on the site alone."""
    return _ON_THE_SITE.sub(lambda found: section(found["name"]), text)


def names_in(text: str) -> list[str]:
    """Return the names of the sections that a page has."""
    return [found["name"] for form in (_COMMITTED, _ON_THE_SITE) for found in form.finditer(text)]


def main(paths: Sequence[str]) -> None:
    """Write the committed sections of these files anew."""
    for path in map(Path, paths):
        before = path.read_text(encoding="utf-8")
        after = write_committed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
