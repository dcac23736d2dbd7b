"""What the page shows of a turn: cited words in place whatever their script, and nothing that hides or turns text."""

from __future__ import annotations

from typing import Any

from workflows.conversation.kept import ANSWERED, FAILED, KeptTurn
from workflows.serving.page.turns import details, shown

TEXT = "𝒜 river. 青石鎮 lies on it. It is old."


def result(*marks: tuple[int | None, int | None], text: str = TEXT, title: str = "Velm") -> dict[str, Any]:
    """A result whose one passage is cited at these places."""
    hit = {"number": 1, "id": "velm", "title": title, "text": text, "source": "v.md", "metadata": {}, "score": 0.5}
    return {
        "question": "What?",
        "answer": "Old [1].",
        "answer_kind": "answer",
        "citations": [{"number": 1, "passage_id": "velm", "start": start, "end": end} for start, end in marks],
        "passages": [hit],
        "errors": [],
        "usage": {"calls": 1},
        "timings_ms": {"total": 1234.0, "write_answer": 1000.0},
        "models": {"chat": "any", "embedding": "any", "store": "embedded"},
        "workflow": "mara",
        "mode": "dense",
        "ranked_by": "dense",
        "generation": 3,
    }


def kept(given: dict[str, Any] | None, state: str = ANSWERED) -> KeptTurn:
    return KeptTurn("turn-0001", "conversation-1", 1, "What?", False, {}, state, "", given, "")


def test_a_passage_that_is_cited_as_a_whole_has_no_mark() -> None:
    (passage,) = details(kept(result((None, None))))["passages"]
    assert "<mark>" not in passage["html"]
    assert passage["cited"]


def test_a_passage_tells_whether_others_of_its_document_stand_around_it() -> None:
    given = result((0, 5))
    for chunk, around in ((0, (False, True)), (1, (True, True)), (2, (True, False))):
        given["passages"][0]["metadata"] = {"document": "d", "chunk": chunk, "chunks": 3, "start": 0, "end": 9}
        (passage,) = details(kept(given))["passages"]
        assert (passage["before"], passage["after"]) == around
        assert passage["metadata"] == {}


def test_a_passage_is_shown_with_the_heading_over_its_cited_words() -> None:
    text = "It is old.\n\n## Rivers\n\nThe Velm is long."
    given = result((text.index("The"), len(text)), text=text)
    given["passages"][0]["metadata"] = {"section": "Age", "year": 2026}
    (passage,) = details(kept(given))["passages"]
    assert (passage["place"], passage["metadata"]) == ("v.md · Rivers", {"year": 2026})


def test_names_neither_hide_nor_turn_what_is_read() -> None:
    turn = shown(kept(result((0, 1), title="\u202eevil\u200b\u0007")))
    assert turn["sources"][0]["title"] == "evil"
    assert 'aria-label="Source 1: evil"' in turn["html"]


def test_the_words_of_answers_and_passages_neither_hide_nor_turn_what_is_read() -> None:
    text = "\u202eNot\u202c old.\u200f It \u2067is\u2069."
    (passage,) = details(kept(result((0, 10), text=text)))["passages"]
    assert passage["html"] == "<p><mark>Not old.</mark> It is.</p>\n"
    turn = shown(kept({**result((0, 3), text=text), "answer": f"{text} [1]", "answer_kind": "evidence"}))
    assert turn["html"].startswith("<p>Not old. It is. <button")


def test_a_claim_that_no_passage_supports_says_so_in_words() -> None:
    turn = shown(kept({**result(), "answer": "Old. [unsupported] Long. [unsupported]"}))
    assert turn["text"] == "Old. (no passage says so) Long. (no passage says so)"
    assert turn["html"] == "<p>Old. (no passage says so) Long. (no passage says so)</p>\n"


def test_a_question_back_leaves_what_it_could_mean_to_the_buttons() -> None:
    choices, back = ["Where was Ada born?", "Where was Orlo born?"], "Which do you mean: “Where was Ada born?” or …"
    understood = {"asked": "Where was she born?", "choices": choices}
    turn = shown(kept({**result(), "answer": back, "answer_kind": "clarification", "understood": understood}))
    assert (turn["html"], turn["text"]) == ("<p>Which do you mean?</p>\n", back)
    assert turn["understood"]["choices"] == choices
    courtesy = {**result(), "answer": "Ask something.", "answer_kind": "clarification", "understood": None}
    assert shown(kept(courtesy))["html"] == "<p>Ask something.</p>\n"


def test_a_passage_without_a_title_is_called_by_its_id() -> None:
    assert shown(kept(result((0, 1), title="")))["sources"][0]["title"] == "velm"


def test_what_is_also_related_is_told_apart_and_a_source_has_its_place() -> None:
    related = {**result((0, 3)), "answer": "**Old** [1].\n\n- Older [1].", "answer_kind": "evidence"}
    turn = shown(kept(related))
    assert "<strong>Old</strong>" in turn["html"]
    assert "Older" not in turn["html"]
    assert turn["related"].startswith("<ul>\n<li>Older")
    assert [source["place"] for source in turn["sources"]] == ["v.md"]
    assert shown(kept({**related, "answer_kind": "answer"}))["related"] == ""


def test_a_refusal_says_why_and_an_answer_does_not() -> None:
    notes = [
        {"node": "weigh_relations", "kind": "MalformedReply", "message": "The reply is no JSON"},
        {"node": "write_answer", "kind": "Evidence", "message": "No evidence for 'What?': it holds no \u202edate"},
    ]
    refused = {**result(), "errors": notes, "answer": "NOT IN THE PASSAGES", "answer_kind": "refusal"}
    assert shown(kept(refused))["reasons"] == ["No evidence for 'What?': it holds no date"]
    assert shown(kept({**result(), "errors": notes}))["reasons"] == []


def test_an_answer_as_of_a_date_says_so_and_when_its_sources_were_superseded() -> None:
    given = result((0, 5))
    given["passages"][0]["superseded_at"] = "2024-02-01"
    drawn = shown(kept({**given, "as_of": "2023-06-15"}))
    assert drawn["took"] == "1.2 s, 1 model call"
    assert drawn["sources"][0]["source"] == "v.md (superseded on 2024-02-01)"
    assert details(kept({**given, "as_of": "2023-06-15"}))["about"]["As of"] == "2023-06-15"


def test_what_an_answer_took_is_told() -> None:
    assert shown(kept(result()))["took"] == "1.2 s, 1 model call"


def test_a_turn_without_a_result_has_nothing_behind_it() -> None:
    assert details(kept(None, FAILED)) == {"passages": [], "facts": [], "notes": []}
    assert "html" not in shown(kept(None, FAILED))
