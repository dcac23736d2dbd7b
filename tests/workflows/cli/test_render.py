"""Results as the command line prints them."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from workflows.cli.render import answer, notes


def shown(more: Mapping[str, Any] | None = None, *, verbose: bool = False, **passage: Any) -> str:
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
        "answer_kind": "answer",
        "understood": None,
        "citations": [{"number": 1, "passage": "p1"}],
        "passages": [hit],
        "facts": [],
        "relation_factors": None,
        "ranked_by": "dense",
        "walk": None,
        "errors": [],
        "models": {"chat": "offline"},
        "timings_ms": {"retrieve_passages": 1.0},
        "usage": {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "unknown": 0},
        **(more or {}),
    }
    output = io.StringIO()
    answer(Console(file=output, width=100), result, verbose=verbose)
    return output.getvalue()


def test_a_source_is_shown_by_its_title_and_its_place_and_by_its_id_where_it_has_neither() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "● [1] p1"),
        ({"title": "Karv", "source": "towns.jsonl"}, "● [1] Karv · towns.jsonl"),
        (
            {"title": "K", "source": "a/b.md", "metadata": {"section": "Towns > East"}},
            "● [1] K · a/b.md · Towns > East",
        ),
        ({"source": "c.pdf", "metadata": {"page": 3, "page_end": 4}}, "● [1] c.pdf · pages 3 to 4"),
        ({"source": "[red]x.md", "metadata": {"section": "[b]"}}, "● [1] [red]x.md · [b]"),
    ]
    for passage, line in cases:
        assert line in shown(**passage).splitlines()


def test_a_source_is_shown_by_its_first_words_without_the_signs_of_its_lines() -> None:
    lines = shown(verbose=True, title="Karv", source="towns.jsonl").splitlines()
    assert "● [1] Karv · p1 · towns.jsonl" in lines
    assert "      Karv Karv lies in Ostra. It is old." in shown(
        text="# Karv\n\n- Karv lies in **Ostra**.\n> It is old."
    )
    assert len(shown(text="Karv " * 100_000)) < 1_000


def test_cited_passages_are_listed_and_of_a_refusal_the_nearest() -> None:
    hit = {"title": "", "text": "", "source": "", "metadata": {}}
    hits = [{**hit, "number": number, "id": f"p{number}"} for number in range(1, 11)]
    cited = [{"number": number, "passage": f"p{number}"} for number in (2, 7, 10)]
    result = {"passages": hits, "citations": cited, "answer": "It is so. [2] [7] [10]"}
    listed = [line for line in shown(result).splitlines() if re.search(r"\] p\d+$", line)]
    assert listed == ["● [2] p2", "● [7] p7", "● [10] p10"]
    assert len([line for line in shown(result, verbose=True).splitlines() if "] p" in line]) == 7
    refusal = {"answer": "NOT IN THE PASSAGES", "answer_kind": "refusal", "refused": True}
    lines = shown({"passages": hits, "citations": [], **refusal}).splitlines()
    assert lines[0] == "Not found in the documents."
    assert [line for line in lines if line.startswith("- ")] == ["- [1] p1", "- [2] p2", "- [3] p3"]


BAR = {"question": "Where?", "judged": 8, "kept": 1, "tau": -3.464, "sigma": 1.253, "bar": -4.09, "floor": 0.0}
FACT = {"subject": "Karv", "predicate": "lies in", "object": "Ostra", "kept": True}
INWARD: dict[str, Any] = {
    "bars": [BAR],
    "facts": [FACT],
    "relation_factors": {"entity_entity": {"SPATIAL": 1.0}},
    "ranked_by": "walk",
    "walk": {"engine": "push"},
    "errors": [{"node": "filter_facts", "kind": "MalformedReply", "attempt": 2, "message": "The reply is empty"}],
}
"""The inner working of a run."""


def test_the_answer_comes_first_and_inner_numbers_only_with_verbose() -> None:
    inner = ["· p1", "τ -3.46, σ 1.25", "facts: Karv lies in Ostra", "β: SPATIAL 1.00", "ranked by walk (push)"]
    inner += ["filter_facts (attempt 2): "]
    quiet, verbose = shown(INWARD, title="Karv"), shown(INWARD, verbose=True, title="Karv")
    assert [part for part in inner if part not in verbose] == []
    assert [part for part in inner if part in quiet] == []
    assert quiet.splitlines()[0] == verbose.splitlines()[0] == "Karv lies in Ostra. [1]"
    assert "The reply is empty" in quiet, "what went wrong is told either way"
    assert "answered by offline; --verbose tells" in quiet


def test_it_says_who_answered_if_anybody_did() -> None:
    for chat, kind, origin in [
        ("offline", "evidence", "evidence, no model configured"),
        ("offline", "refusal", "no evidence, no model configured"),
        ("some-model", "answer", "answered by some-model"),
        ("some-model", "evidence", "evidence, model some-model"),
    ]:
        assert f"{origin}; --verbose tells" in shown({"models": {"chat": chat}, "answer_kind": kind})


def test_of_a_refusal_no_claims_are_counted() -> None:
    """They are those of the answer that was refused: a supported one would look like a contradiction."""
    claim = {"number": 1, "text": "Karv is big.", "verdict": "supported", "kept": False}
    checked = {"claims": [claim], "claims_checked_by": "model", "coverage": "NOT ANSWERED", "components": []}
    answered = shown({**checked, "refused": False})
    nothing = {"answer": "NOT IN THE PASSAGES", "answer_kind": "refusal", "citations": []}
    refused = shown({**checked, "refused": True, **nothing})
    assert "1 of 1 claims supported (model)" in answered
    assert "claims supported" not in refused
    assert "not answered" in refused


def test_messages_that_differ_in_the_passage_alone_are_told_once_with_their_number() -> None:
    said = ["The time is over", "passage [1] is left unjudged", "passage [2] is left unjudged", "No passage [3]"]
    errors = [{"node": "judge", "attempt": 1, "message": message} for message in [*said, said[0]]]
    assert notes(errors) == ["The time is over (2 times)", "a passage is left unjudged (2 times)", said[3]]
    assert notes(errors, verbose=True) == [f"judge (attempt 1): {message}" for message in [*said, said[0]]]
