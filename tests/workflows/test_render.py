"""What the command line prints of a result."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from workflows.render import answer


def shown(more: Mapping[str, Any] | None = None, **passage: Any) -> str:
    """Return what is printed of an answer that cites one passage, or of a result that differs in ``more``."""
    hit = {
        "number": 1,
        "id": "p1",
        "title": "",
        "text": "Karv lies in Ostra.",
        "source": "",
        "metadata": {},
        "score": 1.0,
        **passage,
    }
    result: dict[str, Any] = {
        "answer": "Karv lies in Ostra. [1]",
        "citations": [{"number": 1, "passage": "p1"}],
        "passages": [hit],
        "facts": [],
        "relation_factors": None,
        "ranked_by": "dense",
        "walk": None,
        "errors": [],
        "models": {"chat": "offline"},
        "timings_ms": {"retrieve_passages": 1.0},
        "model_calls": 0,
        **(more or {}),
    }
    output = io.StringIO()
    answer(Console(file=output, width=100), result)
    return output.getvalue()


@pytest.mark.parametrize(
    ("passage", "line"),
    [
        ({}, "● [1] p1"),
        ({"title": "Karv", "source": "towns.jsonl"}, "● [1] Karv p1 · towns.jsonl"),
        ({"source": "a/b.md", "metadata": {"section": "Towns > East"}}, "● [1] p1 · a/b.md · Towns > East"),
        ({"source": "c.pdf", "metadata": {"page": 3}}, "● [1] p1 · c.pdf · page 3"),
        ({"source": "c.pdf", "metadata": {"page": 3, "page_end": 4}}, "● [1] p1 · c.pdf · pages 3 to 4"),
        ({"source": "[red]x.md", "metadata": {"section": "[b]"}}, "● [1] p1 · [red]x.md · [b]"),
    ],
)
def test_a_passage_is_shown_with_where_it_stands(passage: dict[str, Any], line: str) -> None:
    assert line in shown(**passage).splitlines()


def test_of_a_refusal_no_claims_are_counted() -> None:
    """They are those of the answer that was refused: a supported one would look like a contradiction."""
    claim = {"number": 1, "text": "Karv is big.", "verdict": "supported", "kept": False}
    checked = {"claims": [claim], "claims_checked_by": "model", "coverage": "NOT ANSWERED", "components": []}
    answered = shown({**checked, "refused": False})
    refused = shown({**checked, "refused": True, "answer": "NOT IN THE PASSAGES", "citations": []})
    assert "1 of 1 claims supported (model)" in answered
    assert "claims supported" not in refused
    assert "not answered" in refused
