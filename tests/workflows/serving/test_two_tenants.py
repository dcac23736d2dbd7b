"""Two tenants ask one LangGraph server: whatever a client sends, it is told nothing of the other's passages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import httpx
import pytest

from graph.schema import entity_id
from tests.workflows.tenants import (
    KEYS,
    MARKERS,
    QUESTION,
    Tenants,
    at_once,
    hidden_in,
    keys_file,
    sees_nothing_of,
    tenants_served,
    token,
)

pytestmark = pytest.mark.slow

GRAPHS: dict[str, Any] = {
    "chat": {"messages": [{"role": "user", "content": f"{QUESTION[:-1]}, and who surveyed it?"}]},
    "mara": {"question": QUESTION},
    "ragenta": {"question": QUESTION},
    "retrieval": {"question": QUESTION},
}
"""The graphs that anybody may ask, and what they are asked."""

STREAM_MODES = ("values", "updates", "messages-tuple", "custom", "tasks", "debug", "events", "checkpoints")

FORGED: list[dict[str, Any]] = [
    {"langgraph_auth_user": {"identity": "olga"}, "langgraph_auth_user_id": "olga"},
    {"langgraph_auth_user": {"identity": "token:x", "mara_identity": '{"name": "token:x", "workspaces": null}'}},
    {"user_id": "olga", "mara_identity": '{"name": "token:x", "where": {}, "workspaces": null}'},
    {"where": {"tenant": "b"}},
    {"_fixed_where": {}, "__context_provided__": True},
    {"_beside": {"fixed_where": {}}, "beside": {"fixed_where": {}}},
]
"""Values that a client might put into a run to pass for another."""

WORKSPACES = ("board", "workspace", "..", "../root/board", "/etc", "", "BOARD", "board/", "none")
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    with tenants_served(tmp_path_factory.mktemp("tenants")) as served:
        yield served


@pytest.fixture(scope="module")
def anna(tenants: Tenants) -> httpx.Client:
    return tenants.client("anna")


@pytest.fixture(scope="module")
def ben(tenants: Tenants) -> httpx.Client:
    return tenants.client("ben")


def wait(client: httpx.Client, graph: str = "mara", thread: str = "", **run: Any) -> httpx.Response:
    place = f"/threads/{thread}/runs/wait" if thread else "/runs/wait"
    return client.post(place, json={"assistant_id": graph, "input": GRAPHS.get(graph), **run})


def new_thread(client: httpx.Client, **metadata: Any) -> str:
    made = client.post("/threads", json={"metadata": metadata})
    return str(made.raise_for_status().json()["thread_id"])


@pytest.fixture(scope="module")
def bens_thread(ben: httpx.Client) -> str:
    """A conversation of tenant b, with its answer."""
    thread = new_thread(ben, topic="Zember")
    assert hidden_in(wait(ben, thread=thread), "b")
    return thread


class TestRuns:
    def test_each_sees_its_own_and_whoever_may_see_all_sees_both_streamed_or_not(self, tenants: Tenants) -> None:
        may_see = {"anna": {"a": True, "b": False}, "ben": {"a": False, "b": True}, "olga": {"a": True, "b": True}}
        for graph in GRAPHS:
            run = {"assistant_id": graph, "input": GRAPHS[graph]}
            run |= {"stream_mode": STREAM_MODES, "stream_subgraphs": True}
            for name, sees in may_see.items():
                client = tenants.client(name)
                streamed = client.post("/runs/stream", json=run).raise_for_status().text
                for reply in (wait(client, graph), streamed):
                    assert {tenant: bool(hidden_in(reply, tenant)) for tenant in MARKERS} == sees, (graph, name)
                told = [line for line in streamed.splitlines() if "event: " in line]
                modes = {line.removeprefix("event: ").partition("|")[0].strip() for line in told}
                assert modes >= {"values", "updates", "custom", "tasks", "debug", "events"}, (graph, name)

    @pytest.mark.parametrize("graph", GRAPHS)
    def test_nobody_passes_for_another_by_what_a_run_is_configured_with(self, anna: httpx.Client, graph: str) -> None:
        configured = at_once(lambda forged: wait(anna, graph, config={"configurable": forged}), *FORGED)
        in_context = at_once(lambda forged: wait(anna, graph, context=forged), *FORGED)
        for reply in (*configured, *in_context):
            sees_nothing_of("b")(reply)
        assert any(hidden_in(reply, "a") for reply in configured)
        assert any(hidden_in(reply, "a") for reply in in_context)

    def test_no_workspace_is_opened_but_those_that_may_be(self, anna: httpx.Client) -> None:
        replies = at_once(lambda name: wait(anna, context={"workspace": name}), *WORKSPACES)
        for name, reply in zip(WORKSPACES, replies, strict=True):
            assert "Yster" not in sees_nothing_of("b")(reply).text
            if name:
                assert reply.json()["__error__"]["error"] == ("NoAccess" if name.isalpha() else "BadInput")


class TestThreads:
    def test_nobody_else_reads_finds_or_copies_a_conversation(
        self, anna: httpx.Client, ben: httpx.Client, bens_thread: str
    ) -> None:
        place, check = f"/threads/{bens_thread}", sees_nothing_of("b")
        run = ben.get(f"{place}/runs").json()[0]["run_id"]
        checkpoint = ben.get(f"{place}/state").json()["checkpoint"]["checkpoint_id"]
        assert ben.get(place).is_success
        own = ("", "/state", f"/state/{checkpoint}", "/history", "/stream")
        for read in (*own, *(f"/runs/{run}{what}" for what in ("", "/join", "/stream"))):
            reply = check(anna.get(f"{place}{read}"))
            assert reply.status_code in (404, 200), read
            assert reply.status_code == 404 or not reply.text.strip() or "error" in reply.text, (read, reply.text)
        assert check(anna.post(f"{place}/history", json={})).status_code == 404
        assert check(anna.post(f"{place}/state/checkpoint", json={"checkpoint": {}})).status_code == 404
        assert check(anna.get(f"{place}/runs")).status_code == 404
        for wanted in ({}, {"metadata": {"topic": "Zember"}}, {"ids": [bens_thread]}, {"values": {"mode": "mara"}}):
            found = check(anna.post("/threads/search", json=wanted)).json()
            assert bens_thread not in {each["thread_id"] for each in found}
        assert anna.post("/threads/count", json={"metadata": {"topic": "Zember"}}).json() == 0
        assert check(anna.post(f"{place}/copy")).status_code in (404, 409)

    def test_nobody_else_changes_follows_or_commands_it(
        self, anna: httpx.Client, ben: httpx.Client, bens_thread: str
    ) -> None:
        place, check = f"/threads/{bens_thread}", sees_nothing_of("b")
        before, n_runs = ben.get(f"{place}/state").json()["values"], len(ben.get(f"{place}/runs").json())
        replies = [
            anna.patch(place, json={"metadata": {"mara_owner": "anna"}}),
            anna.post("/threads", json={"thread_id": bens_thread, "if_exists": "do_nothing"}),
            anna.post(f"{place}/state", json={"values": {"answer": "x"}}),
            anna.post("/threads/prune", json={"thread_ids": [bens_thread]}),
            anna.post("/runs/cancel", json={"thread_id": bens_thread, "run_ids": ["0" * 32]}),
            wait(anna, thread=bens_thread),
            wait(anna, thread=bens_thread, input=None),
            wait(anna, thread=bens_thread, if_not_exists="create"),
            anna.post(f"{place}/runs/stream", json={"assistant_id": "mara", "input": GRAPHS["mara"]}),
            anna.delete(place),
        ]
        assert [check(reply).status_code for reply in replies] == [404, 409, *[404] * 8]
        start = {"id": 1, "method": "run.start", "params": {"assistant_id": "mara", "input": GRAPHS["mara"]}}
        channels = {"channels": ["values", "updates", "messages", "tasks", "custom"]}
        for reply in (
            anna.post(f"{place}/stream/events", json=channels),
            anna.post(f"{place}/commands", json=start),
            anna.get(f"{place}/storage"),
        ):
            told = check(reply).text.strip() if reply.is_success else ""
            assert not told or "error" in told, (str(reply.request.url), told[:500])
        assert len(ben.get(f"{place}/runs").json()) == n_runs
        assert ben.get(f"{place}/state").json()["values"] == before

    def test_nobody_shows_empties_or_deploys_the_server(
        self, tenants: Tenants, ben: httpx.Client, bens_thread: str
    ) -> None:
        for name in ["", "anna", "olga"]:
            client, check = tenants.client(name), sees_nothing_of("b")
            for reply in (
                client.get(f"/internal/debug/thread/{bens_thread}"),
                client.get(f"/internal%2fdebug/thread/{bens_thread}"),
                client.post("/internal/truncate"),
                client.get("/deploy"),
                client.post("/deploy", json={}),
                client.get("/deploy/1/stream"),
                client.get("/profile"),
            ):
                assert check(reply).status_code == 403, name
                assert "This path is for the operator of the server" in reply.text, name
            assert ben.get(f"/threads/{bens_thread}/state").json()["values"], name

    def test_nobody_gives_a_conversation_away_or_makes_one_for_another(
        self, anna: httpx.Client, ben: httpx.Client
    ) -> None:
        bens = ben.post("/threads", json={}).json()["metadata"]["mara_owner"]
        made = new_thread(anna, mara_owner=bens)
        anna.patch(f"/threads/{made}", json={"metadata": {"mara_owner": bens, "topic": "x"}}).raise_for_status()
        assert anna.get(f"/threads/{made}").json()["metadata"]["topic"] == "x"
        assert ben.get(f"/threads/{made}").status_code == 404
        kept = wait(
            anna, on_completion="keep", metadata={"mara_owner": bens}, config={"metadata": {"mara_owner": bens}}
        )
        assert hidden_in(ben.post("/threads/search", json={"limit": 100}), "a") == []
        assert kept.is_success

    def test_a_state_edited_to_hold_what_is_hidden_shows_nothing_of_it(self, anna: httpx.Client) -> None:
        thread = new_thread(anna)
        wait(anna, thread=thread)
        guessed = [{"number": 1, "id": "of-b-two", "title": "", "text": "", "source": "", "metadata": {}, "score": 1.0}]
        seeds = {"entities": [{"id": entity_id("Ida Zbrandt"), "text": "", "weight": 1.0}], "passages": []}
        for node, values in (("walk_graph", {"passages": guessed}), ("seed_graph", {"seeds": seeds})):
            edited = anna.post(f"/threads/{thread}/state", json={"values": values, "as_node": node}).raise_for_status()
            reply = wait(anna, thread=thread, input=None, checkpoint=edited.json()["checkpoint"])
            assert [word for word in ("Zember", "Zbrandt", "Zoltan", "zbudget") if word in reply.text] == []

    def test_earlier_turns_that_name_hidden_passages_show_nothing_of_them(self, anna: httpx.Client) -> None:
        turns = [{"question": "Who led it?", "answer": "Somebody [1].", "passages": ["of-b-two", "of-b-one"]}]
        reply = wait(anna, input={"question": "And who paid for it?", "turns": turns})
        assert [word for word in ("Zember", "Zbrandt", "Zoltan", "zbudget") if word in reply.text] == []

    def test_questions_of_both_at_once_stay_apart(self, anna: httpx.Client, ben: httpx.Client) -> None:
        replies = at_once(lambda client: (client, wait(client, "retrieval")), *[anna, ben] * 12)
        for client, reply in replies:
            own, other = ("a", "b") if client is anna else ("b", "a")
            assert hidden_in(reply, own)
            assert hidden_in(reply, other) == []


class TestAssistants:
    def test_they_belong_to_who_made_them(self, anna: httpx.Client, ben: httpx.Client) -> None:
        given = {"graph_id": "mara", "name": "Zember's", "context": {"top_k": 3}, "metadata": {"created_by": "system"}}
        made = ben.post("/assistants", json=given).raise_for_status().json()
        place = f"/assistants/{made['assistant_id']}"
        ben.patch(place, json={"metadata": {"created_by": "system"}, "context": {"top_k": 4}}).raise_for_status()
        check = sees_nothing_of("b")
        assert check(anna.get(place)).status_code == 404
        assert check(anna.get(f"{place}/schemas")).status_code == 404
        assert check(anna.patch(place, json={"context": {"top_k": 1}})).status_code == 404
        assert check(anna.post(f"{place}/versions", json={})).status_code == 404
        assert check(anna.post(f"{place}/latest", json={"version": 1})).status_code == 404
        assert check(anna.delete(place)).status_code == 404
        assert check(wait(anna, made["assistant_id"], input=GRAPHS["mara"])).status_code == 404
        found = check(anna.post("/assistants/search", json={"limit": 100})).json()
        assert {each["graph_id"] for each in found} >= {*GRAPHS}
        assert made["assistant_id"] not in {each["assistant_id"] for each in found}
        assert hidden_in(wait(ben, made["assistant_id"], input=GRAPHS["mara"]), "b")


def test_stored_items_belong_to_who_put_them(anna: httpx.Client, ben: httpx.Client) -> None:
    put = {"namespace": ["notes"], "key": "k", "value": {"note": "Zember"}}
    assert ben.put("/store/items", json=put).is_success
    mine = ben.post("/store/items/search", json={"namespace_prefix": []}).json()["items"]
    assert [item["value"] for item in mine] == [{"note": "Zember"}]
    check = sees_nothing_of("b")
    assert check(anna.post("/store/items/search", json={"namespace_prefix": []})).json()["items"] == []
    assert (
        check(anna.post("/store/items/search", json={"namespace_prefix": mine[0]["namespace"]})).json()["items"] == []
    )
    assert check(anna.post("/store/namespaces", json={})).json()["namespaces"] == []
    for namespace in (["notes"], mine[0]["namespace"]):
        found = check(anna.get("/store/items", params={"namespace": ".".join(namespace), "key": "k"}))
        assert not found.is_success or not found.json()
        anna.request("DELETE", "/store/items", json={"namespace": namespace, "key": "k"})
        assert ben.get("/store/items", params={"namespace": ".".join(namespace), "key": "k"}).json()["value"]


class TestOtherProtocols:
    def call(self, client: httpx.Client, method: str, **params: Any) -> httpx.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return client.post("/mcp", headers=MCP_HEADERS, json=body)

    def test_mcp_tells_each_its_own(self, anna: httpx.Client, ben: httpx.Client) -> None:
        for graph in GRAPHS:
            own = self.call(anna, "tools/call", name=graph, arguments=GRAPHS[graph])
            assert "Amstel" in sees_nothing_of("b")(own).text, graph
            where = {"where": {"zbudget": 7}}
            sees_nothing_of("b")(self.call(anna, "tools/call", name=graph, arguments=GRAPHS[graph], context=where))
            assert hidden_in(self.call(ben, "tools/call", name=graph, arguments=GRAPHS[graph]), "b")


class TestIndexing:
    SOURCES: ClassVar = {"sources": ["new.md"]}

    def test_who_may_not_index_neither_runs_nor_sees_the_graph(self, tenants: Tenants, anna: httpx.Client) -> None:
        (tenants.server.sources / "new.md").write_text("# News\n\nMarn has a new mill.\n", encoding="utf-8")
        refused = wait(anna, "indexing", input=self.SOURCES).json()["__error__"]
        assert refused["error"] == "NoAccess"
        assert "anna may not index documents. Ask the operator of the server" in refused["message"]
        listed = anna.post("/assistants/search", json={"limit": 100}).json()
        made = next(each["assistant_id"] for each in listed if each["graph_id"] == "indexing")
        for place in ("", "/schemas", "/graph"):
            assert anna.get(f"/assistants/{made}{place}").status_code == 403
        assert anna.post("/assistants/search", json={"graph_id": "indexing"}).status_code == 403
        assert anna.post("/assistants", json={"graph_id": "indexing"}).status_code == 403
        tools = TestOtherProtocols().call(anna, "tools/list").json()["result"]["tools"]
        assert {*GRAPHS} <= {tool["name"] for tool in tools}
        assert "indexing" not in {tool["name"] for tool in tools}
        called = TestOtherProtocols().call(anna, "tools/call", name="indexing", arguments=self.SOURCES).json()
        assert called["result"]["isError"]
        assert "Marn has a new mill" not in wait(anna, "retrieval", input={"question": "What does Marn have?"}).text


class TestKeys:
    def test_conversations_of_one_name_are_apart_where_its_tokens_see_another_tenant(self, tenants: Tenants) -> None:
        first = tenants.client(Authorization=f"Bearer {token(tenant='b')}")
        then = tenants.client(Authorization=f"Bearer {token(tenant='a')}")
        thread = new_thread(first)
        wait(first, thread=thread)
        assert sees_nothing_of("b")(then.get(f"/threads/{thread}/state")).status_code == 404
        assert first.get(f"/threads/{thread}/state").is_success

    def test_a_key_that_is_withdrawn_opens_nothing_from_then_on(self, tenants: Tenants) -> None:
        gone = tenants.client("gone")
        assert hidden_in(wait(gone), "a")
        try:
            tenants.keys.write_text(keys_file("gone"), encoding="utf-8")
            assert gone.post("/threads/search", json={}).status_code == 401
            assert hidden_in(wait(tenants.client("anna")), "a")
        finally:
            tenants.keys.write_text(keys_file(), encoding="utf-8")


def test_the_log_holds_no_key(tenants: Tenants) -> None:
    log = tenants.server.log.read_text(encoding="utf-8")
    assert [name for name, key in KEYS.items() if key in log] == []
