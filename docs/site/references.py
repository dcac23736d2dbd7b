"""Tables of every setting, mode, command, error, variable and relation type, in Markdown, read off the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from graph.environment import NAMES, Environment
from graph.errors import MaraError
from graph.relations import RELATIONS
from graph.retrieve.modes import HIPPORAG2, MARA, MARA_MATRIX, SEED, WalkSettings
from graph.walk.settings import Directions
from workflows.cli.options import option_of
from workflows.context import Context, Question
from workflows.conversation.settings import ChatSettings
from workflows.settings.indexing import Extraction, IndexingContext, Sources
from workflows.settings.ragenta import FollowUps, RagentaContext
from workflows.settings.walk import Walk

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

GROUP = " · "
"""What parts a setting's title into its group and its name."""

MODES: Mapping[str, WalkSettings] = {
    "mara": MARA,
    "mara, preset seed": SEED,
    "hipporag2": HIPPORAG2,
    "mara-matrix": MARA_MATRIX,
}
"""The modes that walk, by how they are asked for."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form, and what is shown of it.

    Attributes:
        model: its fields.
        commands: the commands whose options set them.
        beside: another form, whose fields are left out where this one has them unchanged.
    """

    model: type[BaseModel]
    commands: tuple[str, ...] = ()
    beside: type[BaseModel] | None = None

    @property
    def fields(self) -> dict[str, FieldInfo]:
        """The fields that are shown, by name."""
        known = {name: repr(field) for name, field in self.beside.model_fields.items()} if self.beside else {}
        return {name: field for name, field in self.model.model_fields.items() if repr(field) != known.get(name)}


FORMS: Mapping[str, Form] = {
    "asking": Form(Context, ("ask",)),
    "walk": Form(Walk),
    "ragenta": Form(RagentaContext, ("ask",), beside=Context),
    "follow-ups": Form(FollowUps),
    "chat": Form(ChatSettings),
    "indexing": Form(IndexingContext, ("index", "sync")),
    "extraction": Form(Extraction),
    "question": Form(Question),
    "sources": Form(Sources, ("index", "sync")),
}
"""The forms by name."""

_WITH_ERRORS = ("agents.chat.throttle", "workflows.serving.page.app", "workflows.serving.page.workers")
"""Modules that, with all that they import, define errors."""

_PLACEHOLDERS = {int: "N", float: "X", Path: "PATH"}
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.+)$", re.MULTILINE)
_OPERATOR = re.compile(r"(?<!`)\$\w+")


def setting_tables(form: str) -> str:
    """Return the fields of a form as tables, one a group of fields.

    Args:
        form: ``asking``, ``ragenta``, ``chat`` or ``indexing`` for the settings of a run, ``question`` or ``sources``
            for what it is given.
    """
    shown = FORMS[form]
    schema = shown.model.model_json_schema()
    flags = {flag for command in shown.commands for flag in command_flags()[command]}
    groups: dict[str, list[Sequence[str]]] = {}
    for name, field in shown.fields.items():
        group, _, _ = schema["properties"][name].get("title", "").rpartition(GROUP)
        flag = option_of(name)
        row = (
            f"`{name}`" + (f"<br>`{flag}`" if flag in flags else ""),
            _default_of(name, field),
            _limits(schema["properties"][name], schema.get("$defs", {})),
            " ".join((field.description or "").split()),
        )
        groups.setdefault(group, []).append(row)
    heads = ("setting", "default", "limits", "what it does")
    return "\n".join(f"{_heading(group)}{_table(heads, rows)}" for group, rows in groups.items())


def mode_table() -> str:
    """Return what each mode that walks sets by itself, one row a setting."""
    rows = [
        (f"`{name}`", *(_shown(getattr(settings, name)) for settings in MODES.values()))
        for name in WalkSettings.__dataclass_fields__
    ]
    return _table(("setting", *(f"`{mode}`" for mode in MODES)), rows)


def relation_table() -> str:
    """Return what each relation type links and means, with examples."""
    rows = [
        (f"`{relation}`", about.links.value, about.meaning, "; ".join(about.examples), about.question or "–")
        for relation, about in RELATIONS.items()
    ]
    return _table(("relation type", "links", "what it means", "examples", "a question that asks for it"), rows)


