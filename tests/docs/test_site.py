"""The site: each section of the code stands on a page once, and the generator builds it without a warning."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from docs.site import __main__ as site
from docs.site.sections import SECTIONS, fill_for_the_site, main, names_in, write_committed
from graph.errors import BadInput
from tests.docs.pages import ROOT, read

LOADED = re.compile(r"<(?:script|img|iframe|source)\s[^>]*?src=[\"']?([^\s\"'>]+)|<link\s[^>]*?href=[\"']?([^\s\"'>]+)")
"""What a browser loads for a page, by itself."""


def test_the_committed_sections_are_what_the_code_gives() -> None:
    for page in site.PAGES:
        assert write_committed(read(page)) == read(page), f"{page.name}: run `make drawings`"


def test_each_section_stands_on_one_page() -> None:
    assert sorted(name for page in site.PAGES for name in names_in(read(page))) == sorted(SECTIONS)


def test_no_reference_is_committed() -> None:
    committed = {name for page in site.PAGES for name in re.findall("<!-- from the code: (.+?) -->", read(page))}
    assert {name.partition(" ")[0] for name in committed} == {"drawing", "measured"}


def test_only_the_marked_parts_are_written_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- from the code: modes -->\nold\n<!-- end -->\nafter\n", encoding="utf-8")
    main([str(page)])
    modes = SECTIONS["modes"]()
    assert read(page) == f"before\n<!-- from the code: modes -->\n\n{modes}\n<!-- end -->\nafter\n"
    assert write_committed(read(page)) == read(page)
    assert fill_for_the_site("a\n<!-- on the site: modes -->\nb\n") == f"a\n{modes}\nb\n"


def test_a_mark_of_nothing_is_bad_input() -> None:
    for write, mark in ((write_committed, "from the code: x -->\n<!-- end"), (fill_for_the_site, "on the site: x")):
        with pytest.raises(BadInput, match="'x'"):
            write(f"<!-- {mark} -->\n")


def test_the_navigation_has_four_parts_and_every_page() -> None:
    parts = yaml.safe_load(read(ROOT / "docs/site/site.yml"))["nav"]
    assert [part for each in parts for part in each] == ["Start", "How to", "Explanation", "Reference"]
    named = [page for each in parts for pages in each.values() for entry in pages for page in entry.values()]
    assert sorted(named) == sorted(site.PAGES.values())


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("zensical"), reason="the generator of the site is not installed: make docs")
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site.build(tmp_path / "site")
    built = {page.name: read(page) for page in (tmp_path / "site").glob("*.html")}
    assert {Path(name).with_suffix(".html").name for name in site.PAGES.values()} <= built.keys()
    assert (tmp_path / "site" / "search.json").exists()
    for name, page in built.items():
        assert [each for found in LOADED.findall(page) for each in found if "//" in each] == [], name
        assert "<!-- on the site" not in page, name
    assert "<code>mara graph export</code>" in built["reference.html"]
    assert "<code>name_shares</code>" in built["settings.html"]
    assert "mara+preset=seed" in built["evaluation.html"]
