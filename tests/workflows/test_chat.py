"""Graph chat: a conversation in messages, of which the thread keeps the turns and nothing of the runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph.errors import BadInput
from tests.scripted_server import ScriptedServer
from tests.workflows.conversing import BIRTH, BIRTHS, FOUNDER, FOUNDER_OF_MARN, ScriptedRewriter, scripted_rewriter
from tests.workflows.ragenta_world import TWO_THINGS
from tests.workflows.ragenta_world import well_behaved as well_behaved_in_ragenta
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import ANSWERED, MALFORMED, MANAGED, QUESTION, QUESTION_PASSAGES, well_behaved
from workflows import chat, mara, ragenta
from workflows.answering import ask
from workflows.chat import build
from workflows.context import make_context
from workflows.conversation.messages import METADATA, answer_text

graph: Any = chat.graph
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


def test_settings_and_messages_that_cannot_be_used_are_refused_by_name() -> None:
    messages: list[tuple[Any, str]] = [
        ([], "ends without a question"),
    ]
    for unreadable, says in messages:
        with pytest.raises(BadInput, match=says):
            graph.invoke({"messages": unreadable})
    settings: list[tuple[Any, str]] = [
        ({"n": 1.0}, "n is not known"),
        ({"where": {"a": {"$regex": "b"}}}, "where.*on 'a' cannot be used"),
    ]
    for unusable, says in settings:
        with pytest.raises(BadInput, match=says):
            graph.invoke({"messages": QUESTION}, context=unusable)


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


def test_a_models_answer_is_streamed_token_by_token_and_nothing_else_is(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script({**well_behaved(), "manager": [MALFORMED, MANAGED]})
    heard = streamed(settings())
    assert list(heard.messages.values()) == [SHOWN]
    assert heard.pieces > 3
    assert ("weigh_relations", "malformed") in heard.progress
    metadata = metadata_of(heard.last["messages"][-1])
    assert (metadata["answer_kind"], metadata["usage"]["calls"]) == ("answer", 4)
    assert [note.split(": ")[:2] for note in metadata["notes"]] == [["weigh_relations", "MalformedReply"]]
    assert heard.last["messages"][-1].usage_metadata["total_tokens"] > 0


def test_the_workflows_themselves_draw_no_internal_reply_as_chat(
    chat_server: ScriptedServer, small_workspace: Path
) -> None:
    for workflow, question in ((mara, QUESTION), (ragenta, TWO_THINGS)):
        chat_server.script({**well_behaved(), **well_behaved_in_ragenta()})
        context = make_context(workflow.WORKFLOW, workspace=str(small_workspace), top_k=2)
        assert streamed(context, question, workflow.graph).nodes == {"write_answer"}
