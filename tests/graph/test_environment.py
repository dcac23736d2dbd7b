"""The environment: read once, and read again when it is told to."""

from __future__ import annotations

import os

import pytest

from graph.environment import environment, processors, refresh_environment, set_variables
from graph.errors import BadInput


def test_it_stands_as_it_was_read_until_it_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_CHAT_MODEL", "one")
    assert environment().mara_chat_model == "one"
    os.environ["MARA_CHAT_MODEL"] = "two"
    assert environment().mara_chat_model == "one"
    refresh_environment()
    assert environment().mara_chat_model == environment().value("MARA_CHAT_MODEL") == "two"


def test_what_is_set_or_unset_counts_at_once_for_child_processes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_VECTORS", "chroma")
    set_variables({"MARA_VECTORS": "mapped"})
    assert environment().mara_vectors == os.environ["MARA_VECTORS"] == "mapped"
    set_variables({"MARA_VECTORS": None})
    assert environment().mara_vectors == ""
    assert "MARA_VECTORS" not in os.environ


def test_a_variable_by_its_earlier_name_is_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for earlier, present in [
        ("PRICE_IN", "MARA_PRICES"),
        ("CHROMA_URL", "MARA_VECTORS=chroma+http"),
        ("BUILD_PROCESSES", "OMP_NUM_THREADS"),
    ]:
        monkeypatch.setitem(os.environ, f"MARA_{earlier}", "sk-secret")
        with pytest.raises(BadInput, match=f"MARA_{earlier} is not read any more") as refused:
            refresh_environment()
        assert present in refused.value.hint
        assert "sk-secret" not in str(refused.value)
        monkeypatch.setitem(os.environ, f"MARA_{earlier}", "")
        refresh_environment()


def test_the_number_of_threads_is_that_of_the_machine_or_of_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert processors() == (os.cpu_count() or 1)
    for said in ("3", "3,2"):
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        assert processors() == 3


def test_it_shows_none_of_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-key")
    assert "sk-the-key" not in repr(environment())
