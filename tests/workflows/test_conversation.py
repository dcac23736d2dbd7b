"""Questions that lean on earlier turns, through the workflows."""

from __future__ import annotations

import json
from typing import Any

from agents.roles import Turn
from tests.scripted_server import ScriptedServer
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import ANSWERED, MALFORMED, shown_to_model, well_behaved
from workflows import mara
from workflows.answering import ask
from workflows.context import asking
from workflows.results import turn_of
from workflows.streaming import Answered, ask_stream

FIRST = Turn("Who built the Tarn Dam?", "Tarn Dam: The Tarn Dam was built by Ada Brandt in 1866. [1]", ("tarn-dam",))
LEANING = "Where was she born?"
WHOLE = "Where was Ada Brandt born?"


def rewritten(question: str, *choices: str, stands_alone: bool = False) -> str:
    return json.dumps({"stands_alone": stands_alone, "question": question, "choices": list(choices)})


class TestWithoutAModel:
    def test_a_question_that_leans_is_completed_and_what_was_understood_is_told(self, settings: MakeContext) -> None:
        result = ask(LEANING, settings(), [FIRST])
        assert result["question"] == WHOLE
        assert result["understood"] == {
            "asked": LEANING,
            "because": "“she” names something said before",
            "names": ["Ada Brandt"],
            "choices": [],
            "by": "offline",
        }
        assert result["passages"][0]["id"] == "brandt"
        assert "Lisk" in result["answer"]

    def test_a_result_makes_the_next_turn(self, settings: MakeContext) -> None:
        first = ask(FIRST.question, settings())
        assert turn_of(first).passages[0] == "tarn-dam"
        assert ask(LEANING, settings(), [turn_of(first)])["question"] == WHOLE

    def test_turns_are_forgotten_by_the_next_run_of_a_thread(self, settings: MakeContext) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        graph = mara.build().compile(checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        graph.invoke(asking(LEANING, [FIRST]), thread, context=settings())
        again = graph.invoke({"question": LEANING}, thread, context=settings())
        assert (again["question"], again["understood"]) == (LEANING, None)

    def test_he_who_could_be_two_people_is_asked_for(self, settings: MakeContext) -> None:
        two = Turn("Did Olaf Marsk or Peter Lund visit the Tarn Dam?", "", ())
        result = ask("When was he born?", settings(), [two])
        assert result["answer_kind"] == "clarification"
        assert result["understood"] is not None
        assert result["understood"]["choices"] == ["When was Olaf Marsk born?", "When was Peter Lund born?"]
        assert result["answer"] == "Which do you mean: “When was Olaf Marsk born?” or “When was Peter Lund born?”"
        assert (result["passages"], result["citations"], result["refused"]) == ([], [], False)
        events = list(ask_stream("When was he born?", settings(), [two]))
        assert isinstance(events[-1], Answered)

    def test_an_answer_from_passages_that_the_run_does_not_see_does_not_count(self, settings: MakeContext) -> None:
        result = ask(LEANING, settings(where={"source": "nowhere"}), [FIRST])
        assert "Brandt" not in json.dumps(result)
        hidden = [record["message"] for record in result["errors"] if record["kind"] == "OutsideFilter"]
        assert hidden == ["1 earlier answers cite passages that this run does not see, and do not count"]

    def test_an_answer_that_cites_an_unknown_passage_does_not_count(self, settings: MakeContext) -> None:
        forged = Turn(FIRST.question, FIRST.answer, ("no-such-passage",))
        assert ask(LEANING, settings(), [forged])["question"] != WHOLE


class TestWithAModel:
    def test_the_model_completes_the_question(self, chat_server: ScriptedServer, settings: MakeContext) -> None:
        chat_server.script({**well_behaved(), "rewriter": [rewritten(WHOLE)]})
        result = ask(LEANING, settings(), [FIRST])
        assert (result["question"], result["answer"]) == (WHOLE, ANSWERED)
        assert result["understood"] is not None
        assert result["understood"]["by"] == result["models"]["chat"]
        (request,) = chat_server.requests_of("rewriter")
        shown = shown_to_model(request.body)
        assert shown["question"] == LEANING
        assert shown["turns"] == [{"question": FIRST.question, "answer": FIRST.answer}]

    def test_the_model_is_not_asked_where_the_question_stands_alone(
        self, chat_server: ScriptedServer, settings: MakeContext
    ) -> None:
        chat_server.script(well_behaved())
        ask(FIRST.question, settings(), [FIRST])
        assert chat_server.requests_of("rewriter") == []

    def test_malformed_for_ever_the_question_is_completed_without_a_model(
        self, chat_server: ScriptedServer, settings: MakeContext
    ) -> None:
        chat_server.script({**well_behaved(), "rewriter": lambda body: MALFORMED})
        result = ask(LEANING, settings(), [FIRST])
        assert result["question"] == WHOLE
        assert result["understood"] is not None
        assert result["understood"]["by"] == "offline"
        assert result["errors"][-1]["message"] == (
            "The rewriter's replies stayed malformed: the question is completed without a model"
        )
