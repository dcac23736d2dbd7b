"""Every relative link and anchor of the documentation leads somewhere, every page can be reached, tables are whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, links, read, tables


def relative_links(page: Path) -> list[str]:
    return [link for link in links(read(page)) if "://" not in link and not link.startswith("mailto:")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_resolve(page: Path) -> None:
    broken = []
    for link in relative_links(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or not target.is_relative_to(ROOT) or (anchor and anchor not in anchors(read(target))):
            broken.append(link)
    assert broken == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, ahead = set(), [PAGES[0]]
    while ahead:
        page = ahead.pop()
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in relative_links(page)}
        ahead += [target for target in targets & set(PAGES) if target not in reached]
    assert sorted(page.name for page in set(PAGES) - reached) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_rows_of_a_table_have_as_many_cells_as_its_head(page: Path) -> None:
    assert [rows[0] for rows in tables(read(page)) if len({len(row) for row in rows}) != 1] == []


def test_the_check_sees_what_is_broken() -> None:
    page = "# A `b`-c (d)\n\n[x](#a-b-c-d) [y](other.md)\n\n```\n[z](no.md)\n```\n\n`[w](no.md)`\n"
    assert links(page) == ["#a-b-c-d", "other.md"]
    assert anchors(page) == {"a-b-c-d"}
