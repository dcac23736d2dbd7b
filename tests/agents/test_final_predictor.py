from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from agents.final_predictor import ChatFinalPredictor, Draft, FinalAnswer, FinalPredictor
from agents.roles import REFUSAL, Answer, NumberedPassage
from graph.errors import MalformedReply
from tests.chatting import model_on
from tests.scripted_server import Reply, ReplyLike, ScriptedServer, scripted

QUESTION = "Who founded the yard at Orsund, and when did it close?"
BERG = NumberedPassage(12, "p-berg", "Nils Berg", "Berg was a builder of ships. His yard at Orsund closed in 1931.")
YARD = NumberedPassage(3, "p-yard", "Orsund", "Orsund lies by the sea. The yard at Orsund was founded by Nils Berg.")
BANK = NumberedPassage(1, "p-bank", "Orsund Bank", "The bank has two counters.")
PASSAGES = (BERG, YARD, BANK)
DRAFT = Draft("The yard at Orsund was founded by Nils Berg [3].", (3,), ("When did the yard close?",))
WHOLE = "The yard at Orsund was founded by Nils Berg [3]. It closed in 1931 [12]."


def predictor_on(server: ScriptedServer, budget: int) -> FinalPredictor:
    predictor = ChatFinalPredictor(model_on(server))
    predictor.budget_characters = budget
    return predictor


def answer(
    reply: ReplyLike, draft: Draft | None = None, passages: Sequence[NumberedPassage] = PASSAGES, budget: int = 12_000
) -> FinalAnswer:
    with scripted({"final predictor": [reply]}) as server:
        return predictor_on(server, budget).answer(QUESTION, passages, draft)


def numbers_of(final: FinalAnswer) -> list[int]:
    return [citation.number for citation in final.answer.citations]


def test_what_was_cut_and_what_leads_nowhere_is_kept_and_told_and_marks_are_taken_out() -> None:
    result = answer(Reply("It closed in 1931 [12, 4], and [9", finish_reason="length")).answer
    assert (result.text, result.dropped, result.cut_at) == ("It closed in 1931 [12], and", (4,), 800)
    assert answer(WHOLE.replace(" It", " [unsupported] It") + " [UNSUPPORTED]").answer.text == WHOLE


def test_the_prompt_it_was_written_from_goes_along_and_holds_the_passages_in_their_order() -> None:
    with scripted([WHOLE]) as server:
        predictor = ChatFinalPredictor(model_on(server))
        prompt = predictor.answer(QUESTION, PASSAGES).prompt
        nothing = predictor.answer(QUESTION, ())
    (request,) = server.requests
    assert prompt == "\n\n".join(request.text_of(place) for place in range(len(request.body["messages"])))
    passages = [{"number": p.number, "title": p.title, "text": p.text} for p in PASSAGES]
    assert json.loads(request.text_of(1).splitlines()[2]) == {"question": QUESTION, "passages": passages}
    assert REFUSAL in request.text_of(0)
    assert (nothing.answer.refused, nothing.prompt) == (True, "")


def test_a_refusal_is_recognised_and_a_malformed_answer_says_what_is_wrong_with_or_without_a_draft() -> None:
    for reply in (REFUSAL, f"<think>[3]?</think>{REFUSAL} [3]"):
        assert answer(reply).answer == Answer(REFUSAL, REFUSAL, (), refused=True)
    for reply, reason in (
        (f"It closed in 1931 [12].\n{REFUSAL} [12]", "refuses and answers"),
        ("It closed in 1931 [2].", "cites 2, but the passages are numbered 1, 3, 12"),
    ):
        for draft in (None, DRAFT):
            with pytest.raises(MalformedReply, match=reason):
                answer(reply, draft)


def test_a_draft_is_completed_and_its_citations_stay() -> None:
    assert numbers_of(answer(WHOLE, DRAFT)) == [3, 12]
    assert answer(DRAFT.text, DRAFT).answer.text == DRAFT.text
    for reply, draft, lost in (
        ("It closed in 1931 [12].", DRAFT, "no longer cites 3"),
        (REFUSAL, DRAFT, "no longer cites 3"),
        ("It closed in 1931 [12].", Draft("…", (3, 12, 1), ()), "no longer cites 1, 3"),
    ):
        with pytest.raises(MalformedReply, match=lost):
            answer(reply, draft)


def test_a_draft_that_cites_nothing_or_no_passage_at_hand_binds_nothing() -> None:
    refusal = Draft(REFUSAL, (), ("When?",))
    assert answer(REFUSAL, refusal).answer.refused
    assert numbers_of(answer("It closed in 1931 [12].", refusal)) == [12]
    elsewhere = replace(DRAFT, cited=(3, 99))
    assert numbers_of(answer(WHOLE, elsewhere))[0] == 3
    assert answer("It closed in 1931 [3, 99].", elsewhere).answer.dropped == (99,)


def test_the_material_holds_the_draft_its_follow_ups_and_first_the_passages_that_it_cites() -> None:
    draft = replace(DRAFT, text="It is a bank [1]. The yard was founded by Nils Berg [3].", cited=(1, 3))
    with scripted([draft.text]) as server:
        result = predictor_on(server, len(YARD.title + YARD.text)).answer(QUESTION, PASSAGES, draft)
    material = json.loads(server.requests[0].text_of(1).splitlines()[2])
    assert (material["draft"], material["follow_up_questions"]) == (draft.text, ["When did the yard close?"])
    assert [passage["number"] for passage in material["passages"]] == [3]
    assert numbers_of(result) == [1, 3], "they may be cited even where they do not fit"
