"""The page on RAGentA counts the calls of a model as the workflow makes them."""

from __future__ import annotations

from tests.docs.pages import ROOT, read, table
from workflows.nodes.follow_up_budget import CALLS_A_PASSAGE, CALLS_AT_THE_END
from workflows.settings.ragenta import RagentaContext

PAGE = read(ROOT / "docs" / "ragenta.md")
DEFAULTS = RagentaContext()


def test_the_calls_of_the_page_are_those_of_the_default_settings() -> None:
    calls = {row[""].replace("`", ""): row["model calls"] for row in table(PAGE, "When to use it")}
    asked = CALLS_A_PASSAGE * DEFAULTS.top_k + CALLS_AT_THE_END
    assert calls["ragenta"] == f"{asked}"
    assert calls["ragenta, mode mara"] == f"{asked + 2}"
    assert calls["follow-ups, at most"] == f"{DEFAULTS.follow_ups.calls} more"
