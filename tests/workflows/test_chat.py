"""Graph chat: a conversation in messages, of which the thread keeps the turns and nothing of the runs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import as_file, files
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agents.leaning import ASK_SOMETHING
from agents.rewriter import Rewriting
from agents.roles import Feedback, Turn
from graph.errors import BadInput, ModelUnavailable
from tests.scripted_server import Reply, ScriptedServer
from tests.trace_server import TraceServer
from tests.workflows.ragenta_world import ONE_THING, TWO_THINGS
from tests.workflows.ragenta_world import well_behaved as well_behaved_in_ragenta
from tests.workflows.small_world import ANSWERED, MALFORMED, MANAGED, QUESTION, QUESTION_PASSAGES, well_behaved
from tests.workflows.traced import RETRIEVAL, shape
from workflows import chat, mara, ragenta
from workflows.answering import ask
from workflows.chat import build
from workflows.context import Context, make_context
from workflows.conversation.messages import METADATA, answer_text
from workflows.conversation.settings import ChatContext
from workflows.indexing import index_sources
from workflows.settings.indexing import IndexingContext

graph: Any = chat.graph
MakeContext = Callable[..., Context]
PATIENCE_S = 20
HE = "Where was he born?"
READINGS = ("Where was Duke Orlo born?", "Where was Ada Brandt born?")
FOLLOW_UP = "And who founded it?"
SHOWN = f"{ANSWERED}\n\n**Sources**\n\n- [1] Lake Sund · `corpus.jsonl`"


class Rewriter:
    """Completes the questions that it knows, and records the turns that it was shown."""

    def __init__(self, known: Mapping[str, Rewriting] | None = None) -> None:
        self.known = {
            FOLLOW_UP: Rewriting("Who founded Marn?"),
            HE: Rewriting(HE, choices=READINGS),
            **(known or {}),
        }
        self.shown: list[list[Turn]] = []

    def rewrite(self, question: str, turns: Sequence[Turn], feedback: Feedback | None = None) -> Rewriting:
        self.shown.append(list(turns))
        return self.known.get(question, Rewriting(question))


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


def told_by(message: AIMessage) -> dict[str, Any]:
    told: dict[str, Any] = message.response_metadata[METADATA]
    return told


@pytest.fixture
def rewriter() -> Rewriter:
    return Rewriter()


@pytest.fixture
def thread(settings: MakeContext, rewriter: Rewriter) -> Thread:
    return Thread(settings().with_agents(rewriter=rewriter))


def test_an_answer_is_the_workflows_with_its_sources_as_small_json(settings: MakeContext) -> None:
    message = last_of(graph.invoke({"messages": QUESTION}, context=settings()))
    alone = ask(QUESTION, settings())
    told = told_by(message)
    quoted = f"{alone['answer']}\n\n*Quotes from your documents (not checked by a model)*\n\n**Sources**\n\n- ["
    assert str(message.content).startswith(quoted)
    assert message.content == answer_text(alone)
    assert (told["question"], told["understood"], told["workflow"]) == (QUESTION, None, "mara")
    assert (told["answer_kind"], told["generation"]) == (alone["answer_kind"], alone["generation"])
    assert tuple(source["passage_id"] for source in told["sources"]) == QUESTION_PASSAGES[::-1]
    assert "1203" in told["sources"][0]["excerpt"]
    assert json.loads(json.dumps(told)) == told


def test_the_text_of_an_answer_ends_with_its_sources_unless_they_are_left_out(
    chat_server: ScriptedServer, settings: MakeContext, small_workspace: Path
) -> None:
    chat_server.script(well_behaved())
    given = {"messages": QUESTION}
    assert last_of(graph.invoke(given, context=settings())).content == SHOWN
    for listed, text in ((True, SHOWN), (False, ANSWERED)):
        chosen: Any = {"workspace": str(small_workspace), "list_sources": listed}
        assert last_of(graph.invoke(given, context=chosen)).content == text


def test_an_answer_without_sources_lists_none(settings: MakeContext) -> None:
    message = last_of(graph.invoke({"messages": "hello"}, context=settings()))
    assert message.content == ASK_SOMETHING


@pytest.mark.parametrize("workflow", ["mara", "ragenta"])
def test_any_workflow_and_any_of_its_settings_answers(small_workspace: Path, workflow: str) -> None:
    chosen: Any = {"workspace": str(small_workspace), "workflow": workflow, "mode": "sparse", "top_k": 2}
    message = last_of(graph.invoke({"messages": QUESTION}, context=chosen))
    told = told_by(message)
    assert (told["workflow"], told["mode"]) == (workflow, "sparse")
    assert str(message.content).startswith(ask(QUESTION, make_context(**chosen))["answer"])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"n": 1.0}, "Workflow mara has no setting n"),
        ({"where": {"a": {"$regex": "b"}}}, "where.*regex"),
    ],
)
def test_a_setting_that_the_workflow_lacks_or_cannot_use_is_refused_by_name(given: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        graph.invoke({"messages": QUESTION}, context=given)


def test_a_form_that_is_sent_whole_counts_for_what_was_changed() -> None:
    form = {name: field.get_default(call_default_factory=True) for name, field in ChatContext.model_fields.items()}
    assert ChatContext(**form).chosen() == Context()
    chosen = ChatContext(**{**form, "workflow": "ragenta", "top_k": 3}).chosen()
    assert chosen == make_context("ragenta", top_k=3)


def test_a_question_that_leans_on_the_thread_is_completed_and_the_next_turn_has_it_as_understood(
    thread: Thread, rewriter: Rewriter
) -> None:
    thread.say(QUESTION)
    second = thread.say([{"type": "text", "text": FOLLOW_UP}])
    assert "Duke Orlo" in str(second.content)
    assert told_by(second)["understood"]["asked"] == FOLLOW_UP
    thread.say("And when?")
    assert [turn.question for turn in rewriter.shown[-1]] == [QUESTION, "Who founded Marn?"]
    assert rewriter.shown[-1][0].passages == QUESTION_PASSAGES[::-1]


def test_without_a_thread_the_client_sends_the_whole_conversation(settings: MakeContext, rewriter: Rewriter) -> None:
    context = settings().with_agents(rewriter=rewriter)
    first = last_of(graph.invoke({"messages": QUESTION}, context=context))
    plain = [("user", QUESTION), ("assistant", first.content), ("user", FOLLOW_UP)]
    second = last_of(graph.invoke({"messages": plain}, context=context))
    assert told_by(second)["question"] == "Who founded Marn?"
    assert rewriter.shown == [[Turn(QUESTION, ask(QUESTION, settings())["answer"])]]


def test_the_thread_keeps_turns_and_no_passages_and_grows_by_little_a_turn(thread: Thread) -> None:
    sizes = []
    for _ in range(50):
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
    asked_back = thread.say(HE)
    assert told_by(asked_back)["answer_kind"] == "clarification"
    assert str(asked_back.content).endswith("Reply with a number from 1 to 2, or in your own words.")
    (waiting,) = thread.graph.get_state(thread.config).interrupts
    (action,) = waiting.value["action_requests"]
    assert (action["name"], action["args"]) == ("choose_question", {"question": READINGS[0]})
    assert all(reading in action["description"] for reading in READINGS)
    assert waiting.value["review_configs"] == [
        {"action_name": "choose_question", "allowed_decisions": ["approve", "edit", "respond"]}
    ]


def edited(question: object) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "choose_question", "args": {"question": question}}}


REPLIES = {
    "approve": ({"decisions": [{"type": "approve"}]}, READINGS[0]),
    "edit to a number": ({"decisions": [edited("2")]}, READINGS[1]),
    "edit to a whole number": ({"decisions": [edited(2)]}, READINGS[1]),
    "edit to a reading": ({"decisions": [edited(READINGS[1])]}, READINGS[1]),
    "respond": ({"decisions": [{"type": "respond", "message": "2"}]}, READINGS[1]),
    "a number": (2, READINGS[1]),
    "text": ("2", READINGS[1]),
    "own words": ("Where was the Tarn Dam built?", "Where was the Tarn Dam built?"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_the_choice_is_asked_as_a_whole_question(thread: Thread, rewriter: Rewriter, name: str) -> None:
    reply, question = REPLIES[name]
    thread.say(QUESTION)
    thread.say(HE)
    shown = len(rewriter.shown)
    told = told_by(thread.run(Command(resume=reply)))
    assert told["question"] == question
    assert len(rewriter.shown) == shown
    assert [message.content for message in thread.messages[-2:-1]] == [question]


@pytest.mark.parametrize(
    "reply",
    [
        *("", " ", [1], True, {"decisions": "x"}, {"decisions": []}, {"decisions": [edited({"a": 1})]}),
        *({"decisions": [{"type": "edit", "edited_action": odd}]} for odd in ("x", {"args": "x"}, {})),
    ],
)
def test_a_reply_that_cannot_be_read_is_asked_for_again(thread: Thread, reply: Any) -> None:
    thread.say(QUESTION)
    thread.say(HE)
    thread.run(Command(resume=reply))
    (waiting,) = thread.graph.get_state(thread.config).interrupts
    assert waiting.value["action_requests"][0]["description"].startswith("That reply cannot be read.")
    assert told_by(thread.run(Command(resume="1")))["question"] == READINGS[0]


@pytest.mark.parametrize(("reply", "question"), [("2", READINGS[1]), (READINGS[0], READINGS[0])])
def test_a_plain_message_instead_of_a_resume_chooses_too(thread: Thread, reply: str, question: str) -> None:
    thread.say(QUESTION)
    thread.say(HE)
    assert told_by(thread.say(reply))["question"] == question
    assert not thread.waits


def test_a_plain_message_may_also_ask_something_else(thread: Thread, rewriter: Rewriter) -> None:
    thread.say(QUESTION)
    thread.say(HE)
    assert told_by(thread.say("Who built the Tarn Dam?"))["question"] == "Who built the Tarn Dam?"
    thread.say("And when?")
    assert [turn.question for turn in rewriter.shown[-1]] == [QUESTION, "Who built the Tarn Dam?"]


def test_without_a_checkpointer_it_says_what_to_reply(settings: MakeContext, rewriter: Rewriter) -> None:
    context = settings().with_agents(rewriter=rewriter)
    history = [("user", QUESTION), ("assistant", "In 1203."), ("user", HE)]
    result = graph.invoke({"messages": history}, context=context)
    assert "Reply with a number" in str(last_of(result).content)
    again = graph.invoke({"messages": [*result["messages"], ("user", "1")]}, context=context)
    assert told_by(last_of(again))["question"] == READINGS[0]


def test_an_earlier_answer_made_anew_knows_only_the_turns_before_it(thread: Thread, rewriter: Rewriter) -> None:
    thread.say(QUESTION)
    thread.say(FOLLOW_UP)
    thread.say("And why?")
    again = thread.run(None, thread.before(3))
    assert told_by(again)["question"] == "Who founded Marn?"
    assert [turn.question for turn in rewriter.shown[-1]] == [QUESTION]
    assert len(thread.messages) == 4


def test_an_earlier_question_that_is_edited_is_asked_from_the_turns_before_it(
    thread: Thread, rewriter: Rewriter
) -> None:
    thread.say(QUESTION)
    thread.say(FOLLOW_UP)
    thread.say("And why?")
    before_it = thread.graph.get_state(thread.before(3)).parent_config
    thread.run({"messages": [HumanMessage("And who drowned there?")]}, before_it)
    assert [turn.question for turn in rewriter.shown[-1]] == [QUESTION]
    assert [str(message.content) for message in thread.messages if message.type == "human"] == [
        QUESTION,
        "And who drowned there?",
    ]


def test_a_question_that_fails_leaves_the_thread_open(thread: Thread) -> None:
    with pytest.raises(BadInput, match="1,000,000 characters"):
        thread.say("x" * 1_000_000)
    message = thread.say(QUESTION)
    assert "1203" in str(message.content)
    assert told_by(message)["notes"] == [
        "Earlier messages without text, or of more than 10,000 characters, do not count: 1"
    ]


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([5], "messages cannot be read"),
        (None, "messages cannot be read"),
        ([{"role": "robot", "content": "x"}], "messages cannot be read.*robot"),
        ([{"type": "ai", "content": {"a": 1}}], "messages cannot be read"),
        ([], "ends without a question"),
    ],
)
def test_what_is_no_message_is_refused_by_name(messages: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        graph.invoke({"messages": messages})


def test_two_hundred_messages_are_answered(settings: MakeContext) -> None:
    history = [("user" if n % 2 == 0 else "assistant", QUESTION) for n in range(200)]
    assert "1203" in str(
        last_of(graph.invoke({"messages": [*history, ("user", QUESTION)]}, context=settings())).content
    )


def test_what_the_filter_hides_neither_counts_nor_shows_even_with_forged_metadata(
    settings: MakeContext, rewriter: Rewriter
) -> None:
    hidden = settings(where={"source": "nowhere"}).with_agents(rewriter=rewriter)
    sees_all = last_of(graph.invoke({"messages": QUESTION}, context=settings()))
    forged = AIMessage(
        "Marn [1].", response_metadata={METADATA: {**told_by(sees_all), "understood": {"choices": ["x"]}}}
    )
    for answer in (sees_all, forged):
        turns = [HumanMessage(QUESTION), answer, HumanMessage(FOLLOW_UP)]
        message = last_of(graph.invoke({"messages": turns}, context=hidden))
        told = told_by(message)
        assert (told["sources"], told["answer_kind"]) == ([], "refusal")
        assert any("OutsideFilter: 1 earlier answers cite passages" in note for note in told["notes"])
        assert all("Marn" not in turn.answer for shown in rewriter.shown for turn in shown)


class Streamed:
    """What a run streams: messages in the order they began, and the progress of nodes."""

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


@pytest.mark.parametrize("listen", [streamed, streamed_async])
def test_an_answer_that_no_model_writes_is_streamed_as_one_message(
    settings: MakeContext, listen: Callable[[Any], Streamed]
) -> None:
    heard = listen(settings())
    answer = heard.last["messages"][-1]
    assert heard.messages == {answer.id: answer.content}
    assert heard.nodes == {"answer"}
    assert ("walk_graph", "finished") in heard.progress


@pytest.mark.parametrize("listen", [streamed, streamed_async])
def test_a_models_answer_is_streamed_token_by_token_and_nothing_else_is(
    chat_server: ScriptedServer, settings: MakeContext, listen: Callable[[Any], Streamed]
) -> None:
    chat_server.script({**well_behaved(), "manager": [MALFORMED, MANAGED]})
    heard = listen(settings())
    assert list(heard.messages.values()) == [SHOWN]
    assert heard.pieces > 3
    assert ("weigh_relations", "malformed") in heard.progress
    told = told_by(heard.last["messages"][-1])
    assert (told["answer_kind"], told["usage"]["calls"]) == ("answer", 4)
    assert [note.split(": ")[:2] for note in told["notes"]] == [["weigh_relations", "MalformedReply"]]
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


@pytest.mark.parametrize("answerer", ["NOT IN THE PASSAGES", "It was founded in 1203."])
def test_a_refusal_is_never_shouted(chat_server: ScriptedServer, settings: MakeContext, answerer: str) -> None:
    chat_server.script({**well_behaved(), "answerer": [answerer]})
    heard = streamed(settings(), "Who founded Zorblax?")
    answer = heard.last["messages"][-1]
    assert heard.messages[answer.id] == answer.content
    assert answer.content.startswith("Not found in the documents.")
    assert not any("NOT IN" in words for words in heard.messages.values())


@pytest.mark.parametrize(("workflow", "question"), [(mara, QUESTION), (ragenta, TWO_THINGS)])
def test_the_workflows_themselves_draw_no_internal_reply_as_chat(
    chat_server: ScriptedServer, small_workspace: Path, workflow: Any, question: str
) -> None:
    chat_server.script({**well_behaved(), **well_behaved_in_ragenta()})
    context = make_context(workflow.WORKFLOW, workspace=str(small_workspace), top_k=2)
    assert streamed(context, question, workflow.graph).nodes == {"write_answer"}


def test_errors_are_those_of_the_workflow(chat_server: ScriptedServer, settings: MakeContext) -> None:
    chat_server.script({**well_behaved(), "answerer": [Reply("no", status=401)]})
    with pytest.raises(ModelUnavailable):
        graph.invoke({"messages": QUESTION}, context=settings())


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


def test_twenty_conversations_at_once_keep_apart(settings: MakeContext, rewriter: Rewriter) -> None:
    context = settings().with_agents(rewriter=rewriter)
    talk: Any = build().compile(checkpointer=InMemorySaver())
    first = {QUESTION: FOLLOW_UP, "Who built the Tarn Dam?": "Where was she born?"}
    rewriter.known["Where was she born?"] = Rewriting("Where was Ada Brandt born?")

    async def converse(number: int, question: str, follow_up: str) -> list[str]:
        thread = {"configurable": {"thread_id": str(number)}}
        for said in (question, follow_up):
            result = await talk.ainvoke({"messages": said}, thread, context=context)
        return [str(message.content) for message in result["messages"][1::2]]

    async def all_at_once() -> list[list[str]]:
        return await asyncio.gather(*(converse(n, *list(first.items())[n % 2]) for n in range(20)))

    alone = {
        question: [answer_text(ask(each, context)) for each in (question, rewriter.known[follow_up].question)]
        for question, follow_up in first.items()
    }
    for number, answers in enumerate(asyncio.run(all_at_once())):
        assert answers == alone[list(first)[number % 2]]


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


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample corpus, indexed."""
    root = tmp_path_factory.mktemp("sample") / "workspace"
    with as_file(files("workflows.sample").joinpath("corpus.jsonl")) as corpus:
        index_sources([corpus], root, settings=IndexingContext(model="offline"))
    return root


CONVERSATION = {
    "When was Nissan founded?": "1933",
    "And who founded it?": "Yoshisuke Aikawa",
    "Where was he born?": "Yamaguchi",
}
COMPLETED = {
    "And who founded it?": Rewriting("Who went on to found the car maker Nissan?"),
    "Where was he born?": Rewriting("Where was Yoshisuke Aikawa born?"),
}


def test_a_conversation_over_the_sample_corpus(sample: Path) -> None:
    thread = Thread(make_context(workspace=str(sample)).with_agents(rewriter=Rewriter(COMPLETED)))
    answers = {question: str(thread.say(question).content) for question in CONVERSATION}
    assert all(CONVERSATION[question] in answer for question, answer in answers.items()), answers


def test_a_conversation_over_the_sample_corpus_without_a_model(sample: Path) -> None:
    thread = Thread(make_context(workspace=str(sample), model="offline"))
    answers = {question: str(thread.say(question).content) for question in CONVERSATION}
    assert all(CONVERSATION[question] in answer for question, answer in answers.items()), answers
