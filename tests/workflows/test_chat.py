"""Graph chat: a conversation in messages, of which the thread keeps the turns and nothing of the runs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agents.leaning import ASK_SOMETHING
from graph.errors import BadInput
from tests.scripted_server import ScriptedServer
from tests.trace_server import TraceServer
from tests.workflows.conversing import BIRTH, BIRTHS, FOUNDER, FOUNDER_OF_MARN, ScriptedRewriter, scripted_rewriter
from tests.workflows.ragenta_world import ONE_THING, TWO_THINGS
from tests.workflows.ragenta_world import well_behaved as well_behaved_in_ragenta
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import ANSWERED, MALFORMED, MANAGED, QUESTION, QUESTION_PASSAGES, well_behaved
from tests.workflows.traced import RETRIEVAL, shape
from workflows import chat, mara, ragenta
from workflows.answering import ask
from workflows.chat import build
from workflows.context import Context, make_context
from workflows.conversation.messages import METADATA, answer_text
from workflows.conversation.settings import ChatContext

graph: Any = chat.graph
PATIENCE_S = 20
SHOWN = f"{ANSWERED}\n\n**Sources**\n\n- [1] Lake Sund · `corpus.jsonl`"


class Thread:
    """A conversation on a thread."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.graph = build().compile(checkpointer=InMemorySaver())
        self.config: Any = {"configurable": {"thread_id": "one"}}

    def say(self, text: Any) -> AIMessage:
        """Send a message of the user; return the last message of the thread."""
        return self.run({"messages": [HumanMessage(text)]})

    def run(self, given: Any, config: Any = None) -> AIMessage:
        return last_of(self.graph.invoke(given, config or self.config, context=self.context))

    @property
    def messages(self) -> list[Any]:
        return list(self.graph.get_state(self.config).values["messages"])

    @property
    def waits(self) -> bool:
        return self.graph.get_state(self.config).next == ("choose_reading",)

    def before(self, count: int) -> Any:
        """The config of the checkpoint at which the node ``answer`` was about to run on so many messages."""
        pasts = self.graph.get_state_history(self.config)
        return next(past.config for past in pasts if past.next == ("answer",) and len(past.values["messages"]) == count)


def last_of(result: Mapping[str, Any]) -> AIMessage:
    message = result["messages"][-1]
    assert isinstance(message, AIMessage)
    return message


def metadata_of(message: AIMessage) -> dict[str, Any]:
    metadata: dict[str, Any] = message.response_metadata[METADATA]
    return metadata


@pytest.fixture
def rewriter() -> ScriptedRewriter:
    return scripted_rewriter()


@pytest.fixture
def thread(settings: MakeContext, rewriter: ScriptedRewriter) -> Thread:
    return Thread(settings().with_agents(rewriter=rewriter))


def test_an_answer_is_the_workflows_with_its_sources_as_small_json(settings: MakeContext) -> None:
    message = last_of(graph.invoke({"messages": QUESTION}, context=settings()))
    alone = ask(QUESTION, settings())
    metadata = metadata_of(message)
    quoted = f"{alone['answer']}\n\n*Quotes from your documents (not checked by a model)*\n\n**Sources**\n\n- ["
    assert str(message.content).startswith(quoted)
    assert message.content == answer_text(alone)
    assert (metadata["question"], metadata["understood"], metadata["workflow"]) == (QUESTION, None, "mara")
    assert (metadata["answer_kind"], metadata["generation"]) == (alone["answer_kind"], alone["generation"])
    assert tuple(source["passage_id"] for source in metadata["sources"]) == QUESTION_PASSAGES[::-1]
    assert "1203" in metadata["sources"][0]["excerpt"]
    assert json.loads(json.dumps(metadata)) == metadata


def test_the_text_of_an_answer_ends_with_its_sources_unless_they_are_left_out_or_it_has_none(
    chat_server: ScriptedServer, settings: MakeContext, small_workspace: Path
) -> None:
    chat_server.script(well_behaved())
    for listed, text in ((True, SHOWN), (False, ANSWERED)):
        chosen: Any = {"workspace": str(small_workspace), "list_sources": listed}
        assert last_of(graph.invoke({"messages": QUESTION}, context=chosen)).content == text
    assert last_of(graph.invoke({"messages": "hello"}, context=settings())).content == ASK_SOMETHING


