"""Local models: their names and files, the packages and the server that they need, and the turn of a request."""

from __future__ import annotations

import os
import threading
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from pydantic import SecretStr

from agents.chat import local_model
from agents.chat.local_model import (
    INSTALLATION,
    LocalServer,
    check_packages,
    checked_file,
    is_local,
    local_name,
    open_local_model,
    packaged_file,
    refuse_file_of_client,
    server_of,
    stop_servers,
)
from graph.endpoints.address import Address
from graph.errors import BadInput, DependencyMissing, ModelUnavailable
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


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF and no more")
    return file


def install(monkeypatch: pytest.MonkeyPatch, folder: Path | None) -> None:
    """Let every package lie in a folder, or none be there."""
    spec = ModuleSpec("package", None, origin=str(folder / "__init__.py")) if folder else None
    monkeypatch.setattr(local_model, "find_spec", lambda _: spec)


def test_a_package_that_is_missing_comes_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    for needing in (check_packages, packaged_file):
        with pytest.raises(DependencyMissing, match="make local") as missing:
            needing()
        assert INSTALLATION in missing.value.hint


def test_a_users_file_is_taken_where_it_lies_and_a_missing_one_refused(
    gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checked_file(str(gguf)) == gguf
    monkeypatch.chdir(gguf.parent)
    monkeypatch.setenv("HOME", str(gguf.parent))
    assert checked_file("model.gguf") == checked_file("~/model.gguf") == gguf
    with pytest.raises(BadInput, match=r"cannot be read: .*local:FILE\.gguf"):
        checked_file("missing.gguf")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The program in place of llama.cpp; a test writes it."""
    install(monkeypatch, tmp_path)
    place = tmp_path / "program.py"
    monkeypatch.setattr(local_model, "_PROGRAM", place)
    return place


SERVING = """
import os, sys
key = sys.stdin.readline().strip()
with open(sys.argv[1] + ".log", "a") as log:
    print(sorted(name for name in os.environ if name.startswith("OPENAI")), len(key) > 20, sys.argv[2:], file=log)
print("http://127.0.0.1:1", flush=True)
sys.stdin.read()
"""


def test_a_server_is_started_once_and_again_where_it_has_ended(
    program: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setattr(local_model, "_threads", lambda: 3)
    program.write_text(SERVING, encoding="utf-8")
    try:
        first = server_of(gguf, "local:model")
        assert first.address.url == "http://127.0.0.1:1/v1"
        assert server_of(gguf, "local:model") is first
        first.process.kill()
        first.process.wait()
        second = server_of(gguf, "local:model")
        assert second is not first
        assert second.key.get_secret_value() != first.key.get_secret_value()
    finally:
        stop_servers()
    assert second.process.poll() is not None
    log = gguf.with_name("model.gguf.log").read_text(encoding="utf-8").splitlines()
    assert set(log) == {"[] True ['local:model', '3']"}, "it has a key of its own, and none of the user's"


def test_a_file_that_llama_cpp_cannot_load_ends_with_its_exit_code(program: Path, gguf: Path) -> None:
    for text in ("raise SystemExit(7)", "import os\nos.close(0)\nos._exit(7)"):
        program.write_text(text, encoding="utf-8")
        with pytest.raises(ModelUnavailable, match=r"llama\.cpp cannot serve model\.gguf \(exit 7\)"):
            server_of(gguf, "local:model")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux tells which processors may be used")
def test_half_of_the_processors_compute_and_one_thread_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    for usable, share, threads in ((8, 64.0, 4), (8, 2.5, 1), (1, 64.0, 1)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, usable=usable: set(range(usable)))
        monkeypatch.setattr(local_model, "_share_of_processors", lambda share=share: share)
        assert local_model._threads() == threads
