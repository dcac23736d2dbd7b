"""Every relative link and anchor of the documentation leads somewhere, every page can be reached, tables are whole."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import PAGES, ROOT, anchors, links, read, sources, tables, undefined_references


def relative_links(page: Path) -> list[str]:
    return [link for link in links(read(page)) if "://" not in link and not link.startswith("mailto:")]


def leads_nowhere(page: Path, link: str) -> bool:
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return True
    return bool(anchor) and anchor not in anchors(read(target))


def test_links_resolve() -> None:
    assert [(page.name, link) for page in PAGES for link in relative_links(page) if leads_nowhere(page, link)] == []
    assert [(page.name, label) for page in PAGES for label in undefined_references(read(page))] == []


def test_pages_that_the_code_names_exist() -> None:
    named = {name for text in sources().values() for name in re.findall(r"\bdocs/[\w-]+\.md\b", text)}
    assert "docs/settings.md" in named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, ahead = set(), [PAGES[0]]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in relative_links(page)}
        ahead += [target for target in targets & set(PAGES) if target not in reached]
    assert sorted(page.name for page in set(PAGES) - reached) == []


def test_the_rows_of_a_table_have_as_many_cells_as_its_head() -> None:
    uneven = [(page.name, rows[0]) for page in PAGES for rows in tables(read(page)) if len({*map(len, rows)}) != 1]
    assert uneven == []
