"""The resources of a run: the open index of a generation, and the agent of each role."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.answerer import ANSWERER, ChatAnswerer, OfflineAnswerer
from agents.chat import local_model
from agents.fact_filter import FACT_FILTER, ChatFactFilter, KeepAllFacts, OfflineFactFilter
from agents.manager import MANAGER, ChatManager, OfflineManager
from agents.offline.extractor import OFFLINE_EXTRACTOR
from graph.errors import BadInput, ModelUnavailable
from tests.extracting import PASSAGES, proper_reply
from tests.scripted_server import ScriptedServer
from workflows.context import Context
from workflows.runtime.agents import agent_of
from workflows.runtime.extraction import extractor_for
from workflows.runtime.resources import (
    DEFAULT_CHAT_MODEL,
    OFFLINE,
    OpenRun,
    chat_model_name,
    chat_model_of,
)
from workflows.settings.indexing import IndexingContext

MakeContext = Callable[..., Context]

KEY = {"OPENAI_API_KEY": "sk-some-key"}
SERVER = {"OPENAI_BASE_URL": "http://localhost:1/v1"}
NAMED = {"MARA_CHAT_MODEL": "named-model"}
PACKAGED = "local:SmolLM2-135M-Instruct.Q4_1"


def test_the_context_names_the_chat_model_then_the_environment_then_none() -> None:
    cases = [
        ({}, "", OFFLINE),
        (NAMED, "", "named-model"),
        (KEY, "", DEFAULT_CHAT_MODEL),
        (SERVER, "", DEFAULT_CHAT_MODEL),
        ({**KEY, **NAMED}, "", "named-model"),
        ({**SERVER, **NAMED}, "own-model", "own-model"),
        ({**KEY, **NAMED}, OFFLINE, OFFLINE),
        ({"MARA_CHAT_MODEL": "local"}, "", PACKAGED),
        ({"MARA_CHAT_MODEL": "local:/models/own.gguf"}, "", "local:own"),
        ({"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}, "", OFFLINE),
    ]
    for environment, model, expected in cases:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            assert chat_model_name(Context(model=model)) == expected, (environment, model)


def test_agents_are_offline_ones_the_models_or_none(settings: MakeContext, monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[tuple[Any, dict[str, Any], type, type]] = [
        (FACT_FILTER, {}, OfflineFactFilter, ChatFactFilter),
        (FACT_FILTER, {"mode": "hipporag2"}, KeepAllFacts, ChatFactFilter),
        (FACT_FILTER, {"filter_facts": False}, KeepAllFacts, KeepAllFacts),
        (MANAGER, {}, OfflineManager, ChatManager),
        (ANSWERER, {}, OfflineAnswerer, ChatAnswerer),
    ]
    for agent, changes, offline, _ in cases:
        assert type(agent_of(agent, OpenRun(settings(**changes)))) is offline, changes
    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        agent_of(MANAGER, OpenRun(settings(model="own-model")))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    for agent, changes, _, on_a_model in cases:
        assert type(agent_of(agent, OpenRun(settings(**changes)))) is on_a_model, changes


def test_several_servers_extract_in_turns_and_are_one_extractor(monkeypatch: pytest.MonkeyPatch) -> None:
    context = IndexingContext()
    assert extractor_for(context).name == OFFLINE_EXTRACTOR
    with ScriptedServer({"extractor": proper_reply}) as one, ScriptedServer({"extractor": proper_reply}) as other:
        monkeypatch.setenv("MARA_EXTRACTION_URLS", f" {one.base_url}, {other.base_url} ,")
        extractor = extractor_for(context)
        for passage in PASSAGES:
            assert extractor.extract(passage).entities == (passage.title, "Karv")
        assert (len(one.requests), len(other.requests)) == (2, 2)
        monkeypatch.setenv("OPENAI_BASE_URL", one.base_url)
        monkeypatch.delenv("MARA_EXTRACTION_URLS")
        assert extractor_for(context).name == extractor.name
    monkeypatch.setenv("MARA_EXTRACTION_URLS", "http://a/v1,me:secret@b")
    assert extractor_for(IndexingContext(model=OFFLINE)).name == OFFLINE_EXTRACTOR
    with pytest.raises(BadInput, match="MARA_EXTRACTION_URLS is") as refused:
        extractor_for(context)
    assert "secret" not in str(refused.value)


def test_a_client_of_a_server_may_name_no_model_file_but_its_operator_may(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    file = f"local:{tmp_path / 'own.gguf'}"
    monkeypatch.setattr(local_model, "check_packages", lambda: None)
    monkeypatch.setenv("LANGSERVE_GRAPHS", "{}")
    for context in (Context(model=file), IndexingContext(model=file)):
        with pytest.raises(BadInput, match="may not name a model file"):
            chat_model_of(context, 0.0)
    monkeypatch.setenv("MARA_CHAT_MODEL", file)
    opened = chat_model_of(Context(), 0.0)
    assert opened
    assert opened.name == "local:own"
