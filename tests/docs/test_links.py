"""Every relative link and anchor of the documentation leads somewhere, every page can be reached, tables are whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import (
    PAGES,
    ROOT,
    anchors,
    links,
    pointers,
    read,
    strings_of_the_code,
    tables,
    undefined_references,
)


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
    assert undefined_references(read(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_to_be_seen_for_something_is_named_by_its_section(page: Path) -> None:
    """A page as a whole always exists, whether or not it says a word of that."""
    assert [link for link in pointers(read(page)) if link.partition("#")[0].endswith(".md") and "#" not in link] == []


def test_pages_that_the_code_names_exist() -> None:
    named = {name for text in strings_of_the_code() for name in re.findall(r"\bdocs/[\w-]+\.md\b", text)}
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_rows_of_a_table_have_as_many_cells_as_its_head(page: Path) -> None:
    assert [rows[0] for rows in tables(read(page)) if len({len(row) for row in rows}) != 1] == []


def test_the_check_sees_what_is_broken() -> None:
    page = "# A `b`-c (d)\n\n[x](#a-b-c-d) [y](other.md)\n\n```\n[z](no.md)\n```\n\n`[w](no.md)`\n"
    assert links(page) == ["#a-b-c-d", "other.md"]
    assert anchors(page) == {"a-b-c-d"}


@pytest.mark.parametrize(
    "form",
    [
        '[x](a.md "Title")',
        "[x](<a.md>)",
        "[x\nof three\nlines](a.md)",
        "[![picture](a.md)](a.md)",
        "see [x][one]\n\n[one]: a.md",
        '<a href="a.md">x</a>',
        "<img width=3 src='a.md'>",
    ],
)
def test_the_check_sees_every_form_of_a_link(form: str) -> None:
    assert set(links(form)) == {"a.md"}
    assert undefined_references(form) == []


def test_the_check_sees_a_pointer_to_a_page_as_a_whole_and_a_reference_to_nothing() -> None:
    assert pointers("See\n[how it works](how.md) for more, or [b](b.md); see [c](c.md#d) for it.") == [
        "how.md",
        "c.md#d",
    ]
    assert undefined_references("[x][one] and [y][two]\n\n[Two]: a.md\n") == ["one"]
