"""The state of workflow ragenta: plain, narrow, gone on from at every node, and edited only so that it fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast, get_type_hints

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from graph.errors import BadInput
from tests.workflows.ragenta_world import (
    FOLLOW_UP,
    ONE_THING,
    TWO_THINGS,
    MakeContext,
    quick_ragenta,
    ragenta_on_a_thread,
)
from tests.workflows.scripted import Scripted
from tests.workflows.traced import without_timings
from workflows.nodes.passage_judge import ONE_PASSAGE, build_passage_judge
from workflows.runtime.workflow_graph import TRANSPORT_RETRIES, WorkflowBuilder
from workflows.settings.mara import Context
from workflows.states.ragenta import (
    Found,
    JudgementRecord,
    RagentaState,
    add_found,
    add_judgements,
)

ROUND = [
    *("encode_question", "retrieve_passages", "line_up_passages", "judge_passage", "keep_passages", "write_answer"),
    *("check_claims", "plan_follow_ups", "search_follow_up", "merge_passages", "judge_passage", "keep_passages"),
    *("write_answer", "check_claims", "plan_follow_ups"),
]
"""The nodes of a question that takes a follow-up, in the order in which they run."""

COMES_BEFORE = {
    "line_up_passages": "retrieve_passages",
    "keep_passages": "judge_passage",
    "write_answer": "keep_passages",
    "check_claims": "write_answer",
    "plan_follow_ups": "check_claims",
}
"""In whose name a state is edited so that a node is next."""


def judgement(passage_id: str, question: str = ONE_THING, **changes: Any) -> JudgementRecord:
    made: Any = {"passage_id": passage_id, "number": 1, "question": question, "prediction": "", "score": 1.0}
    return cast(JudgementRecord, {**made, "judged_by": "logprobs", "kept": False, **changes})


def history(graph: Any, thread: Any) -> list[Any]:
    """The states of a thread before each of its steps, in the order in which they were taken."""
    states = list(graph.get_state_history(thread))[::-1]
    return [state for state in states if state.next and state.next != ("__start__",)]


def before(graph: Any, thread: Any, node: str, *, last: bool = False) -> Any:
    states = [state for state in history(graph, thread) if node in state.next]
    return states[-1 if last else 0]


class TestWhatAddsUp:
    def test_a_judgement_of_the_same_passage_and_question_takes_the_earlier_ones_place(self) -> None:
        first, second, other = judgement("a"), judgement("b"), judgement("a", FOLLOW_UP)
        again = judgement("a", kept=True)
        assert add_judgements([first, second], [other, again]) == [again, second, other]
        assert add_judgements([first], None) == []

    def test_what_follow_ups_find_is_appended_until_it_is_cleared(self) -> None:
        one, two = Found(follow_up=1, passages=[]), Found(follow_up=2, passages=[])
        assert add_found([one], [two]) == [one, two]
        assert add_found([one], None) == []


class TestNarrowness:
    def test_judging_gives_back_only_what_adds_up(self) -> None:
        """Passages are judged side by side: anything else that each of them wrote would be a conflict."""
        judge: Any = build_passage_judge(WorkflowBuilder(RagentaState, TRANSPORT_RETRIES, context_schema=Context))
        put_out = get_type_hints(judge.builder.output_schema)
        assert put_out.keys() == {"judgements", "timings_ms", "errors", "usage"}

    def test_what_is_streamed_of_one_passage_holds_that_passage_alone(self, ragenta_settings: MakeContext) -> None:
        asked = quick_ragenta.stream(
            {"question": ONE_THING}, context=ragenta_settings(model="offline"), stream_mode="tasks"
        )
        sent = [task["input"] for task in asked if task["name"] == "judge_passage" and "input" in task]
        assert [each["passage"]["number"] for each in sent] == [1, 2]
        for each in sent:
            assert set(each) <= get_type_hints(ONE_PASSAGE).keys()


class TestOnAThread:
    def test_nothing_of_the_last_question_is_in_the_next_ones_result(self, in_ragenta: Scripted) -> None:
        graph, thread = ragenta_on_a_thread()
        assert graph.invoke({"question": TWO_THINGS}, thread, context=in_ragenta.settings())["follow_ups"]
        second = graph.invoke({"question": ONE_THING}, thread, context=in_ragenta.settings())
        assert without_timings(second) == without_timings(in_ragenta.ask(ONE_THING).result)
        state = graph.get_state(thread).values
        assert (state["round"], state["found"], state["calls_before"], state["follow_ups"]) == (0, [], None, [])

    def test_the_state_is_plain_json_after_every_node_and_survives_the_checkpoint(self, in_ragenta: Scripted) -> None:
        graph, thread = ragenta_on_a_thread()
        graph.invoke({"question": TWO_THINGS}, thread, context=in_ragenta.settings())
        strict = JsonPlusSerializer(allowed_msgpack_modules=[])
        for snapshot in graph.get_state_history(thread):
            assert json.loads(json.dumps(snapshot.values, allow_nan=False)) == snapshot.values
            assert strict.loads_typed(strict.dumps_typed(snapshot.values)) == snapshot.values


class TestForks:
    def test_a_fork_at_any_node_gives_the_same_result(self, in_ragenta: Scripted) -> None:
        graph, thread = ragenta_on_a_thread()
        whole = graph.invoke({"question": TWO_THINGS}, thread, context=in_ragenta.settings())
        states = history(graph, thread)
        assert [state.next[0] for state in states] == ROUND
        for state in states:
            again = graph.invoke(None, state.config, context=in_ragenta.settings())
            assert without_timings(again) == without_timings(whole), state.next

    def test_a_fork_may_keep_fewer_passages_and_judges_none_of_them_again(self, in_ragenta: Scripted) -> None:
        graph, thread = ragenta_on_a_thread()
        first = graph.invoke({"question": ONE_THING}, thread, context=in_ragenta.settings(judge_floor=-5.0, n=5.0))
        assert len(first["written_from"]) == 2
        asked = len(in_ragenta.server.requests)
        at = before(graph, thread, "keep_passages")
        second = graph.invoke(None, at.config, context=in_ragenta.settings(judge_floor=0.0))
        assert [record["kept"] for record in second["judgements"]] == [True, False]
        assert second["written_from"] == [1]
        assert {request.role for request in in_ragenta.server.requests[asked:]} == {"final predictor", "claim judge"}


class TestEdits:
    """An edit of a state is refused by name where no node can go on from it."""

    @pytest.fixture
    def done(self, ragenta_settings: MakeContext) -> tuple[Any, Any, Callable[..., Any]]:
        graph, thread = ragenta_on_a_thread()
        settings = ragenta_settings(model="offline")
        graph.invoke({"question": ONE_THING}, thread, context=settings)

        def go_on(node: str, edit: dict[str, Any]) -> Any:
            fork = graph.update_state(before(graph, thread, node).config, edit, as_node=COMES_BEFORE[node])
            return graph.invoke(None, fork, context=settings)

        return graph, thread, go_on

    def test_what_does_not_fit_is_named(self, done: tuple[Any, Any, Callable[..., Any]]) -> None:
        for node, edit, reason in [
            ("line_up_passages", {"passages": [{"id": "marn"}]}, r"passages\.0\.number is missing"),
            ("keep_passages", {"judgements": [{"passage_id": "marn", "question": "?"}]}, "judgements.*is missing"),
            (
                "keep_passages",
                {"judgements": [judgement("marn", score="high")]},
                r"judgements\.\d\.score: Input should be a valid number",
            ),
            *(
                (
                    "keep_passages",
                    {"judgements": [judgement("marn", score=score)]},
                    r"judgements\.\d\.score: Input should be a finite number",
                )
                for score in (float("nan"), float("inf"), float("-inf"))
            ),
            ("keep_passages", {"found": [{"follow_up": 1}]}, r"found\.0\.passages is missing"),
            ("write_answer", {"kept": ["first"]}, r"kept\.0: Input should be a valid integer"),
            ("write_answer", {"draft": {"text": "So."}}, r"draft\.cited is missing"),
            ("check_claims", {"written_from": [1, 77]}, "written from passages that this run cannot see"),
            ("plan_follow_ups", {"follow_ups": [{"question": "?"}]}, r"follow_ups\.0\.component is missing"),
        ]:
            with pytest.raises(BadInput, match=reason):
                done[2](node, edit)

    def test_a_number_that_no_passage_has_is_not_shown_to_anyone(
        self, done: tuple[Any, Any, Callable[..., Any]]
    ) -> None:
        result = done[2]("write_answer", {"kept": [1, 77]})
        assert result["written_from"] == [1]
        (error,) = result["errors"]
        assert (error["node"], error["kind"]) == ("write_answer", "UnknownEntries")
        assert error["message"].startswith("1 entries of the state name nothing")
