"""Answers and conversations as text."""

from __future__ import annotations

from typing import Any

from workflows.serving.page.turns import as_markdown, as_text

SOURCE = {"mark": 1, "title": "![x](https://evil.example/x.png)", "source": "a.md"}
ASKED = {"question": "Who\nbuilt it?", "at": 0.0, "asked_with": [], "versions": ["turn-0001"], "error": ""}
ANSWERED: dict[str, Any] = {
    **ASKED,
    **{"state": "answered", "told": "Ada [1].", "sources": [SOURCE], "understood": None},
}


def test_an_answer_has_its_sources_after_it() -> None:
    assert as_text(ANSWERED) == "Ada [1].\n\n- [1] ![x](https://evil.example/x.png) (a.md)"
    assert as_text({**ANSWERED, "sources": []}) == "Ada [1]."


def test_a_conversation_has_its_questions_as_headings_and_no_title_is_markup() -> None:
    told = as_markdown("Dams", [{**ANSWERED, "asked_with": ["Thorough"], "understood": {"question": "Who built X?"}}])
    assert told == (
        "# Dams\n\n## Who built it?\n\n*1970-01-01 00:00 UTC · Thorough*\n\nUnderstood as: Who built X?\n\n"
        "Ada [1].\n\n- [1] !\\[x\\](https://evil.example/x.png) (a.md)\n"
    )


def test_a_question_without_an_answer_says_so_with_the_words_that_there_are() -> None:
    stopped = {**ASKED, "state": "stopped", "text": "It was"}
    failed = {**ASKED, "state": "failed", "text": "", "error": "No model"}
    told = as_markdown("Dams", [stopped, failed])
    assert "It was\n\n*This question has no whole answer.*\n" in told
    assert told.endswith("\n\n*No model*\n")
