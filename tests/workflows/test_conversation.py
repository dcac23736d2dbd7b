"""Questions that lean on earlier turns, through the workflows."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

from agents.roles import Turn
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.command_line import Mara
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import ANSWERED, MALFORMED, shown_to_model, well_behaved
from workflows import mara, ragenta, retrieval
from workflows.answering import ask
from workflows.context import Context, asking, make_context
from workflows.conversation.session import Conversation
from workflows.indexing import index_sources
from workflows.results import turn_of
from workflows.runtime.resources import OFFLINE, close_indexes
from workflows.settings.indexing import IndexingContext
from workflows.streaming import Answered, ask_stream

FIRST = Turn("Who built the Tarn Dam?", "Tarn Dam: The Tarn Dam was built by Ada Brandt in 1866. [1]", ("tarn-dam",))
LEANING = "Where was she born?"
WHOLE = "Where was Ada Brandt born?"
WORKFLOWS: dict[str, Any] = {"mara": mara.graph, "ragenta": ragenta.graph, "retrieval": retrieval.graph}


def rewritten(question: str, *choices: str, stands_alone: bool = False) -> str:
    return json.dumps({"stands_alone": stands_alone, "question": question, "choices": list(choices)})


def without_timings(result: Any) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key != "timings_ms"}


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

    def test_a_question_that_stands_alone_is_answered_as_without_turns(self, settings: MakeContext) -> None:
        for mode in ("mara", "dense", "hybrid"):
            alone = ask(FIRST.question, settings(mode=mode))
            assert without_timings(ask(FIRST.question, settings(mode=mode), [FIRST])) == without_timings(alone)
            assert alone["understood"] is None, mode

    def test_every_workflow_takes_turns(self, settings: MakeContext, small_workspace: Any) -> None:
        for workflow in WORKFLOWS:
            context = make_context("ragenta" if workflow == "ragenta" else "mara", workspace=str(small_workspace))
            result = WORKFLOWS[workflow].invoke(asking(LEANING, [FIRST]), context=context)
            assert result["question"] == WHOLE, workflow

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

    def test_thanks_are_not_searched_and_later_questions_do_not_lean_on_them(self, settings: MakeContext) -> None:
        thanked = ask("Thanks!", settings(), [FIRST])
        assert (thanked["answer_kind"], thanked["answer"]) == ("clarification", "Ask a question about the documents.")
        assert (thanked["passages"], thanked["understood"]) == ([], None)
        assert ask(LEANING, settings(), [FIRST, turn_of(thanked)])["question"] == WHOLE

    def test_an_answer_from_passages_that_the_run_does_not_see_does_not_count(self, settings: MakeContext) -> None:
        result = ask(LEANING, settings(where={"source": "nowhere"}), [FIRST])
        assert "Brandt" not in json.dumps(result)
        hidden = [record["message"] for record in result["errors"] if record["kind"] == "OutsideFilter"]
        assert hidden == ["1 earlier answers cite passages that this run does not see, and do not count"]

    def test_an_answer_that_cites_an_unknown_passage_does_not_count(self, settings: MakeContext) -> None:
        forged = Turn(FIRST.question, FIRST.answer, ("no-such-passage",))
        assert ask(LEANING, settings(), [forged])["question"] != WHOLE

    def test_a_turn_of_any_length_and_half_a_surrogate_pair_are_read_as_far_as_they_go(
        self, settings: MakeContext
    ) -> None:
        long = Turn("Who built the Tarn Dam? " + "x" * 200_000, FIRST.answer + " \ud800" + "y" * 200_000, ("tarn-dam",))
        result = ask("And when?", settings(), [long] * 150)
        assert len(result["question"]) < 2_000
        assert json.loads(json.dumps(result)) == result

    def test_turns_of_another_shape_are_refused_by_name(self, settings: MakeContext) -> None:
        unreadable: list[Any] = [[{"question": 7}], "Who?", [{"answer": "x"}], [asdict(FIRST)] * 101]
        for turns in unreadable:
            with pytest.raises(ValueError, match="turns"):
                mara.graph.invoke({"question": LEANING, "turns": turns}, context=settings())


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

    def test_the_model_may_say_that_it_stands_alone(self, chat_server: ScriptedServer, settings: MakeContext) -> None:
        chat_server.script({**well_behaved(), "rewriter": [rewritten("x", stands_alone=True)]})
        result = ask(LEANING, settings(), [FIRST])
        assert (result["question"], result["understood"]) == (LEANING, None)

    def test_the_model_is_not_asked_where_the_question_stands_alone(
        self, chat_server: ScriptedServer, settings: MakeContext
    ) -> None:
        chat_server.script(well_behaved())
        ask(FIRST.question, settings(), [FIRST])
        assert chat_server.requests_of("rewriter") == []

    def test_the_model_may_ask_back(self, chat_server: ScriptedServer, settings: MakeContext) -> None:
        chat_server.script({**well_behaved(), "rewriter": [rewritten("Was A born?", "Was A born?", "Was B born?")]})
        result = ask(LEANING, settings(), [FIRST])
        assert result["answer"] == "Which do you mean: “Was A born?” or “Was B born?”"
        assert chat_server.requests_of("answerer") == []

    def test_a_malformed_reply_is_asked_for_again_with_the_reason(
        self, chat_server: ScriptedServer, settings: MakeContext
    ) -> None:
        chat_server.script({**well_behaved(), "rewriter": [rewritten(" "), rewritten(WHOLE)]})
        result = ask(LEANING, settings(), [FIRST])
        assert result["question"] == WHOLE
        assert [(record["node"], record["kind"]) for record in result["errors"]] == [
            ("rewrite_question", "MalformedReply")
        ]

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

    def test_a_refused_key_ends_the_run(self, chat_server: ScriptedServer, settings: MakeContext) -> None:
        chat_server.script({**well_behaved(), "rewriter": [Reply("no", status=401)]})
        with pytest.raises(RuntimeError, match="OPENAI_API_KEY"):
            ask(LEANING, settings(), [FIRST])


QUESTIONS = ("When was Nissan founded?", "And who founded it?", "Where was he born?")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("sample") / "workspace"
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("OPENAI_", "MARA_"))]:
            patch.delenv(name)
        with as_file(files("workflows.sample").joinpath("corpus.jsonl")) as corpus:
            index_sources([corpus], root, settings=IndexingContext(model=OFFLINE))
    yield root
    close_indexes()


def check_the_end(answers: Sequence[str], understood: Sequence[str]) -> None:
    """Check that it was 1933, Yoshisuke Aikawa, and Yamaguchi."""
    for word, answer in zip(("1933", "Aikawa", "Yamaguchi"), answers, strict=True):
        assert word in answer
    assert "Nissan" in understood[1]
    assert "Aikawa" in understood[2]


def test_a_conversation_about_the_sample_corpus_ends_right_in_python_and_at_the_command_line(
    sample: Path, mara: Mara, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = Conversation(Context(workspace=str(sample), model=OFFLINE))
    for question in QUESTIONS:
        list(conversation.ask(question))
    lines = io.TextIOWrapper(io.BytesIO("\n".join(QUESTIONS).encode()))
    monkeypatch.setattr(sys, "stdin", lines)
    done = mara("chat", "--workspace", sample, "--model", OFFLINE, "--json")
    for results in (conversation.results, [json.loads(line) for line in done.out.splitlines()]):
        check_the_end(
            [result["answer"] for result in results],
            [f"{result['question']} {(result['understood'] or {}).get('names')}" for result in results],
        )
