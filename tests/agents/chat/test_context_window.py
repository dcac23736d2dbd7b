"""How many tokens a model's server has room for, and how many a text takes."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agents.chat.material import most_tokens
from agents.chat.model import ChatModel, open_chat_model
from graph.errors import BadInput
from tests.chatting import KEY, messages, model_on
from tests.scripted_server import Fault, Reply, ReplyLike, scripted

VLLM = {"id": "scripted", "object": "model", "owned_by": "vllm", "max_model_len": 4_096}
LLAMA_CPP = {"id": "scripted", "owned_by": "llamacpp", "meta": {"n_ctx": 2_048, "n_ctx_train": 8_192}}


def models(*entries: Mapping[str, Any]) -> str:
    return json.dumps({"object": "list", "data": entries})


def test_the_server_tells_the_window_where_it_can() -> None:
    for entries, tokens in (
        ([VLLM], 4_096),
        ([{**VLLM, "id": "other", "max_model_len": 999}, VLLM], 4_096),
        ([{**VLLM, "id": "a"}, {**VLLM, "id": "b"}], None),
        ([LLAMA_CPP], 2_048),
    ):
        with scripted(["Yes"]) as server:
            server.tells = {"/v1/models": models(*entries)}
            assert model_on(server).context_tokens == tokens
            assert [path for path, _ in server.looked_up] == ["/v1/models"]


def test_what_tells_no_window_leaves_it_unknown_and_the_request_unharmed() -> None:
    replies: list[ReplyLike] = [
        *("", "{", "[]", "null", '{"data": null}', '{"data": [7]}', models(), models({"id": "scripted"})),
        *(models({**VLLM, "max_model_len": length}) for length in ("4096", None, True, -1, 0, 10, 4096.5)),
        models({"id": "scripted", "owned_by": "library", "meta": {"n_ctx_train": 8_192}}),
        *(Reply("no", status=404), Reply("no", status=500), Reply(models(VLLM), fault=Fault.TRUNCATED)),
        Reply("", status=307, headers={"Location": "http://127.0.0.1:9/v1/models"}),
    ]
    for reply in replies:
        with scripted(["Yes"]) as server:
            server.tells = {"/v1/models": reply}
            model = model_on(server)
            assert model.context_tokens is None, reply
            assert model.ask(messages()).text() == "Yes"
            assert [path for path, _ in server.looked_up] == ["/v1/models"]
    own = ChatModel("gpt", 0.0, address=None, api_key=SecretStr(KEY), timeout_s=1)
    assert own.context_tokens is None, "OpenAI's own server is not asked"


def test_it_is_asked_for_once_by_all_threads_with_the_key_and_the_setting_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(["Yes"]) as server:
        server.tells = {"/v1/models": models(VLLM)}
        model = model_on(server)
        for text in ("0", "255", "4k"):
            monkeypatch.setenv("MARA_CONTEXT_TOKENS", text)
            with pytest.raises(BadInput, match="MARA_CONTEXT_TOKENS"):
                _ = model.context_tokens
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


def test_a_server_that_is_not_there_yet_is_asked_again() -> None:
    with scripted(["Yes"]) as server:
        server.tells = {"/v1/models": models(VLLM)}
        model = open_chat_model("scripted", 0.0, base_url="http://127.0.0.1:9/v1", api_key=None, timeout_s=1)
        assert model.context_tokens is None
        model._address = model_on(server)._address
        assert model.context_tokens == 4_096


def test_the_estimate_is_never_below_what_a_small_models_tokenizer_makes_of_a_text() -> None:
    """The counts are of SmolLM2-135M, whose tokenizer has 49,152 tokens."""
    counts = json.loads((Path(__file__).parent / "token_counts.json").read_text(encoding="utf-8"))
    for counted in counts:
        assert counted["tokens"] <= most_tokens(counted["text"]) <= 2.5 * counted["tokens"], counted["kind"]
