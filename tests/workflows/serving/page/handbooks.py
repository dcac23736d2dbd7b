"""Handbooks of two tenants in one workspace, several passages each, which explain the same names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import HashEmbedder
from tests.workflows.workspaces import use_embedder
from workflows.indexing import index_sources
from workflows.settings.indexing import IndexingContext

CHAPTERS = 6
LAMPS = "Model,Price,Colour\nTorvik lamp,40,red\nKarv stool,35,blue\nMora shelf,80,green\n"
QUESTION = "Who surveyed the Lake Sund of chapter three?"
SURVEYORS = ("Olaf Amstel", "Ida Karv", "Nils Velm", "Greta Ostra", "Ada Mohn", "Ben Brenn")


def handbook(mark: str) -> str:
    """Return a handbook whose chapters each fill a passage of their own; ``mark`` stands in each."""
    numbers = ("one", "two", "three", "four", "five", "six")
    chapters = (
        f"## Chapter {number}\n\n{surveyor} surveyed the Lake Sund of chapter {number}. **{mark}** wrote it down in"
        f" year {place}. The water of chapter {number} was cold, and the reeds stood high around the boats that year."
        for place, (number, surveyor) in enumerate(zip(numbers, SURVEYORS, strict=True))
    )
    return "# Handbook\n\n" + "\n\n".join(chapters) + "\n"


def handbooks(folder: Path) -> Path:
    """Index a handbook of each tenant, a and b, and a page and a sheet of tenant a; return the workspace."""
    root = folder / "workspace"
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        for tenant, mark in {"a": "Amstel Office", "b": "Zember Office"}.items():
            (folder / tenant).mkdir()
            (folder / tenant / f"{tenant}.md").write_text(handbook(mark), encoding="utf-8")
            index(folder / tenant, root, tenant)
        (folder / "more").mkdir()
        (folder / "more" / "amstel.md").write_text(
            "# Amstel Office\n\nThe Amstel Office is in Marn.\n", encoding="utf-8"
        )
        (folder / "more" / "lamps.csv").write_text(LAMPS, encoding="utf-8")
        index(folder / "more", root, "a")
    return root


def index(folder: Path, root: Path, tenant: str, dated: str = "", *, sync: bool = False) -> None:
    """Index a folder of a tenant's, a chapter a passage; with ``sync``, nothing else stays."""
    settings = IndexingContext(
        metadata={"tenant": tenant}, chunk_tokens=60, chunk_overlap=10, dated=dated, replace_all=sync
    )
    index_sources([folder], root, sync=sync, settings=settings)
