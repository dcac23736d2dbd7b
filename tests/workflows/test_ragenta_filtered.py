"""A filter holds through workflow ragenta: in retrieval, in follow-ups, and where a thread is forked under another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from tests.builders import HashEmbedder
from tests.scripted_server import ScriptedServer
from tests.trace_server import TraceServer
from tests.workflows.echoes import (
    ANN,
    QUESTION,
    echo_context,
    echoing,
    hidden_in,
    publish_echoes,
    words_shown,
)
from tests.workflows.ragenta_world import quick_ragenta, ragenta_on_a_thread
from tests.workflows.small_world import on_a_thread, run
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
from workflows.runtime.resources import close_indexes
from workflows.streaming import ask_stream, event_json

REFUSED = "NOT IN THE PASSAGES"

GO_ON = {
    *("encode_question", "retrieve_facts", "retrieve_passages", "filter_facts", "weigh_relations", "seed_graph"),
    *("walk_graph", "line_up_passages", "keep_passages", "write_answer"),
}
"""Before the answer is written, a run goes on under a narrower filter with what is left."""

REFUSE = {"check_claims", "plan_follow_ups", "search_follow_up", "merge_passages", "judge_passage"}
"""Afterwards, and where passages are already on their way to the judge, it does not."""


@pytest.fixture(scope="module", autouse=True)
def hashed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        yield
    close_indexes()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_echoes(tmp_path_factory.mktemp("echoes"))


def ids(result: Mapping[str, Any]) -> set[str]:
    return {hit["id"] for hit in result["passages"]}


def history(graph: Any, thread: Any) -> list[Any]:
    states = list(graph.get_state_history(thread))[::-1]
    return [state for state in states if state.next and state.next != ("__start__",)]


def go_on(graph: Any, config: Any, context: Context) -> dict[str, Any] | str:
    """The result of a fork, or why it is refused."""
    try:
        result = graph.invoke(None, config, context=context)
    except BadInput as refused:
        return str(refused)
    assert isinstance(result, dict)
    return result


def shown_hidden(server: ScriptedServer, owner: str) -> list[list[str]]:
    """Return the words of an owner's passages in each request that tells a model any."""
    return [hidden for request in server.requests if (hidden := hidden_in(words_shown(request), owner))]


class TestOneFilter:
    def test_retrieval_and_follow_ups_see_what_is_selected_and_no_more(
        self, root: Path, chat_server: ScriptedServer
    ) -> None:
        for mode in (Mode.HYBRID, Mode.MARA):
            chat_server.script(echoing())
            result = run(echo_context(root, ANN, mode=mode, top_k=2), QUESTION, quick_ragenta).result
            assert [follow_up["outcome"] for follow_up in result["follow_ups"]] == ["found"], mode
            assert ids(result) == {"ann-1", "ann-2", "ann-3"}, mode
            assert [hit["number"] for hit in result["passages"]] == [1, 2, 3], mode
            assert hidden_in(result, "bob") == [], mode
            assert shown_hidden(chat_server, "bob") == [], mode
            assert "OutsideFilter" not in {record["kind"] for record in result["errors"]}, mode

    def test_where_nothing_is_selected_no_model_is_asked(self, root: Path, chat_server: ScriptedServer) -> None:
        for mode in (Mode.HYBRID, Mode.MARA):
            chat_server.script(echoing())
            result = run(echo_context(root, {"owner": "nobody"}, mode=mode), QUESTION, quick_ragenta).result
            assert (result["answer"], result["judge_outcome"]) == (REFUSED, "nothing supports"), mode
            assert [record["kind"] for record in result["errors"]] == ["NothingSelected"], mode
            assert chat_server.requests == [], mode

    def test_no_event_and_no_step_of_a_trace_tells_of_it(self, root: Path, chat_server: ScriptedServer) -> None:
        chat_server.script(echoing())
        with TraceServer() as server:
            with server.tracing():
                events = [event_json(event) for event in ask_stream(QUESTION, echo_context(root, ANN, mode="mara"))]
            sent = json.dumps([step.fields for step in server.tree().walk()], ensure_ascii=False)
        assert hidden_in(events, "bob") == hidden_in(sent, "bob") == []
        assert hidden_in(events, "ann")
        assert hidden_in(sent, "ann")


