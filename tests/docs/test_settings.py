"""The settings page names every variable that the code reads, and what is a mode's own."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from graph.environment import NAMES
from graph.retrieve.modes import DEFAULT_ALPHA, MARA, Mode, WalkSettings
from tests.docs.pages import ROOT, plain, read, sources, strings_among, table
from tests.docs.settings_tables import FORMS, MODES, command_flags, mode_table, setting_tables
from workflows.context import Context
from workflows.settings.indexing import IndexingContext
from workflows.settings.walk import Walk

PAGE = read(ROOT / "docs" / "settings.md")
VARIABLE = re.compile(r"(?:MARA|OPENAI|LANGSMITH|LANGCHAIN|LANGGRAPH|LANGSERVE|CHROMA|OTEL|XDG)(?:_[A-Z0-9]+)+")
OWN = [plain(row["variable"]) for row in table(PAGE, "Environment")]


def test_the_environment_table_names_exactly_what_the_code_reads() -> None:
    assert sorted(OWN) == sorted(NAMES)


def test_the_code_names_no_other_variable() -> None:
    naming = [ast.walk(ast.parse(text)) for text in sources().values() if VARIABLE.search(text)]
    assert {text for each in naming for text in strings_among(each) if VARIABLE.fullmatch(text)} <= set(NAMES)
    assert [name for name in NAMES if not VARIABLE.fullmatch(name)] == []


def test_the_example_environment_names_variables_that_are_documented() -> None:
    of_libraries = {plain(row["variable"]) for row in table(PAGE, "Variables of the libraries")}
    named = set(re.findall(r"^#? ?([A-Z_]+)=", read(ROOT / ".env.example"), re.MULTILINE))
    assert named <= {*OWN, *of_libraries}


@pytest.mark.parametrize(
    ("variable", "library"),
    [(plain(row["variable"]), row["library"]) for row in table(PAGE, "Variables of the libraries")],
)
def test_a_variable_of_a_library_is_one_that_it_reads(variable: str, library: str) -> None:
    found = find_spec(library)
    assert found
    assert found.origin
    sources = (path.read_text(encoding="utf-8") for path in sorted(Path(found.origin).parent.rglob("*.py")))
    short = variable.removeprefix("LANGSMITH_")  # langsmith puts the prefix before the name itself
    assert any(f'"{variable}"' in text or (library == "langsmith" and f'"{short}"' in text) for text in sources)


def test_what_a_mode_alone_decides_is_said_to_be_no_setting() -> None:
    alone = {plain(row["setting"]) for row in table(PAGE, "Set by the mode alone")}
    assert alone == set(WalkSettings.__dataclass_fields__) - set(Walk.model_fields)


@pytest.mark.parametrize("form", FORMS)
def test_every_field_has_its_row_with_its_limits_and_what_it_does(form: str) -> None:
    rows = re.findall(r"^\| `(\w+)`.*?\| (.*?) \| (.*?) \| (.*?) \|$", setting_tables(form), re.MULTILINE)
    assert sorted(name for name, *_ in rows) == sorted(FORMS[form].fields)
    assert all(default and limits and effect for _, default, limits, effect in rows)


def test_of_a_workflow_s_settings_those_are_shown_that_asking_does_not_have_or_has_otherwise() -> None:
    fields, general = FORMS["ragenta"].fields, Context.model_fields
    assert {"judge_floor", "follow_ups"} <= set(fields) - set(general)
    assert {name for name in fields if name in general} == {"mode", "top_k", "check_claims", "answer_passages"}
    assert {name: (field.default, general[name].default) for name, field in fields.items() if name in general} == {
        "mode": (Mode.HYBRID, Mode.MARA),
        "top_k": (20, 10),
        "check_claims": (True, False),
        "answer_passages": (10, 5),
    }


def test_rows_say_default_limits_and_option() -> None:
    asking, walk, extraction = map(setting_tables, ("asking", "walk", "extraction"))
    assert "| `top_k`<br>`--top-k` | 10 | 1 to 200 |" in asking
    assert "| `damping` | the mode's | 0 to 0.99, or empty |" in walk
    assert "| `entity_rarity` | the mode's | `inverse`, `log-idf`, or empty |" in walk
    assert "| `requests_per_minute` | empty | more than 0 to 1,000,000, or empty |" in extraction
    assert "`$in`, `$ne`" in asking


def test_the_table_of_modes_shows_their_values() -> None:
    rows = {line.split(" | ")[0].strip("| `"): line for line in mode_table().splitlines()}
    assert set(WalkSettings.__dataclass_fields__) <= set(rows)
    assert rows["alpha"].split(" | ")[1] == f"{DEFAULT_ALPHA}"
    assert rows["damping"].split(" | ")[1] == f"{MARA.damping}"
    assert rows["setting"].count(" | ") == len(MODES)


def test_options_that_have_a_field_are_shown_beside_it() -> None:
    ask, index = command_flags()["ask"], command_flags()["index"]
    assert {"--mode", "--where", "--set"} <= set(ask)
    assert set(index) - {f"--{name.replace('_', '-')}" for name in IndexingContext.model_fields} == {
        *("--field", "--triples", "--dry-run", "--sample", "--set")
    }
