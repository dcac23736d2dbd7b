"""A turn as the page shows it: cited words in place whatever their script, and nothing that hides or turns text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from workflows.conversation.kept import ANSWERED, KeptTurn
from workflows.serving.page.turns import Drawn, details, shown

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
    assert shown(kept(result((0, 1), title="")))["sources"][0]["title"] == "velm", "without a title the id"
    turn = shown(kept(result((0, 1), title="\u202eevil\u200b\u0007")))
    assert turn["sources"][0]["title"] == "evil"
    assert 'aria-label="Source 1: evil"' in turn["html"]


def test_the_words_of_answers_and_passages_neither_hide_nor_turn_what_is_read() -> None:
    text = "\u202eNot\u202c old.\u200f It \u2067is\u2069."
    (passage,) = details(kept(result((0, 10), text=text)))["passages"]
    assert passage["html"] == "<p><mark>Not old.</mark> It is.</p>\n"
    turn = shown(kept({**result((0, 3), text=text), "answer": f"{text} [1]", "answer_kind": "evidence"}))
    assert turn["html"].startswith("<p>Not old. It is.<button")


def test_a_question_back_leaves_what_it_could_mean_to_the_buttons() -> None:
    choices, back = ["Where was Ada born?", "Where was Orlo born?"], "Which do you mean: “Where was Ada born?” or …"
    understood = {"asked": "Where was she born?", "choices": choices}
    turn = shown(kept({**result(), "answer": back, "answer_kind": "clarification", "understood": understood}))
    assert (turn["html"], turn["text"]) == ("<p>Which do you mean?</p>\n", back)
    assert turn["understood"]["choices"] == choices
    courtesy = {**result(), "answer": "Ask something.", "answer_kind": "clarification", "understood": None}
    assert shown(kept(courtesy))["html"] == "<p>Ask something.</p>\n"


def test_a_refusal_says_why_in_plain_words_and_names_the_closest_passages() -> None:
    notes = [
        {"node": "weigh_relations", "kind": "MalformedReply", "message": "The reply is no JSON"},
        {"node": "write_answer", "kind": "Evidence", "message": "No evidence for 'What?': it holds no \u202edate"},
    ]
    refused = {**result(), "errors": notes, "answer": "NOT IN THE PASSAGES", "answer_kind": "refusal"}
    turn = shown(kept(refused))
    assert turn["text"].splitlines()[0] == "Not found in the documents. It holds no date."
    assert ">1</button> Velm · v.md" in turn["html"]
    assert "NOT IN" not in turn["text"] + turn["html"]


def test_an_answer_that_was_cut_can_go_on_with_twice_the_room() -> None:
    note = {"node": "write_answer", "kind": "CutAnswer", "message": "The answer stops at its limit of 320 tokens"}
    cut = {**result(), "errors": [note], "cut": True}
    turn = shown(kept(cut))
    assert (turn["remarks"], turn["goes_on"]) == (["The answer stops here: the model reached its length limit."], 640)
    assert shown(replace(kept(cut), settings={"answer_tokens": 16_000}))["goes_on"] is None
    assert (shown(kept(result()))["remarks"], shown(kept(result()))["goes_on"]) == ([], None)


def test_numbers_count_by_first_use_wherever_they_are_shown_and_stay_those_of_the_passages_beneath() -> None:
    given = result((0, 3))
    given["passages"] = [{**given["passages"][0], "number": number, "id": f"p{number}"} for number in range(1, 10)]
    given |= {
        "answer": "Old [9]. Big [7, 9].",
        "citations": [{"number": n, "start": None, "end": None} for n in (9, 7)],
    }
    turn = shown(kept(given))
    assert [(source["number"], source["mark"]) for source in turn["sources"]] == [(9, 1), (7, 2)]
    assert turn["copied"].splitlines() == ["Old [1]. Big [2][1].", "", "- [1] Velm (v.md)", "- [2] Velm (v.md)"]
    assert turn["text"] == "Old [9]. Big [7, 9]."
    found = details(kept(given))["passages"]
    assert [(each["number"], each["mark"]) for each in found[:4]] == [(9, 1), (7, 2), (1, 3), (2, 4)]


def test_words_come_with_their_blocks_and_a_window_that_comes_back_hears_all_of_them() -> None:
    said = [("token", "It *is*"), ("token", " so [4"), ("step", ""), ("token", "]."), ("void", ""), ("token", "No")]
    events = [json.dumps({"kind": kind, "text": text, "at": at}) for at, (kind, text) in enumerate(said)]
    told = [json.loads(each) for each in Drawn().told(events)]
    assert [each.get("html") for each in told[:3]] == [None, ["<p>It <em>is</em> so</p>"], None]
    assert told[-1]["html"] == ["<p>No</p>"]
    (later, *_) = map(json.loads, Drawn(3).told(events))
    assert (later["at"], later["from"], later["html"]) == (
        3,
        0,
        ['<p>It <em>is</em> so<span class="citation">1</span>.</p>'],
    )
