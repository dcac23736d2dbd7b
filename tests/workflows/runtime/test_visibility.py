"""A filter holds through the whole run: passages outside it are never returned, named, or shown to a model."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agents.answerer import ANSWERER
from agents.judge import JUDGE
from graph.retrieve.modes import Mode
from graph.schema import entity_id
from graph.walk.settings import Engine
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace
from tests.cases import mostly_slow
from tests.scripted_server import ScriptedServer
from tests.trace_server import TraceServer
from tests.workflows.small_world import (
    ANSWERED,
    MANAGED,
    on_a_thread,
    run,
    shown_to_model,
    well_behaved,
)
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
from workflows.runtime.resources import OpenRun, close_indexes
from workflows.runtime.visibility import within_filter
from workflows.streaming import ask_stream, event_json

QUESTION = "Where does Lake Sund of Project Orlo lie, and who founded Marn in 1203?"
REFUSAL = "NOT IN THE PASSAGES"
ANN, BOB, NO_OWNER = {"owner": "ann"}, {"owner": "bob"}, {"owner": "nobody"}
NODES = ["filter_facts", "seed_graph", "walk_graph", "write_answer"]

PASSAGES = [
    passage_of("ann-1", "Lake Sund", "Lake Sund lies in Ostra, near Marn.", owner="ann", day="2020-05-31"),
    passage_of("ann-2", "Marn", "Marn was founded in 1203.", owner="ann", day="2021-01-01"),
    passage_of("bob-1", "LAKE SUND", "LAKE SUND lies in Belavia. Project Orlo drains it.", owner="bob", day="2021-05"),
    passage_of("bob-2", "Project Orlo", "Project Orlo was founded by Ida Brandt.", owner="bob", day="2019"),
    passage_of("bob-3", "Ida Brandt", "Ida Brandt was born in Karv, near Marn.", owner="bob"),
]
TRIPLES: dict[str, list[TripleParts]] = {
    "ann-1": [("Lake Sund", "lies in", "Ostra"), ("Lake Sund", "lies near", "Marn")],
    "ann-2": [("Marn", "founded in", "1203")],
    "bob-1": [("LAKE SUND", "lies in", "Belavia"), ("LAKE SUND", "LIES NEAR", "MARN")],
    "bob-2": [("Project Orlo", "founded by", "Ida Brandt"), ("Project Orlo", "drains", "LAKE SUND")],
    "bob-3": [("Ida Brandt", "born in", "Karv")],
}
ONLY = {
    "ann": ("ann-1", "ann-2", "Ostra", "1203", "Lake Sund"),
    "bob": ("bob-1", "bob-2", "bob-3", "Orlo", "LAKE SUND", "NEAR", "MARN", "Belavia", "Brandt", "Karv", "drains"),
}
"""What one owner's passages alone say, in that spelling."""


@pytest.fixture(scope="module", autouse=True)
def hashed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        yield
    close_indexes()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_workspace(tmp_path_factory.mktemp("owned") / "workspace", PASSAGES, TRIPLES).root


def context(root: Path, where: Mapping[str, Any], **changes: Any) -> Context:
    return Context(**{"workspace": str(root), "where": where, "filter_facts": False, **changes})


def text_of(result: Mapping[str, Any]) -> str:
    """All that a result says, but for the question that it repeats, whose words also stand in notes on evidence."""
    asked = {*re.findall(r"\w+", result["question"].casefold())}
    notes = [record["message"] for record in result["errors"] if record["kind"] == "Evidence"]
    noted = " ".join(word for note in notes for word in re.findall(r"\w+", note) if word.casefold() not in asked)
    others = [record for record in result["errors"] if record["kind"] != "Evidence"]
    return json.dumps({**result, "question": "", "errors": [*others, noted]}, ensure_ascii=False)


def leaked(result: Mapping[str, Any], words: Iterable[str]) -> list[str]:
    return [word for word in words if word in text_of(result)]


def state_before(graph: Any, thread: Any, node: str) -> Any:
    """The last state of a thread from which a node went on."""
    return next(state for state in graph.get_state_history(thread) if node in state.next)


def ids(result: Mapping[str, Any]) -> list[str]:
    return [hit["id"] for hit in result["passages"]]


