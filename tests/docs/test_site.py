"""The site: the committed sections are those of the code, and the generator builds it without a warning."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.site import __main__ as site
from docs.site.sections import write_committed
from tests.docs.pages import read

LOADED = re.compile(r"<(?:script|img|iframe|source)\s[^>]*?src=[\"']?([^\s\"'>]+)|<link\s[^>]*?href=[\"']?([^\s\"'>]+)")
"""What a browser loads for a page, by itself."""


def test_the_committed_sections_are_what_the_code_gives() -> None:
    for page in site.PAGES:
        assert write_committed(read(page)) == read(page), f"{page.name}: run `make drawings`"


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