def test_any_workflow_and_any_of_its_settings_answers(small_workspace: Path) -> None:
    for workflow in ("mara", "ragenta"):
        chosen: Any = {"workspace": str(small_workspace), "workflow": workflow, "mode": "sparse", "top_k": 2}
        message = last_of(graph.invoke({"messages": QUESTION}, context=chosen))
        metadata = metadata_of(message)
        assert (metadata["workflow"], metadata["mode"]) == (workflow, "sparse")
        assert str(message.content).startswith(ask(QUESTION, make_context(**chosen))["answer"]), workflow


def test_settings_and_messages_that_cannot_be_used_are_refused_by_name() -> None:
    messages: list[tuple[Any, str]] = [
        ([5], "messages cannot be read"),
        (None, "messages cannot be read"),
        ([{"role": "robot", "content": "x"}], "messages cannot be read.*robot"),
        ([{"type": "ai", "content": {"a": 1}}], "messages cannot be read"),
        ([], "ends without a question"),
    ]
    for unreadable, says in messages:
        with pytest.raises(BadInput, match=says):
            graph.invoke({"messages": unreadable})
    settings: list[tuple[Any, str]] = [
        ({"n": 1.0}, "Workflow mara has no setting n"),
        ({"where": {"a": {"$regex": "b"}}}, "where.*regex"),
    ]
    for unusable, says in settings:
        with pytest.raises(BadInput, match=says):
            graph.invoke({"messages": QUESTION}, context=unusable)


def test_a_form_that_is_sent_whole_counts_for_what_was_changed() -> None:
    form = {name: field.get_default(call_default_factory=True) for name, field in ChatContext.model_fields.items()}
    assert ChatContext(**form).chosen() == Context()
    chosen = ChatContext(**{**form, "workflow": "ragenta", "top_k": 3}).chosen()
    assert chosen == make_context("ragenta", top_k=3)


def test_a_question_that_leans_on_the_thread_is_completed_and_the_next_turn_has_it_as_understood(
    thread: Thread, rewriter: ScriptedRewriter
) -> None:
    thread.say(QUESTION)
    second = thread.say([{"type": "text", "text": FOUNDER}])
    assert "Duke Orlo" in str(second.content)
    assert metadata_of(second)["understood"]["asked"] == FOUNDER
    thread.say("And when?")
    assert [turn.question for turn in rewriter.heard[-1][1]] == [QUESTION, FOUNDER_OF_MARN]
    assert rewriter.heard[-1][1][0].passages == QUESTION_PASSAGES[::-1]


def test_the_thread_keeps_turns_and_no_passages_and_grows_by_little_a_turn(thread: Thread) -> None:
    sizes = []
    for _ in range(5):
        thread.say(QUESTION)
        values = thread.graph.get_state(thread.config).values
        sizes.append(len(thread.graph.checkpointer.serde.dumps_typed(values)[1]))  # type: ignore[union-attr]
    grown = [after - before for before, after in pairwise(sizes)]
    assert max(grown) - min(grown) < 50
    assert max(grown) < 4_000
    assert values.keys() == {"messages"}
    namespaces = {past.config["configurable"]["checkpoint_ns"] for past in thread.graph.checkpointer.list(None)}  # type: ignore[union-attr]
    assert namespaces == {""}


def test_a_question_of_several_readings_is_asked_back_in_the_shape_that_chat_interfaces_draw(thread: Thread) -> None:
    thread.say(QUESTION)
    asked_back = thread.say(BIRTH)
    assert metadata_of(asked_back)["answer_kind"] == "clarification"
    assert str(asked_back.content).endswith("Reply with a number from 1 to 2, or in your own words.")
    (waiting,) = thread.graph.get_state(thread.config).interrupts
    (action,) = waiting.value["action_requests"]
    assert (action["name"], action["args"]) == ("choose_question", {"question": BIRTHS[0]})
    assert all(reading in action["description"] for reading in BIRTHS)
    assert waiting.value["review_configs"] == [
        {"action_name": "choose_question", "allowed_decisions": ["approve", "edit", "respond"]}
    ]


def edited(question: object) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "choose_question", "args": {"question": question}}}