def kinds(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a result says went wrong; that there is no evidence is nothing wrong."""
    return [(record["node"], record["kind"]) for record in result["errors"] if record["kind"] != "Evidence"]


def test_no_word_of_a_hidden_passage_is_in_any_result(root: Path) -> None:
    """Names that both owners spell, in other cases, are spelled as the passages that are seen spell them."""
    for (where, other), mode in product(((ANN, "bob"), (BOB, "ann")), Mode):
        result = run(context(root, where, mode=mode, filter_facts=True), QUESTION).result
        own = {passage.id for passage in PASSAGES if not passage.id.startswith(other)}
        assert {*ids(result)} == own if mode is not Mode.SPARSE else {*ids(result)} <= own
        assert kinds(result) == []
        assert leaked(result, ONLY[other]) == [], (where, mode)
    for engine in Engine:
        result = run(context(root, ANN, engine=engine), QUESTION).result
        assert (leaked(result, ONLY["bob"]), len(ids(result))) == ([], 2), engine
    assert leaked(run(context(root, {}), QUESTION).result, ONLY["bob"])


class TestSelectedPassages:
    def test_the_walk_crosses_hidden_passages(self, root: Path) -> None:
        """Ida Brandt's passage is reached from Project Orlo's, which stays out of sight."""
        seen = context(root, {"source": {"$in": ["ann-1.txt", "bob-3.txt"]}}, passage_seeds=1, name_weight=1)
        result = run(seen, "Where is Lake Sund?").result
        scores = {hit["id"]: hit["score"] for hit in result["passages"]}
        assert scores.keys() == {"ann-1", "bob-3"}
        assert scores["bob-3"] > 0


class TestNothingSelected:
    def test_it_is_an_outcome_that_says_so_and_asks_no_model(self, root: Path, chat_server: ScriptedServer) -> None:
        chat_server.script(well_behaved())
        for mode in Mode:
            done = run(context(root, NO_OWNER, mode=mode, filter_facts=True), QUESTION)
            assert done.visits == Counter(["encode_question", "write_answer"])
            result = done.result
            assert (result["passages"], result["ranked_by"], result["walk"]) == ([], "", None)
            assert (result["answer"], result["plain_answer"], result["citations"]) == (REFUSAL, REFUSAL, [])
            assert kinds(result) == [("encode_question", "NothingSelected")]
            assert "`where`" in result["errors"][0]["message"]
            assert leaked(result, ["nobody", *ONLY["ann"], *ONLY["bob"]]) == []
        assert chat_server.requests == []

    def test_a_fork_that_brings_such_a_filter_says_so_too(self, root: Path) -> None:
        for mode, last in ((Mode.MARA, "walk_graph"), (Mode.DENSE, "retrieve_passages")):
            graph, thread = on_a_thread()
            graph.invoke({"question": QUESTION}, thread, context=context(root, BOB, mode=mode))
            forked = graph.invoke(
                None, state_before(graph, thread, last).config, context=context(root, NO_OWNER, mode=mode)
            )
            assert (forked["passages"], forked["ranked_by"], forked["answer"]) == ([], "", REFUSAL)
            assert (last, "NothingSelected") in kinds(forked)
            assert leaked(forked, ONLY["bob"]) == []


class TestUnknownKeys:
    KEYS = "the keys there are: `day`, `owner`, `source`"

    def test_a_key_that_no_passage_has_is_an_error_with_the_keys_that_there_are(self, root: Path) -> None:
        unknown, nothing = ("encode_question", "UnknownKeys"), ("encode_question", "NothingSelected")
        for wanted in ("2021", {"$gte": "2020"}):
            result = run(context(root, {"dya": wanted}), QUESTION).result
            assert kinds(result) == [unknown, nothing]
            assert result["errors"][0]["message"] == f"`where` asks for metadata that no passage has; {self.KEYS}"
        result = run(context(root, {"dya": {"$ne": "2021-01-01"}}), QUESTION).result
        assert result["passages"]
        assert kinds(result) == [unknown]

    def test_keys_that_hidden_passages_alone_have_are_not_named(self, tmp_path: Path) -> None:
        passages = [
            passage_of("ann-1", "Sund", "Lake Sund lies in Ostra.", owner="ann", day="2020-05-31"),
            passage_of("bob-1", "Sund", "Lake Sund lies in Belavia.", owner="bob", dyas="2021"),
        ]
        root = publish_workspace(tmp_path / "workspace", passages, {}).root
        result = run(context(root, {"owner": "ann", "dya": "2021"}), QUESTION).result
        assert self.KEYS in result["errors"][0]["message"]
        assert leaked(result, ["dyas"]) == []
        for where in ({"owner": "carl", "dya": "2021"}, {"owner": "carl", "dyas": "2021"}):
            assert kinds(run(context(root, where), QUESTION).result) == [("encode_question", "NothingSelected")]


class TestOnAThread:
    def test_the_filter_is_in_no_state(self, root: Path) -> None:
        graph, thread = on_a_thread()
        secret = {"owner": {"$in": ["ann", "a-secret-value"]}, "a-secret-key": {"$ne": 1}}
        graph.invoke({"question": QUESTION}, thread, context=context(root, secret))
        for state in graph.get_state_history(thread):
            assert "a-secret" not in json.dumps(state.values)


class TestForks:
    @pytest.mark.parametrize("node", mostly_slow(reversed(NODES), 2))
    @pytest.mark.parametrize("mode", [Mode.MARA, Mode.HIPPORAG2])
    def test_a_fork_under_another_filter_keeps_nothing_of_the_run_before(
        self, root: Path, node: str, mode: Mode, chat_server: ScriptedServer
    ) -> None:
        picked = ['{"facts": [["LAKE SUND", "lies in", "Belavia"', '{"facts": [1]}']
        chat_server.script({"fact filter": picked, "manager": [MANAGED], "answerer": [ANSWERED]})
        graph, thread = on_a_thread()
        settings = {"mode": mode, "filter_facts": True, "model": "any"}
        first = graph.invoke({"question": QUESTION}, thread, context=context(root, BOB, **settings))
        assert first["errors"][0]["raw"] == picked[0]
        chat_server.script(well_behaved())
        forked = graph.invoke(None, state_before(graph, thread, node).config, context=context(root, ANN, **settings))
        assert leaked(forked, ONLY["bob"]) == []
        assert {*ids(forked)} <= {"ann-1", "ann-2"}
        if node != "write_answer":
            assert {*ids(forked)} == {"ann-1", "ann-2"}
        dropped = [record for record in forked["errors"] if record["kind"] == "OutsideFilter"]
        assert dropped[0]["node"] == node
        assert "entries of the state lie outside" in dropped[0]["message"]
        assert bool(chat_server.requests) == (node != "write_answer"), "without passages there is nothing to ask"
        for request in chat_server.requests:
            assert not [word for word in ONLY["bob"] if word in json.dumps(request.body) and word not in QUESTION]

    def test_hidden_parts_that_a_person_puts_into_the_state_are_dropped(self, root: Path) -> None:
        graph, thread = on_a_thread()
        graph.invoke({"question": QUESTION}, thread, context=context(root, ANN))
        before = state_before(graph, thread, "walk_graph")
        seeds = {
            "entities": [
                {"id": entity_id("Marn"), "text": "MARN of Karv", "weight": 1.0},
                {"id": entity_id("Project Orlo"), "text": "Project Orlo", "weight": 9.0},
                {"id": "entity-unknown", "text": "Belavia", "weight": 9.0},
            ],
            "passages": [{"id": "bob-1", "weight": 9.0}, {"id": "ann-2", "weight": 0.5}],
        }
        hidden = run(context(root, BOB), QUESTION).result["facts"]
        near = [{"id": seed["id"], "score": seed["weight"]} for seed in seeds["passages"]]
        edit = {"seeds": seeds, "facts": [*before.values["facts"], *hidden], "passage_candidates": near}
        forked = graph.invoke(None, graph.update_state(before.config, edit), context=context(root, ANN))
        assert {*ids(forked)} == {"ann-1", "ann-2"}
        assert [seed["text"] for seed in forked["seeds"]["entities"]] == ["marn"]
        assert forked["seeds"]["passages"] == [{"id": "ann-2", "weight": 0.5}]
        assert leaked(forked, ONLY["bob"]) == []
        shared = [fact for fact in hidden if fact["id"] in {hit["id"] for hit in before.values["facts"]}]
        expected = f"{len(hidden) - len(shared) + 4} entries"
        wrong = [record["message"] for record in forked["errors"] if record["kind"] != "Evidence"]
        assert [message[: len(expected)] for message in wrong] == [expected]

    def test_no_agent_is_shown_a_refused_reply_to_passages_that_are_hidden_now(self, root: Path) -> None:
        refused = {"reason": "not JSON", "raw": "Ida Brandt", "final": False}
        (hidden,) = [hit for hit in run(context(root, BOB), QUESTION).result["passages"] if hit["id"] == "bob-2"]
        for agent in (ANSWERER, JUDGE):
            state = {"passages": [hidden], agent.refusal: refused}
            seen: list[Any] = []

            def work(part: Any, seen: list[Any] = seen) -> Any:
                seen.append(part)
                return {}

            for where in (ANN, BOB):
                within_filter(("passages",), state, OpenRun(context(root, where)), work)
            assert [part[agent.refusal] for part in seen] == [None, refused], agent.name


def test_no_event_of_a_stream_and_no_step_of_a_trace_says_what_is_hidden(root: Path) -> None:
    for mode in ("mara", "hipporag2", "hybrid"):
        settings = context(root, ANN, mode=mode)
        with TraceServer() as server:
            with server.tracing():
                run(settings, "Who founded Marn?")
            sent = json.dumps([step.fields for step in server.tree().walk()], ensure_ascii=False)
        events = [event_json(event) for event in ask_stream("Who founded Marn?", settings)]
        for shown in (sent, json.dumps(events, ensure_ascii=False)):
            assert [word for word in ONLY["bob"] if word in shown] == [], mode
            assert "Ostra" in shown


class TestModels:
    def test_no_model_is_shown_hidden_passages(self, root: Path, chat_server: ScriptedServer) -> None:
        chat_server.script(well_behaved())
        for mode in Mode:
            result = run(context(root, ANN, mode=mode, filter_facts=True, model="any"), QUESTION).result
            assert leaked(result, ONLY["bob"]) == []
            assert result["errors"] == []
        assert len(chat_server.requests) > len(Mode)
        for request in chat_server.requests:
            shown = json.dumps({**shown_to_model(request.body), "question": ""})
            assert not [word for word in ONLY["bob"] if word in shown]
