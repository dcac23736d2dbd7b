"""Settings that are parts of an object: by their paths, by short and by earlier names."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput
from tests.workflows.command_line import Mara
from tests.workflows.small_world import QUESTION
from workflows import indexing, mara
from workflows.cli.options import settings_given
from workflows.context import Context, Walk, make_context
from workflows.conversation.settings import ChatContext
from workflows.evaluation.systems import parse_system
from workflows.settings.indexing import Extraction, IndexingContext
from workflows.settings.ragenta import RagentaContext
from workflows.settings.renamed import RenamedSetting, SettingsForm

FORMS = (Context, RagentaContext, IndexingContext, ChatContext)
RAGENTA: Any = RagentaContext
INDEXING: Any = IndexingContext


@pytest.mark.parametrize("form", FORMS)
def test_every_earlier_name_leads_to_a_part_that_there_is(form: type[SettingsForm]) -> None:
    for path in form.earlier.values():
        whole, _, part = path.partition(".")
        assert part in type(form.model_fields[whole].default).model_fields


@pytest.mark.parametrize(
    ("make", "name", "present"),
    [
        (make_context, "damping", Context(walk=Walk(damping=0.5))),
        (lambda **given: Context.model_validate(given), "damping", Context(walk=Walk(damping=0.5))),
        (lambda **given: ChatContext(**given).chosen(), "damping", Context(walk=Walk(damping=0.5))),
        (INDEXING, "temperature", IndexingContext(extraction=Extraction(temperature=0.5))),
    ],
    ids=["function", "JSON", "chat", "indexing"],
)
def test_an_earlier_name_works_with_a_word_about_the_present_one(
    make: Callable[..., SettingsForm], name: str, present: SettingsForm
) -> None:
    with pytest.warns(RenamedSetting, match=f"{name} is now .*; the earlier name goes") as told:
        assert make(**{name: 0.5}) == present
    assert {each.filename for each in told} == {__file__}


def test_earlier_names_are_added_to_the_object_and_do_not_say_twice_what_it_says() -> None:
    with pytest.warns(RenamedSetting):
        assert make_context(walk={"alpha": 0.3}, damping=0.5).walk == Walk(alpha=0.3, damping=0.5)
    with pytest.warns(RenamedSetting), pytest.raises(BadInput, match=r"walk\.damping is given twice"):
        make_context(walk={"damping": 0.3}, damping=0.5)


def test_the_command_line_and_switches_take_the_last_part_of_a_path_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert settings_given(["damping=.5", "walk.alpha=.3"], RagentaContext) == {
            "walk.damping": ".5",
            "walk.alpha": ".3",
        }
        assert settings_given(["concurrency=3"], IndexingContext) == {"extraction.concurrency": "3"}
        short, whole = (parse_system(f"mara+{name}=0.5", Context()) for name in ("damping", "walk.damping"))
        assert short.context == whole.context == Context(walk=Walk(damping=0.5))


def test_a_command_says_it_in_one_line(mara: Mara, small_workspace: Path) -> None:
    asked = ("ask", QUESTION, "-w", small_workspace, "--workflow", "ragenta", "--json", "--set")
    assert mara(*asked, "damping=0.5").err == ""
    (line,) = mara(*asked, "max_follow_ups=2").err.splitlines()
    assert line == "The setting max_follow_ups is now follow_ups.questions; the earlier name goes with the next release"


@pytest.mark.parametrize("graph", [mara.graph, indexing.graph], ids=["asking", "indexing"])
def test_a_server_takes_earlier_names_and_shows_none(graph: Any) -> None:
    properties = graph.get_context_jsonschema()["properties"]
    form = graph.context_schema
    assert all(name in properties for name in form.earlier)
    assert "unheard_of" not in properties
    assert json.loads(json.dumps(properties)).keys() == form.model_fields.keys()
