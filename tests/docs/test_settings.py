"""The settings page: variables that are read, settings that exist with their defaults, and those of a mode alone."""

from __future__ import annotations

import re

from docs.site.references import FORMS, command_flags, setting_tables, variable_table
from graph.environment import NAMES
from graph.retrieve.modes import WalkSettings
from tests.docs.pages import ROOT, plain, read, sources, table
from workflows.context import Context
from workflows.settings.indexing import IndexingContext
from workflows.settings.walk import Walk

PAGE = read(ROOT / "docs" / "settings.md")
VARIABLE = re.compile(r"(?:MARA|OPENAI|LANGSMITH|LANGCHAIN|LANGGRAPH|LANGSERVE|CHROMA|OTEL|XDG)(?:_[A-Z0-9]+)+")
OF_LIBRARIES = {plain(row["variable"]): row["library"] for row in table(PAGE, "Variables of the libraries")}


def shown(heading: str, column: str) -> dict[str, dict[str, str]]:
    """The rows below a heading, by each name in a column."""
    return {name: row for row in table(PAGE, heading) for name in plain(row[column]).split(", ")}


def test_the_code_names_no_variable_but_those_of_the_table() -> None:
    strings = {string for text in sources().values() for string in re.findall(r'"(\w+)"', text)}
    assert {string for string in strings if VARIABLE.fullmatch(string)} <= set(NAMES)
    assert re.findall(r"^\| `(\w+)` \| \S.* \|$", variable_table(), re.MULTILINE) == list(NAMES)
    assert set(shown("Environment", "variable")) <= set(NAMES)
    named = set(re.findall(r"^#? ?([A-Z_]+)=", read(ROOT / ".env.example"), re.MULTILINE))
    assert named <= {*NAMES, *OF_LIBRARIES}


def test_the_settings_of_the_page_exist_with_these_options_and_defaults() -> None:
    for heading, form, command in (("Asking", Context, "ask"), ("Indexing", IndexingContext, "index")):
        for name, row in shown(heading, "setting").items():
            default = form.model_fields[name].default
            assert not row["option"] or plain(row["option"]) in command_flags()[command]
            if isinstance(default, int) and not isinstance(default, bool):
                assert row["default"] == f"{default}", name


def test_a_mode_s_own_are_those_that_no_form_has() -> None:
    alone = {plain(row["setting"]) for row in table(PAGE, "Set by the mode alone")}
    assert alone == set(WalkSettings.__dataclass_fields__) - set(Walk.model_fields)


def test_every_field_has_its_row_with_its_limits_and_what_it_does() -> None:
    for form in FORMS:
        rows = re.findall(r"^\| `(\w+)`.*?\| (.*?) \| (.*?) \| (.*?) \|$", setting_tables(form), re.MULTILINE)
        assert sorted(name for name, *_ in rows) == sorted(FORMS[form].fields)
        assert all(default and limits and effect for _, default, limits, effect in rows)