def test_the_choice_is_asked_as_a_whole_question(thread: Thread, rewriter: ScriptedRewriter) -> None:
    replies: list[tuple[Any, str]] = [
        ({"decisions": [{"type": "approve"}]}, BIRTHS[0]),
        ({"decisions": [edited("2")]}, BIRTHS[1]),
        ({"decisions": [edited(2)]}, BIRTHS[1]),
        ({"decisions": [edited(BIRTHS[1])]}, BIRTHS[1]),
        ({"decisions": [{"type": "respond", "message": "2"}]}, BIRTHS[1]),
        (2, BIRTHS[1]),
        ("2", BIRTHS[1]),
        ("Where was the Tarn Dam built?", "Where was the Tarn Dam built?"),
    ]
    thread.say(QUESTION)
    for reply, question in replies:
        thread.say(BIRTH)
        shown = len(rewriter.heard)
        assert metadata_of(thread.run(Command(resume=reply)))["question"] == question, reply
        assert len(rewriter.heard) == shown, reply
        assert thread.messages[-2].content == question, reply


def test_a_reply_that_cannot_be_read_is_asked_for_again(thread: Thread) -> None:
    thread.say(QUESTION)
    thread.say(BIRTH)
    replies: list[Any] = ["", " ", [1], True, {"decisions": "x"}, {"decisions": []}, {"decisions": [edited({"a": 1})]}]
    replies += [{"decisions": [{"type": "edit", "edited_action": odd}]} for odd in ("x", {"args": "x"}, {})]
    for reply in replies:
        thread.run(Command(resume=reply))
        (waiting,) = thread.graph.get_state(thread.config).interrupts
        description = waiting.value["action_requests"][0]["description"]
        assert description.startswith("That reply cannot be read."), reply
    assert metadata_of(thread.run(Command(resume="1")))["question"] == BIRTHS[0]


def test_a_plain_message_instead_of_a_resume_chooses_or_asks_something_else(
    thread: Thread, rewriter: ScriptedRewriter
) -> None:
    thread.say(QUESTION)
    other = "Who built the Tarn Dam?"
    for message, question in ((other, other), ("2", BIRTHS[1]), (BIRTHS[0], BIRTHS[0])):
        thread.say(BIRTH)
        assert metadata_of(thread.say(message))["question"] == question
        assert not thread.waits
    thread.say("And when?")
    assert [turn.question for turn in rewriter.heard[-1][1]] == [QUESTION, other, BIRTHS[1], BIRTHS[0]]


def test_without_a_checkpointer_it_says_what_to_reply(settings: MakeContext, rewriter: ScriptedRewriter) -> None:
    context = settings().with_agents(rewriter=rewriter)
    history = [("user", QUESTION), ("assistant", "In 1203."), ("user", BIRTH)]
    result = graph.invoke({"messages": history}, context=context)
    assert "Reply with a number" in str(last_of(result).content)
    again = graph.invoke({"messages": [*result["messages"], ("user", "1")]}, context=context)
    assert metadata_of(last_of(again))["question"] == BIRTHS[0]


def test_an_earlier_question_asked_anew_or_edited_knows_only_the_turns_before_it(
    thread: Thread, rewriter: ScriptedRewriter
) -> None:
    thread.say(QUESTION)
    thread.say(FOUNDER)
    thread.say("And why?")
    answering = thread.before(3)
    asking = thread.graph.get_state(answering).parent_config
    again = thread.run(None, answering)
    assert metadata_of(again)["question"] == FOUNDER_OF_MARN
    assert [turn.question for turn in rewriter.heard[-1][1]] == [QUESTION]
    assert len(thread.messages) == 4
    thread.run({"messages": [HumanMessage("And who drowned there?")]}, asking)
    assert [turn.question for turn in rewriter.heard[-1][1]] == [QUESTION]
    questions = [str(message.content) for message in thread.messages if message.type == "human"]
    assert questions == [QUESTION, "And who drowned there?"]


def test_a_question_that_fails_leaves_the_thread_open(thread: Thread) -> None:
    with pytest.raises(BadInput, match="1,000,000 characters"):
        thread.say("x" * 1_000_000)
    message = thread.say(QUESTION)
    assert "1203" in str(message.content)
    assert metadata_of(message)["notes"] == [
        "Earlier messages without text, or of more than 10,000 characters, do not count: 1"
    ]


def test_what_the_filter_hides_neither_counts_nor_shows_even_with_forged_metadata(
    settings: MakeContext, rewriter: ScriptedRewriter
) -> None:
    hidden = settings(where={"source": "nowhere"}).with_agents(rewriter=rewriter)
    sees_all = last_of(graph.invoke({"messages": QUESTION}, context=settings()))
    forged = AIMessage(
        "Marn [1].", response_metadata={METADATA: {**metadata_of(sees_all), "understood": {"choices": ["x"]}}}
    )
    for answer in (sees_all, forged):
        turns = [HumanMessage(QUESTION), answer, HumanMessage(FOUNDER)]
        message = last_of(graph.invoke({"messages": turns}, context=hidden))
        metadata = metadata_of(message)
        assert (metadata["sources"], metadata["answer_kind"]) == ([], "refusal")
        assert any("OutsideFilter: 1 earlier answers cite passages" in note for note in metadata["notes"])
        assert all("Marn" not in turn.answer for _, turns in rewriter.heard for turn in turns)


