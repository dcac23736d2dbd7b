"""Texts of any author in a terminal: every visible character, and none that hides or steers."""

from __future__ import annotations

import io
import json
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from rich.progress import Progress
from rich.table import Table

from graph.errors import BadInput
from workflows.cli import render
from workflows.cli.evaluate import show_summary
from workflows.output.printable import VisibleConsole, visible, visible_json

HOSTILE = (
    "\x1b[31m\x9b31m\x07\r\u200b\u200e\u200f\u202e\u2066\u061c\u2060\ufeff\u00ad\u2028\u034f\u3164\U000e0041\ud800"
)
"""Colours, a bell, zero-width characters, turns of direction, invisible letters, broken Unicode."""

STEERING = set(HOSTILE) - set("[31m")


def test_marks_that_hide_or_steer_are_left_out() -> None:
    orders = "".join(chr(0xE0000 + ord(letter)) for letter in "ignoreall")
    cases = [
        ("pay\u200cpal\u200d.com", "paypal.com"),
        ("a\u200d", "a"),
        ("\u200c\u200cم\u200c\u200cم", "مم"),
        ("x\U000e0061\U000e0062\U000e007f", "x"),
        (f"🏴{orders}\U000e007f", "🏴"),
        ("a\ufe0f\ufe01\ufe02", "a\ufe0f"),
        ("one\u2028two", "one two"),
        (f"a{HOSTILE}b", "a[31m31m \ufffdb"),
    ]
    for text, shown in cases:
        assert visible(text) == shown


def hidden(text: str) -> list[str]:
    """Characters that are never shown, whatever stands around them."""
    joiners = "\u200c\u200d"
    arabic_signs = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    return [
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and character not in "\t\n" + joiners + arabic_signs
        and not "\U000e0020" <= character <= "\U000e007f"
    ]


@given(st.text(st.one_of(st.characters(), st.sampled_from(HOSTILE + "\u200c\u200dمक🏴👩\ufe0f\U000e0061\U000e007f"))))
@example(HOSTILE)
def test_nothing_hidden_is_left_of_any_text_and_json_loses_nothing(text: str) -> None:
    assert hidden(visible(text)) == []
    shown = visible_json({text: [text]}, indent=2)
    assert hidden(shown) == []
    assert json.loads(shown) == {text: [text]}


def poisoned(value: Any) -> Any:
    """The same value with every text of it hostile, those of keys that are no field's included."""
    if isinstance(value, Mapping):
        return {key: poisoned(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [poisoned(each) for each in value]
    return f"{value}{HOSTILE}[/b]" if isinstance(value, str) else value


def test_a_console_colours_by_itself_and_shows_nothing_hidden_of_any_value() -> None:
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    for value in (HOSTILE, table, {"a": HOSTILE}):
        console = VisibleConsole(file=io.StringIO(), width=200, emoji=False, highlight=False)
        console.print(value)
        assert_visible(console.file)
    out = io.StringIO()
    VisibleConsole(file=out, force_terminal=True, color_system="standard").print("[red]a\u200fb[/]")
    assert out.getvalue() == "\x1b[31mab\x1b[0m\n"
    out = io.StringIO()
    with Progress(console=VisibleConsole(file=out, force_terminal=True, color_system=None)) as progress:
        progress.add_task(f"stage{HOSTILE}", total=1)
    assert "stage[31m31m" in out.getvalue()
    assert {"\u200f", "\u202e", "\x9b", "\x07"} & set(out.getvalue()) == set()


def assert_visible(out: Any) -> None:
    """A hostile text was printed, and none of its characters that hide or steer."""
    assert "31m" in out.getvalue()
    assert STEERING & set(out.getvalue()) == set()


PASSAGE = {"number": 1, "id": "p1", "title": "Karv", "text": "Karv lies in Ostra.", "source": "k.md", "metadata": {}}
RESULT: dict[str, Any] = {
    "question": "Where?",
    "understood": {"asked": "And there?", "because": "there", "names": ["Karv"], "choices": [], "by": "offline"},
    "answer": "Karv [1]",
    "answer_kind": "answer",
    "citations": [{"number": 1}],
    "passages": [{**PASSAGE, "metadata": {"section": "S", "page": "3"}}],
    "facts": [{"subject": "Karv", "predicate": "lies in", "object": "Ostra", "kept": True}],
    "relation_factors": None,
    "ranked_by": "dense",
    "walk": None,
    "errors": [{"node": "filter_facts", "attempt": 1, "message": "No"}],
    "models": {"chat": "offline"},
    "timings_ms": {"retrieve_passages": 1.0},
    "usage": {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "unknown": 0},
    "refused": False,
    "claims": [{"verdict": "unsupported", "kept": True, "text": "So."}],
    "claims_checked_by": "model",
    "coverage": "NOT ANSWERED",
    "components": [{"coverage": "NOT ANSWERED", "text": "Where?"}] * 2,
    "follow_ups": [{"question": "And?", "outcome": "found", "passages": [2]}],
    "bars": [{"judged": 1, "kept": 1, "tau": 1.0, "sigma": 0.0, "bar": 1.0, "floor": 0.0, "question": "Where?"}],
    "judgements": [],
    "written_from": [1],
}
PROBLEM = {"problem": "It is locked"}
FINDING = {"check": "record", "ok": False, "repairable": True, "message": "m", "examples": ["e"], "advice": "a"}
CHAT_MODEL = {"name": "n", "ok": False, "message": "m", "advice": "a"}
SUMMARY = {
    "file": "f",
    "questions": 3,
    "answered": 1,
    "evidence": 1,
    "refused": 0,
    "asked_back": 1,
    "failed": 0,
    "fallbacks": {},
    "model_calls": 0,
}


def test_a_print_of_a_result_with_any_texts_shows_nothing_hidden_and_takes_no_markup() -> None:
    removal = {"removed": ["p"], "passages": 3, "versions": 1, "workspace": "w", "relationships": PROBLEM}
    doctor = {"workspace": "w", "findings": [FINDING], "chat_model": CHAT_MODEL}
    shows: list[Callable[[VisibleConsole], object]] = [
        lambda console: render.answer(console, poisoned(RESULT), verbose=True),
        lambda console: render.answer(console, poisoned(RESULT)),
        lambda console: render.removal(console, poisoned(removal)),
        lambda console: render.fields(console, poisoned({"sources": {"a": "b"}, "names": ["a"]})),
        lambda console: render.doctor(console, poisoned(doctor)),
        lambda console: show_summary(console, poisoned({**SUMMARY, "coverage": {}})),
        lambda console: console.print(render.error(BadInput(f"m{HOSTILE}[/b]", f"h{HOSTILE}[/b]"))),
    ]
    for show in shows:
        out = io.StringIO()
        show(VisibleConsole(file=out, width=200, emoji=False, highlight=False))
        assert "[/b]" in out.getvalue()
        assert_visible(out)
