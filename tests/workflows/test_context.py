"""The settings of a run: described, bounded, refused by name, and the same from Studio, Python and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from graph.retrieve.modes import HIPPORAG2, MARA, SEED, Mode, Preset, WalkSettings
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import QUESTION, run
from workflows import mara
from workflows.context import QUESTION_LIMIT, Context, Walk, check_question, make_context

BAD_SETTINGS: list[tuple[str, Any]] = [
    ("mode", "bm25"),
    ("temperature", -0.1),
    ("top_k", 0),
    ("top_k", 201),
    ("max_json_retries", 6),
    ("damping", 1.0),
    ("passage_seeds", -1),
    ("workspace", "w" * 4097),
    ("filter_facts", "perhaps"),
    ("where", {"tenant": {"$regex": ".*"}}),
    ("where", {"$or": [{"tenant": "a"}, {"tenant": "b"}]}),
    ("where", {f"key {i}": i for i in range(10_000)}),
]


def test_a_bad_setting_is_refused_by_name() -> None:
    for name, value in BAD_SETTINGS:
        with pytest.raises(BadInput, match=rf"A setting cannot be used \((?:walk\.)?{name}(?:: | has to )") as failure:
            make_context(**{name: value})
        assert failure.value.hint, name


def test_without_a_context_the_defaults_apply(small_workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_WORKSPACE", str(small_workspace))
    plain: Any = mara.graph
    result = plain.invoke({"question": QUESTION})
    assert (result["mode"], result["models"]["chat"]) == ("mara", "offline")
    assert len(result["passages"]) == Context().top_k
    assert result["citations"]


def test_where_a_setting_is_empty_the_modes_own_value_holds() -> None:
    assert Context().walk_settings() == MARA
    assert Context(preset=Preset.SEED).walk_settings() == SEED
    assert Context(mode=Mode.HIPPORAG2, preset=Preset.SEED).walk_settings() == HIPPORAG2


def test_a_setting_that_is_given_changes_that_one_alone_even_where_it_is_zero() -> None:
    for name, value in [
        ("damping", 0.0),
        ("passage_weight", 0.0),
        ("seed_sharpness", 1.0),
        ("fact_candidates", 3),
        ("synonym_edges", False),
        ("adaptive_passage_weight", True),
    ]:
        changed = Context(walk=Walk(**{name: value})).walk_settings()
        differing = {key for key in WalkSettings.__dataclass_fields__ if getattr(changed, key) != getattr(MARA, key)}
        assert differing == {name}
        assert getattr(changed, name) == value


def test_without_the_manager_a_walk_goes_by_no_beta() -> None:
    assert Context().walk_settings().beta
    assert not Context(weigh_relations=False).walk_settings().beta
    assert not Context(mode=Mode.HIPPORAG2).walk_settings().beta


def test_a_question_that_cannot_be_asked_is_bad_input_with_a_hint() -> None:
    for question, reason in [
        ("", "empty"),
        (" \u3000\n", "empty"),
        ("?" * (QUESTION_LIMIT + 1), "10,001 characters"),
        ("\udcff?", "Unicode"),
    ]:
        with pytest.raises(BadInput, match=reason) as failure:
            check_question(question)
        assert failure.value.hint, question


def test_a_question_without_a_word_is_not_searched_but_asked_for(settings: MakeContext) -> None:
    for mode in Mode:
        done = run(settings(mode=mode), "?! \u200b")
        assert (done.result["answer"], done.passage_ids) == ("Ask a question about the documents.", []), mode