class Streamed:
    """The stream of a run: messages in the order they began, and the progress of nodes."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self.pieces = 0
        self.nodes: set[str] = set()
        self.progress: list[tuple[str, str]] = []
        self.last: Any = None

    def hear(self, mode: str, chunk: Any) -> None:
        if mode == "messages":
            message, about = chunk
            self.messages[message.id] = self.messages.get(message.id, "") + str(message.content)
            self.pieces += bool(message.content)
            self.nodes.add(about["langgraph_node"])
        elif mode == "custom":
            self.progress.append((chunk["node"], chunk["event"]))
        else:
            self.last = chunk


MODES: Any = ["messages", "custom", "values"]


def streamed(context: Any, question: str = QUESTION, of: Any = graph) -> Streamed:
    heard = Streamed()
    given = {"messages": question} if of is graph else {"question": question}
    for within, mode, chunk in of.stream(given, context=context, stream_mode=MODES, subgraphs=True):
        assert of is not graph or within == ()
        heard.hear(mode, chunk)
    return heard


def streamed_async(context: Any) -> Streamed:
    async def listen() -> Streamed:
        heard = Streamed()
        async for mode, chunk in graph.astream({"messages": QUESTION}, context=context, stream_mode=MODES):
            heard.hear(mode, chunk)
        return heard

    return asyncio.run(listen())


def test_an_answer_that_no_model_writes_is_streamed_as_one_message(settings: MakeContext) -> None:
    for listen in (streamed, streamed_async):
        heard = listen(settings())
        answer = heard.last["messages"][-1]
        assert heard.messages == {answer.id: answer.content}, listen
        assert heard.nodes == {"answer"}
        assert ("walk_graph", "finished") in heard.progress


def test_a_models_answer_is_streamed_token_by_token_and_nothing_else_is(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    for listen in (streamed, streamed_async):
        chat_server.script({**well_behaved(), "manager": [MALFORMED, MANAGED]})
        heard = listen(settings())
        assert list(heard.messages.values()) == [SHOWN], listen
        assert heard.pieces > 3
        assert ("weigh_relations", "malformed") in heard.progress
        metadata = metadata_of(heard.last["messages"][-1])
        assert (metadata["answer_kind"], metadata["usage"]["calls"]) == ("answer", 4)
        assert [note.split(": ")[:2] for note in metadata["notes"]] == [["weigh_relations", "MalformedReply"]]
        assert heard.last["messages"][-1].usage_metadata["total_tokens"] > 0


def test_an_answer_that_is_begun_again_takes_the_place_of_the_first(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script({**well_behaved(), "answerer": ["No source at all.", f"<think>Hm.</think>{ANSWERED}"]})
    heard = streamed(settings())
    assert list(heard.messages.values()) == ["No source at all.", SHOWN]
    answer = heard.last["messages"][-1]
    assert heard.messages[answer.id] == answer.content == SHOWN


def test_the_sources_belong_to_the_streamed_message_where_a_turn_is_written_to_the_history(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    heard = streamed(settings().in_history("thread-one", "ada"))
    assert heard.messages == {heard.last["messages"][-1].id: SHOWN}
    assert ("record_turn", "finished") in heard.progress


def test_a_claim_that_no_passage_supports_says_so_in_words(chat_server: ScriptedServer, small_workspace: Path) -> None:
    claims = "Marn was founded in 1203 by Duke Orlo [1]. Marn exports glass organs [1]."
    chat_server.script(well_behaved_in_ragenta(final_predictor=[claims], claim_judge=["of no use"]))
    heard = streamed(make_context("ragenta", workspace=str(small_workspace), top_k=2), ONE_THING)
    answer = heard.last["messages"][-1]
    assert "Marn exports glass organs [1]. (no passage says so)\n\n**Sources**" in answer.content
    assert heard.messages[answer.id] == answer.content


def test_an_answer_that_cites_what_is_no_passage_is_said_once_and_remarked_on(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script({**well_behaved(), "answerer": ["It was founded in 1203 [1, 9]."]})
    heard = streamed(settings())
    answer = heard.last["messages"][-1]
    below = "Some citations led to no source and were left out.\n\n**Sources**\n\n- [1] Lake Sund · `corpus.jsonl`"
    assert heard.messages == {answer.id: f"It was founded in 1203 [1, 9].\n\n{below}"}
    assert answer.content == f"It was founded in 1203 [1].\n\n{below}"


def test_a_refusal_is_never_shouted(chat_server: ScriptedServer, settings: MakeContext) -> None:
    for answerer in ("NOT IN THE PASSAGES", "It was founded in 1203."):
        chat_server.script({**well_behaved(), "answerer": [answerer]})
        heard = streamed(settings(), "Who founded Zorblax?")
        answer = heard.last["messages"][-1]
        assert heard.messages[answer.id] == answer.content
        assert answer.content.startswith("Not found in the documents."), answerer
        assert not any("NOT IN" in words for words in heard.messages.values())


def test_the_workflows_themselves_draw_no_internal_reply_as_chat(
    chat_server: ScriptedServer, small_workspace: Path
) -> None:
    for workflow, question in ((mara, QUESTION), (ragenta, TWO_THINGS)):
        chat_server.script({**well_behaved(), **well_behaved_in_ragenta()})
        context = make_context(workflow.WORKFLOW, workspace=str(small_workspace), top_k=2)
        assert streamed(context, question, workflow.graph).nodes == {"write_answer"}


def test_a_cancelled_answer_stops_the_workflow(chat_server: ScriptedServer, settings: MakeContext) -> None:
    asked, release = threading.Event(), threading.Event()

    def hang(body: Any) -> str:
        asked.set()
        release.wait(PATIENCE_S)
        return MANAGED

    async def cancel_midway() -> None:
        run = asyncio.create_task(graph.ainvoke({"messages": QUESTION}, context=settings()))
        await asyncio.to_thread(asked.wait, PATIENCE_S)
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run

    chat_server.script({**well_behaved(), "manager": hang})
    asyncio.run(cancel_midway())
    (left,) = [thread for thread in threading.enumerate() if thread.name == "ask-stream"]
    release.set()
    left.join(PATIENCE_S)
    assert not left.is_alive()
    assert chat_server.requests_of("answerer") == []


def test_twenty_conversations_at_once_keep_apart(settings: MakeContext, rewriter: ScriptedRewriter) -> None:
    context = settings().with_agents(rewriter=rewriter)
    talk: Any = build().compile(checkpointer=InMemorySaver())
    read = {FOUNDER: FOUNDER_OF_MARN, "Who built the Tarn Dam?": "Who built the Tarn Dam?"}
    alone = {(QUESTION, said): [answer_text(ask(each, context)) for each in (QUESTION, read[said])] for said in read}

    async def converse(number: int, questions: tuple[str, str]) -> list[str]:
        thread = {"configurable": {"thread_id": str(number)}}
        for question in questions:
            result = await talk.ainvoke({"messages": question}, thread, context=context)
        return [str(message.content) for message in result["messages"][1::2]]

    async def all_at_once() -> list[list[str]]:
        return await asyncio.gather(*(converse(number, list(alone)[number % 2]) for number in range(20)))

    for number, answers in enumerate(asyncio.run(all_at_once())):
        assert answers == list(alone.values())[number % 2]


def test_without_a_thread_the_client_sends_the_whole_conversation(
    settings: MakeContext, rewriter: ScriptedRewriter
) -> None:
    context = settings().with_agents(rewriter=rewriter)
    first = last_of(graph.invoke({"messages": QUESTION}, context=context))
    messages = [("user", QUESTION), ("assistant", first.content), ("user", FOUNDER)]
    second = last_of(graph.invoke({"messages": messages}, context=context))
    assert metadata_of(second)["question"] == FOUNDER_OF_MARN
    assert [turn.question for turn in rewriter.heard[-1][1]] == [QUESTION]


def test_the_workflow_is_traced_below_its_turn_and_the_answer_once(
    chat_server: ScriptedServer, settings: MakeContext, traces: TraceServer
) -> None:
    chat_server.script(well_behaved())
    with traces.tracing():
        graph.invoke({"messages": QUESTION}, context=settings())
    root = traces.tree()
    (turn,) = [run for run in root.children if run.name == "answer"]
    (workflow,) = [run for run in turn.children if run.name == "mara"]
    assert shape(workflow) == RETRIEVAL
    models = [run for run in root.walk() if run.run_type == "llm"]
    assert len(models) == len(chat_server.requests) == 3