def command_table() -> str:
    """Return what each command does, and below it the options of each."""
    commands = list(_walk_commands(_command_line()))
    parts = [_table(("command", "what it does"), [(f"`mara {name}`", command.help) for name, command in commands])]
    for name, command in commands:
        if options := dict(_flags_of(command)):
            parts.append(f"#### mara {name}\n\n{_table(('option', 'default', 'what it does'), options.values())}")
    return "\n".join(parts)


def error_table() -> str:
    """Return each kind of error with its root, its exit code and when it is raised, roots first."""
    for module in _WITH_ERRORS:
        import_module(module)
    rows = [
        (f"`{kind.__name__}`", root, str(kind.exit_code), _first_line(kind)) for kind, root in _errors_below(MaraError)
    ]
    return _table(("kind", "is a", "exit code", "when"), [("`MaraError`", "", "1", _first_line(MaraError)), *rows])


def variable_table() -> str:
    """Return every variable of the environment that the code reads."""
    about = dict(_ATTRIBUTE.findall(inspect.getdoc(Environment) or ""))
    return _table(("variable", "effect"), [(f"`{name}`", about[name.lower()]) for name in NAMES])


def _errors_below(root: type[MaraError]) -> Iterator[tuple[type[MaraError], str]]:
    for kind in root.__subclasses__():
        if not kind.__name__.startswith("_"):
            yield kind, f"`{root.__name__}`"
            yield from _errors_below(kind)


def _first_line(kind: type[MaraError]) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("``", "`")


def command_flags() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return {command: {flag: (how it is written, its default, what it does)}} of the command line."""
    return {name: dict(_flags_of(command)) for name, command in _walk_commands(_command_line())}


def _command_line() -> Any:
    import typer.main

    from workflows.cli.app import app

    return typer.main.get_command(app)


def _walk_commands(command: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(names), command
        return
    for name, each in inner.items():
        yield from _walk_commands(each, (*names, name))


def _flags_of(command: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    for option in command.params:
        if option.param_type_name != "option" or option.name == "help":
            continue
        written = f"`{', '.join([*option.opts, *option.secondary_opts])}{_value_of(option)}`"
        default = "required" if option.required else "" if option.is_flag else _shown(option.default)
        yield option.opts[0], (written, default, f"{option.help or ''}{_bounds_of(option)}")


def _value_of(option: Any) -> str:
    if option.is_flag:
        return ""
    wanted = option.type_descriptor.annotation
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return f" {'|'.join(str(choice.value) for choice in wanted)}"
    return f" {option.metavar or _PLACEHOLDERS.get(wanted, 'TEXT')}"


def _bounds_of(option: Any) -> str:
    if option.max is not None:
        return f" From {option.min} to {option.max}."
    return f" At least {option.min}." if option.min is not None else ""


def _default_of(name: str, field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None and name in WalkSettings.__dataclass_fields__:
        return "the mode's"
    return _shown(field.default) or "empty"


def _shown(value: object) -> str:
    if isinstance(value, BaseModel):
        return _shown(value.model_dump(exclude_defaults=True))
    if value is None or value in ("", {}):
        return ""
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Directions):
        return "by side" if value.from_entity else "none"
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def _limits(schema: Mapping[str, Any], types: Mapping[str, Any]) -> str:
    """Return in words what a setting's JSON schema lets it be."""
    for option in schema.get("anyOf", []):
        if option.get("type") != "null":
            return f"{_limits(option, types)}, or empty"
    if "$ref" in schema:
        return _limits(types[schema["$ref"].rpartition("/")[2]], types)
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    kind = schema.get("type")
    if kind in ("integer", "number"):
        low = f"{schema['minimum']:g}" if "minimum" in schema else f"more than {schema['exclusiveMinimum']:g}"
        return f"{low} to {_number(schema['maximum'])}"
    if kind == "string":
        return f"text, at most {_number(schema['maxLength'])} characters" if "maxLength" in schema else "text"
    return {"boolean": "yes or no", "object": "keys and values", "array": "a list"}.get(str(kind), str(kind))


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _heading(group: str) -> str:
    return f"### {group}\n\n" if group else ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *(map(_cell, row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    """Return a text that ends neither its cell nor its line."""
    return _OPERATOR.sub(r"`\g<0>`", " ".join(text.split())).replace("|", "\\|")
