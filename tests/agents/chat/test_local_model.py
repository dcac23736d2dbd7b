"""Names of local models, who may give them, and requests that wait for their turn."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pydantic import SecretStr

from agents.chat import local_model
from agents.chat.local_model import LocalServer, is_local, local_name, open_local_model, refuse_file_of_client
from graph.endpoints.address import Address
from graph.errors import BadInput, DependencyMissing
from tests.scripted_server import scripted


def test_a_result_names_the_file_without_its_folder_and_other_names_are_of_models_behind_a_server() -> None:
    for model, name in (
        ("local", "local:SmolLM2-135M-Instruct.Q4_1"),
        ("local:model.gguf", "local:model"),
        ("local:~/models/Qwen3-4B.Q4_K_M.gguf", "local:Qwen3-4B.Q4_K_M"),
        ("local:/models/weights", "local:weights"),
    ):
        assert is_local(model)
        assert local_name(model) == name
    others = ("", "offline", "gpt-6-luna", "localhost", "Local", "locale:x", "org/local")
    assert not any(map(is_local, others))


def test_a_client_of_a_server_names_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_file_of_client("local:/etc/passwd")
    monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
    refuse_file_of_client("local")
    with pytest.raises(BadInput, match="may not name a model file") as refused:
        refuse_file_of_client("local:/etc/passwd")
    assert "passwd" not in str(refused.value)


def test_nothing_is_opened_where_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "find_spec", lambda _: None)
    with pytest.raises(DependencyMissing, match="xllamacpp"):
        open_local_model("local", 0.0, timeout_s=5, thinking_tokens=None)


class Process:
    """A server that runs."""

    def poll(self) -> None:
        return None


class Slot:
    """The one slot of a server, which a test gives."""

    def __init__(self) -> None:
        self.wanted, self.free, self.left = threading.Event(), threading.Event(), threading.Event()

    def __enter__(self) -> None:
        self.wanted.set()
        self.free.wait()

    def __exit__(self, *exception: object) -> None:
        self.left.set()


def test_requests_wait_for_a_slot_and_carry_the_servers_key_past_every_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from langchain_core.messages import HumanMessage

    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(local_model, "check_packages", lambda: None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    for proxy in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "OPENAI_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    slot = Slot()
    with scripted(["one"]) as elsewhere:
        address = Address.parse(elsewhere.base_url, "address", "")
        server = LocalServer(address, SecretStr("of-the-server"), Process(), slot)  # type: ignore[arg-type]
        monkeypatch.setattr(local_model, "server_of", lambda file, name: server)
        model = open_local_model(f"local:{tmp_path / 'm.gguf'}", 0.0, timeout_s=30, thinking_tokens=None)
        replies: list[str] = []
        thread = threading.Thread(target=lambda: replies.append(model.ask([HumanMessage("?")]).raw))
        thread.start()
        slot.wanted.wait()
        assert elsewhere.requests == []
        slot.free.set()
        thread.join()
        (request,) = elsewhere.requests
    assert replies == ["one"]
    assert (request.headers["authorization"], request.body["model"]) == ("Bearer of-the-server", "local:m")
    assert slot.left.is_set(), "the slot is given back"
