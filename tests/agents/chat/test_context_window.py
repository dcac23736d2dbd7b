"""How many tokens a model's server has room for, and how many a text takes."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from agents.chat.material import most_tokens
from agents.chat.model import ChatModel, open_chat_model
from graph.errors import BadInput, ModelUnavailable
from tests.chatting import KEY, messages, model_on, served
from tests.scripted_server import Fault, Reply, ReplyLike, scripted

VLLM = {"id": "scripted", "object": "model", "owned_by": "vllm", "max_model_len": 4_096}
LLAMA_CPP = {"id": "scripted", "owned_by": "llamacpp", "meta": {"n_ctx": 2_048, "n_ctx_train": 8_192}}
OLD_LLAMA_CPP = {**LLAMA_CPP, "meta": {"n_ctx_train": 8_192}}
PROPS = json.dumps({"default_generation_settings": {"n_ctx": 1_024}})
ALL = ["/v1/models", "/props", "/slots"]
SLOTS = json.dumps([{"id": 0, "n_ctx": 512}])


def models(*entries: Mapping[str, Any]) -> str:
    return json.dumps({"object": "list", "data": entries})


def window(tells: Mapping[str, ReplyLike]) -> tuple[int | None, list[str]]:
    """Return the window that a model finds, and the paths that it asked."""
    with scripted(["Yes"]) as server:
        server.tells = tells
        found = model_on(server).context_tokens
        return found, [path for path, _ in server.looked_up]


@pytest.mark.parametrize(
    ("tells", "tokens", "asked"),
    [
        ({"/v1/models": models(VLLM)}, 4_096, ["/v1/models"]),
        ({"/v1/models": models({**VLLM, "id": "another name"})}, 4_096, ["/v1/models"]),
        ({"/v1/models": models({**VLLM, "id": "other", "max_model_len": 999}, VLLM)}, 4_096, ["/v1/models"]),
        ({"/v1/models": models({**VLLM, "id": "a"}, {**VLLM, "id": "b"})}, None, ["/v1/models"]),
        ({"/v1/models": models(LLAMA_CPP)}, 2_048, ["/v1/models"]),
        ({"/v1/models": models(OLD_LLAMA_CPP), "/props": PROPS, "/slots": SLOTS}, 1_024, ["/v1/models", "/props"]),
        (
            {"/v1/models": models(OLD_LLAMA_CPP), "/props": "{}", "/slots": SLOTS},
            512,
            ALL,
        ),
        (
            {"/v1/models": models(OLD_LLAMA_CPP), "/props": "{}", "/slots": "[]"},
            8_192,
            ALL,
        ),
    ],
)
def test_the_server_tells_the_window_where_it_can(
    tells: Mapping[str, ReplyLike], tokens: int | None, asked: list[str]
) -> None:
    assert window(tells) == (tokens, asked)


@pytest.mark.parametrize(
    "told",
    [
        *("", "{", "[]", "null", '{"data": null}', '{"data": [7]}', models(), models({"id": "scripted"})),
        *(models({**VLLM, "max_model_len": length}) for length in ("4096", None, True, -1, 0, 10, 4096.5)),
        models({"id": "scripted", "owned_by": "library", "meta": {"n_ctx_train": 8_192}}),
        *(Reply("no", status=404), Reply("no", status=500), Reply(models(VLLM), fault=Fault.TRUNCATED)),
        Reply("", status=307, headers={"Location": "http://127.0.0.1:9/v1/models"}),
    ],
)
def test_what_tells_no_window_leaves_it_unknown_and_the_request_unharmed(told: ReplyLike) -> None:
    with scripted(["Yes"]) as server:
        server.tells = {"/v1/models": told}
        model = model_on(server)
        assert model.context_tokens is None
        assert model.ask(messages()).text() == "Yes"
        assert [path for path, _ in server.looked_up] == ["/v1/models"]


def test_it_is_asked_once_whoever_asks_with_the_key_and_the_setting_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(["Yes"]) as server:
        server.tells = {"/v1/models": models(VLLM)}
        model = model_on(server)
        monkeypatch.setenv("MARA_CONTEXT_TOKENS", " 2000 ")
        assert (model.context_tokens, server.looked_up) == (2_000, [])
        monkeypatch.delenv("MARA_CONTEXT_TOKENS")
        threads = [threading.Thread(target=lambda: model.context_tokens) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.context_tokens == 4_096
        ((_, headers),) = server.looked_up
        assert headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("pause_s", "found"), [(30.0, None), (0.0, 4_096)])
def test_a_server_that_is_not_there_yet_is_asked_again_but_not_at_once(
    monkeypatch: pytest.MonkeyPatch, pause_s: float, found: int | None
) -> None:
    monkeypatch.setattr("agents.chat.model._ASK_AGAIN_S", pause_s)
    with scripted(["Yes"]) as server:
        server.tells = {"/v1/models": models(VLLM)}
        model = open_chat_model("scripted", 0.0, base_url="http://127.0.0.1:9/v1", api_key=None, timeout_s=1)
        assert model.context_tokens is None
        model._address = model_on(server)._address
        assert model.context_tokens == found


def test_openais_own_server_is_not_asked() -> None:
    assert ChatModel("gpt", 0.0, address=None, api_key=SecretStr(KEY), timeout_s=1).context_tokens is None


@pytest.mark.parametrize("text", ["0", "-5", "255", "many", "4k", "1e4", "2048.0"])
def test_a_setting_that_is_no_window_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("MARA_CONTEXT_TOKENS", text)
    with scripted(["Yes"]) as server, pytest.raises(BadInput, match="MARA_CONTEXT_TOKENS"):
        _ = model_on(server).context_tokens


@pytest.mark.parametrize(
    "words",
    [
        "request (4031 tokens) exceeds the available context size (1024 tokens), try increasing it",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        "Input is longer than the context window",
    ],
)
def test_a_request_above_the_window_is_told_as_that_with_what_to_do(words: str) -> None:
    with served(Reply(words, status=400)) as model, pytest.raises(ModelUnavailable) as caught:
        model.ask(messages()).text()
    assert caught.value.message.startswith("The chat endpoint's context window is too small for the request (400): ")
    assert "MARA_CONTEXT_TOKENS" in caught.value.hint


COUNTED = json.loads((Path(__file__).parent / "token_counts.json").read_text(encoding="utf-8"))
"""Texts of many kinds with the tokens that the tokenizer of SmolLM2-135M (49,152 tokens) makes of them."""


@pytest.mark.parametrize("counted", COUNTED, ids=lambda counted: counted["kind"])
def test_the_estimate_is_never_below_what_a_small_models_tokenizer_makes_of_a_text(counted: dict[str, Any]) -> None:
    assert counted["tokens"] <= most_tokens(counted["text"]) <= 2.5 * counted["tokens"]


@given(st.text())
def test_no_byte_level_tokenizer_takes_more_for_what_is_no_ascii(text: str) -> None:
    wide = "".join(character for character in text if character > "\x7f" and not "\ud800" <= character <= "\udfff")
    assert most_tokens(wide) >= len(wide.encode())


@given(st.text(), st.text())
def test_the_estimate_grows_with_the_text(text: str, more: str) -> None:
    assert most_tokens(text + more) >= most_tokens(text)
