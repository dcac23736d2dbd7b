"""What keeps a client from being made is told as the setting that it is, and never shown: it may hold a password."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from agents.chat.model import open_chat_model
from graph.embedding.embeddings import OpenAIEmbedder
from graph.errors import BadInput

CLOSED = "http://127.0.0.1:9/v1"
PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY")


def test_a_proxy_that_cannot_be_used_is_bad_input_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in (
        ("ALL_PROXY", "socks5://name:secret@127.0.0.1:1"),
        ("HTTP_PROXY", "ftp://name:secret@127.0.0.1:1"),
        ("OPENAI_PROXY", "http://name:secret@127.0.0.1:port"),
        ("OPENAI_PROXY", "ftp://name:secret@127.0.0.1:1"),
        *((name, f"http://name:{word}@127.0.0.1:1") for name in PROXIES for word in ("secret@secret", "secret/secret")),
        ("HTTP_PROXY", "name:secret@secret@127.0.0.1:1"),
    ):
        for name in (*PROXIES, "NO_PROXY", "OPENAI_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.lower(), raising=False)
        monkeypatch.setenv(variable, value)
        model = open_chat_model("m", 0.0, base_url=CLOSED, api_key="sk-key", timeout_s=1.0)
        for ask in (
            lambda model=model: model.ask([HumanMessage("Who?")]),
            lambda model=model: model.context_tokens,
            lambda: OpenAIEmbedder("m", CLOSED, "sk-key").embed(["Who?"]),
        ):
            with pytest.raises(BadInput, match=variable) as refused:
                ask()
            assert "secret" not in str(refused.value)