class TestForksUnderANarrowerOne:
    def test_nothing_hidden_is_shown_at_any_node(self, root: Path, chat_server: ScriptedServer) -> None:
        """Each reply of the first run, malformed ones included, repeats what the fork may not see."""
        graph, thread = ragenta_on_a_thread()
        chat_server.script(echoing())
        whole = graph.invoke({"question": QUESTION}, thread, context=echo_context(root, {}, mode=Mode.MARA))
        states = history(graph, thread)
        assert len(whole["follow_ups"]) == 1
        outcomes: dict[str, set[bool]] = {}
        for state in states:
            chat_server.script(echoing())
            outcome = go_on(graph, state.config, echo_context(root, ANN, mode=Mode.MARA))
            assert hidden_in(outcome, "bob") == [], state.next
            assert shown_hidden(chat_server, "bob") == [], state.next
            went_on = not isinstance(outcome, str)
            if isinstance(outcome, dict):
                assert ids(outcome) <= {"ann-1", "ann-2", "ann-3"}
                assert all(bar["judged"] <= 3 for bar in outcome["bars"])
                assert not state.values.get("written_from")
            for node in state.next:
                outcomes.setdefault(node, set()).add(went_on)
        assert {node for node, went_on in outcomes.items() if True in went_on} == {
            node for node in GO_ON if node in outcomes
        }
        assert {node for node, went_on in outcomes.items() if went_on == {False}} == REFUSE

    def test_nor_what_an_earlier_answer_was_written_from_and_the_last_one_was_not(
        self, root: Path, chat_server: ScriptedServer
    ) -> None:
        """A draft and follow-up questions stay, and may repeat a passage that has no room in the last prompt."""
        graph, thread = ragenta_on_a_thread()
        chat_server.script(echoing())
        whole = graph.invoke({"question": QUESTION}, thread, context=echo_context(root, {}))
        ann = [hit["number"] for hit in whole["passages"] if hit["id"].startswith("ann")]
        states = history(graph, thread)
        for as_node in ("write_answer", "check_claims"):
            fork = graph.update_state(states[-1].config, {"written_from": ann}, as_node=as_node)
            outcome = go_on(graph, fork, echo_context(root, ANN))
            assert isinstance(outcome, str), as_node
            assert "written from passages that this run cannot see" in outcome

    def test_nor_where_the_run_abstained(self, root: Path, chat_server: ScriptedServer) -> None:
        graph, thread = ragenta_on_a_thread()
        chat_server.script(echoing())
        strict = {"mode": Mode.MARA, "judge_floor": 50.0}
        graph.invoke({"question": QUESTION}, thread, context=echo_context(root, {}, **strict))
        (at,) = (state for state in history(graph, thread) if state.next == ("abstain",))
        assert hidden_in(at.values, "bob")
        forked = graph.invoke(None, at.config, context=echo_context(root, ANN, **strict))
        assert forked["answer"] == REFUSED
        assert hidden_in(forked, "bob") == []

    def test_nor_where_the_fallback_quotes(self, root: Path, chat_server: ScriptedServer) -> None:
        graph, thread = ragenta_on_a_thread()
        chat_server.script({**echoing(follow_up=False), "final predictor": ["Nothing is cited."]})
        graph.invoke({"question": QUESTION}, thread, context=echo_context(root, {}, mode=Mode.MARA))
        (at,) = (state for state in history(graph, thread) if state.next == ("quote_passages",))
        forked = graph.invoke(None, at.config, context=echo_context(root, ANN, mode=Mode.MARA))
        assert forked["citations"]
        assert hidden_in(forked, "bob") == []


def test_workflow_mara_that_checks_claims_shows_nothing_hidden_either(root: Path, chat_server: ScriptedServer) -> None:
    """Its claims are checked after everything else: what the answer was not written from is dropped there."""
    scripts = echoing(follow_up=False)
    chat_server.script({**scripts, "answerer": scripts["final predictor"]})
    settings = {"workspace": str(root), "check_claims": True, "filter_facts": False, "answer_passages": 1}
    graph, thread = on_a_thread()
    first = graph.invoke({"question": QUESTION}, thread, context=Context(**settings))
    (at,) = (state for state in history(graph, thread) if state.next == ("check_claims",))
    (owner, other) = ("ann", "bob") if first["passages"][0]["id"].startswith("ann") else ("bob", "ann")
    assert hidden_in(first, other)
    forked = graph.invoke(None, at.config, context=Context(**settings, where={"owner": owner}))
    assert hidden_in(forked, other) == []
    assert forked["claims"]
    with pytest.raises(BadInput, match="written from passages that this run cannot see"):
        graph.invoke(None, at.config, context=Context(**settings, where={"owner": other}))
